package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
)

const cliLine = `{"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","content":"said in the CLI"}}` + "\n"

// beside is a store that also looks in a folder of Claude Code, in which the
// sessions ids lie.
func (h *house) beside(ids ...string) (*session.Store, string) {
	h.t.Helper()
	dir := h.t.TempDir()
	for _, id := range ids {
		err := errors.Join(os.MkdirAll(filepath.Join(dir, "-home-x"), 0o700), os.WriteFile(filepath.Join(dir, "-home-x", id+".jsonl"), []byte(cliLine), 0o600))
		if err != nil {
			h.t.Fatal(err)
		}
	}
	s := session.New(session.Options{DB: h.db, Vault: h.vault, Clock: h.clock, Projects: dir})
	h.t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func TestASessionOfClaudeCodesFolderContinuesInACopyInTheVault(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	s, dir := h.beside(id)
	h.Store = s
	r := h.resolve(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: id}, User: core.Operator, Trust: core.Full})
	if r.err != nil || r.ID != id || !r.isNew || r.MessageCount != 1 || r.TrustLevel != core.Sandboxed {
		t.Fatalf("%+v, %v", r.Session, r.err)
	}
	h.turn(s, r.Session, "r1", "said here", "ok")
	got, resume, err := h.open(h.another(), r.Session).History(1000) // which looks in the vault alone
	if want := []string{"u:said in the CLI", "u:said here", "a:ok"}; err != nil || !cmp.Equal(texts(got), want) || resume.Info.Method != "sdk_resume" {
		t.Errorf("%v, %+v, %v", texts(got), resume, err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "-home-x", id+".jsonl")); string(raw) != cliLine || err != nil {
		t.Errorf("the CLI's own file now holds %s, %v", raw, err)
	}
	if all, err := os.ReadDir(dir); len(all) != 1 || err != nil {
		t.Errorf("the CLI's folder now holds %v, %v", all, err)
	}
}

func TestClaudeCodesFolderIsTheOperatorsAlone(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	s, _ := h.beside(id)
	h.Store = s
	r := h.resolve(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: id}, User: 7, Trust: core.Vault})
	r.MessageCount = 4
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got, _, err := h.open(s, r.Session).History(1000); len(got) != 0 || err != nil {
		t.Errorf("somebody else is given %v, %v", texts(got), err)
	}
	r.User = core.Operator
	if got, _, err := h.open(h.another(), r.Session).History(1000); len(got) != 0 || err != nil {
		t.Errorf("without the setting: %v, %v", texts(got), err)
	}
	if got, _, err := h.open(s, r.Session).History(1000); len(got) != 1 || err != nil {
		t.Errorf("the operator is given %v, %v", texts(got), err)
	}
}

func TestClaudeCodesFolderLeadsNowhereElse(t *testing.T) {
	h := open(t)
	in, link, up, pipe := uuid.NewString(), uuid.NewString(), uuid.NewString(), uuid.NewString()
	s, dir := h.beside(in)
	outside := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, up+".jsonl"), []byte(cliLine), 0o600),
		os.Symlink(filepath.Join(outside, up+".jsonl"), filepath.Join(dir, "-home-x", link+".jsonl")),
		os.Mkdir(filepath.Join(dir, "-home-x", pipe+".jsonl"), 0o700),
		os.Symlink(outside, filepath.Join(dir, "-linked"))); err != nil {
		t.Fatal(err)
	}
	sess := session.Session{User: core.Operator, MessageCount: 3}
	for _, id := range []string{link, up, pipe, uuid.NewString()} {
		sess.ID = id
		if got, _, err := h.open(s, sess).History(1000); len(got) != 0 || err != nil {
			t.Errorf("%s: %v, %v", id, texts(got), err)
		}
	}
	for _, id := range []string{"../" + in, "-home-x/" + in, "..", "", in + "\x00"} {
		sess.ID = id
		if _, err := s.Open(t.Context(), sess); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
	gone := filepath.Join(t.TempDir(), "not", "made")
	s = session.New(session.Options{DB: h.db, Vault: h.vault, Clock: h.clock, Projects: gone})
	t.Cleanup(func() { _ = s.Close() })
	sess.ID = in
	if got, _, err := h.open(s, sess).History(1000); len(got) != 0 || err != nil {
		t.Errorf("a folder that is not there: %v, %v", texts(got), err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}
