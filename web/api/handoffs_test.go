package api

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/memory/backup"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/web/api/handoffs"
	"gatehouse/web/api/sessions"
	"gatehouse/web/auth"
)

const aNote = "## GOAL\nGreen tea.\n\n## DECISIONS MADE\nnone\n\n## CURRENT STATUS\nopen\n\n## ACTIVE FILE\nnone\n\n## PREFERENCES\nnone\n\n## RESUME INSTRUCTION\ngo on"

// A noteModel writes valid notes.
type noteModel struct{}

func (noteModel) About() llm.About { return llm.About{Name: "openai/m"} }

func (noteModel) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Text: aNote}, nil) }
}

// handoffs returns real notes, written by a double of a model.
func (h *harness) handoffs() handoffs.Options {
	box, err := sealed.Create(filepath.Join(h.t.TempDir(), "content.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.notes = backup.New(backup.Options{
		DB: h.db, Box: box, Sessions: h.store, Usage: usage.New(nil, usage.Budgets{}), Clock: h.clock, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
		Writes: func(string) bool { return true }, Model: func(string, bool) (llm.Model, error) { return noteModel{}, nil },
		Cost: func(string, core.Tokens) (int64, bool) { return 0, false }, Budget: func() int64 { return 0 },
	})
	return handoffs.Options{Backups: h.notes, Markdown: func(ctx context.Context, s session.Session, _ int64) (string, error) {
		b, ok, err := h.notes.Newest(ctx, h.db, s.ID, "")
		if err == nil && !ok {
			err = core.Errorf(core.NotFound, "there is no context backup of this session yet")
		}
		return handoff.Markdown(s.Title, b.Model, b.At, b.Text, ""), err
	}}
}

// answered has a session's message answered, and counted for its next note.
func (h *harness) answered(id string, user int64) {
	h.t.Helper()
	sess, err := h.store.ByID(context.Background(), h.db, id)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h.store.Open(context.Background(), sess)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := errors.Join(c.Append(uuid.NewString(), 0, transcript.Message{Role: "user", Blocks: textBlocks("tea?")},
		transcript.Message{Role: "assistant", Model: "m", Stop: "end_turn", Blocks: textBlocks("Green.")}), c.Sync(), c.Close()); err != nil {
		h.t.Fatal(err)
	}
	err = h.db.Tx(context.Background(), func(tx *store.Tx) error {
		return h.notes.Count(context.Background(), tx, handoff.Turn{Session: id, Model: "openai/m", User: user, Trust: core.Vault, Messages: 2, Estimate: 3})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestABackupIsWrittenOnRequestAndHandedOff(t *testing.T) {
	h := open(t, options{})
	const sid = "3f0e1c9a-0000-4000-8000-000000000001"
	h.spareSession(sid, 7)
	h.answered(sid, 7)
	key := h.key(auth.ScopeChat)
	h.want(404, "not-found", key, "GET", "/api/sessions/"+sid+"/handoff", "")
	before := h.want(200, "", key, "GET", "/api/context/backups/coverage", "")["coverage"].([]any)[0].(map[string]any)
	if before["messages_since"] != 2.0 || before["covered"] != false {
		t.Errorf("the coverage is %v", before)
	}
	b := h.want(200, "", key, "POST", "/api/context/backups/run", `{"session_id":"`+sid+`"}`)
	if b["backup_text"] != aNote || b["trigger"] != "manual" || b["thread_number"] != 1.0 {
		t.Errorf("the backup is %v", b)
	}
	h.want(409, "conflict", key, "POST", "/api/context/backups/run", `{"session_id":"`+sid+`"}`)
	res := h.do(key, "GET", "/api/sessions/"+sid+"/handoff", "")
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 || !strings.Contains(string(text), aNote) || !strings.Contains(string(text), "openai/m") {
		t.Errorf("%d: %s", res.StatusCode, text)
	}
	after := h.want(200, "", key, "GET", "/api/context/backups/coverage", "")["coverage"].([]any)[0].(map[string]any)
	if after["covered"] != true || after["thread_number"] != 2.0 {
		t.Errorf("the coverage is %v", after)
	}
}

func TestNotesOnSomeoneElsesSessionAreNotFound(t *testing.T) {
	h := open(t, options{})
	const sid = "3f0e1c9a-0000-4000-8000-000000000002"
	h.spareSession(sid, 7)
	h.answered(sid, 7)
	other := h.keyOf(8, core.Vault, auth.ScopeChat)
	h.want(404, "not-found", other, "GET", "/api/sessions/"+sid+"/handoff", "")
	h.want(404, "not-found", other, "POST", "/api/context/backups/run", `{"session_id":"`+sid+`"}`)
	if list := h.want(200, "", other, "GET", "/api/context/backups/coverage", "")["coverage"].([]any); len(list) != 0 {
		t.Errorf("the coverage is %v", list)
	}
	if list := h.want(200, "", h.keyOf(1, core.Full, auth.ScopeRead, auth.ScopeAdmin), "GET", "/api/context/backups/coverage", "")["coverage"].([]any); len(list) != 1 {
		t.Errorf("the coverage of an admin is %v", list)
	}
	key := h.key(auth.ScopeChat)
	h.want(400, "invalid-request", key, "POST", "/api/context/backups/run", `{}`)
	h.want(404, "not-found", key, "POST", "/api/context/backups/run", `{"session_id":"`+sid+`","model_id":"openai/none"}`)
}

// noted has a note on a session, and something said since.
func (h *harness) noted(id string, user int64) {
	h.t.Helper()
	h.answered(id, user)
	if err := h.notes.Keep(context.Background(), &session.Session{ID: id, User: user}, "openai/m", handoff.Note{Text: aNote, Covers: "an earlier message"}); err != nil {
		h.t.Fatal(err)
	}
}

// spareSession makes a session of user.
func (h *harness) spareSession(id string, user int64) {
	h.t.Helper()
	h.mu.Lock()
	h.sessions[id] = sessions.Row{ID: id, User: user, CreatedAt: h.clock.Now(), LastAccessed: h.clock.Now()}
	h.mu.Unlock()
	h.row(id, user)
}
