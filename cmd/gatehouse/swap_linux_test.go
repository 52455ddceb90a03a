package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/tool"
)

// ownersText is in a file of the owner that no guest's name may lead to.
const ownersText = "of the owner alone"

// swapIn exchanges in the folder dir the folder "box", in which there is a file
// today.md of the guest, with "out", a link to the owner's Daily, as another
// process would, until end is called.
func swapIn(t *testing.T, dir string) (count *atomic.Int64, end func()) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "box"), 0o700), os.WriteFile(filepath.Join(dir, "box/today.md"), []byte("of the guest"), 0o600),
		os.Symlink("../../Daily", filepath.Join(dir, "out"))); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	count = new(atomic.Int64)
	go func() {
		defer close(done)
		defer d.Close()
		for at := int(d.Fd()); ; {
			select {
			case <-stop:
				return
			default:
			}
			if unix.Renameat2(at, "box", at, "out", unix.RENAME_EXCHANGE) == nil {
				count.Add(1)
			} else if unix.Fstatat(at, ".", new(unix.Stat_t), 0) != nil {
				return // the folder is deleted
			}
		}
	}()
	return count, func() { close(stop); <-done }
}

// TestSwappingGuest_ExportBackupAttachmentsAndForgetting has the gateway work on
// names in a guest's folder while these are exchanged.
func TestSwappingGuest_ExportBackupAttachmentsAndForgetting(t *testing.T) {
	l, _ := newLife(t, nil)
	a, vault := l.w.app, l.w.cfg.VaultPath
	area := filepath.Join(vault, tool.Area(l.user))
	for _, dir := range []string{area, filepath.Join(vault, "Daily")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	daily := filepath.Join(vault, "Daily/today.md")
	if err := os.WriteFile(daily, []byte(ownersText), 0o600); err != nil {
		t.Fatal(err)
	}
	count, end := swapIn(t, area)
	// until runs op until names were exchanged 10,000 times meanwhile.
	until := func(name string, op func(n int)) {
		t.Run(name, func(t *testing.T) {
			from := count.Load()
			n := 0
			for ; count.Load() < from+10_000; n++ {
				op(n)
			}
			t.Logf("%d times, %d swaps", n, count.Load()-from)
		})
	}
	until("export", func(int) {
		var out bytes.Buffer
		if err := a.eraser.Zip(t.Context(), fmt.Sprint(l.user), &out, func(string) {}); err != nil {
			t.Fatal(err)
		}
		r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			body, err := fs.ReadFile(r, f.Name)
			if err != nil || strings.Contains(string(body), ownersText) {
				t.Fatalf("%s: %q %v", f.Name, body, err)
			}
		}
	})
	until("attachments", func(int) {
		body, err := fs.ReadFile(a.vault.FS(), tool.Area(l.user)+"/box/today.md")
		if strings.Contains(string(body), ownersText) {
			t.Fatalf("%q %v", body, err)
		}
	})
	backupDir := t.TempDir()
	until("backup", func(n int) {
		file := filepath.Join(backupDir, fmt.Sprintf("%d.tar.gz", n))
		if _, err := backup.Make(t.Context(), backups.Source(l.w.cfg, "", version), file, nil); err != nil {
			t.Fatal(err)
		}
		_, bodies := contents(t, file)
		for name, body := range bodies {
			if strings.Contains(name, core.GuestsDir) && strings.Contains(string(body), ownersText) {
				t.Fatalf("%s: %q", name, body)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("forgetting", func(t *testing.T) {
		if _, err := a.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil); err != nil {
			t.Fatal(err)
		}
	})
	end()
	if b, err := os.ReadFile(daily); err != nil || string(b) != ownersText {
		t.Errorf("the owner's file: %q %v", b, err)
	}
	if _, err := os.Lstat(area); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the guest's folder: %v", err)
	}
}
