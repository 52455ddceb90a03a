package session

import (
	"context"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestListsAreReadInOrderAndNotSorted(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db := storetest.Open(t, core.System{})
	no, cursor := false, "MjAyNi0wMS0wMlQwMzowNDowNS4wMDAwMDBaIGE" // 2026-01-02T03:04:05.000000Z a
	for _, f := range []Filter{
		{All: true}, {User: 5}, {All: true, Cursor: cursor}, {User: 5, Cursor: cursor},
		{All: true, Module: "chat", Source: "telegram", AgentType: "vault-agent", Archived: &no},
		{User: 5, Module: "chat", Source: "telegram", AgentType: "vault-agent", Archived: &no, Cursor: cursor},
	} {
		f.Limit = 50
		query, args, err := f.query()
		if err != nil {
			t.Fatal(err)
		}
		plan := storetest.Plan(t, db, query, args...)
		if len(plan) != 1 || !strings.Contains(plan[0].Detail, "USING INDEX idx_sessions_") {
			t.Errorf("%+v: %+v", f, plan)
		}
	}
}

// What asks for a tag or a folder reads the sessions that these have,
// or walks an index in the list's order; the table is read whole by none, and
// sorted is only what few sessions have.
func TestNoListReadsTheWholeTableOfSessions(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db := storetest.Open(t, core.System{})
	for _, f := range []Filter{
		{User: 5, Tag: "work"}, {All: true, Tag: "work"}, {User: 5, Context: "Notes"}, {All: true, Context: "Notes"},
		{User: 5, Tag: "rare", fewTagged: true}, {All: true, Tag: "rare", fewTagged: true}, {User: 5, Context: "Rare", fewAbout: true},
		{All: true, Bot: "common"}, {User: 5, Bot: "common"}, {All: true, Bot: "rare", fewHeld: true}, {User: 5, Bot: "rare", fewHeld: true},
		{All: true, Project: "large"}, {User: 5, Project: "large"}, {All: true, Project: "small", fewGrouped: true}, {User: 5, Project: "small", fewGrouped: true},
		{All: true, Bot: "family", Place: "-100188"}, {All: true, Only: []string{"a", "b"}}, {User: 5, Only: []string{"a", "b"}},
	} {
		query, args, err := f.query()
		if err != nil {
			t.Fatal(err)
		}
		plan := storetest.Plan(t, db, query, args...)
		few := f.fewTagged || f.fewAbout || f.fewHeld || f.fewGrouped || f.Place != "" || f.Only != nil
		if first := plan[0].Detail; strings.Contains(first, "(id=?)") != few {
			t.Errorf("%+v begins with %s", f, first)
		}
		for _, step := range plan {
			if strings.Contains(step.Detail, "ORDER BY") && !few {
				t.Errorf("%+v sorts: %s", f, step.Detail)
			}
			if strings.HasPrefix(step.Detail, "SCAN") && !strings.Contains(step.Detail, "USING INDEX idx_sessions_") {
				t.Errorf("%+v: %s", f, step.Detail)
			}
		}
	}
}

// The archived are as quick where they are the oldest of a million.
func TestArchivedSessionsAreReadFromTheirOwnIndex(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	yes := true
	f := Filter{All: true, Archived: &yes, Limit: 50}
	query, args, err := f.query()
	if err != nil {
		t.Fatal(err)
	}
	plan := storetest.Plan(t, storetest.Open(t, core.System{}), query, args...)
	if len(plan) != 1 || !strings.Contains(plan[0].Detail, "USING INDEX sessions_archived") {
		t.Errorf("%+v", plan)
	}
}

// What the panel offers to choose from is read by leaps: with a million tagged
// sessions as well.
func TestCommonTagsAreCountedWithoutReadingThemAll(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	ctx, db := context.Background(), storetest.Open(t, core.System{})
	s := New(Options{DB: db})
	defer s.Close()
	if list, err := s.CommonTags(ctx); err != nil || len(list) != 0 {
		t.Errorf("of nothing: %v, %v", list, err)
	}
	err := db.Tx(ctx, func(tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO sessions (id, created_at, last_accessed) WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 1200) SELECT 's' || i, '', '' FROM k`,
			`INSERT INTO session_tags (session_id, tag, created_at) SELECT id, 'all', '' FROM sessions`,
			`INSERT INTO session_tags (session_id, tag, created_at) SELECT id, 'few', '' FROM sessions WHERE id < 's1003'`,
			`INSERT INTO session_tags (session_id, tag, created_at) SELECT id, 'own-' || id, '' FROM sessions WHERE id >= 's9'`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.CommonTags(ctx)
	if err != nil || len(list) < 10 || list[0] != (TagCount{"all", CountTo}) || list[1].Tag != "few" || list[2].Count != 1 {
		t.Errorf("%v, %v", list, err)
	}
	plan := storetest.Plan(t, db, commonQuery, commonTags, CountTo)
	for _, step := range plan {
		if strings.HasPrefix(step.Detail, "SCAN s") {
			t.Errorf("it walks: %s", step.Detail)
		}
	}
	if len(plan) < 5 {
		t.Errorf("the plan is %v", plan)
	}
}
