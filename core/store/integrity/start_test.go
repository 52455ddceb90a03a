package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"
)

func TestAStartThatFailsNamesFileAndRemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sqlx.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	db.MustExec(`CREATE TABLE a (b TEXT)`)
	db.MustExec(`PRAGMA max_page_count = 2`)
	_, full := db.Exec(`INSERT INTO a VALUES (?)`, strings.Repeat("x", 100_000))
	db.MustExec(`PRAGMA query_only = 1`)
	_, readOnly := db.Exec(`INSERT INTO a VALUES ('x')`)
	for name, x := range map[string]struct {
		err  error
		want string
	}{
		"full":           {full, "the disk is full: free space below " + filepath.Dir(path)},
		"full, a file":   {&fs.PathError{Op: "open", Path: path, Err: syscall.ENOSPC}, "the disk is full"},
		"full, I/O":      {fmt.Errorf("migrate: %w", sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}), "the disk is full"},
		"read-only":      {readOnly, "cannot be written: give it and its folder"},
		"permission":     {&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}, "cannot be written"},
		"no descriptors": {sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EMFILE}, "LimitNOFILE"},
		"another":        {errors.New("something"), "something"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Start(path, x.err)
			if x.err == nil || !strings.Contains(got.Error(), "database "+path) || !strings.Contains(got.Error(), x.want) {
				t.Errorf("%v: %v", x.err, got)
			}
		})
	}
}
