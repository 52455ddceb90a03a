package quote

import (
	"context"
	"errors"
	"testing"

	"gatehouse/core/llm"
)

// An index names the same files whatever is asked.
type index struct {
	files []string
	err   error
	stems []string
	limit int
}

func (x *index) Files(_ context.Context, _ llm.Sender, stems []string, limit int) ([]string, error) {
	x.stems, x.limit = stems, limit
	return x.files, x.err
}

func TestWithAnIndexOnlyTheFilesThatItNamesAreRead(t *testing.T) {
	_, g, opened, _ := vault(t, nil, map[string]string{"a.md": "green tea", "b.md": "black tea", "c.pdf": "tea"})
	x := &index{files: []string{"b.md", "c.pdf", "gone.md"}}
	g.index = x
	if got := places(search(t, g, "brewing", "teas")); got != "b.md:1" {
		t.Errorf("found %s", got)
	}
	if len(*opened) != 2 || (*opened)[0] != "b.md" || (*opened)[1] != "gone.md" {
		t.Errorf("opened %v: it walked, or read what is no text", *opened)
	}
	if len(x.stems) != 2 || x.stems[0] != "brew" || x.stems[1] != "tea" || x.limit != 20 {
		t.Errorf("the index was asked for %v, %d", x.stems, x.limit)
	}
}

func TestWhatTheIndexNamesIsReadAsItIsNowAndOnlyWherePermitted(t *testing.T) {
	allowed := true
	dir, g, opened, _ := vault(t, func(llm.Sender, string) bool { return allowed }, map[string]string{"a.md": "green tea"})
	g.index = &index{files: []string{"a.md"}}
	search(t, g, "tea")
	write(t, dir, "a.md", "new\n\nblack tea")
	if got := places(search(t, g, "tea")); got != "a.md:3" {
		t.Errorf("found %s in a file that has changed", got)
	}
	allowed, *opened = false, nil
	if got := search(t, g, "tea"); len(got) != 0 || len(*opened) != 0 {
		t.Errorf("found %v, opened %v without permission", got, *opened)
	}
}

func TestWhereTheIndexHasNothingTheVaultIsSearched(t *testing.T) {
	for name, x := range map[string]*index{
		"not filled":    {},
		"fails":         {err: errors.New("the database is closed")},
		"has old files": {files: []string{"gone.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, g, _, _ := vault(t, nil, map[string]string{"a.md": "green tea"})
			g.index = x
			if got := places(search(t, g, "tea")); got != "a.md:1" {
				t.Errorf("found %s", got)
			}
		})
	}
}
