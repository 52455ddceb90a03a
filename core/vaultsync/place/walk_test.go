package place_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core/beneath"
	"gatehouse/core/vaultsync/place"
)

// A visitor notes what a walk finds.
type visitor struct {
	seen  []string // in the order in which a table of paths has them
	known map[string]string
	err   error
}

func (v *visitor) Known(f place.Found) (string, error) { return v.known[f.Name+" "+f.Mark], nil }

func (v *visitor) File(f place.Found) error {
	v.seen = append(v.seen, f.Name)
	return v.err
}

func (v *visitor) Unread(name string) error {
	v.seen = append(v.seen, name)
	return nil
}

func (v *visitor) Below(dir string) error {
	v.seen = append(v.seen, dir+"/")
	return nil
}

func walk(t *testing.T, dir string, v place.Visitor) (*place.Walked, error) {
	t.Helper()
	top, err := beneath.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = top.Close() })
	every := func(string) bool { return true }
	return place.Tree{Top: top}.Walk(context.Background(), ".", every, every, v)
}

// A directory's files come where their paths belong, not where its name does: the table that
// they are compared with has "a-b" and "a.md" before "a/b".
func TestWalk_VisitsPathsInTheOrderOfTheirBytes(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for _, name := range []string{"a/b.md", "a/b/c.md", "a/b-/d", "a/b.md.bak", "a-b/c", "a-/x", "a.md", "a b/c.md", "a!", "aa", "b", "ä/ö.md", "A/z", "a-b.md", "a/b/c/d/e/f"} {
		if strings.HasPrefix(name, "a/b/c/") {
			name = "a/bb/c/d/e/f"
		}
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	for _, link := range []string{"a-link", "a/link", "a+"} { // a name of its own, and what may be below
		if err := os.Symlink("b", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		want = append(want, link, link+"/")
	}
	slices.Sort(want)
	v := &visitor{}
	w, err := walk(t, dir, v)
	if err != nil || !slices.Equal(v.seen, want) {
		t.Errorf("%v\n%q, want\n%q", err, v.seen, want)
	}
	if w.Files != len(want)-6 || w.Hashed != w.Files || len(w.Failed) != 0 {
		t.Errorf("%+v", w)
	}
}

func TestWalk_EndsWithTheErrorOfItsVisitor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v := &visitor{err: errors.New("the disk is full")}
	if _, err := walk(t, dir, v); !errors.Is(err, v.err) || len(v.seen) != 1 {
		t.Errorf("%v, %q", err, v.seen)
	}
}
