package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// A voice message that nobody could hear, and the copy of a file that an answer
// has shown, belong to a person as much as what a run has read.
func TestForgettingErasesKeptAndShownFiles(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.GuestRead = values.List{"Public/**"}; c.RateLimit = values.Rate{} })
	w.puts(map[string]string{"Public/plan.md": "# Plan"})
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: []byte("OggS tea")}})
	w.answers(ada.DM(), m.ID)
	model.Script(llmtest.Reply{Text: []string{"Here: ![the plan](Public/plan.md)"}})
	m = w.post(ada, ada.DM(), telegramtest.Outgoing{Text: "show me"})
	w.answers(ada.DM(), m.ID)
	w.quiet()
	if kept := w.assets(); len(kept) != 2 {
		t.Fatalf("kept: %v", kept)
	}
	group := core.Address{Bot: "telegram", Chat: "-5", Place: "-5"}
	w.app.overheard.Add(group, agent.Quoted{Name: "Ada", Text: "what nobody asked the bot"})
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(w.user(ada)), cli, nil)
	if err != nil || f.Files != 2 {
		t.Errorf("%+v %v", f, err)
	}
	if kept := w.assets(); len(kept) != 0 {
		t.Errorf("still there: %v", kept)
	}
	if told := w.app.overheard.Last(group); len(told) != 0 {
		t.Errorf("the next prompt tells of %v", told)
	}
}

// Whoever has linked two accounts is one person: their conversations are found,
// the keys of the account that went up in the other are over, and forgetting
// them leaves nothing of either.
func TestALinkedPersonIsFoundAndForgottenAsOne(t *testing.T) {
	t.Parallel()
	l, _ := newLife(t, nil)
	w, ctx := l.w, t.Context()
	const to = 777
	err := w.app.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO users (id, display, created_at) VALUES ($1, 'Quentin', $2)`, to, core.Stamp(tx.Time())); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ('elsewhere', '42', $1, 'Quentin', $2)`, to, core.Stamp(tx.Time()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.upkeepAt(60)
	code, _, err := w.app.pairing.Codes.NewLink(ctx, to, core.Address{Bot: "telegram", Chat: fmt.Sprint(l.other.ID())})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"/link " + code, "/link yes"} {
		m := w.post(l.zeb, l.zeb.DM(), telegramtest.Outgoing{Text: text})
		w.answers(l.zeb.DM(), m.ID)
	}
	if n := w.user(l.zeb); n != to {
		t.Fatalf("the account is user %d's", n)
	}
	w.upkeepAt(60)
	found, _, err := w.app.sessions.Search(ctx, session.Filter{User: to, Search: "xyzzyword"})
	if err != nil || len(found) != 1 {
		t.Errorf("their conversation is not found: %v %v", found, err)
	}
	if n := w.count(`SELECT count(*) FROM api_keys WHERE user_id IN ($1, $2)`, l.user, to); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if made, over := w.count(`SELECT count(*) FROM audit_events WHERE action = 'key.create'`), w.count(`SELECT count(*) FROM audit_events WHERE action = 'key.revoke'`); made == 0 || over != made {
		t.Errorf("of %d keys the audit tells that %d are over", made, over)
	}
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Guests", fmt.Sprint(to), fmt.Sprintf("linked-%d", l.user), "deep", "notes.md")); err != nil {
		t.Error(err)
	}
	if _, err := w.app.eraser.Forget(ctx, fmt.Sprint(to), cli, nil); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	for _, hit := range grep(t, w, append(l.words, "Quentin")...) {
		t.Errorf("still there: %s", hit)
	}
}
