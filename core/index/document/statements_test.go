package document_test

import (
	"fmt"
	"testing"

	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
)

// The writer keeps each text that it has run as a prepared statement for ever.
func TestStore_RunsTheSameStatementsWhateverIsIndexed(t *testing.T) {
	x := open(t)
	round := func(i int) {
		var texts []string
		for k := range 1 + i%90 {
			texts = append(texts, fmt.Sprintf("text %d %d", i, k))
		}
		x.put("a.md", texts...)
		d := x.put(fmt.Sprintf("b%d.md", i), texts...)
		d.Open = i%2 == 0
		x.embed(1)
		if err := x.Mark(t.Context(), document.File{Path: d.Path, Hash: "h", Open: !d.Open}); err != nil {
			t.Fatal(err)
		}
		x.near(owner, fmt.Sprintf(`text -%d "text %d"`, i, i+1), func(q *search.Asked) { q.Folder = fmt.Sprint("f", i) })
		if err := x.Remove(t.Context(), []string{d.Path}); err != nil {
			t.Fatal(err)
		}
		if err := x.DropVectors(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	statements := func() int {
		n, err := x.db.Prepared(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range 8 {
		round(89 - i)
	}
	before := statements()
	for i := range 12 {
		round(7 * i)
	}
	if after := statements(); after > before {
		t.Errorf("%d statements are prepared after more documents, %d before", after, before)
	}
}
