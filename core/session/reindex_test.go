package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/reindex"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// emptied is the same vault with a new, empty database.
func (h *house) emptied() *house {
	_ = h.Close()
	n := *h
	n.db = storetest.OpenAt(h.t, filepath.Join(h.t.TempDir(), "new.db"), h.clock)
	n.Store = n.another()
	return &n
}

func (h *house) reindex(o reindex.Options) reindex.Progress {
	h.t.Helper()
	o.DB, o.Vault, o.Sessions, o.Log = h.db, h.vault, h.Store, slog.New(slog.DiscardHandler)
	done, err := reindex.Run(context.Background(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return done
}

func (h *house) detail(id string) session.Detail {
	h.t.Helper()
	d, err := h.Detail(context.Background(), h.db, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// everyone knows all people.
var everyone = reindex.Options{Owner: func(context.Context, store.Queryer, session.Session) (bool, error) { return true, nil }}

func (h *house) finish(id string, f session.Finish) {
	h.t.Helper()
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Finish(ctx, tx, id, f) })
}

// A client's own name for a session is stored in the database alone. After a rebuild it is the
// name of the same session, and of no other user's.
func TestAReindexKeepsClientsOwnSessionNames(t *testing.T) {
	h := open(t)
	was := h.resolve(api(5, "tea-talk")).Session
	h.turn(h.Store, was, "r0", "buy green tea", "done")
	n := h.emptied()
	n.reindex(everyone)
	id, known, err := n.Locate(t.Context(), 5, "tea-talk")
	if err != nil || !known || id != was.ID {
		t.Errorf("it is %s, known %v, %v; was %s", id, known, err, was.ID)
	}
	if got := n.resolve(api(5, "tea-talk")); got.Session.ID != was.ID || got.isNew || len(got.warnings) != 0 {
		t.Errorf("the next turn: %+v", got)
	}
	if got := n.resolve(api(6, "tea-talk")); got.Session.ID == was.ID || !got.isNew || len(got.warnings) != 0 {
		t.Errorf("another user's: %+v", got)
	}
}

func TestAnEmptyDatabaseIsFilledFromTheVault(t *testing.T) {
	h := open(t)
	talked, silent := h.resolve(chat(5, "c1")).Session, h.resolve(api(5, "mine")).Session
	h.turn(h.Store, talked, "r0", "buy green tea", "done")
	h.clock.Advance(time.Hour)
	h.turn(h.Store, talked, "r1", "and milk", "done too")
	h.finish(talked.ID, session.Finish{Messages: 4, Model: "m", Title: "buy green tea", At: h.clock.Now()})
	title, yes, model, space := "My tea", true, "openai/x", "kitchen"
	_, err := h.update(talked.ID, session.Change{Title: &title, Archived: &yes, Model: &model, Workspace: &space, Owner: true, AddTags: []string{"tea", "shop"}, AddContexts: []string{"Notes", "A"},
		Metadata: raw(`{"a":1,"permissions":{"bash":true}}`)})
	if err != nil {
		t.Fatal(err)
	}
	was := []session.Detail{h.detail(talked.ID), h.detail(silent.ID)}

	n := h.emptied()
	done := n.reindex(everyone)
	if want := (reindex.Progress{Transcripts: 1, Sidecars: 2, Added: 2, Searchable: 2}); done != want {
		t.Errorf("%+v, want %+v", done, want)
	}
	if diff := cmp.Diff(was, []session.Detail{n.detail(talked.ID), n.detail(silent.ID)}); diff != "" {
		t.Errorf("the sessions are others now (-was +now):\n%s", diff)
	}
	if back := n.resolve(chat(5, "c1")); back.isNew || back.ID != talked.ID {
		t.Errorf("the chat goes on with %+v", back)
	}
	if got, _, err := n.Store.Locate(context.Background(), 5, talked.ID); err != nil || got != talked.ID {
		t.Errorf("%s %v", got, err)
	}
	if done := n.reindex(everyone); done.Added != 0 || done.Kept != 1 {
		t.Errorf("a second time: %+v", done)
	}
}

// Ids of people are given anew in a new database: a sidecar's id alone opens nothing.
func TestWhatIsNoOnesIsTheOperatorsAloneAndSandboxed(t *testing.T) {
	h := open(t)
	ref := api(7, "plans")
	ref.Trust = core.Full
	guests := h.resolve(ref).Session
	h.turn(h.Store, guests, "r0", "secret plans", "yes")
	if _, err := h.update(guests.ID, session.Change{Owner: true, Metadata: raw(`{"a":1,"permissions":{"trust_auto":true}}`)}); err != nil {
		t.Fatal(err)
	}
	owners := h.resolve(api(core.Operator, "own")).Session
	foreign := uuid.NewString()
	h.transcript(session.Session{ID: foreign},
		`{"uuid":"1","parentUuid":null,"sessionId":"`+foreign+`","type":"user","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"written by the CLI"}}`,
		`{"uuid":"2","parentUuid":"1","sessionId":"`+foreign+`","type":"assistant","timestamp":"2026-01-02T03:05:05.000Z","message":{"id":"x","role":"assistant","model":"claude-x","content":[{"type":"text","text":"ok"}]}}`)

	n := h.emptied()
	asked := []int64{}
	done := n.reindex(reindex.Options{Owner: func(_ context.Context, _ store.Queryer, s session.Session) (bool, error) {
		asked = append(asked, s.User)
		return false, nil
	}})
	if done.Added != 3 || done.Unowned != 2 || !slices.Equal(asked, []int64{7}) {
		t.Errorf("%+v, asked for %v", done, asked)
	}
	g := n.detail(guests.ID)
	if g.User != 0 || g.TrustLevel != core.Sandboxed || g.TrustAuto(false) || string(g.Metadata) != `{"a":1}` {
		t.Errorf("the guest's: %+v", g)
	}
	if _, _, err := n.Locate(context.Background(), 7, guests.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("who has the id 7 now is given the session: %v", err)
	}
	if o := n.detail(owners.ID); o.User != core.Operator || o.TrustLevel != core.Vault {
		t.Errorf("the operator's: %+v", o)
	}
	f := n.detail(foreign)
	if f.User != 0 || f.TrustLevel != core.Sandboxed || f.Title != "written by the CLI" || f.Source != "claude-code" || f.Model != "claude-x" || f.MessageCount != 2 ||
		core.Stamp(f.CreatedAt) != "2026-01-02T03:04:05.000000Z" || core.Stamp(f.LastAccessed) != "2026-01-02T03:05:05.000000Z" {
		t.Errorf("the CLI's: %+v", f)
	}
}

func TestADeletedSessionDoesNotComeBack(t *testing.T) {
	h := open(t)
	gone, torn, half, back := h.resolve(chat(5, "c1")).Session, h.resolve(chat(5, "c2")).Session, h.resolve(chat(5, "c3")).Session, h.resolve(chat(5, "c4")).Session
	for i, s := range []session.Session{gone, torn, half, back} {
		h.turn(h.Store, s, fmt.Sprint("r", i), "words", "words")
	}
	_ = h.Close() // sidecars are written
	files := map[string]string{}
	for _, s := range []session.Session{torn, back} { // as a gateway leaves them that ends right after the commit
		for _, name := range []string{".parachute/sessions/" + s.ID + ".json", h.transcriptOf(s.ID)} {
			b, err := h.vault.Root().ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(b)
		}
	}
	side := ".parachute/sessions/" + half.ID + ".json"
	b, err := h.vault.Root().ReadFile(side)
	if err != nil {
		t.Fatal(err)
	}
	files[side] = string(b)
	for _, s := range []session.Session{gone, torn, half, back} {
		h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Delete(ctx, tx, s.ID, core.Actor{User: 5}) })
	}
	delete(files, ".parachute/sessions/"+back.ID+".json") // a person has put this transcript back
	for name, text := range files {
		if err := h.vault.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	done := h.reindex(everyone)
	if done.Added != 1 || done.Unowned != 1 || done.Deleted != 2 {
		t.Errorf("%+v", done)
	}
	for _, s := range []session.Session{gone, torn, half} {
		if _, err := h.ByID(context.Background(), h.db, s.ID); core.KindOf(err) != core.NotFound {
			t.Errorf("%s is back: %v", s.ID, err)
		}
		if found, err := h.vault.FindTranscripts(s.ID); err != nil || len(found) != 0 {
			t.Errorf("%v %v", found, err)
		}
	}
	if d := h.detail(back.ID); d.User != 0 || d.MessageCount != 2 {
		t.Errorf("put back: %+v", d)
	}
}

// transcriptOf is the name of a session's transcript.
func (h *house) transcriptOf(id string) string {
	h.t.Helper()
	found, err := h.vault.FindTranscripts(id)
	if err != nil || len(found) != 1 {
		h.t.Fatalf("%v %v", found, err)
	}
	return found[0]
}

func TestARowThatTheDatabaseKnowsStaysAsItIs(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "words", "words")
	before := h.detail(sess.ID)
	_ = h.Close()
	for name, text := range map[string]string{
		".parachute/sessions/" + sess.ID + ".json": `{"id":"` + sess.ID + `","user_id":1,"trust_level":"full","title":"stolen"}`,
		".parachute/sessions/broken.json":          `{"id":`,
		".parachute/sessions/other.json":           `{"id":"../x"}`,
		".claude/projects/x/agent-1.jsonl":         `{"uuid":"1","sessionId":"` + sess.ID + `","isSidechain":true,"type":"user","message":{"role":"user","content":"x"}}`,
		".claude/projects/x/empty.jsonl":           ``,
		".claude/projects/x/copy.jsonl":            `{"uuid":"1","sessionId":"` + sess.ID + `","type":"user","message":{"role":"user","content":"x"}}`,
		".claude/projects/x/.hidden":               ``,
	} {
		if err := h.vault.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var told []reindex.Progress
	done := h.reindex(reindex.Options{Progress: func(r reindex.Progress) { told = append(told, r) }})
	if want := (reindex.Progress{Transcripts: 4, Sidecars: 3, Kept: 1, Skipped: 5, Searchable: 1}); done != want || len(told) != 2 {
		t.Errorf("%+v, want %+v; told %+v", done, want, told)
	}
	before.MessageCount = 2 // the one thing that was not counted
	if diff := cmp.Diff(before, h.detail(sess.ID)); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := reindex.Run(ctx, reindex.Options{DB: h.db, Vault: h.vault, Sessions: h.Store, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
