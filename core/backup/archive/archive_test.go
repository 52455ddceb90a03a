package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
)

var day = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// sample is an archive of a small vault, with n more files.
func sample(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, About{Program: "test", CreatedAt: day, Schema: 1003})
	if err != nil {
		t.Fatal(err)
	}
	add := func(e Entry, body string) {
		t.Helper()
		e.Size, e.Time = int64(len(body)), day
		if err := w.Add(e, strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	add(Entry{Name: "database/sessions.db", Kind: File, Mode: 0o600}, strings.Repeat("row ", 5000))
	add(Entry{Name: "vault/Notes", Kind: Folder, Mode: 0o755}, "")
	add(Entry{Name: "vault/Notes/tea.md", Kind: File, Mode: 0o640}, "Green tea: three minutes.\n")
	add(Entry{Name: "vault/Notes/empty.md", Kind: File, Mode: 0o600}, "")
	add(Entry{Name: "vault/Notes/latest.md", Kind: Link, Mode: 0o777, Target: "tea.md"}, "")
	for i := range n {
		add(Entry{Name: fmt.Sprintf("vault/many/%06d.txt", i), Kind: File, Mode: 0o600}, fmt.Sprint(i))
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// extract puts an archive's vault into a new folder.
func extract(t testing.TB, raw []byte, l Limits) (string, *Tree, error) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree := NewTree(root)
	_, _, err = Read(t.Context(), bytes.NewReader(raw), l, func(e Entry, body io.Reader) error {
		if strings.HasPrefix(e.Name, Database) {
			return nil
		}
		return tree.Put(e, body)
	})
	if err == nil {
		err = tree.Finish()
	}
	return dir, tree, err
}

func TestWhatIsWrittenComesBackWithNamesModesTimesAndLinks(t *testing.T) {
	raw := sample(t, perSums+5) // several lists of sums
	about, total, err := Read(t.Context(), bytes.NewReader(raw), Limits{}, nil)
	if err != nil || about.Schema != 1003 || !about.CreatedAt.Equal(day) || total.Files != 8+perSums || total.Links != 1 {
		t.Fatalf("%+v %+v %v", about, total, err)
	}
	dir, _, err := extract(t, raw, Limits{Bytes: total.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "Notes/latest.md")); err != nil || string(b) != "Green tea: three minutes.\n" {
		t.Errorf("through the link: %q %v", b, err)
	}
	st, err := os.Stat(filepath.Join(dir, "Notes/tea.md"))
	if err != nil || st.Mode().Perm() != 0o640 || !st.ModTime().Equal(day) {
		t.Errorf("%v %v", st, err)
	}
	if st, err := os.Stat(filepath.Join(dir, "Notes")); err != nil || st.Mode().Perm() != 0o755 || !st.ModTime().Equal(day) {
		t.Errorf("%v %v", st, err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "many/010004.txt")); string(b) != "10004" {
		t.Errorf("the last file holds %q", b)
	}
}

// plain is what the compression holds.
func plain(raw []byte) []byte {
	gz, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(gz)
	if err != nil {
		return nil
	}
	return b
}

func TestACutOrChangedArchiveIsRefused(t *testing.T) {
	raw := sample(t, 40)
	for _, n := range []int{0, 1, 5, 20, len(raw) / 3, len(raw) / 2, len(raw) - 200, len(raw) - 9, len(raw) - 1} {
		_, _, err := Read(t.Context(), bytes.NewReader(raw[:n]), Limits{}, nil)
		if core.KindOf(err) != core.Invalid {
			t.Errorf("cut after %d of %d bytes: %v", n, len(raw), err)
		}
	}
	for i := 10; i < len(raw); i += 97 {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x20
		if bytes.Equal(plain(raw), plain(bad)) {
			continue // a bit that says nothing
		}
		if _, _, err := Read(t.Context(), bytes.NewReader(bad), Limits{}, nil); core.KindOf(err) != core.Invalid && core.KindOf(err) != core.Conflict {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if _, _, err := Read(t.Context(), io.MultiReader(bytes.NewReader(raw), strings.NewReader("more")), Limits{}, nil); err != nil {
		t.Errorf("behind the compressed file: %v", err)
	}
}

// A forged archive has right checksums and wrong content.
type forged struct {
	t   testing.TB
	b   bytes.Buffer
	gz  *gzip.Writer
	tar *tar.Writer
}

func forge(t testing.TB, about any) *forged {
	f := &forged{t: t}
	f.gz = gzip.NewWriter(&f.b)
	f.tar = tar.NewWriter(f.gz)
	f.json("about.json", about)
	return f
}

func (f *forged) json(name string, v any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = f.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(body)), Mode: 0o600})
	}
	if err == nil {
		_, err = f.tar.Write(body)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *forged) add(h tar.Header, body string) *forged {
	if h.Size == 0 {
		h.Size = int64(len(body))
	}
	if err := f.tar.WriteHeader(&h); err != nil {
		f.t.Fatal(err)
	}
	_, _ = f.tar.Write([]byte(body))
	return f
}

func (f *forged) bytes() []byte {
	_ = f.tar.Flush()
	_ = f.gz.Close()
	return f.b.Bytes()
}

func TestAHostileArchiveLeadsNowhereElse(t *testing.T) {
	good := About{Format: 1, CreatedAt: day}
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600}
	}
	for name, raw := range map[string][]byte{
		"up":             forge(t, good).add(file("vault/../../evil"), "x").bytes(),
		"up in between":  forge(t, good).add(file("vault/a/../../evil"), "x").bytes(),
		"absolute":       forge(t, good).add(file("/etc/evil"), "x").bytes(),
		"elsewhere":      forge(t, good).add(file("evil"), "x").bytes(),
		"the folder":     forge(t, good).add(tar.Header{Typeflag: tar.TypeDir, Name: "vault/", Mode: 0o777}, "").bytes(),
		"backslash":      forge(t, good).add(file(`vault/..\evil`), "x").bytes(),
		"NUL":            forge(t, good).add(file("vault/a\x01b"), "x").add(file("vault//a"), "x").bytes(),
		"long name":      forge(t, good).add(file("vault/"+strings.Repeat("n", 300)), "x").bytes(),
		"hard link":      forge(t, good).add(tar.Header{Typeflag: tar.TypeLink, Name: "vault/a", Linkname: "/etc/passwd"}, "").bytes(),
		"device":         forge(t, good).add(tar.Header{Typeflag: tar.TypeChar, Name: "vault/a"}, "").bytes(),
		"pipe":           forge(t, good).add(tar.Header{Typeflag: tar.TypeFifo, Name: "vault/a"}, "").bytes(),
		"twice":          forge(t, good).add(file("vault/a"), "x").add(file("vault/a"), "y").bytes(),
		"folder is file": forge(t, good).add(file("vault/a"), "x").add(file("vault/a/b"), "y").bytes(),
		"no sums":        forge(t, good).add(file("vault/a"), "x").bytes(),
		"no format":      forge(t, About{}).bytes(),
		"other tar":      forge(t, good).bytes()[:30],
	} {
		dir, _, err := extract(t, raw, Limits{Bytes: 1 << 20})
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "evil")); err == nil {
			t.Errorf("%s: something lies beside the folder", name)
		}
	}
}

// A symbolic link in the archive is not followed by what comes after it, and
// one that leads out is left out and named.
func TestLinksAreMadeLastAndNoneLeadsOut(t *testing.T) {
	outside := t.TempDir()
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	raw := forge(t, About{Format: 1}).add(link("vault/out", outside), "").add(link("vault/up", "../.."), "").add(link("vault/here", "Notes"), "").
		add(tar.Header{Typeflag: tar.TypeReg, Name: "vault/out/a"}, "x").bytes()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree := NewTree(root)
	if _, _, err := Read(t.Context(), bytes.NewReader(raw), Limits{}, tree.Put); err == nil {
		t.Fatal("an archive without sums was taken")
	}
	if err := tree.Finish(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadDir(outside); len(got) != 0 {
		t.Errorf("written outside: %v", got)
	}
	if len(tree.Left) != 2 {
		t.Errorf("left out: %v", tree.Left)
	}
	if st, err := os.Lstat(filepath.Join(dir, "out")); err != nil || !st.IsDir() {
		t.Errorf("%v %v", st, err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "here")); err != nil || to != "Notes" {
		t.Errorf("%q %v", to, err)
	}
}

// A link whose own words stay inside, and which leads out by way of another link.
func TestNoLinkLeadsOutByWayOfAnother(t *testing.T) {
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	raw := forge(t, About{Format: 1}).add(tar.Header{Typeflag: tar.TypeDir, Name: "vault/p/q/r/", Mode: 0o700}, "").
		add(link("vault/p/q/r/top", "../../.."), "").
		add(link("vault/p/q/r/out", "top/../secret"), "").        // by its words p/q/r/secret
		add(link("vault/p/q/r/top/deep", "../../../secret"), ""). // made in the vault itself
		add(link("vault/p/q/r/nothing", "not-there"), "").bytes()
	above := t.TempDir()
	dir := filepath.Join(above, "vault")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(above, "secret"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree := NewTree(root)
	_, _, _ = Read(t.Context(), bytes.NewReader(raw), Limits{}, tree.Put) // it has no sums; the links are what counts
	if err := tree.Finish(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if real, e := filepath.EvalSymlinks(name); e == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
			t.Errorf("%s leads to %s", name, real)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Left) != 2 {
		t.Errorf("left out: %v", tree.Left)
	}
	for _, stays := range []string{"top", "nothing"} {
		if _, err := os.Lstat(filepath.Join(dir, "p/q/r", stays)); err != nil {
			t.Error(err)
		}
	}
}

func TestAnArchiveThatIsTooLargeOrNewerIsRefusedBeforeItIsWritten(t *testing.T) {
	read := func(raw []byte, l Limits) error {
		_, _, err := Read(t.Context(), bytes.NewReader(raw), l, nil)
		return err
	}
	if err := read(sample(t, 3), Limits{Bytes: 1000}); core.KindOf(err) != core.TooLarge || !strings.Contains(err.Error(), "no room") {
		t.Errorf("larger than the room: %v", err)
	}
	bomb := forge(t, About{Format: 1}).add(tar.Header{Typeflag: tar.TypeReg, Name: "vault/a", Size: 1 << 50}, "x").bytes()
	if err := read(bomb, Limits{Bytes: 1 << 30}); core.KindOf(err) != core.TooLarge {
		t.Errorf("a header that promises a petabyte: %v", err)
	}
	if err := read(forge(t, About{Format: 2, Program: "9.9"}).bytes(), Limits{}); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "newer gatehouse (9.9") {
		t.Errorf("a newer format: %v", err)
	}
	if err := read(sample(t, 0), Limits{Schema: 1002}); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "1003") {
		t.Errorf("a newer database: %v", err)
	}
	if err := read([]byte("PK\x03\x04 a zip file"), Limits{}); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "not a backup") {
		t.Errorf("another file: %v", err)
	}
}

func TestAFileThatGetsShorterWhileItIsReadIsSaid(t *testing.T) {
	w, err := NewWriter(io.Discard, About{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Entry{Name: "vault/a", Kind: File, Size: 10}, strings.NewReader("short")); !errors.Is(err, ErrShort) {
		t.Errorf("got %v", err)
	}
}

func TestReadStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := Read(ctx, bytes.NewReader(sample(t, 10)), Limits{}, func(Entry, io.Reader) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f, 3))
	f.Add(forge(f, About{Format: 1}).add(tar.Header{Typeflag: tar.TypeReg, Name: "vault/../a"}, "x").bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		inner := filepath.Join(dir, "vault")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(inner)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		tree := NewTree(root)
		_, _, _ = Read(t.Context(), bytes.NewReader(raw), Limits{Bytes: 1 << 20}, func(e Entry, body io.Reader) error {
			if strings.HasPrefix(e.Name, Database) {
				return nil
			}
			return tree.Put(e, body)
		})
		_ = tree.Finish()
		if got, _ := os.ReadDir(dir); len(got) != 1 {
			t.Fatalf("beside the folder: %v", got)
		}
	})
}
