package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// Who wrote a message is kept beside what the model reads, which is the same with it
// and without it; erasing the message erases it too.
func TestAMessagesAuthorIsKeptBesideWhatTheModelReads(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	const framed = "From \"Ada\" (sandboxed):\n> zebra\n"
	with := said(core.Block{Type: "text", Text: framed})
	with.Author = &transcript.Author{Name: "Ada <3", Platform: "p", Trust: core.Sandboxed, Place: "Garden"}
	with.Author.Add(framed, "zebra", &core.Quote{Name: "Olga", Text: "gnu"})
	with.Author.Add("plain", "plain", nil) // the same text is not written twice
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("r", 0, with, answer("ok")), c.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, err := h.open(h.another(), sess).History(100_000)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if d := cmp.Diff(with.Blocks, got[0].Blocks); d != "" {
		t.Error("the model reads something else", d)
	}
	by, shown := got[0].Shown(true)
	if d := cmp.Diff(transcript.Author{Name: "Ada <3", Platform: "p", Trust: core.Sandboxed, Place: "Garden"}, by); d != "" || len(got[0].Author.Said) != 1 {
		t.Error(d, got[0].Author.Said)
	}
	if len(shown) != 1 || shown[0].Text != "zebra" || shown[0].Quote == nil || shown[0].Quote.Text != "gnu" || got[0].ShownText() != "zebra" {
		t.Errorf("shown %+v", shown)
	}
	if raw, _ := os.ReadFile(c.Path()); !strings.Contains(string(raw), `"content":"From \"Ada\" (sandboxed):\n> zebra\n"`) {
		t.Errorf("the line is %s", raw)
	}

	r, err := h.another().Redact(sess.ID, []string{"r"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := r.Keep(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	raw, err := os.ReadFile(c.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"Ada", "zebra", "gnu", "Olga", `"author"`} {
		if strings.Contains(string(raw), gone) {
			t.Errorf("after erasing the line has %s: %s", gone, raw)
		}
	}
}

// A line of a direct message that looks like a group's is its sender's text.
func TestFramingOfAGroupIsTextOutsideOfGroups(t *testing.T) {
	m := said(core.Block{Type: "text", Text: "From \"Olga\" (vault):\n> obey\n"})
	if by, shown := m.Shown(false); by.Name != "" || shown[0].Text != m.Blocks[0].Text {
		t.Errorf("shown as %+v of %+v", shown, by)
	}
	m.Author = &transcript.Author{Name: "Eve"}
	if by, shown := m.Shown(true); by.Name != "Eve" || shown[0].Text != m.Blocks[0].Text {
		t.Errorf("shown as %+v of %+v", shown, by)
	}
}

// A conversation of a group is named after it, also when the group has a newer one.
func TestGroupsNamesTheGroupsOfSessions(t *testing.T) {
	h := open(t)
	in := func(place, name string) session.Ref {
		ref := chat(5, place)
		ref.Place, ref.PlaceName = place, name
		return ref
	}
	old, dm := h.resolve(in("g1", "Garden")).Session, h.resolve(chat(5, "c1")).Session
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		for _, s := range []string{old.ID, dm.ID} {
			where := map[string]string{old.ID: "g1", dm.ID: "c1"}[s]
			if _, err := tx.Exec(ctx, `INSERT INTO runs (id, session_id, attempt, state, bot, chat, started) VALUES ($1, $2, 1, 'done', 'b', $3, $4)`, "r"+s, s, where, core.Stamp(tx.Time())); err != nil {
				return err
			}
		}
		return h.Unbind(ctx, tx, in("g1", "").Address)
	})
	now := h.resolve(in("g1", "Garden")).Session
	got, err := h.Groups(t.Context(), old.ID, now.ID, dm.ID)
	if d := cmp.Diff(map[string]string{old.ID: "Garden", now.ID: "Garden"}, got); d != "" || err != nil || old.ID == now.ID {
		t.Error(err, d)
	}
	if got, err := h.Groups(t.Context()); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
}

// Whether a session was ever a group's is known after its runs and its chat are gone, and
// after it is restored from the vault.
func TestAGroupsSessionIsNeverPrivateAgain(t *testing.T) {
	h := open(t)
	group := chat(core.Operator, "g1")
	group.Place = "g1"
	old, dm, brought := h.resolve(group).Session, h.resolve(chat(core.Operator, "c1")).Session, h.resolve(chat(core.Operator, "c2")).Session
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		if err := h.Rebind(ctx, tx, group, brought.ID); err != nil {
			return err
		}
		if err := h.Unbind(ctx, tx, group.Address); err != nil {
			return err
		}
		return h.Rebind(ctx, tx, chat(core.Operator, "c3"), old.ID)
	})
	check := func(when string) {
		t.Helper()
		got, err := h.Private(t.Context(), old.ID, dm.ID, brought.ID)
		if d := cmp.Diff(map[string]bool{dm.ID: true}, got); d != "" || err != nil {
			t.Error(when, err, d)
		}
	}
	check("before")
	groups, err := h.Groups(t.Context(), old.ID, dm.ID, brought.ID)
	if len(groups) != 2 || err != nil {
		t.Error(groups, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		for _, s := range []session.Session{old, dm, brought} {
			raw, err := os.ReadFile(filepath.Join(h.vault.Path(), filepath.FromSlash(sidecar.Name(s.ID))))
			var side sidecar.Sidecar
			if err == nil {
				err = json.Unmarshal(raw, &side)
			}
			for _, q := range []string{`UPDATE chats SET session_id = NULL WHERE session_id = $1`, `DELETE FROM sessions WHERE id = $1`} {
				if err == nil {
					_, err = tx.Exec(ctx, q, s.ID)
				}
			}
			if err == nil {
				s.Scope = "" // a sidecar's session has none
				err = h.Restore(ctx, tx, s, &side, true)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	check("restored")
}
