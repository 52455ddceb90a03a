package beneath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func folder(t *testing.T, path string) *Dir {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// nest makes depth folders, each in the one before, and a file in the last.
func nest(t *testing.T, d *Dir, depth int) {
	t.Helper()
	at, err := d.Dir(".")
	for i := 0; err == nil && i < depth; i++ {
		if err = at.Mkdir("n"); err == nil {
			var next *Dir
			next, err = at.Dir("n")
			_ = at.Close()
			at = next
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Openat(int(at.f.Fd()), "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Close(fd), at.Close()
}

func TestRemove_ThousandsOfNestedFoldersNeedFewDescriptors(t *testing.T) {
	base := t.TempDir()
	d := folder(t, base)
	if err := d.Mkdir("deep"); err != nil {
		t.Fatal(err)
	}
	deep, err := d.Dir("deep")
	if err != nil {
		t.Fatal(err)
	}
	nest(t, deep, 30_000)
	_ = deep.Close()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: 64, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }()
	if err := d.Remove(t.Context(), "deep"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestRemove_DeletesLinksAndNotWhatTheyLeadTo(t *testing.T) {
	base := t.TempDir()
	d := folder(t, base)
	folder(t, filepath.Join(base, "kept"))
	inner := folder(t, filepath.Join(base, "gone/a/b"))
	if err := errors.Join(os.WriteFile(filepath.Join(base, "kept/file"), nil, 0o600), inner.Symlink("../../../kept", "link"),
		inner.Mkdir("shut"), os.Chmod(filepath.Join(base, "gone/a/b/shut"), 0), os.Chmod(filepath.Join(base, "gone/a"), 0o500)); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(base, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(base, "kept/file")); err != nil {
		t.Error(err)
	}
	if err := d.Remove(t.Context(), "gone"); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestRemove_StopsWithItsContextAndContinuesLater(t *testing.T) {
	base := t.TempDir()
	d := folder(t, base)
	nest(t, folder(t, filepath.Join(base, "a")), 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Remove(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("%v %v", entries, err)
	}
	if err := d.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// TestMove_WhileNamesAreSwapped moves what was decided on and nothing else,
// while another process exchanges it with something else.
func TestMove_WhileNamesAreSwapped(t *testing.T) {
	const swaps = 10_000
	base := t.TempDir()
	area, trash := folder(t, filepath.Join(base, "area")), folder(t, filepath.Join(base, "trash"))
	kept := folder(t, filepath.Join(base, "area/kept"))
	want, err := kept.Self()
	if err != nil {
		t.Fatal(err)
	}
	make := func(n int) ID {
		if err := area.Mkdir("bad"); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		for {
			for _, name := range []string{"bad", "kept"} {
				if info, err := area.Stat(name); err == nil && info.ID != want.ID {
					return info.ID
				}
			}
		}
	}
	done := swapper(area, swaps)
	moved, refused := 0, 0
	for running := true; running; {
		id := make(moved)
		if err := area.Move("bad", id, trash, fmt.Sprint(moved)); err != nil {
			refused++
		} else {
			moved++
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	for n := range moved {
		if info, err := trash.Stat(fmt.Sprint(n)); err != nil || info.ID == want.ID {
			t.Fatalf("%d: %v %v", n, info, err)
		}
	}
	if moved == 0 || refused == 0 {
		t.Errorf("moved %d, refused %d: nothing was tested", moved, refused)
	}
	t.Logf("moved %d, refused %d", moved, refused)
}

// swapper exchanges bad and kept in area.
func swapper(area *Dir, swaps int) <-chan struct{} {
	done := make(chan struct{})
	at := int(area.f.Fd())
	go func() {
		defer close(done)
		for n := 0; n < swaps; {
			if unix.Renameat2(at, "bad", at, "kept", unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
	}()
	return done
}

func TestFS_ListsLinksAndOpensNone(t *testing.T) {
	base := t.TempDir()
	d := folder(t, filepath.Join(base, "vault/a"))
	if err := errors.Join(os.WriteFile(filepath.Join(base, "vault/a/file"), []byte("text"), 0o600), d.Symlink("file", "link"), d.Symlink("..", "up")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(base, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files := FS(root)
	if b, err := fs.ReadFile(files, "a/file"); err != nil || string(b) != "text" {
		t.Errorf("%q %v", b, err)
	}
	for _, name := range []string{"a/link", "a/up", "a/up/a/file", "a/missing"} {
		if _, err := fs.ReadFile(files, name); err == nil || strings.Contains(err.Error(), base) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var found []string
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			found = append(found, e.Type().String()+" "+name)
		}
		return err
	})
	if got := strings.Join(found, ", "); err != nil || got != "d--------- ., d--------- a, ---------- a/file, L--------- a/link, L--------- a/up" {
		t.Errorf("%s %v", got, err)
	}
	if info, err := fs.Lstat(files, "a/link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
	if to, err := fs.ReadLink(files, "a/link"); err != nil || to != "file" {
		t.Errorf("%s %v", to, err)
	}
}

// TestRemove_WhileNamesAreSwapped deletes a tree while another process exchanges
// a folder in it with a link that leads out.
func TestRemove_WhileNamesAreSwapped(t *testing.T) {
	const swaps = 10_000
	for where, dir := range map[string]string{"the entry itself": ".", "in it": "guest", "deeper": "guest/a/b"} {
		t.Run(where, func(t *testing.T) {
			base := t.TempDir()
			d := folder(t, base)
			kept := folder(t, filepath.Join(base, "kept"))
			if err := os.WriteFile(filepath.Join(base, "kept/file"), []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(dir, "/")
			if name == "." {
				name = "box"
			}
			at := filepath.Join(base, dir)
			count, end := exchanging(filepath.Join(at, "box"), filepath.Join(at, "out"))
			defer end()
			removed := 0
			for ; count.Load() < swaps; removed++ {
				_ = os.RemoveAll(filepath.Join(at, "out"))
				if err := errors.Join(os.MkdirAll(at+"/new", 0o700), os.WriteFile(at+"/new/today.md", nil, 0o600), os.Symlink(base+"/kept", at+"/out"),
					os.Rename(at+"/new", at+"/box")); err != nil {
					t.Fatal(err)
				}
				for from := count.Load(); count.Load() == from; { // the swapper has both names
					time.Sleep(time.Microsecond)
				}
				if err := d.Remove(t.Context(), name); err != nil {
					t.Fatalf("after %d: %v", removed, err)
				}
				if _, err := d.Stat(name); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("after %d: %s is still there: %v", removed, name, err)
				}
			}
			t.Logf("removed %d times, %d swaps", removed, count.Load())
			if info, err := kept.Stat("file"); err != nil || info.Size != 4 {
				t.Errorf("the file outside: %+v %v", info, err)
			}
		})
	}
}

// exchanging exchanges two names while both exist, until end is called.
func exchanging(a, b string) (count *atomic.Int64, end func()) {
	count = new(atomic.Int64)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if exchange(a, b) == nil {
				count.Add(1)
			}
		}
	}()
	return count, func() { close(stop); <-done }
}
