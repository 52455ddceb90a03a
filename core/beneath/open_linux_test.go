package beneath

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openers are the ways to open without links that this system has.
var openers = map[string]func(at int, name string, flags int) (int, error){
	"the system's way": openNoLinks,
	"step by step":     openStepwise,
}

func TestOpen_RefusesLinks(t *testing.T) {
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "vault"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(filepath.Join(base, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	at := func(name string) string { return filepath.Join(base, "vault", name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(at("a/b"), 0o700))
	must(os.WriteFile(at("a/b/file"), []byte("text"), 0o600))
	must(os.WriteFile(filepath.Join(base, "outside"), []byte("secret"), 0o600))
	must(os.Symlink("a", at("inner")))
	must(os.Symlink("..", at("out")))
	must(os.Symlink("file", at("a/b/link")))
	must(os.Symlink("loop", at("loop")))
	must(unix.Mkfifo(at("pipe"), 0o600))

	for how := range openers {
		t.Run(how, func(t *testing.T) {
			for _, name := range []string{"a/b/file", "a/b", "a", "."} {
				f, err := openWith(d, how, name)
				if err != nil {
					t.Errorf("open %s: %v", name, err)
					continue
				}
				must(f.Close())
			}
			for _, name := range []string{"inner/b/file", "out/outside", "a/b/link", "loop", "pipe", "inner", "missing", "a/missing", "a/b/file/x",
				"../outside", "/etc/passwd", "a/../a/b/file", "", "a//b", "a/b/file\x00", strings.Repeat("n", 300)} {
				f, err := openWith(d, how, name)
				if err == nil {
					_ = f.Close()
					t.Errorf("open %q succeeded", name)
				} else if strings.Contains(err.Error(), base) {
					t.Errorf("open %q: the error names a path of the host: %v", name, err)
				}
			}
		})
	}
}

// openWith opens through Open, or checks the name as it does and opens step by
// step.
func openWith(d *Dir, how, name string) (*os.File, error) {
	if how != "step by step" {
		return d.Open(name)
	}
	if !fs.ValidPath(name) || strings.Contains(name, "\x00") {
		return nil, failed("open", name, fs.ErrInvalid)
	}
	fd, err := openStepwise(int(d.f.Fd()), name, openFlags)
	if err == nil {
		err = plain(fd)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// TestOpen_WhileFolderAndLinkAreSwapped opens a file while another
// goroutine exchanges its folder and a link to a folder with another text.
func TestOpen_WhileFolderAndLinkAreSwapped(t *testing.T) {
	const swaps = 10_000
	for how, open := range openers {
		t.Run(how, func(t *testing.T) {
			base := t.TempDir()
			for name, text := range map[string]string{"vault/dir": "owner", "outside": "attacker"} {
				if err := os.MkdirAll(filepath.Join(base, name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(base, name, "file"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir, link := filepath.Join(base, "vault/dir"), filepath.Join(base, "vault/link")
			if err := os.Symlink(filepath.Join(base, "outside"), link); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				defer close(done)
				for range swaps {
					if err := exchange(dir, link); err != nil {
						done <- err
						return
					}
				}
			}()
			root, err := OpenDir(filepath.Join(base, "vault"))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			read, refused := 0, 0
			for {
				select {
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("read %d, refused %d", read, refused)
					if read == 0 {
						t.Error("the file was never read: nothing was tested")
					}
					return
				default:
				}
				fd, err := open(int(root.f.Fd()), "dir/file", openFlags)
				if err != nil {
					refused++
					continue
				}
				f := os.NewFile(uintptr(fd), "dir/file")
				data, err := io.ReadAll(f)
				_ = f.Close()
				if err != nil || !bytes.Equal(data, []byte("owner")) {
					t.Fatalf("read %q, %v", data, err)
				}
				read++
			}
		})
	}
}

// exchange swaps what two names refer to, in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
