package discover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/discover"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute

// A house is a vault whose transcripts are watched once watch is called.
type house struct {
	t     *testing.T
	db    *store.DB
	vault *vault.Vault
	last  map[string]*string // uuid of a session's newest line
	*session.Store
}

func open(t *testing.T) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, db: storetest.Open(t, core.System{}), vault: v, last: map[string]*string{}}
	h.Store = session.New(session.Options{DB: h.db, Vault: v})
	t.Cleanup(func() { _, _ = h.Close(), v.Close() })
	return h
}

func (h *house) watch() { h.watchFor(slog.NewTextHandler(h.t.Output(), nil)) }

func (h *house) watchFor(log slog.Handler) {
	d := discover.New(discover.Options{DB: h.db, Vault: h.vault, Sessions: h.Store, Owner: core.Operator, Trust: core.Full,
		Clock: core.System{}, Log: slog.New(log)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
}

// line returns one of Claude Code's, but for what with replaces; a nil deletes.
func (h *house) line(id, role, text string, with map[string]any) string {
	line := uuid.NewString()
	l := map[string]any{
		"parentUuid": h.last[id], "isSidechain": false, "userType": "external", "cwd": "/elsewhere", "sessionId": id, "version": "2.1.197", "gitBranch": "",
		"type": role, "uuid": line, "timestamp": "2026-01-02T03:04:05.000Z",
		"message": map[string]any{"role": role, "content": text},
	}
	if role == "assistant" {
		l["requestId"] = "req_1"
		l["message"] = map[string]any{"role": role, "id": "msg_" + uuid.NewString(), "model": "claude-sonnet-4-5", "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	h.last[id] = &line
	for name, value := range with {
		l[name] = value
		if value == nil {
			delete(l, name)
		}
	}
	b, _ := json.Marshal(l)
	return string(b) + "\n"
}

// add appends to the transcript of a session in a project's directory.
func (h *house) add(project, id, text string) {
	h.t.Helper()
	dir := filepath.Join(h.vault.Path(), ".claude", "projects", project)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(dir, id+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, err = f.WriteString(text)
			_ = f.Close()
		}
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) session(id string) (session.Session, bool) {
	h.t.Helper()
	s, err := h.ByID(h.t.Context(), h.db, id)
	if err != nil && core.KindOf(err) != core.NotFound {
		h.t.Fatal(err)
	}
	return s, err == nil
}

func (h *house) until(what string, f func() bool) {
	h.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !f(); {
		select {
		case <-tick.C:
		case <-end:
			h.t.Fatal("never: " + what)
		}
	}
}

func (h *house) taken(id string) session.Session {
	h.t.Helper()
	h.until("the session is taken in", func() bool { _, ok := h.session(id); return ok })
	s, _ := h.session(id)
	return s
}

func TestSessionsOfBeforeTheStartAreTheOwnersAtTheirTrust(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	h.add("-a", id, h.line(id, "user", "<command-name>/clear</command-name>", nil)+h.line(id, "user", "Plan the garden", nil)+h.line(id, "assistant", "Gladly.", nil))
	h.watch()
	s := h.taken(id)
	if s.User != core.Operator || s.TrustLevel != core.Full || s.Source != "claude-code" || s.Title != "Plan the garden" || s.MessageCount != 3 || s.Model != "claude-sonnet-4-5" {
		t.Errorf("%+v", s)
	}
	list, _, err := h.List(t.Context(), session.Filter{User: core.Operator})
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("%v %v", list, err)
	}
}

func TestSessionsThatBeginAndGrowWhileTheGatewayServesAreFollowed(t *testing.T) {
	h := open(t)
	h.watch()
	id, ask := uuid.NewString(), ""
	ask = h.line(id, "user", "Where are the tulips?", nil)
	h.add("-new", id, ask)
	if s := h.taken(id); s.Title != "Where are the tulips?" || s.MessageCount != 1 {
		t.Errorf("%+v", s)
	}
	var leaf struct{ UUID string }
	if err := json.Unmarshal([]byte(ask), &leaf); err != nil {
		t.Fatal(err)
	}
	h.add("-new", id, h.line(id, "assistant", "Behind the greenhouse.", nil)+
		fmt.Sprintf(`{"type":"summary","summary":"Tulip search","leafUuid":%q}`+"\n", leaf.UUID)+
		`{"type":"summary","summary":"Of another conversation","leafUuid":"`+uuid.NewString()+`"}`+"\n")
	h.until("it has grown", func() bool { s, _ := h.session(id); return s.Title == "Tulip search" && s.MessageCount == 2 })
	for n := 1; n > 0; {
		var err error
		if n, err = h.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found, _, err := h.Search(t.Context(), session.Filter{User: core.Operator, Search: "greenhouse"})
	if err != nil || len(found) != 1 || found[0].ID != id {
		t.Errorf("%+v %v", found, err)
	}
}

// A kill between the commit of a deletion and the move of its files.
func TestADeletionThatWasCutShortIsFinished(t *testing.T) {
	h := open(t)
	cut, used := uuid.NewString(), uuid.NewString()
	for _, id := range []string{cut, used} {
		h.add("-a", id, h.line(id, "user", "Plan the garden", nil))
	}
	file := func(id string) string { return filepath.Join(h.vault.Path(), ".claude", "projects", "-a", id+".jsonl") }
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file(cut), old, old); err != nil {
		t.Fatal(err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		err := store.Audit(ctx, tx, core.Actor{}, "session.delete", cut, nil)
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE audit_events SET at = $1`, core.Stamp(time.Now().Add(-time.Minute)))
		}
		if err == nil {
			err = store.Audit(ctx, tx, core.Actor{}, "session.delete", used, nil)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE audit_events SET at = $1 WHERE subject = $2`, core.Stamp(old), used)
		}
		return err
	})
	h.watch()
	h.until("the files of the deleted session are in the trash", func() bool {
		names, err := h.vault.TrashedAs(cut + ".jsonl")
		_, left := os.Stat(file(cut))
		return err == nil && len(names) == 1 && errors.Is(left, fs.ErrNotExist)
	})
	if _, err := os.Stat(file(used)); err != nil {
		t.Errorf("a file that was written after the deletion was moved: %v", err)
	}
}

func TestALineThatIsNotWholeIsLeftForLater(t *testing.T) {
	h := open(t)
	h.watch()
	id := uuid.NewString()
	ask, rest := h.line(id, "user", "Hello", nil), h.line(id, "assistant", "A long answer.", nil)
	h.add("-a", id, ask+rest[:40])
	if s := h.taken(id); s.MessageCount != 1 {
		t.Errorf("%+v", s)
	}
	h.add("-a", id, rest[40:])
	h.until("the line is read", func() bool { s, _ := h.session(id); return s.MessageCount == 2 })
}

func TestOnlyConversationsOfTheCommandLineAreTaken(t *testing.T) {
	h := open(t)
	last, deleted := uuid.NewString(), uuid.NewString()
	for name, text := range map[string]func(id string) string{
		"the gateway's own":      func(id string) string { return h.line(id, "user", "x", map[string]any{"requestId": uuid.NewString()}) },
		"another session's copy": func(string) string { return h.line(uuid.NewString(), "user", "x", nil) },
		"of a sub-agent":         func(id string) string { return h.line(id, "user", "x", map[string]any{"isSidechain": true}) },
		"no version":             func(id string) string { return h.line(id, "user", "x", map[string]any{"version": ""}) },
		"no session":             func(id string) string { return h.line(id, "user", "x", map[string]any{"sessionId": nil}) },
		"summaries only":         func(string) string { return `{"type":"summary","summary":"x","leafUuid":"y"}` + "\n" },
		"no transcript":          func(string) string { return "hello\n" },
	} {
		_ = name
		id := uuid.NewString()
		h.add("-a", id, text(id))
	}
	h.add("-a", "notes", h.line("notes", "user", "x", nil))
	h.add("-a", deleted, h.line(deleted, "user", "x", nil))
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return store.Audit(ctx, tx, core.Actor{User: core.Operator, Via: "test"}, "session.delete", deleted, nil)
	})
	h.watch()
	h.add("-z", last, h.line(last, "user", "the last", nil)) // read after those
	h.taken(last)
	list, _, err := h.List(t.Context(), session.Filter{All: true})
	if ids := slices.Collect(func(yield func(string) bool) {
		for _, s := range list {
			if !yield(s.ID) {
				return
			}
		}
	}); err != nil || !slices.Equal(ids, []string{last}) {
		t.Errorf("%v %v, want %s", ids, err, last)
	}
}

func (h *house) tx(f func(context.Context, *store.Tx) error) {
	h.t.Helper()
	ctx := h.t.Context()
	if err := h.db.Tx(ctx, func(tx *store.Tx) error { return f(ctx, tx) }); err != nil {
		h.t.Fatal(err)
	}
}

func TestATurnUnderADiscoveredIDContinuesIt(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	h.add(vault.ProjectFolder(h.vault.Path()), id, h.line(id, "user", "Plan the garden", nil)+h.line(id, "assistant", "Gladly.", nil))
	h.watch()
	h.taken(id)
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		ref := session.Ref{Address: core.Address{Bot: core.APIBot}, User: core.Operator, Trust: core.Full, Options: &core.Options{Session: id}}
		s, isNew, warnings, err := h.Resolve(ctx, tx, ref)
		if err != nil || isNew || len(warnings) > 0 || s.ID != id || s.TrustLevel != core.Full {
			t.Errorf("%+v new %v %v %v", s, isNew, warnings, err)
		}
		c, err := h.Open(ctx, s)
		if err != nil {
			return err
		}
		defer c.Close()
		past, _, err := c.History(1 << 20)
		if err != nil || len(past) != 2 || past[1].Text() != "Gladly." {
			t.Errorf("%+v %v", past, err)
		}
		return nil
	})
}

// A takenIn is a log that reports the sessions that are taken in.
type takenIn struct {
	slog.Handler
	ids chan string
}

func (l takenIn) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "session" {
			l.ids <- a.Value.String()
		}
		return true
	})
	return l.Handler.Handle(ctx, r)
}

// The gateway's own transcripts grow with each message.
func TestTheGatewaysOwnSessionsAreNotReadAgainForEachMessage(t *testing.T) {
	h := open(t)
	folder := vault.ProjectFolder(h.vault.Path())
	var own string
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		s, _, _, err := h.Resolve(ctx, tx, session.Ref{Address: core.Address{Bot: "b", Chat: "1"}, User: core.Operator, Trust: core.Full})
		own = s.ID
		return err
	})
	h.add(folder, own, h.line(own, "user", "Hello", nil))
	log := takenIn{slog.NewTextHandler(t.Output(), nil), make(chan string, 16)}
	h.watchFor(log)
	// cost returns how many reads it takes to take in two sessions, the second once the first is:
	// all notices of before have been served then.
	cost := func() int64 {
		before := h.db.Reads()
		for range 2 {
			id := uuid.NewString()
			h.add(folder, id, h.line(id, "user", "Plan the garden", nil))
			select {
			case <-log.ids:
			case <-time.After(patience):
				t.Fatal("a session is not taken in")
			}
		}
		return h.db.Reads() - before
	}
	cost()
	alone := cost()
	for range 5 {
		h.add(folder, own, h.line(own, "assistant", "An answer.", nil))
	}
	if beside := cost(); beside > alone {
		t.Errorf("%d reads after five messages of a session of the gateway's, %d without", beside, alone)
	}
}
