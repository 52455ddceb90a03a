// Package isolation makes the options of the container back end from the settings,
// and probes the back ends.
package isolation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// Container returns the options of the container back end, and makes its directory.
func Container(cfg *configs.Config, runtime, self string) (container.Options, error) {
	dir := filepath.Join(runtime, "c")
	if err := control.MakeDir(runtime); err != nil {
		return container.Options{}, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return container.Options{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = dir
	}
	return container.Options{Stage: self, Dir: dir, Image: cfg.SandboxImage, Home: home}, nil
}

// Probe returns the state of the back ends that SANDBOX allows, for doctor.
func Probe(cfg *configs.Config, self string) []sandbox.Backend {
	if cfg == nil || cfg.Sandbox != sandbox.Container {
		return sandbox.Probe(self)
	}
	runtime, err := control.Dir(cfg.VaultPath)
	if err != nil {
		return []sandbox.Backend{{Name: sandbox.Container, Text: err.Error()}}
	}
	o, err := Container(cfg, runtime, self)
	if err != nil {
		return []sandbox.Backend{{Name: sandbox.Container, Text: err.Error()}}
	}
	return []sandbox.Backend{container.Probe(o)}
}
