package main

import (
	"net/url"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/search"
)

// found is how many documents a search of r finds.
func (w *world) found(r search.Reader, text string) int {
	w.t.Helper()
	page, err := w.app.library.Finder.Search(w.t.Context(), search.Query{Text: text}, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(page.Hits)
}

func TestTheSearchFollowsTheVaultAndItsRulesWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	owner, guest := search.Reader{User: core.Operator, Trust: core.Vault}, search.Reader{User: 7, Trust: core.Sandboxed}
	w.put("Notes/credentials.json", `{"kestrel": "a secret"}`) // on the deny list
	w.put("Notes/birds.md", "The kestrel nests on the balcony.")
	w.until("a new file is found", func() bool { return w.found(owner, "kestrel") == 1 })
	if n := w.count(`SELECT count(*) FROM index_manifest WHERE source_path LIKE '%credentials%'`); n != 0 {
		t.Error("a file of the deny list is indexed")
	}
	if n := w.found(guest, "kestrel"); n != 0 {
		t.Errorf("a guest finds %d", n)
	}
	w.browser().set("access", url.Values{"GUEST_READ": {"Notes/**"}})
	w.until("guests find what GUEST_READ opens", func() bool { return w.found(guest, "kestrel") == 1 })
	w.put(".parachuteignore", "Notes/\n")
	w.until("what .parachuteignore closes is not indexed", func() bool {
		return w.count(`SELECT count(*) FROM chunks WHERE chunk_text LIKE '%kestrel%'`) == 0
	})
	if n := w.found(owner, "kestrel"); n != 0 {
		t.Errorf("the owner finds %d", n)
	}
}

func TestWithoutAnIndexNothingOfTheDocumentsStaysAndConversationsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	w.replies(olga, "The kestrel flew past.")
	w.quiet()
	w.put("Notes/birds.md", "The kestrel nests on the balcony.")
	owner := search.Reader{User: core.Operator, Trust: core.Full}
	w.until("both are found", func() bool { return w.found(owner, "kestrel") == 2 })
	w.stop()
	w.cfg.Index = "off"
	w.start()
	if n := w.found(owner, "kestrel"); n != 1 {
		t.Errorf("%d hits, want the conversation", n)
	}
	w.until("the index is empty", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM chunks WHERE content_type <> 'session') + (SELECT count(*) FROM index_manifest WHERE content_type <> 'session') + (SELECT count(*) FROM document_words)`) == 0
	})
	w.stop()
	w.cfg.Index = "on"
	w.start()
	t.Cleanup(w.stop)
	w.until("it is indexed again", func() bool { return w.found(owner, "kestrel") == 2 })
}

func TestTheIndexIsRebuiltOnTheCommandLineWhileTheGatewayRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	w.replies(olga, "The kestrel flew past.")
	w.quiet()
	w.put("Notes/birds.md", "The kestrel nests on the balcony.")
	owner := search.Reader{User: core.Operator, Trust: core.Full}
	w.until("both are found", func() bool { return w.found(owner, "kestrel") == 2 })
	w.sql(`UPDATE chunks SET chunk_text = 'damaged'`)
	w.sql(`DELETE FROM document_words`)
	if n := w.found(owner, "kestrel"); n != 1 {
		t.Fatalf("%d hits in a damaged index, want the conversation", n)
	}
	var lines []string
	r, err := w.app.library.Rebuild(t.Context(), func(line string) { lines = append(lines, line) })
	if err != nil || r.Conversations == 0 || r.Documents == 0 || r.Passages == 0 || len(lines) == 0 {
		t.Errorf("%+v, %v, %q", r, err, lines)
	}
	for state, want := range map[string]int64{"indexed": r.Documents, "fault": r.Faults} {
		if n := w.metric("gatehouse_index_documents", "state", state); n != float64(want) {
			t.Errorf("the metric counts %v %s, want %d", n, state, want)
		}
	}
	if n := w.found(owner, "kestrel"); n != 2 {
		t.Errorf("%d hits after it was rebuilt, want 2: %+v", n, w.meant(owner, "kestrel"))
	}
}
