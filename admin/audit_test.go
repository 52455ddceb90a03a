package admin_test

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/store"
)

// record writes one row of the audit log.
func (w *world) record(by core.Actor, action, subject string, detail map[string]any) {
	must(w.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
		return store.Audit(context.Background(), tx, by, action, subject, detail)
	}))
}

func TestAuditReadsAsSentencesWithNames(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	learn := func(user int64, text string) string {
		l, err := w.memory.Add(t.Context(), user, memory.Draft{Text: text}, core.Actor{User: user, Via: "chat"})
		if err != nil {
			t.Fatal(err)
		}
		return l.Correction.ID
	}
	mine, theirs := learn(1, "Always answer in German"), learn(4, "Never mention potatoes")
	for _, c := range []struct {
		by              core.Actor
		action, subject string
		detail          map[string]any
		want            string
	}{
		{core.Actor{User: 1, Via: "panel"}, "pairing.approve", "r1", map[string]any{"bot": "telegram", "user": 2, "trust": "sandboxed"}, "<bdi>Matteo</bdi> let <bdi>Ines Carvalho</bdi> in as sandboxed on telegram <small>in the panel</small>"},
		{core.Actor{User: 3, Via: "chat"}, "pairing.deny", "r1", map[string]any{"bot": "telegram"}, " denied <bdi>Ada Okafor</bdi> on telegram <small>in chat</small>"},
		{core.Actor{Via: "chat"}, "pairing.request", "r1", map[string]any{"bot": "telegram"}, "New request: <bdi>Ada Okafor</bdi> asked to talk to telegram <small>in chat</small>"},
		{core.Actor{Via: "upkeep"}, "pairing.expire", "d3", map[string]any{"bot": "telegram"}, "The request of <bdi>No name given</bdi> to telegram expired unanswered"},
		{core.Actor{User: 1, Via: "panel"}, "access.revoke", "4", map[string]any{"bot": "family"}, "<bdi>Matteo</bdi> revoked the access of <bdi>Old Neighbour</bdi> to family"},
		{core.Actor{User: 1, Via: "panel"}, "place.enable", "family:-1001882734410", map[string]any{"trust": "vault"}, "<bdi>Matteo</bdi> enabled the group <bdi>Allotment 14</bdi> as vault"},
		{core.Actor{User: 1, Via: "cli"}, "setting.change", "LOG_LEVEL", map[string]any{"value": "debug"}, "<bdi>Matteo</bdi> changed LOG_LEVEL to debug <small>on the command line</small>"},
		{core.Actor{User: 1, Via: "panel"}, "setting.change", "GATEHOUSE_MODEL", map[string]any{"values": map[string]string{"GATEHOUSE_MODEL": "local/quote"}}, "changed GATEHOUSE_MODEL to local/quote"},
		{core.Actor{Via: "upkeep"}, "user.create", "2", nil, "The gateway</bdi> added <bdi>Ines Carvalho</bdi> to the people"},
		{core.Actor{Via: "chat"}, "user.create", "3", nil, "The gateway</bdi> added <bdi>"},
		{core.Actor{User: 1, Via: "panel"}, "admin.create", "2", map[string]any{"role": "viewer"}, "<bdi>Matteo</bdi> made the account <bdi>Ines Carvalho</bdi> with the role viewer"},
		{core.Actor{User: 1, Via: "cli"}, "admin.two_step_off", "2", nil, "<bdi>Matteo</bdi> turned two-step sign-in off for the account <bdi>Ines Carvalho</bdi>"},
		{core.Actor{User: 1, Via: "panel"}, "key.rotate", "k1", nil, "<bdi>Matteo</bdi> gave an API key a new secret"},
		{core.Actor{User: 1, Via: "panel"}, "session.update", w.ada, map[string]any{"fields": []string{"project_id"}}, "<bdi>Matteo</bdi> changed the project of <bdi>the conversation “Allotment meeting”</bdi>"},
		{core.Actor{User: 1, Via: "panel"}, "session.update", w.ada, map[string]any{"fields": []string{"title", "tags", "contexts"}}, "changed the title, the tags and the context of"},
		{core.Actor{User: 1, Via: "panel"}, "session.delete", "gone", nil, "<bdi>Matteo</bdi> deleted <bdi>a conversation</bdi>"},
		{core.Actor{User: 1, Via: "chat"}, "memory.change", mine, nil, "<bdi>Matteo</bdi> changed <bdi>“Always answer in German”</bdi> in the memory"},
		{core.Actor{User: 4, Via: "chat"}, "memory.change", theirs, nil, "<bdi>Old Neighbour</bdi> changed <bdi>a correction</bdi> in the memory"},
		{core.Actor{User: 1, Via: "panel"}, "parrot.teach", "x", nil, "<bdi>Matteo</bdi>: Parrot: teach, x"},
	} {
		w.record(c.by, c.action, c.subject, c.detail)
		a := s.get("/admin/audit?action=" + c.action)
		if !strings.Contains(a.body, c.want) {
			t.Errorf("%s: no %q in\n%s", c.action, c.want, a.main())
		}
	}
	s.get("/admin/audit").lacks(t, "Never mention potatoes")
	rows, err := csv.NewReader(strings.NewReader(s.get("/admin/audit/export?format=csv&action=pairing.approve").body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][7] != "Matteo let Ines Carvalho in as sandboxed on telegram" {
		t.Errorf("exported %q %v", rows, err)
	}
	s.get("/admin/audit?user=Ines").has(t, "Nothing matches")
	s.get("/admin/audit?action=setting").has(t, `<option value="setting" selected>settings`, `aria-current="page">Settings</a>`)
}
