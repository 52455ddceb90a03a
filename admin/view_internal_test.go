package admin

import (
	"slices"
	"strings"
	"testing"
)

// A page's templates are made when it is first shown; none of them may turn out
// broken then. Each file is a page or is shared.
func TestEveryPagesTemplatesAreWhole(t *testing.T) {
	p := New(nil, nil, Options{})
	for _, page := range pages {
		set, err := p.sets[page]()
		if err != nil || set.Lookup("body") == nil || set.Lookup("page") == nil {
			t.Errorf("%s: %v", page, err)
		}
	}
	if _, err := p.layout(); err != nil {
		t.Fatal(err)
	}
	names, err := files.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		name := strings.TrimSuffix(f.Name(), ".html")
		if !slices.Contains(shared, "templates/"+f.Name()) && !slices.Contains(pages[:], name) {
			t.Errorf("%s is neither a page nor shared", name)
		}
	}
}

// Who came from this machine without a key is no row of users, and has a name.
func TestWhoCameWithoutAKeyHasAName(t *testing.T) {
	for id, want := range map[string]string{"-1": "Programs on this machine, without a key", "1": "Operator", "2": "Ada", "3": "User 3", "0": "People who were forgotten"} {
		if got := personName(map[int64]string{2: "Ada"}, id); got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
}
