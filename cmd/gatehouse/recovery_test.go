package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/memory/backup"
	"gatehouse/core/store"
)

func TestAHandoffHasWhatIsRememberedOfItsReaderAlone(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss, ines := w.boss(), w.friend("Ines")
	var ids []string
	for _, u := range []*telegramtest.User{boss, ines} {
		model.Script(llmtest.Say("Yes."))
		w.replies(u, "correction: always mention "+map[bool]string{true: "otters", false: "herons"}[u == boss]+".")
		w.hearsText(u, "Remembered as #1")
		w.quiet()
		var id string
		if err := w.app.db.Get(t.Context(), &id, `SELECT s.id FROM sessions s JOIN identities i ON i.user_id = s.user_id WHERE i.platform_user_id = $1`, fmt.Sprint(u.ID())); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		if err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
			s, err := w.app.sessions.ByID(t.Context(), tx, id)
			if err == nil {
				_, err = w.app.handoffs.Add(t.Context(), tx, &s, backup.Backup{Model: "anthropic/m", Text: "## GOAL\nWater birds.", Trigger: backup.Manual, Covers: "m"}, backup.Seen{})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	_, own := w.call("GET", "/api/sessions/"+ids[0]+"/handoff", nil)
	if !strings.Contains(own, "Water birds.") || !strings.Contains(own, "## REMEMBERED OF THE PERSON") || !strings.Contains(own, "otters") || strings.Contains(own, "herons") {
		t.Errorf("the owner's:\n%s", own)
	}
	_, other := w.call("GET", "/api/sessions/"+ids[1]+"/handoff", nil)
	if !strings.Contains(other, "Water birds.") || strings.Contains(other, "REMEMBERED") || strings.Contains(other, "herons") {
		t.Errorf("another's, to the owner:\n%s", other)
	}
	ines.Send("/handoff")
	if m := w.hearsText(ines, "REMEMBERED OF THE PERSON"); !strings.Contains(m.Text, "herons") || strings.Contains(m.Text, "otters") {
		t.Error(m.Text)
	}
}
