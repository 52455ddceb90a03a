package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

func TestAContinuedSessionKnowsWhatItContinuesFrom(t *testing.T) {
	h := open(t)
	old, others := h.resolve(chat(5, "c1")).Session, h.resolve(chat(6, "c2")).Session
	h.turn(h.Store, old, "r0", "old words", strings.Repeat("a", 400))
	h.turn(h.Store, others, "r1", "secret", "secret")
	sess := h.resolve(chat(5, "c3")).Session
	sess.ContinuedFrom = old.ID
	c := h.open(h.Store, sess)
	got, r, err := c.History(1000)
	if err != nil || len(got) != 2 || texts(got)[0] != "u:old words" || r.Info != (core.ResumeInfo{Method: "context_injection", IsNewSession: true, PreviousMessageCount: 2}) ||
		!r.Session.ContextInjected || r.Session.MessagesInjected != 2 || r.Session.TokensEstimate < 100 || r.Session.SDKSessionValid {
		t.Errorf("first turn: %v, %+v, %v", texts(got), r, err)
	}
	if err := errors.Join(c.Append("r2", 0, user("new words"), answer("ok")), c.Close()); err != nil {
		t.Fatal(err)
	}
	c = h.open(h.another(), sess)
	got, r, err = c.History(1000)
	if err != nil || len(got) != 4 || texts(got)[2] != "u:new words" || r.Info.Method != "context_injection" || r.Info.PreviousMessageCount != 4 {
		t.Errorf("next turn: %v, %+v, %v", texts(got), r.Info, err)
	}
	if got, r, err = c.History(50); err != nil || len(got) != 2 || r.Info.Method != "sdk_resume" {
		t.Errorf("no room: %v, %+v, %v", texts(got), r.Info, err)
	}
	for _, from := range []string{others.ID, uuid.NewString(), "../../etc", sess.ID} {
		sess.ContinuedFrom = from
		if got, _, err := h.open(h.another(), sess).History(1000); err != nil || !cmp.Equal(texts(got), []string{"u:new words", "a:ok"}) {
			t.Errorf("from %s: %v, %v", from, texts(got), err)
		}
	}
}

func TestAnImportedSessionIsGivenItsTranscriptFromElsewhere(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	name, err := h.vault.Transcript("Elsewhere", id)
	if err == nil {
		err = h.vault.WriteFile(name, []byte(`{"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","content":"imported words"}}`+"\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	sess := h.resolve(chat(5, "c1")).Session
	sess.Source, sess.Metadata = "claude", json.RawMessage(`{"original_id":"`+id+`"}`)
	if got, r, err := h.open(h.Store, sess).History(1000); err != nil || len(got) != 0 || r.Info.Method != "new" {
		t.Errorf("somebody else is shown %v, %+v, %v", texts(got), r.Info, err)
	}
	sess.User = core.Operator
	got, r, err := h.open(h.Store, sess).History(1000)
	if err != nil || !cmp.Equal(texts(got), []string{"u:imported words"}) || r.Info.Method != "context_injection" {
		t.Errorf("%v, %+v, %v", texts(got), r.Info, err)
	}
}

func TestAModelsTitleStandsBackBehindAPersons(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	for _, x := range []struct {
		title, source, want string
		set                 bool
	}{
		{"first line\nof it", session.TitleDefault, "first line", true},
		{"Green tea", session.TitleModel, "Green tea", true},
		{"Green tea", session.TitleModel, "Green tea", false},
		{"other", session.TitleDefault, "Green tea", false},
		{" ", session.TitleModel, "Green tea", false},
		{strings.Repeat("my own ", 20), session.TitleUser, "my own my own my own my own my own my own my own my own my…", true},
		{"Black tea", session.TitleModel, "my own my own my own my own my own my own my own my own my…", false},
		{"", session.TitleUser, "", true},
		{"Black tea", session.TitleModel, "", false},
	} {
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			set, err := h.SetTitle(ctx, tx, sess.ID, x.title, x.source)
			if set != x.set {
				t.Errorf("%q by %s: set is %t", x.title, x.source, set)
			}
			return err
		})
		if s, err := h.ByID(context.Background(), h.db, sess.ID); err != nil || s.Title != x.want {
			t.Errorf("%q by %s: %q, %v", x.title, x.source, s.Title, err)
		}
	}
	if m := h.sidecar(sess.ID); m["title"] != "" || m["title_source"] != "user" {
		t.Errorf("sidecar: %v", m)
	}
	for id, source := range map[string]string{uuid.NewString(): session.TitleUser, sess.ID: "guest"} {
		err := h.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := h.SetTitle(ctx, tx, id, "x", source)
			return err
		})
		if kind := core.KindOf(err); kind != core.NotFound && kind != core.Invalid {
			t.Errorf("%s by %s: %v", id, source, err)
		}
	}
}
