package library

import (
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/llm"
)

func TestFiles_NamesNoneBeforeTheVaultIsIndexedToItsEnd(t *testing.T) {
	s := newShelf(t)
	files := func(sender llm.Sender) []string {
		t.Helper()
		list, err := s.Files(t.Context(), sender, []string{"kestr"}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	owner := llm.Sender{User: core.Operator, Trust: core.Vault}
	half := document.Document{File: document.File{Path: "a.md", Hash: "h"}, Title: "a", Chunks: []chunk.Chunk{{Text: "a kestrel", Line: 1}}}
	if err := s.Documents.Put(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	if got := files(owner); len(got) != 0 {
		t.Errorf("half of an index names %v", got)
	}
	s.put("Notes/birds.md", "The kestrel nests.")
	s.put("Daily/2026-01-28.md", "# para:aaaaaaaaaaaa 10:30 AM\n\nA kestrel, again.\n")
	got := files(owner)
	slices.Sort(got)
	if !slices.Equal(got, []string{"Daily/2026-01-28.md", "Notes/birds.md"}) {
		t.Errorf("the whole index names %v", got)
	}
	if got := files(llm.Sender{User: 7, Trust: core.Sandboxed}); len(got) != 0 {
		t.Errorf("a guest is named %v", got)
	}
	s.o.On = false
	if got := files(owner); len(got) != 0 {
		t.Errorf("an index that is off names %v", got)
	}
}
