package backup

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/core/store/storetest"
)

// making begins a backup of a new vault and returns it with its vault.
func begun(t *testing.T) (b *making, vault string) {
	t.Helper()
	vault = t.TempDir()
	database := filepath.Join(vault, "Chat", "sessions.db")
	storetest.Seed(t, database)
	b, err := newMaking(Source{Vault: vault, Database: database}, filepath.Join(t.TempDir(), "b.tar.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.record(); err != nil {
		t.Fatal(err)
	}
	return b, vault
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSweepKeepsTheFilesOfABackupThatIsBeingMade(t *testing.T) {
	b, vault := begun(t)
	if swept, err := Sweep(vault); err != nil || len(swept) != 0 || len(files(t, filepath.Dir(b.file))) != 1 {
		t.Errorf("%v, %v, left %v", swept, err, files(t, filepath.Dir(b.file)))
	}
	b.report = &Report{}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	if left := append(files(t, filepath.Dir(b.file)), files(t, filepath.Join(vault, pendingDir))...); len(left) != 0 {
		t.Errorf("an ended backup leaves %v", left)
	}
}

func TestSweepDeletesOnlyWhatAKilledBackupLeft(t *testing.T) {
	b, vault := begun(t)
	_, _ = b.part.Close(), b.root.Close() // as a kill does
	dir := filepath.Dir(b.file)
	for _, name := range []string{b.file, b.file + ".part.db", b.file + ".part.db-journal", filepath.Join(dir, "other.tar.gz.part")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"odd": "relative/path", "up": dir + "/../x", "empty": ""} {
		if err := os.WriteFile(filepath.Join(vault, pendingDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := Sweep(vault)
	if err != nil || len(swept) != 1 || swept[0] != b.file {
		t.Errorf("%v, %v", swept, err)
	}
	if left := files(t, dir); len(left) != 2 || left[0] != "b.tar.gz" || left[1] != "other.tar.gz.part" {
		t.Errorf("left: %v", left)
	}
	if left := files(t, filepath.Join(vault, pendingDir)); len(left) != 0 {
		t.Errorf("notes: %v", left)
	}
}
