package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/session"
)

// A conversation of another system goes on in a chat as if it had been held there, and a later
// import leaves it alone.
func TestAnImportedConversationIsContinuedInAChat(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	name := filepath.Join(t.TempDir(), "export.json")
	export := `[{"uuid":"c1","name":"Green tea","chat_messages":[
		{"uuid":"m1","sender":"human","text":"How long does sencha brew?","created_at":"2024-05-01T12:00:00Z"},
		{"uuid":"m2","sender":"assistant","text":"Two minutes at 70 degrees.","created_at":"2024-05-01T12:01:00Z"}]}]`
	if err := os.WriteFile(name, []byte(export), 0o600); err != nil {
		t.Fatal(err)
	}
	imports := func() report.Report {
		t.Helper()
		id, err := w.app.imports.Start(t.Context(), report.Order{Path: name}, foreign.Terms{User: core.Operator, Trust: core.Full}, cli)
		if err != nil {
			t.Fatal(err)
		}
		var s report.State
		w.until("the import has ended", func() bool {
			s, err = w.app.imports.State(id)
			return err == nil && s.State != report.Running
		})
		return s.Report
	}
	if r := imports(); r.Added != 1 {
		t.Fatalf("%+v", r)
	}
	list, _, err := w.app.sessions.List(t.Context(), session.Filter{User: core.Operator, Source: "claude"})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if m := w.replies(boss, "/resume "+list[0].ID[:8]); !strings.Contains(m.Text, "Continuing “Green tea” (2 messages)") {
		t.Errorf("resumed: %q", m.Text)
	}
	model.Script(llmtest.Say("A little longer."))
	if m := w.replies(boss, "And black tea?"); m.Text != "A little longer." {
		t.Errorf("answered: %q", m.Text)
	}
	all := model.Requests()
	body := string(all[len(all)-1].Body)
	if !strings.Contains(body, "How long does sencha brew?") || !strings.Contains(body, "Two minutes at 70 degrees.") || strings.Index(body, "sencha brew") > strings.Index(body, "black tea") {
		t.Errorf("the model reads %s", body)
	}
	w.quiet()
	if r := imports(); r.Continued != 1 || r.Added+r.Updated+r.Failed != 0 {
		t.Errorf("imported again: %+v", r)
	}
	if d, err := w.app.sessions.Detail(t.Context(), w.app.db, list[0].ID); err != nil || d.MessageCount != 4 || d.Source != "claude" || d.CreatedAt.Year() != 2024 || time.Since(d.LastAccessed) > time.Hour {
		t.Errorf("%+v, %v", d, err)
	}
}
