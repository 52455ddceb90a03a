package session

import (
	"context"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store/storetest"
)

func TestListsAreReadInOrderAndNotSorted(t *testing.T) {
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
		var plan []struct {
			ID, Parent, Notused int
			Detail              string
		}
		if err := db.Select(context.Background(), &plan, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
			t.Fatal(err)
		}
		if len(plan) != 1 || !strings.Contains(plan[0].Detail, "USING INDEX idx_sessions_") {
			t.Errorf("%+v: %+v", f, plan)
		}
	}
}

// What asks for a tag, a folder or words reads the sessions that these have,
// or walks an index in the list's order; the table is read whole by none, and
// sorted is only what few sessions have.
func TestNoListReadsTheWholeTableOfSessions(t *testing.T) {
	db := storetest.Open(t, core.System{})
	for _, f := range []Filter{
		{User: 5, Tag: "work"}, {All: true, Tag: "work"}, {User: 5, Context: "Notes"}, {All: true, Context: "Notes"},
		{User: 5, Search: "plan"}, {All: true, Search: "plan"},
		{User: 5, Tag: "rare", fewTagged: true}, {All: true, Tag: "rare", fewTagged: true}, {User: 5, Context: "Rare", fewAbout: true},
	} {
		query, args, err := f.query()
		if err != nil {
			t.Fatal(err)
		}
		var plan []struct {
			ID, Parent, Notused int
			Detail              string
		}
		if err := db.Select(context.Background(), &plan, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
			t.Fatal(err)
		}
		few := f.fewTagged || f.fewAbout
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
