package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript/words"
)

// A search walks the index from its newest hit on, without sorting more than
// one batch, and reaches everything else by its key.
func TestASearchReadsTheIndexFromItsNewestHit(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db := storetest.Open(t, core.System{})
	for name, q := range map[string]Query{
		"of a user": {User: 5, Where: func(c *store.Conditions) { c.And("s.user_id = ?", 5) }},
		"of all":    {All: true, Where: func(*store.Conditions) {}},
		"with all filters": {User: 5, Where: func(c *store.Conditions) {
			c.And("s.user_id = ?", 5)
			c.And("coalesce(s.module, '') = ?", "chat")
			c.And("coalesce(s.archived, 0) = ?", 0)
			c.And("EXISTS (SELECT 1 FROM session_tags t WHERE t.session_id = s.id AND t.tag = ?)", "work")
			c.And("EXISTS (SELECT 1 FROM session_contexts c WHERE c.session_id = s.id AND c.folder_path = ?)", "Notes")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := lookup{x: &Index{db: db}, f: q, q: words.Parse("green tea"), at: 7}
			query, args := l.statement(128)
			plan := storetest.Plan(t, db, query, args...)
			for i, step := range plan {
				if step.Parent == plan[0].ID && strings.Contains(step.Detail, "ORDER BY") {
					t.Errorf("it sorts all hits: %s", step.Detail)
				}
				if strings.HasPrefix(step.Detail, "SCAN") && step.Detail != "SCAN h" && !strings.HasPrefix(step.Detail, "SCAN session_words VIRTUAL TABLE INDEX") {
					t.Errorf("step %d: %s", i, step.Detail)
				}
			}
		})
	}
}

// Each chunk costs an entry in every index of its table, so one that no statement takes is not kept.
func TestEveryIndexOfChunksIsTaken(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db := storetest.Open(t, core.System{})
	taken := map[string]string{
		"chunks_embedder":           `SELECT n FROM chunks WHERE embedder = 3`,
		"sqlite_autoindex_chunks_1": `SELECT n FROM chunks WHERE id = 'i'`,
		"sqlite_autoindex_chunks_2": `SELECT n FROM chunks WHERE content_id = 'c'`,
	}
	var names []string
	if err := db.Select(t.Context(), &names, `SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'chunks'`); err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if query := taken[name]; query == "" || !strings.Contains(storetest.Plan(t, db, query)[0].Detail, name) {
			t.Errorf("the index %s: no statement takes it", name)
		}
	}
}

// What is emptied is found by going through the table once, past the documents.
func TestEmptyTakesSessionsAndLeavesDocuments(t *testing.T) {
	db := storetest.Open(t, core.System{})
	const each = emptyStep + emptyStep/2
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range 2 * each {
			if _, err := tx.Exec(t.Context(), `INSERT INTO chunks (n, id, content_id, content_type, field, chunk_index, chunk_text, created_at, length, piece)
				VALUES ($1, $2, $2, $3, 'content', 0, '', '', 1, 0)`, i-each, fmt.Sprint("c", i), []string{"session", "document"}[i%2]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := New(Options{DB: db}).Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []int
	if err := db.Select(t.Context(), &left, `SELECT count(*) FROM chunks GROUP BY content_type`); err != nil || !slices.Equal(left, []int{each}) {
		t.Errorf("left %v (%v), want the %d documents", left, err, each)
	}
}
