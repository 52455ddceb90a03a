package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
)

func TestADatabaseOnAServerIsRefusedWithWhatToUse(t *testing.T) {
	t.Parallel()
	src := source(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "a.tar.gz")
	if _, err := Make(t.Context(), src, file, nil); err != nil {
		t.Fatal(err)
	}
	src.Database = "postgres://gateway:topsecret@db.test/chat"
	to := Target{Vault: filepath.Join(dir, "new"), Database: src.Database}
	_, made := Make(t.Context(), src, filepath.Join(dir, "b.tar.gz"), nil)
	_, restored := Restore(t.Context(), to, file, nil)
	_, checked := Check(t.Context(), to, file, nil)
	for what, err := range map[string]error{"Make": made, "Restore": restored, "Check": checked} {
		if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "pg_dump and pg_restore") || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
}
