package index

import (
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
