package client_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core/coretest"
	"gatehouse/core/vaultsync/client"
)

// plainly runs f without the superuser's right to write everywhere, if the test has it; dir
// is given to the user that f runs as.
func plainly(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(dir); up != "/"; up = filepath.Dir(up) { // it may be entered
		if st, err := os.Stat(up); err == nil && st.Mode()&0o001 == 0 { // those of the test
			_ = os.Chmod(up, st.Mode()|0o011)
		}
	}
	runtime.LockOSThread() // the rights are those of the thread
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}

// A file that cannot be written here keeps no other from coming, is reported, and is tried
// again after a pause.
func TestOnce_AFileThatCannotBeWrittenHereKeepsNoOther(t *testing.T) {
	s, _, b := pair(t)
	write(t, s.dir, "shut/a.md", "one\n")
	b.sync(t)
	write(t, s.dir, "shut/c.md", "two\n")
	write(t, s.dir, "later.md", "three\n")
	shut := filepath.Join(b.dir, "shut")
	plainly(t, b.dir, func() {
		if err := os.Chmod(shut, 0o500); err != nil {
			t.Fatal(err)
		}
		c, err := client.Open(b.o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 2 {
			r, err := c.Once(t.Context())
			if err != nil || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "shut/c.md: it cannot be written here: permission denied") {
				t.Errorf("%q, %v", r.Errors, err)
			}
		}
		if got := tree(t, b.dir); got["later.md"] != "three\n" || len(got) != 2 {
			t.Errorf("%s", listed(got))
		}
		if err := os.Chmod(shut, 0o700); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Once(t.Context()); err != nil || r.Fetched != 0 {
			t.Errorf("before the pause is over: %+v, %v", r, err)
		}
		b.o.Clock.(*coretest.Clock).Advance(time.Minute)
		if r, err := c.Once(t.Context()); err != nil || r.Fetched != 1 || len(r.Errors) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	same(t, s.dir, b.dir)
}

// A file that cannot be read here is reported, and not taken for a deleted one.
func TestOnce_AFileThatCannotBeReadHereIsReported(t *testing.T) {
	s, _, b := pair(t)
	write(t, b.dir, "a.md", "one\n")
	write(t, b.dir, "shut/b.md", "two\n")
	b.sync(t)
	write(t, b.dir, "z.md", "three\n")
	plainly(t, b.dir, func() {
		if err := os.Chmod(filepath.Join(b.dir, "shut"), 0); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(filepath.Join(b.dir, "shut"), 0o700) }()
		if r, err := b.try(); err != nil || r.Sent != 1 || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "shut: it cannot be read here") {
			t.Errorf("%+v, %v", r, err)
		}
	})
	b.sync(t)
	if got := tree(t, s.dir); len(got) != 3 {
		t.Errorf("%s", listed(got))
	}
}

// A file that the server lists and cannot read keeps no other from coming, is reported in each
// run until it can be read, and is not taken for a deleted one.
func TestAFileThatTheServerCannotReadIsReported(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "Notes/a.md", "one\n")
	write(t, a.dir, "Notes/b.md", "two\n")
	write(t, a.dir, "z.md", "three\n")
	a.sync(t)
	s.reading = func(name string, open func()) {
		if name == "Notes/a.md" {
			plainly(t, s.dir, func() {
				if err := os.Chmod(filepath.Join(s.dir, name), 0); err != nil {
					t.Error(err)
				}
				open()
			})
			return
		}
		open()
	}
	for n := range 2 {
		r := b.sync(t)
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "Notes/a.md") || !strings.Contains(r.Errors[0], "cannot be read on the server: permission denied") {
			t.Errorf("run %d: %q", n, r.Errors)
		}
		if got := tree(t, b.dir); got["Notes/b.md"] != "two\n" || got["z.md"] != "three\n" || len(got) != 2 {
			t.Errorf("%s", listed(got))
		}
	}
	s.reading = nil
	if err := os.Chmod(filepath.Join(s.dir, "Notes/a.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.sync(t); r.Fetched != 1 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	same(t, s.dir, a.dir, b.dir)
}

// A file that is deleted between the list and its being sent is none that is reported.
func TestAFileThatIsDeletedOnTheServerWhileOthersAreFetchedIsNoError(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "a.md", "one\n")
	write(t, a.dir, "b.md", "two\n")
	a.sync(t)
	s.reading = func(name string, open func()) {
		if name == "a.md" {
			_ = os.Remove(filepath.Join(s.dir, name))
		}
		open()
	}
	if r := b.sync(t); r.Fetched != 1 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	same(t, s.dir, b.dir)
}
