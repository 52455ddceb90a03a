package vaultsync_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
)

// A file that cannot be written is refused by itself: a request goes on with its others.
func TestPush_AFileThatCannotBeWrittenIsRefusedByItself(t *testing.T) {
	w := open(t)
	w.write("shut/a.md", "one\n")
	w.list(owner(), "")
	shut := filepath.Join(w.dir, "shut")
	if err := os.Chmod(shut, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(shut, 0o700) }()
	if os.Getuid() == 0 { // the superuser may write everywhere, a thread that gives that up not
		if err := filepath.WalkDir(w.dir, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(name, 65534, 65534))
		}); err != nil {
			t.Fatal(err)
		}
		for dir := filepath.Dir(w.dir); dir != "/"; dir = filepath.Dir(dir) {
			if st, err := os.Stat(dir); err == nil && st.Mode()&0o001 == 0 { // those of the test, which others may not enter
				_ = os.Chmod(dir, st.Mode()|0o011)
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	in := vaultsync.Sent{Meta: wire.Meta{Path: "shut/b.md"}, Device: "phone"}
	if _, err := w.Push(t.Context(), owner(), in, strings.NewReader("two\n")); core.KindOf(err) != core.Denied || !strings.Contains(core.TextOf(err), "cannot be written on the server") || strings.Contains(core.TextOf(err), w.dir) {
		t.Errorf("a push: %v", err)
	}
	if _, err := w.Delete(t.Context(), owner(), "", "shut/a.md", hash("one\n")); core.KindOf(err) != core.Denied {
		t.Errorf("a deletion: %v", err)
	}
}
