package main

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embedtest"
)

// meant returns what a search of r finds.
func (w *world) meant(r search.Reader, text string) []search.Hit {
	w.t.Helper()
	page, err := w.app.library.Finder.Search(w.t.Context(), search.Query{Text: text}, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Hits
}

func TestDocumentsAreFoundByTheirMeaningWithinTheRightsOfTheReader(t *testing.T) {
	t.Parallel()
	server := embedtest.New(t, 256)
	w, _ := newModelWorld(t, func(c *configs.Config) {
		c.EmbedURL, c.EmbedModel, c.BudgetDay.Tokens = server.URL, "small", 1_000_000
	})
	_, reply, _ := w.asked("POST", "/api/chat", map[string]any{"message": "The chimney was plastered and the windows were reglazed."}, wantJSON)
	talk, _ := reply["session_id"].(string)
	w.put("Notes/gutters.md", "# House\n\nThe gutters were repaired and the roof was repainted.\n")
	w.put("Notes/tea.md", "# Tea\n\nGreen tea wants water of eighty degrees.\n")
	w.app.library.Crawler.Kick()
	owner := search.Reader{User: core.Operator, Trust: core.Full}
	find := func(r search.Reader) (paths []string) {
		for _, h := range w.meant(r, "repairing guttering") {
			paths = append(paths, h.Path)
		}
		return paths
	}
	w.until("the gutters are found by another form of the words", func() bool {
		paths := find(owner)
		return len(paths) > 0 && paths[0] == "Notes/gutters.md"
	})
	talks := func(r search.Reader) (ids []string) {
		for _, h := range w.meant(r, "plastering chimneys") {
			if h.Type == search.Session {
				ids = append(ids, h.ID)
			}
		}
		return ids
	}
	w.until("a conversation is found by another form of its words", func() bool { return slices.Contains(talks(owner), talk) })
	for project, want := range map[string]int{"p1": 1, "p2": 0} {
		w.exec(`UPDATE sessions SET project_id = 'p1' WHERE id = '` + talk + `'`)
		page, err := w.app.library.Finder.Search(t.Context(), search.Query{Text: "plastering chimneys", Project: project}, owner)
		if err != nil || len(page.Hits) != want {
			t.Errorf("of the project %s by its meaning: %+v, %v", project, page.Hits, err)
		}
	}
	for _, r := range []search.Reader{{User: 7, Trust: core.Full}, {User: core.Operator, Trust: core.Full, NoSessions: true}} {
		if ids := talks(r); len(ids) != 0 {
			t.Errorf("%+v finds the conversations %v", r, ids)
		}
	}
	for _, name := range find(search.Reader{User: 7, Trust: core.Sandboxed}) {
		if !strings.HasPrefix(name, "Public/") { // as the example vault opens it
			t.Errorf("a guest finds %s", name)
		}
	}
	asked := server.Asked()
	if !slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, "roof was repainted") }) || !slices.Contains(asked, "repairing guttering") {
		t.Errorf("the server got %q", asked)
	}
	if n := w.count(`SELECT count(*) FROM usage WHERE model = 'openai/small' AND state = 'settled' AND input > 0 AND user_id = 0`); n == 0 {
		t.Error("what was embedded is not in the ledger")
	}
	if page := w.browser().page("/admin/search"); !strings.Contains(page, "Embedded passages") || strings.Contains(page, "Nothing leaves this machine") {
		t.Errorf("the panel does not say that texts are sent to a server:\n%s", page)
	}

	server.Fail(func([]string) int { return 503 })
	if hits := w.meant(owner, "green tea"); len(hits) == 0 || hits[0].Path != "Notes/tea.md" {
		t.Errorf("without the server words find %v", hits)
	}
	w.stop()
	w.cfg.Index = "words"
	w.start()
	w.until("no vector is stored", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM chunk_signs) + (SELECT count(*) FROM chunks WHERE embedding IS NOT NULL)`) == 0
	})
	if hits := w.meant(owner, "repairing guttering"); len(hits) != 0 {
		t.Errorf("with words alone %v is found", hits)
	}
}
