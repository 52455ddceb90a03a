package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/configs"
	"gatehouse/core"
)

// Folder is the demo's vault in the home directory, unless another one is set.
const Folder = "Gatehouse-demo"

// mark is in a vault that the demo made: only such a one is emptied.
const mark = ".parachute/demo"

// Made reports whether the demo has made the vault.
func Made(vault string) bool {
	_, err := os.Stat(filepath.Join(vault, mark))
	return err == nil
}

// Empty deletes the vault and what the demo kept next to it. It refuses a vault
// that the demo has not made.
func Empty(vault string) error {
	if _, err := os.Stat(vault); err == nil {
		if !Made(vault) {
			return core.Errorf(core.Invalid, "%s was not made by the demo, so --fresh leaves it alone: set GATEHOUSE_VAULT_PATH to another folder", vault)
		}
		if err := os.RemoveAll(vault); err != nil {
			return fmt.Errorf("empty the demo's vault: %w", err)
		}
	}
	telegram, discord := States(vault)
	for _, state := range []string{telegram, discord, providersFile(vault)} {
		if err := os.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete what the demo kept next to its vault: %w", err)
		}
	}
	return nil
}

// Fill copies the sample vault into a new directory. A directory that has files
// already is left as it is.
func Fill(vault string) error {
	entries, err := os.ReadDir(vault)
	if err == nil && len(entries) > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(vault, ".parachute"), 0o700); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.WriteFile(filepath.Join(vault, mark), []byte("made by gatehouse demo\n"), 0o600); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.CopyFS(vault, configs.SampleVault()); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	return nil
}
