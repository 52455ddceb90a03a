package contexts

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/vault"
)

func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return New(v), dir
}

func TestPutWritesTheDescribedFileAndGetReadsIt(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	want := Context{Name: "my-project", Description: "The shed", Folders: []string{"Notes/Shed"}, Files: []string{"Plan.md"}}
	got, err := s.Put(Context{Name: "my-project", Description: "The shed", Folders: []string{"Notes/Shed/", "Notes/Shed"}, Files: []string{"Plan.md"}})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "Chat/contexts/my-project.json"))
	if err != nil || string(b) != "{\n  \"name\": \"my-project\",\n  \"description\": \"The shed\",\n  \"folders\": [\n    \"Notes/Shed\"\n  ],\n  \"files\": [\n    \"Plan.md\"\n  ]\n}\n" {
		t.Errorf("%s, %v", b, err)
	}
	if got, err := s.Get("my-project"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if names := s.Names(); !slices.Equal(names, []string{"my-project"}) {
		t.Errorf("%q", names)
	}
	if err := s.Delete("my-project"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{s.Delete("my-project"), second(s.Get("my-project"))} {
		if core.KindOf(err) != core.NotFound {
			t.Errorf("%v", err)
		}
	}
}

func second(_ Context, err error) error { return err }

func TestNamesAndPathsAreChecked(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	for _, name := range []string{"", "../x", "a/b", ".hidden", "-x", "sessions", strings.Repeat("a", 65), "a.json", "ä"} {
		for _, err := range []error{second(s.Get(name)), second(s.Put(Context{Name: name})), s.Delete(name)} {
			if core.KindOf(err) != core.Invalid {
				t.Errorf("name %q: %v", name, err)
			}
		}
	}
	for _, p := range []string{"", "/etc", "../x", "a/../../b", ".", "a\x00b", `a\b`, strings.Repeat("a", 2000)} {
		if _, err := s.Put(Context{Name: "x", Folders: []string{p}}); core.KindOf(err) != core.Invalid {
			t.Errorf("path %q: %v", p, err)
		}
	}
	if _, err := s.Put(Context{Name: "x", Files: make([]string, 101)}); core.KindOf(err) != core.Invalid {
		t.Errorf("%v", err)
	}
	if names := s.Names(); names != nil {
		t.Errorf("%q", names)
	}
	if err := os.MkdirAll(filepath.Join(dir, Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"broken": "no JSON", "escape": `{"folders":["../../etc"]}`} {
		if err := os.WriteFile(filepath.Join(dir, Dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(name); core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, Dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("link"); core.KindOf(err) != core.Invalid {
		t.Errorf("link: %v", err)
	}
}

func TestPathsAreTheReaders(t *testing.T) {
	t.Parallel()
	c := Context{Name: "x", Folders: []string{"Notes", "Private"}, Files: []string{"Plan.md", "Private.md"}}
	may := func(name string) bool { return !strings.HasPrefix(name, "Private") }
	if paths, left := c.Paths(may); !slices.Equal(paths, []string{"Notes", "Plan.md"}) || left != 2 {
		t.Errorf("%q, %d", paths, left)
	}
	if o := c.Only(may); !slices.Equal(o.Folders, []string{"Notes"}) || !slices.Equal(o.Files, []string{"Plan.md"}) || len(c.Folders) != 2 {
		t.Errorf("%+v of %+v", o, c)
	}
}
