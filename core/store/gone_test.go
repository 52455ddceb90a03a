package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
)

func TestAReaderMakesNoNewDatabaseWhereTheFileIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	d, err := Open(t.Context(), path, Options{Clock: core.System{}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	failed := 0
	var open []*sqlx.Conn
	for range readers { // more than are open: the others are opened now
		c, err := d.read.Connx(t.Context())
		if err != nil {
			failed++
			continue
		}
		open = append(open, c)
	}
	for _, c := range open {
		_ = c.Close()
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) || failed == 0 {
		t.Errorf("%d connections failed; the file: %v", failed, err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
}
