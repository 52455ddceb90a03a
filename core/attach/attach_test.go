package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/vault"
)

func keeper(t testing.TB) (*Keeper, *vault.Vault) {
	t.Helper()
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return New(v, coretest.NewClock(time.Date(2026, 1, 28, 23, 59, 0, 0, time.UTC)), nil), v
}

// all are the files below Chat/assets.
func all(t testing.TB, v *vault.Vault) (names []string) {
	t.Helper()
	err := fs.WalkDir(v.Root().FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const (
	png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	pdf = "%PDF-1.7\n1 0 obj"
	elf = "\x7fELF\x02\x01\x01\x00rest"
)

func TestAnAttachmentIsKeptByDayWithTheTypeThatItsBytesSay(t *testing.T) {
	k, v := keeper(t)
	for _, c := range []struct{ name, declared, data, kind, ending string }{
		{"notes.txt", "image/png", "some words", "text/plain", "-notes.txt"},
		{"photo.png", "text/plain", png, "image/png", "-photo.png"},
		{"photo.txt", "text/plain", png, "image/png", "-photo_txt.png"},
		{"report", "", pdf, "application/pdf", "-report.pdf"},
		{"Übersicht (2).pdf", "", pdf, "application/pdf", "-Übersicht (2).pdf"},
		{"data.bin", "", "\x00\x01\x02", "application/octet-stream", "-data.bin"},
		{"script.sh", "application/x-sh", "#!/bin/sh\necho hi\n", "text/plain", "-script.sh"},
		{"MZ.txt", "", "MZ is how some texts begin", "text/plain", "-MZ.txt"},
	} {
		f, err := k.Save(t.Context(), 7, c.name, c.declared, 0, iotest{strings.NewReader(c.data)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := fs.ReadFile(v.Root().FS(), f.Path)
		if err != nil || string(got) != c.data {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if !strings.HasPrefix(f.Path, "Chat/assets/2026-01-28/") || !strings.HasSuffix(f.Path, c.ending) || f.Type != c.kind || f.Size != int64(len(c.data)) || f.Name != c.name {
			t.Errorf("%s: %+v", c.name, f)
		}
		if st, err := fs.Stat(v.Root().FS(), f.Path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", c.name, st.Mode(), err)
		}
	}
}

// iotest gives a few bytes at a time.
type iotest struct{ io.Reader }

func (r iotest) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 3)]) }

func TestProgramsAndWhatIsTooLargeAreRefusedByNameAndNothingStays(t *testing.T) {
	k, v := keeper(t)
	for _, c := range []struct {
		name, data string
		kind       core.Kind
		says       string
	}{
		{"holiday.jpg", elf, core.Invalid, "holiday.jpg is a program for Linux, and programs are not taken"},
		{"setup.txt", "MZ\x90\x00\x03\x00", core.Invalid, "setup.txt is a program for Windows"},
		{"a.png", "\xcf\xfa\xed\xfe....", core.Invalid, "macOS"},
		{"x", "\x00asm\x01\x00", core.Invalid, "WebAssembly"},
		{"invoice.pdf.exe", "harmless", core.Invalid, "invoice.pdf.exe is a program by its name"},
		{"x.BAT ", "echo", core.Invalid, "by its name"},
		{"evil\u202egpj.scr", "x", core.Invalid, "by its name"},
		{"evil.exe.", "x", core.Invalid, "by its name"},
		{"a/b\\c.lnk", "x", core.Invalid, "c.lnk is a program by its name"},
		{"big.txt", strings.Repeat("x", 101), core.TooLarge, "big.txt is larger than 100 bytes"},
		{"nothing.txt", "", core.Invalid, "nothing.txt is empty"},
	} {
		f, err := k.Save(t.Context(), 7, c.name, "image/png", 100, iotest{strings.NewReader(c.data)})
		if core.KindOf(err) != c.kind || !strings.Contains(core.TextOf(err), c.says) || f.Path != "" {
			t.Errorf("%q: %v, %+v", c.name, err, f)
		}
	}
	if names := all(t, v); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

// endless counts what is read of it.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	return len(p), nil
}

func TestATooLargeAttachmentIsGivenUpWhereItPassesTheLimit(t *testing.T) {
	k, _ := keeper(t)
	src := &endless{}
	if _, err := k.Save(t.Context(), 7, "zeros", "", 1<<20, src); core.KindOf(err) != core.TooLarge {
		t.Fatal(err)
	}
	if src.n > 2<<20 {
		t.Errorf("%d bytes were read for a limit of 1 MB", src.n)
	}
}

// broken fails, or is cancelled, in the middle.
type broken struct{ cancel func() }

func (b broken) Read(p []byte) (int, error) {
	if b.cancel != nil {
		b.cancel()
		return copy(p, "half"), nil
	}
	return 0, io.ErrUnexpectedEOF
}

func TestAnAttachmentThatBreaksOffLeavesNothing(t *testing.T) {
	k, v := keeper(t)
	if _, err := k.Save(t.Context(), 7, "a", "", 0, io.MultiReader(strings.NewReader("half"), broken{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := k.Save(ctx, 7, "a", "", 0, broken{cancel}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if names := all(t, v); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestAttachmentsOfOneNameDoNotTouchEachOtherAndGoAwayAlone(t *testing.T) {
	k, v := keeper(t)
	a, err := k.Save(t.Context(), 7, "a.txt", "", 0, strings.NewReader("one"))
	b, err2 := k.Save(t.Context(), 7, "a.txt", "", 0, strings.NewReader("two"))
	if err != nil || err2 != nil || a.Path == b.Path {
		t.Fatal(a, b, err, err2)
	}
	k.Remove([]core.File{a, {}, a})
	if names := all(t, v); len(names) != 1 || names[0] != b.Path {
		t.Errorf("%v", names)
	}
}

func TestAnAttachmentFollowsNoLinkOutOfTheVault(t *testing.T) {
	k, v := keeper(t)
	if err := errors.Join(v.Root().Mkdir("Chat", 0o700), v.Root().Symlink(t.TempDir(), "Chat/assets")); err != nil {
		t.Fatal(err)
	}
	if f, err := k.Save(t.Context(), 7, "a.txt", "", 0, strings.NewReader("one")); err == nil {
		t.Errorf("kept as %s", f.Path)
	}
}

func FuzzStoredNamesAreSafe(f *testing.F) {
	for _, s := range []string{"a.txt", "../../etc/passwd", ".bashrc", "CON", "a\x00b", "x\u202ecod.exe", strings.Repeat("ü", 300) + ".md", "…", "a:b|c?.png", " . ", "💥.png", "a/..", "-rf"} {
		f.Add(s, "image/png")
		f.Add(s, "text/plain")
	}
	f.Fuzz(func(t *testing.T, name, kind string) {
		stored, shown := safeName(name, kind)
		full := path.Join(Folder, "2026-01-28", "0123-"+stored)
		if stored == "" || shown == "" || len(stored) > 100 || !fs.ValidPath(full) || strings.ContainsAny(stored, "/\\:\x00\n\"'`$|;&<>*?") || !utf8.ValidString(stored) {
			t.Errorf("%q is stored as %q", name, stored)
		}
		if strings.HasSuffix(stored, ".") || strings.HasSuffix(stored, " ") {
			t.Errorf("%q is stored as %q", name, stored)
		}
		if bytes.ContainsAny([]byte(shown), "\n\r\x00") {
			t.Errorf("%q is shown as %q", name, shown)
		}
	})
}
