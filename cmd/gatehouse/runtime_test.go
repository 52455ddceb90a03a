package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
)

// Each is a runtime folder that another user could have prepared. The gateway
// refuses it, names it, and leaves everything in and behind it as it was.
func TestASquattedRuntimeFolderIsRefusedBeforeAnythingIsMadeInIt(t *testing.T) {
	root := os.Getuid() == 0
	for name, c := range map[string]struct {
		prepare  func(dir string) error
		want     string
		needRoot bool
	}{
		"another owner": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)) }, "another user", true},
		"a link":        {func(dir string) error { return errors.Join(os.Mkdir(dir+"2", 0o700), os.Symlink(dir+"2", dir)) }, "link", false},
		"a broken link": {func(dir string) error { return os.Symlink(dir+"2", dir) }, "link", false},
		"mode 0777":     {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, "0777", false},
		"mode 0720":     {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o720)) }, "0720", false},
		"a file":        {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a folder", false},
		"in an open folder": {func(dir string) error {
			return errors.Join(os.Chmod(filepath.Dir(dir), 0o777))
		}, "replace", false},
		"in another user's folder": {func(dir string) error { return os.Chown(filepath.Dir(dir), 65534, 65534) }, "replace", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.needRoot && !root {
				t.Skip("only root gives folders away")
			}
			h := newHome(t, nil)
			base := h.env["XDG_RUNTIME_DIR"]
			t.Setenv("XDG_RUNTIME_DIR", base)
			dir, err := control.Dir(h.vault())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			err = control.MakeDir(dir)
			if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") || !strings.Contains(err.Error(), base) {
				t.Errorf("%v", err)
			}
			code, _, said := h.run("serve")
			if code != exitUsage || !strings.Contains(said, c.want) {
				t.Errorf("serve: %d\n%s", code, said)
			}
			for _, at := range []string{dir, dir + "2"} {
				if entries, _ := os.ReadDir(at); len(entries) != 0 {
					t.Errorf("%s holds %v", at, entries)
				}
			}
		})
	}
}
