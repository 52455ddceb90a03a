package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
)

func (x *index) chunks(content, field string) (out []string) {
	x.t.Helper()
	for after := ""; ; {
		list, err := x.Chunks(x.t.Context(), content, field, after, 3)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, c := range list {
			out = append(out, fmt.Sprintf("%s:%d:%s", c.Field, c.Index, c.Text))
			after = c.ID
		}
		if len(list) < 3 {
			return out
		}
	}
}

func TestAdd_PassagesOfClientsStayWhileTheDocumentIsIndexedAndHaveItsRights(t *testing.T) {
	x := open(t)
	d := x.put("Notes/scan.md", "one", "two")
	id := document.ID(d.Path)
	add := func(list ...document.Stored) error { return x.Add(t.Context(), id, list) }
	if err := add(document.Stored{Field: "summary", Text: "A kestrel."}, document.Stored{Field: "people", Index: 1, Text: "Ada"}); err != nil {
		t.Fatal(err)
	}
	x.wantFound(owner, "kestrel", "Notes/scan.md:1")
	if err := add(document.Stored{Field: "summary", Text: "A falcon."}); err != nil {
		t.Fatal(err)
	}
	x.wantFound(owner, "kestrel")
	d.Open = true
	x.keep(d)
	x.put("Notes/more.md", "more")
	if got := x.chunks(id, ""); !slices.Equal(got, []string{"content:0:one", "content:1:two", "people:1:Ada", "summary:0:A falcon."}) {
		t.Errorf("after the file was indexed again: %q", got)
	}
	if got := x.chunks(id, "people"); !slices.Equal(got, []string{"people:1:Ada"}) {
		t.Errorf("of one field: %q", got)
	}
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}
	x.wantFound(guest, "falcon", "Notes/scan.md:1") // it is open by now
	d.Open = false
	x.keep(d)
	x.wantFound(guest, "falcon")
	if err := x.Remove(t.Context(), []string{d.Path}); err != nil {
		t.Fatal(err)
	}
	x.wantFound(owner, "falcon")
	if n := x.rows(); n != [4]int{1, 1, 1} {
		t.Errorf("rows %v", n)
	}
}

func TestAdd_RefusesTheDocumentsOwnTextAndTooMuch(t *testing.T) {
	x := open(t)
	id := document.ID(x.put("a.md", "one").Path)
	full := make([]document.Stored, document.MaxChunks)
	for i := range full {
		full[i] = document.Stored{Field: "f", Index: i, Text: "x"}
	}
	for name, list := range map[string][]document.Stored{
		"content": {{Field: "content", Text: "x"}}, "no field": {{Text: "x"}}, "odd field": {{Field: "Ä b", Text: "x"}}, "long field": {{Field: strings.Repeat("f", 33), Text: "x"}},
		"no text": {{Field: "f"}}, "long text": {{Field: "f", Text: strings.Repeat("x", document.MaxText+1)}}, "index": {{Field: "f", Index: -1, Text: "x"}}, "large index": {{Field: "f", Index: 100, Text: "x"}},
		"none": nil, "second is bad": {{Field: "f", Text: "x"}, {Field: "content", Text: "x"}}, "too many": append(slices.Clone(full), full[0]),
	} {
		if err := x.Add(t.Context(), id, list); core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := x.chunks(id, ""); len(got) != 1 {
		t.Errorf("stored: %q", got)
	}
	if err := x.Add(t.Context(), id, full); err != nil {
		t.Fatal(err)
	}
	if err := x.Add(t.Context(), id, []document.Stored{{Field: "g", Text: "x"}}); core.KindOf(err) != core.Invalid {
		t.Errorf("one more than 100: %v", err)
	}
	if err := x.Add(t.Context(), "doc:none", full[:1]); core.KindOf(err) != core.NotFound {
		t.Errorf("no such content: %v", err)
	}
	if _, err := x.Chunks(t.Context(), id, "", "chunk:gone", 10); core.KindOf(err) != core.Invalid {
		t.Errorf("a cursor that is gone: %v", err)
	}
}

func TestPurge_DeletesAllPassagesSoThatTheFileIsIndexedAgain(t *testing.T) {
	x := open(t)
	d := x.put("a.md", "one", "two")
	id := document.ID(d.Path)
	if err := x.Add(t.Context(), id, []document.Stored{{Field: "f", Text: "three"}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Purge(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	files, err := x.Files(t.Context(), "", 10)
	if err != nil || len(files) != 1 || files[0].Hash != "" || len(x.chunks(id, "")) != 0 {
		t.Errorf("%+v, %v, %q", files, err, x.chunks(id, ""))
	}
	if err := x.Purge(t.Context(), "doc:none"); core.KindOf(err) != core.NotFound {
		t.Errorf("%v", err)
	}
}
