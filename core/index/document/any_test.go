package document_test

import (
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/search"
)

func TestAny_FindsFilesWithOneOfTheWordsTheBestFirst(t *testing.T) {
	x := open(t)
	x.put("Tea.md", "Green tea is brewed for two minutes.")
	x.put("Roof.md", "The brewery has a slate roof.", "And a gutter.")
	x.put("Notes.md", "No word of it.")
	x.put("Guests/7/brew.md", "Brewing at home.")
	for _, c := range []struct {
		name  string
		r     search.Reader
		stems []string
		want  []string
	}{
		{"more of them first", owner, []string{"brew", "minut", "gree"}, []string{"Tea.md", "Guests/7/brew.md", "Roof.md"}},
		{"no prefix of another", owner, []string{"ate"}, nil},
		{"what no word is", owner, []string{`"`, "*"}, nil},
		{"a guest", search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}, []string{"brew"}, []string{"Guests/7/brew.md"}},
		{"another guest", search.Reader{User: 8, Trust: core.Sandboxed, MayRead: everything}, []string{"brew"}, nil},
		{"what may not be read", search.Reader{User: 1, Trust: core.Vault, MayRead: func(name string) bool { return name != "Tea.md" }}, []string{"minut", "gutt"}, []string{"Roof.md"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := x.Any(t.Context(), c.stems, c.r, 10)
			if err != nil {
				t.Fatal(err)
			}
			if x.db.Rank() != "rank" { // PostgreSQL does not rank
				slices.Sort(got)
				slices.Sort(c.want)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
