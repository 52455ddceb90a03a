package embedding_test

import (
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/embedding"
)

func TestPrefixesAreChosenByTheNameOfTheModel(t *testing.T) {
	for model, want := range map[string]string{
		"nomic-embed-text":                        "search_query: |search_document: ",
		"nomic-ai/nomic-embed-text-v1.5":          "search_query: |search_document: ",
		"intfloat/multilingual-e5-large":          "query: |passage: ",
		"E5-base-v2":                              "query: |passage: ",
		"intfloat/multilingual-e5-large-instruct": "|",
		"mxbai-embed-large":                       "Represent this sentence for searching relevant passages: |",
		"BAAI/bge-small-en-v1.5":                  "Represent this sentence for searching relevant passages: |",
		"BAAI/bge-m3":                             "|",
		"text-embedding-3-small":                  "|",
	} {
		if p, err := embedding.PrefixesOf("auto", model); err != nil || p.Search+"|"+p.Passage != want {
			t.Errorf("%s: %q %v, want %q", model, p, err, want)
		}
	}
	if p, err := embedding.PrefixesOf("e5", "mine"); err != nil || p.Passage != "passage: " {
		t.Errorf("a named choice: %q, %v", p, err)
	}
	if p, err := embedding.PrefixesOf("none", "nomic-embed-text"); err != nil || p != (embedding.Prefixes{}) {
		t.Errorf("none: %q, %v", p, err)
	}
	if _, err := embedding.PrefixesOf("some", "m"); core.KindOf(err) != core.Invalid {
		t.Errorf("an unknown choice: %v", err)
	}
}

func TestRun_EmbedsAllAgainWithAnotherPrefixOfPassages(t *testing.T) {
	w := open(t)
	w.put("a.md", "green tea")
	_, stop := w.run()
	stop()
	w.server.Asked()
	w.clock.Advance(time.Hour)
	w.o.Prefixes = embedding.Prefixes{Search: "query: ", Passage: "passage: "}
	e, stop := w.run()
	w.want(e, 1, 1, "")
	if asked := w.server.Asked(); !slices.Equal(asked, []string{"passage: a.md\n\ngreen tea"}) {
		t.Errorf("the server got %q", asked)
	}
	if e.Near(t.Context(), 1, "tea") == nil {
		t.Error("a search is not embedded")
	}
	if asked := w.server.Asked(); !slices.Equal(asked, []string{"query: tea"}) {
		t.Errorf("for a search the server got %q", asked)
	}
	stop()
	w.clock.Advance(time.Hour)
	e, _ = w.run()
	w.want(e, 1, 1, "")
	if asked := w.server.Asked(); len(asked) != 0 {
		t.Errorf("with the same prefix it asks for %q", asked)
	}
}
