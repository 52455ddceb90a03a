package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/core/coretest"
	"gatehouse/core/store"
)

// smallDisk mounts a file system of that many bytes until the test ends, and
// returns its path and a function that changes the size.
func smallDisk(t *testing.T, size int64) (dir string, resize func(int64)) {
	t.Helper()
	dir = t.TempDir()
	options := func(size int64) string { return fmt.Sprintf("size=%d,mode=700", size) }
	if err := syscall.Mount("none", dir, "tmpfs", 0, options(size)); err != nil {
		t.Skip("a small disk needs the right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size int64) {
		t.Helper()
		if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, options(size)); err != nil {
			t.Fatal(err)
		}
	}
}

// Wherever in the adoption the disk fills, the file is what it was, without any
// file next to it, and the adoption succeeds when there is room.
func TestADiskThatFillsDuringAdoptionLeavesTheOriginalFileUsableAlone(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			path := product(t, 12)
			db := raw(t, path)
			run(t, db, `PRAGMA journal_mode = `+mode, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
				INSERT INTO sessions (id, title, created_at, last_accessed) SELECT 'bulk' || i, hex(zeroblob(1000)), '2025-01-01 00:00:00', '2025-01-01 00:00:00' FROM n`)
			db.Close()
			before := dump(t, path)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			size, failed, taken := int64(len(file)), 0, false
			for room := size / 4; !taken; room += size / 3 {
				if room > 20*size {
					t.Fatal("it is never taken over")
				}
				taken = !adoptOnFullDisk(t, file, size+room, before)
				if !taken {
					failed++
				}
			}
			if failed < 4 {
				t.Errorf("the disk was full only %d times", failed)
			}
		})
	}
}

// adoptOnFullDisk adopts the database on a disk of that size, and reports
// whether it was full.
func adoptOnFullDisk(t *testing.T, file []byte, size int64, before string) (full bool) {
	t.Helper()
	dir, resize := smallDisk(t, size)
	path := filepath.Join(dir, "sessions.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() error {
		db, err := store.Open(t.Context(), path, store.Options{Clock: coretest.NewClock(adoptionDay)})
		if err == nil {
			err = db.Close()
		}
		return err
	}
	err := open()
	if err == nil {
		return false
	}
	if !strings.Contains(err.Error(), "the disk is full and the database is still the original system's; make ") {
		t.Errorf("with %d bytes: the error does not say what to do: %v", size, err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(alone, now, 0o600); err != nil {
		t.Fatal(err)
	}
	if dump(t, alone) != before {
		t.Errorf("with %d bytes: the file alone is not the original one", size)
	}
	for _, name := range beside(t, path) {
		if name != "sessions.db" && !strings.HasSuffix(name, ".bak") {
			t.Errorf("with %d bytes: %s is left", size, name)
		}
	}
	resize(64 << 20)
	if err := open(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	expect(t, raw(t, path), `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM access)`, `310|3`)
	return true
}
