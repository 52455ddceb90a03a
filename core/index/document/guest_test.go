package document_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// fill indexes documents with passages of a text in a directory.
func (x *index) fill(dir string, documents, passages int, text string) {
	x.t.Helper()
	for i := range documents {
		d := document.Document{File: document.File{Path: fmt.Sprintf("%s/%05d.md", dir, i), Modified: morning, Hash: "h"}, Title: "x"}
		for k := range passages {
			d.Chunks = append(d.Chunks, chunk.Chunk{Text: fmt.Sprintf("%s %d", text, k), Line: k + 1})
		}
		x.keep(d)
	}
}

// Otherwise a guest who writes documents for it could count by their order how many
// documents of others have a word.
func TestFind_WhatAGuestFindsByWordsIsSearchedAndRankedWithoutOthersDocuments(t *testing.T) {
	storetest.SQLiteOnly(t, "its ranking")
	x := open(t)
	x.put("Guests/7/apples.md", "apple apple apple pear and what else is in a basket")
	x.put("Guests/7/pears.md", "apple pear pear pear and what else is in a basket")
	x.put("Guests/7/more.md", "apple trees")
	x.fill("Guests/7/other", 10, 1, "nothing of both")
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}
	want := []string{"Guests/7/pears.md:1", "Guests/7/apples.md:1"} // fewer have the word pear
	x.wantFound(guest, "apple pear", want...)
	x.fill("Private", 30, 1, "pear")
	x.fill("Guests/8", 30, 1, "pear")
	x.wantFound(guest, "apple pear", want...)
	if err := x.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM document_words`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	x.wantFound(guest, "apple pear", want...) // the words of others are in no table that is read
	x.wantFound(guest, `"pear pear" -trees`, "Guests/7/pears.md:1")
	x.wantFound(guest, `"apple apple" pea`, "Guests/7/apples.md:1")
}

// Between the words that are found and the text that is shown a document is removed, and another
// one gets the number of its passage.
func TestFind_ShowsNoGuestAPassageThatHasTheNumberOfOneThatIsGone(t *testing.T) {
	x := open(t)
	old := x.put("Guests/7/a.md", "the garden")
	swap := sync.OnceFunc(func() {
		if err := x.Remove(t.Context(), []string{old.Path}); err != nil {
			t.Error(err)
		}
		x.put("Private/garden.md", "the garden of the owner")
	})
	var asked []string
	r := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: func(path string) bool {
		asked = append(asked, path)
		swap()
		return strings.HasPrefix(path, "Guests/7/")
	}}
	if got := x.find(r, "garden"); len(got) > 0 || len(asked) == 0 {
		t.Errorf("found %v; it was asked about %v", got, asked)
	}
}

func TestFind_NoWordOfAGuestIsTakenForAnothers(t *testing.T) {
	x := open(t)
	x.put("Guests/7/a.md", "1x")
	x.put("Guests/71/b.md", "x")
	x.put("Guests/8/c.md", "wx ow7 gw")
	d := x.put("Public/d.md", "open")
	d.Open, d.Tags = true, []string{"tea"}
	x.keep(d)
	for user, words := range map[int64]map[string]string{
		7:  {"1x": "Guests/7/a.md:1", "x": "", "o": "", "open": "Public/d.md:1", "g7w1x": "", "tag:tea": "Public/d.md:1", "tea": ""},
		71: {"1x": "", "x": "Guests/71/b.md:1", "wx": ""},
		8:  {"wx": "Guests/8/c.md:1", "x": "", "ow7": "Guests/8/c.md:1", "7": ""},
	} {
		r := search.Reader{User: user, Trust: core.Sandboxed, MayRead: everything}
		for word, want := range words {
			if got := x.find(r, word); want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("guest %d finds %v for %s, want %q", user, got, word, want)
			}
		}
	}
}

// What a guest finds by meaning does not depend on what they may not read: that would
// tell them what is in it.
func TestFind_WhatAGuestFindsByMeaningDependsOnNothingTheyMayNotRead(t *testing.T) {
	x := open(t)
	x.fill("Guests/7", 26, 100, "garden gardens gardening gardener") // more than the candidates, and nearer than what is wanted
	x.put("Guests/7/wanted.md", "acme corp invoice about one garden and other unrelated things like boats trains and planes")
	x.put("Guests/7/old.md", "gardens and boats")
	x.embed(1)
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}
	queries := []string{`gardens "acme corp"`, `gardens -gardener`, `gardens in:Guests -gardener`, `gardens in:Guests`}
	ask := func() (out [][]string) {
		for _, q := range queries {
			out = append(out, x.near(guest, q))
		}
		return out
	}
	before := ask()
	for i, q := range queries {
		if len(before[i]) == 0 {
			t.Errorf("%s finds nothing", q)
		}
	}
	x.fill("Private", 101, 100, "acme corp secret") // more than are compared exactly
	for i, got := range ask() {
		if !slices.Equal(got, before[i]) {
			t.Errorf("%s: %v; before the owner wrote about it: %v", queries[i], got, before[i])
		}
	}
}
