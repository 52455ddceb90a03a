package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

func (h *house) update(id string, c session.Change) (d session.Detail, err error) {
	err = h.try(func(ctx context.Context, tx *store.Tx) (err error) {
		d, err = h.Update(ctx, tx, id, c, core.Actor{User: 5, Via: "api"})
		return err
	})
	return d, err
}

func (h *house) audited(action string) (details []string) {
	h.t.Helper()
	if err := h.db.Select(context.Background(), &details, `SELECT coalesce(detail, '') FROM audit_events WHERE action = $1 ORDER BY id`, action); err != nil {
		h.t.Fatal(err)
	}
	return details
}

func raw(fields string) (m map[string]json.RawMessage) {
	if err := json.Unmarshal([]byte(fields), &m); err != nil {
		panic(err)
	}
	return m
}

func TestAChangeIsKeptAuditedAndWrittenNextToIt(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	title, yes, module := "  A\tplan\n", true, "daily"
	d, err := h.update(id, session.Change{Title: &title, Archived: &yes, Module: &module, AddTags: []string{"Work", "work ", "B"}, AddContexts: []string{"Notes/", "Notes", "A"}})
	if err != nil || d.Title != "A plan" || d.TitleSource != session.TitleUser || !d.Archived || d.Module != "daily" ||
		!slices.Equal(d.Tags, []string{"b", "work"}) || !slices.Equal(d.Contexts, []string{"Notes", "A"}) {
		t.Fatalf("%+v %v", d, err)
	}
	kept, err := h.Detail(context.Background(), h.db, id)
	if err != nil || kept.Version() != d.Version() || kept.Title != "A plan" {
		t.Errorf("kept %+v %v", kept, err)
	}
	if m := h.sidecar(id); m["title"] != "A plan" || m["archived"] != true || fmt.Sprint(m["tags"]) != "[b work]" {
		t.Errorf("sidecar %v", m)
	}
	if a := h.audited("session.update"); len(a) != 1 || a[0] != `{"fields":["title","archived","module","tags","contexts"]}` {
		t.Errorf("audit %q", a)
	}
	before := h.db.Statements()
	if _, err := h.update(id, session.Change{Title: &title, AddTags: []string{"work"}}); err != nil || len(h.audited("session.update")) != 1 {
		t.Errorf("the same again was written: %v", err)
	}
	if n := h.db.Statements() - before; n > 8 { // three of them Detail's, the others the transaction's and this test's
		t.Errorf("a change of nothing took %d statements", n)
	}
	if d, err = h.update(id, session.Change{DropTags: []string{"WORK"}, SetContexts: &[]string{"A", "B"}, DropContext: []string{"A"}}); err != nil ||
		!slices.Equal(d.Tags, []string{"b"}) || !slices.Equal(d.Contexts, []string{"B"}) {
		t.Errorf("%v %v %v", d.Tags, d.Contexts, err)
	}
	if _, err := h.update("00000000-0000-4000-8000-000000000000", session.Change{Archived: &yes}); core.KindOf(err) != core.NotFound {
		t.Errorf("no session: %v", err)
	}
}

func TestAChangeForAVersionThatIsNoMoreIsRefused(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	d, _ := h.Detail(context.Background(), h.db, id)
	h.tx(func(ctx context.Context, tx *store.Tx) error { // a turn that neither names nor changes its model
		return h.Finish(ctx, tx, id, session.Finish{Messages: 2, At: h.clock.Now()})
	})
	one, two := "one", "two"
	if _, err := h.update(id, session.Change{Title: &one, If: []string{d.Version()}}); err != nil {
		t.Errorf("a turn in between changed the version: %v", err)
	}
	_, err := h.update(id, session.Change{Title: &two, If: []string{"other", d.Version()}})
	if now, _ := h.Detail(context.Background(), h.db, id); !errors.Is(err, session.ErrChanged) || now.Title != "one" {
		t.Errorf("the second of two writers won: %v %q", err, now.Title)
	}
}

func TestWhatCannotBeKeptIsRefusedWhole(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	text := func(s string) *string { return &s }
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	for name, c := range map[string]session.Change{
		"module": {Module: text("")}, "module of two lines": {Module: text("a\nb")}, "long model": {Model: text(strings.Repeat("m", 201))},
		"tag": {AddTags: []string{"ok", " "}}, "long tag": {AddTags: []string{strings.Repeat("ß", 65)}}, "tags": {AddTags: many},
		"context up": {AddContexts: []string{"../x"}}, "absolute context": {AddContexts: []string{"/etc"}}, "the vault": {AddContexts: []string{"a/.."}},
		"contexts": {SetContexts: &many}, "no folder": {WorkingDirectory: text("nowhere"), Trust: core.Vault},
		"importer's": {Metadata: raw(`{"original_id":"x"}`), Owner: true}, "importer's, in capitals": {Metadata: raw(`{"Original_ID":"x"}`)},
		"permissions": {Metadata: raw(`{"permissions":{"read":"all"}}`), Owner: true}, "bash": {Metadata: raw(`{"permissions":{"bash":[1]}}`), Owner: true},
		"another permissions": {Metadata: raw(`{"Permissions":{}}`), Owner: true},
	} {
		if _, err := h.update(id, c); core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.update(id, session.Change{Metadata: raw(`{"a":"` + strings.Repeat("x", 17<<10) + `"}`)}); core.KindOf(err) != core.TooLarge {
		t.Errorf("metadata of 17 KiB: %v", err)
	}
	if d, _ := h.Detail(context.Background(), h.db, id); len(d.Tags)+len(d.Contexts)+len(d.Metadata) != 0 || len(h.audited("session.update")) != 0 {
		t.Errorf("something stayed: %+v", d)
	}
}

func TestPermissionsAndAgentAreTheOwnersToChange(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	agent := "helper"
	for _, fields := range []string{`{"permissions":{"bash":true}}`, `{"Permissions":{"bash":true}}`, `{"permi\u017f\u017fions":{"bash":true}}`, `{"permissions":null}`} {
		if _, err := h.update(id, session.Change{Metadata: raw(fields)}); core.KindOf(err) != core.Denied {
			t.Errorf("%s: %v", fields, err)
		}
	}
	if _, err := h.update(id, session.Change{AgentType: &agent}); core.KindOf(err) != core.Denied {
		t.Errorf("agent: %v", err)
	}
	if _, err := h.update(id, session.Change{Metadata: raw(`{"colour":"red","size":1}`)}); err != nil {
		t.Errorf("one's own metadata: %v", err)
	}
	d, err := h.update(id, session.Change{AgentType: &agent, Owner: true, Metadata: raw(`{"size":null,"permissions":{"read":["A/**"],"trust_auto":true}}`)})
	if err != nil || d.AgentType != agent || string(d.Metadata) != `{"colour":"red","permissions":{"read":["A/**"],"trust_auto":true}}` {
		t.Errorf("%s %v", d.Metadata, err)
	}
	if d, err = h.update(id, session.Change{Owner: true, Metadata: raw(`{"permissions":{"trust_auto":null,"bash":["ls"]}}`)}); err != nil ||
		string(d.Metadata) != `{"colour":"red","permissions":{"bash":["ls"],"read":["A/**"]}}` {
		t.Errorf("%s %v", d.Metadata, err)
	}
}

func TestAWorkingDirectoryStaysWithinReach(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	if err := h.vault.Root().Mkdir("Projects", 0o700); err != nil {
		t.Fatal(err)
	}
	dir, outside, none := "Projects", t.TempDir(), ""
	if d, err := h.update(id, session.Change{WorkingDirectory: &dir, Trust: core.Vault}); err != nil || d.WorkingDirectory != "Projects" {
		t.Errorf("%q %v", d.WorkingDirectory, err)
	}
	for _, c := range []session.Change{{WorkingDirectory: &outside, Trust: core.Full}, {WorkingDirectory: &dir, Trust: core.Sandboxed}} {
		if _, err := h.update(id, c); core.KindOf(err) != core.Denied { // the session's own ceiling is vault
			t.Errorf("%s at %s: %v", *c.WorkingDirectory, c.Trust, err)
		}
	}
	if d, err := h.update(id, session.Change{WorkingDirectory: &none, Trust: core.Vault}); err != nil || d.WorkingDirectory != "" {
		t.Errorf("%q %v", d.WorkingDirectory, err)
	}
}

func TestADeletedSessionGoesToTheTrashWithAllThatHangsOnIt(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1"))
	c, err := h.Open(context.Background(), a.Session)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Append("run", 0, transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: "hello"}}}), c.Sync(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.update(a.ID, session.Change{AddTags: []string{"x"}, AddContexts: []string{"y"}}); err != nil {
		t.Fatal(err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return h.Delete(ctx, tx, a.ID, core.Actor{User: 5, Via: "api"})
	})
	var n int
	err = h.db.Get(context.Background(), &n, `SELECT (SELECT count(*) FROM session_tags) + (SELECT count(*) FROM session_contexts) + (SELECT count(*) FROM sessions)`)
	files, ferr := h.vault.FindTranscripts(a.ID)
	if err != nil || n != 0 || ferr != nil || len(files) != 0 {
		t.Errorf("%d rows, files %v: %v %v", n, files, err, ferr)
	}
	if _, err := h.vault.Root().Stat(".parachute/sessions/" + a.ID + ".json"); err == nil {
		t.Error("the sidecar is still there")
	}
	trash, err := h.vault.Root().Open(".parachute/trash")
	if err != nil {
		t.Fatal(err)
	}
	defer trash.Close()
	if names, _ := trash.Readdirnames(-1); len(names) != 1 {
		t.Errorf("trash %v", names)
	}
	if b := h.resolve(chat(5, "c1")); !b.isNew || b.ID == a.ID {
		t.Errorf("the chat goes on with %+v", b)
	}
	if err := h.try(func(ctx context.Context, tx *store.Tx) error { return h.Delete(ctx, tx, a.ID, core.Actor{}) }); core.KindOf(err) != core.NotFound {
		t.Errorf("twice: %v", err)
	}
	if a := h.audited("session.delete"); len(a) != 1 {
		t.Errorf("audit %q", a)
	}
}

func TestCleanupTakesArchivedSessionsThatNoOneUsed(t *testing.T) {
	h := open(t)
	yes := true
	old, oldOpen, busy := h.resolve(api(5, "old")).ID, h.resolve(api(5, "open")).ID, h.resolve(api(5, "busy")).ID
	for _, id := range []string{old, busy} {
		if _, err := h.update(id, session.Change{Archived: &yes}); err != nil {
			t.Fatal(err)
		}
	}
	h.clock.Advance(31 * 24 * time.Hour)
	fresh := h.resolve(api(5, "fresh")).ID
	if _, err := h.update(fresh, session.Change{Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	ids, err := h.Due(context.Background(), 30)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values([]string{old, busy}))) {
		t.Errorf("due: %v %v", ids, err)
	}
	n := 0
	h.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = h.Cleanup(ctx, tx, []string{old, oldOpen, fresh, busy, "none"}, 30, core.Actor{Via: "upkeep"}, func(_ context.Context, _ *store.Tx, id string) error {
			if id == busy {
				return core.Errorf(core.Conflict, "not now")
			}
			return nil
		})
		return err
	})
	for id, gone := range map[string]bool{old: true, oldOpen: false, fresh: false, busy: false} {
		if _, err := h.ByID(context.Background(), h.db, id); (core.KindOf(err) == core.NotFound) != gone {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := h.Due(context.Background(), 0); n != 1 || core.KindOf(err) != core.Invalid {
		t.Errorf("%d %v", n, err)
	}
}

func TestSessionsAreCounted(t *testing.T) {
	h := open(t)
	yes, no := true, false
	for i := range 5 {
		id := h.resolve(api(int64(5+i/3), fmt.Sprint("s", i))).ID
		if _, err := h.update(id, session.Change{AddTags: []string{"t"}, Archived: &[]bool{true, false}[i%2]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		session.Filter
		want int
	}{
		{session.Filter{All: true}, 5}, {session.Filter{User: 5}, 3}, {session.Filter{User: 5, Archived: &yes}, 2}, {session.Filter{User: 6, Archived: &no, Tag: "T", Limit: 1, Offset: 1}, 1},
		{session.Filter{All: true, Module: "daily"}, 0}, {session.Filter{User: 7}, 0},
	} {
		if n, err := h.Count(context.Background(), f.Filter); n != f.want || err != nil {
			t.Errorf("%+v: %d %v, want %d", f.Filter, n, err, f.want)
		}
	}
}

func TestAnOpenedSessionMovesToTheFrontInOneTransactionForAll(t *testing.T) {
	h := open(t)
	a, b := h.resolve(api(5, "a")).ID, h.resolve(api(5, "b")).ID
	h.clock.Advance(time.Minute)
	c := h.resolve(api(5, "c")).ID
	h.clock.Advance(time.Minute)
	for range 100 {
		h.Touch(a)
	}
	h.Touch("no such session")
	at, before := h.clock.Now(), h.db.Commits()
	h.clock.Advance(time.Minute)
	if n, err := h.Touched(context.Background()); n != 2 || err != nil || h.db.Commits() != before+1 {
		t.Errorf("%d %v, %d commits", n, err, h.db.Commits()-before)
	}
	list, _, err := h.List(context.Background(), session.Filter{User: 5})
	if err != nil || len(list) != 3 || list[0].ID != a || list[1].ID != c || list[2].ID != b || !list[0].LastAccessed.Equal(at) {
		t.Errorf("%+v %v", list, err)
	}
	if n, err := h.Touched(context.Background()); n != 0 || err != nil || h.db.Commits() != before+1 {
		t.Errorf("with nothing opened: %d %v", n, err)
	}
}

func TestTagsAreCountedForWhoAsks(t *testing.T) {
	h := open(t)
	for i, tags := range [][]string{{"a", "b"}, {"b"}, {"c"}} {
		if _, err := h.update(h.resolve(api(int64(5+i/2), fmt.Sprint("s", i))).ID, session.Change{AddTags: tags, AddContexts: []string{"Notes"}}); err != nil {
			t.Fatal(err)
		}
	}
	mine, err := h.Tags(context.Background(), 5, false)
	all, err2 := h.Tags(context.Background(), 5, true)
	if fmt.Sprint(mine) != "[{b 2} {a 1}]" || fmt.Sprint(all) != "[{b 2} {a 1} {c 1}]" || errors.Join(err, err2) != nil {
		t.Errorf("%v %v %v %v", mine, all, err, err2)
	}
	for _, f := range []session.Filter{{User: 5, Search: "B"}, {User: 5, Context: "Notes/"}, {User: 5, Tag: "B"}} {
		if list, _, err := h.List(context.Background(), f); err != nil || len(list) != 2 {
			t.Errorf("%+v: %d %v", f, len(list), err)
		}
	}
	if _, _, err := h.List(context.Background(), session.Filter{Context: "../x"}); core.KindOf(err) != core.Invalid {
		t.Errorf("a path outside: %v", err)
	}
}

func TestMessagesArePagedFromTheEnd(t *testing.T) {
	h := open(t)
	sess := h.resolve(api(5, "mine")).Session
	if p, err := h.Page(context.Background(), sess, transcript.PageQuery{Limit: 5}); err != nil || len(p.Messages) != 0 || p.More || p.Cut {
		t.Errorf("before a word was said: %+v %v", p, err)
	}
	c, err := h.Open(context.Background(), sess)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for i := range 24 { // 2.4 MB: more than is read at first
		role := []string{"user", "assistant"}[i%2]
		text := fmt.Sprintf("%02d %s", i, strings.Repeat("x", 100_000))
		if err := c.Append(fmt.Sprint("run", i/2), i%2, transcript.Message{Role: role, Blocks: []core.Block{{Type: "text", Text: text}}}); err != nil {
			t.Fatal(err)
		}
		said = append(said, text[:2])
	}
	if err := errors.Join(c.Sync(), c.Close()); err != nil {
		t.Fatal(err)
	}
	page := func(q transcript.PageQuery) (words []string, p transcript.Page) {
		t.Helper()
		p, err := h.Page(context.Background(), sess, q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		for _, m := range p.Messages {
			words = append(words, m.Blocks[0].Text[:2])
		}
		return words, p
	}
	var back []string
	words, p := page(transcript.PageQuery{Limit: 9})
	for back = words; p.More; back = append(words, back...) {
		words, p = page(transcript.PageQuery{Limit: 9, Before: p.Messages[0].Line()})
	}
	if !slices.Equal(back, said) || p.Cut {
		t.Errorf("backwards: %v", back)
	}
	on := words // p is the first page
	for more := true; more; more = p.More {
		words, p = page(transcript.PageQuery{Limit: 9, After: p.Messages[len(p.Messages)-1].Line()})
		on = append(on, words...)
	}
	if !slices.Equal(on, said) {
		t.Errorf("forwards: %v", on)
	}
	if _, err := h.Page(context.Background(), sess, transcript.PageQuery{Limit: 7, Before: "nope"}); core.KindOf(err) != core.NotFound {
		t.Errorf("no such message: %v", err)
	}
	if words, p := page(transcript.PageQuery{Limit: 200}); len(words) != 24 || p.More {
		t.Errorf("%d messages, more %v", len(words), p.More)
	}
}

// A tag or folder that many sessions have is found by another way than a rare
// one; what is found is the same.
func TestManyAndFewSessionsOfATagAreListedAlike(t *testing.T) {
	h := open(t)
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		for i := range 1100 {
			id, at := fmt.Sprintf("00000000-0000-4000-8000-%012d", i), core.Stamp(h.clock.Now().Add(time.Duration(i)*time.Second))
			for _, q := range []string{
				`INSERT INTO sessions (id, created_at, last_accessed, user_id) VALUES ($1, $2, $2, 5)`,
				`INSERT INTO session_tags (session_id, tag, created_at) VALUES ($1, 'many', $2)`,
				`INSERT INTO session_contexts (session_id, folder_path, added_at) VALUES ($1, 'Many', $2)`,
				`INSERT INTO session_tags (session_id, tag, created_at) SELECT id, 'few', $2 FROM sessions WHERE id = $1 AND substr(id, 36) = '7'`,
			} {
				if _, err := tx.Exec(ctx, q, id, at); err != nil {
					return err
				}
			}
		}
		return nil
	})
	count := func(f session.Filter) (n int, last string) {
		t.Helper()
		for f.Limit = 200; ; {
			page, next, err := h.List(context.Background(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				if last != "" && s.ID >= last {
					t.Errorf("%s after %s", s.ID, last)
				}
				n, last = n+1, s.ID
			}
			if f.Cursor = next; next == "" {
				return n, last
			}
		}
	}
	for _, c := range []struct {
		f    session.Filter
		want int
	}{
		{session.Filter{User: 5, Tag: "Many"}, 1100}, {session.Filter{All: true, Tag: "many"}, 1100}, {session.Filter{User: 6, Tag: "many"}, 0},
		{session.Filter{User: 5, Tag: " FEW"}, 110}, {session.Filter{All: true, Tag: "few"}, 110}, {session.Filter{User: 6, Tag: "few"}, 0},
		{session.Filter{User: 5, Tag: "few", Context: "Many"}, 110}, {session.Filter{User: 5, Context: "Many/"}, 1100},
	} {
		if n, _ := count(c.f); n != c.want {
			t.Errorf("%+v: %d, want %d", c.f, n, c.want)
		}
	}
}

// A version names everything that a Change may change: two changes for the same version cannot
// both be made, whatever they change.
func TestEveryChangeGivesASessionAnotherVersion(t *testing.T) {
	h := open(t)
	id := h.resolve(api(5, "mine")).ID
	project := uuid.NewString()
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO projects (project_id, user_id, name, name_key, created_at) VALUES ($1, 5, 'Garden', 'garden', $2)`, project, core.Stamp(h.clock.Now()))
		return err
	})
	if err := h.vault.Root().Mkdir("Notes", 0o700); err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	yes := true
	changes := map[string]session.Change{
		"Title": {Title: text("A plan")}, "Archived": {Archived: &yes}, "Module": {Module: text("daily")},
		"WorkingDirectory": {WorkingDirectory: text("Notes")}, "Model": {Model: text("openai/x")}, "AgentType": {AgentType: text("cook")},
		"Workspace": {Workspace: text("kitchen")}, "Project": {Project: &project}, "Metadata": {Metadata: raw(`{"a":1}`)},
		"SetTags": {SetTags: &[]string{"a", "b"}}, "AddTags": {AddTags: []string{"c"}}, "DropTags": {DropTags: []string{"a"}},
		"SetContexts": {SetContexts: &[]string{"A", "B"}}, "AddContexts": {AddContexts: []string{"C"}}, "DropContext": {DropContext: []string{"A"}},
	}
	asks := []string{"If", "Trust", "Owner"} // for what and by whom
	fields := reflect.TypeFor[session.Change]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if slices.Contains(asks, name) {
			continue
		}
		c, ok := changes[name]
		if !ok {
			t.Errorf("the test has no change of %s", name)
			continue
		}
		was := h.detail(id)
		c.If, c.Trust, c.Owner = []string{was.Version()}, core.Vault, true
		now, err := h.update(id, c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kept := h.detail(id)
		if now.Version() == was.Version() || kept.Version() != now.Version() {
			t.Errorf("%s: the version was %s, is %s, read again %s", name, was.Version(), now.Version(), kept.Version())
		}
		if _, err := h.update(id, c); !errors.Is(err, session.ErrChanged) {
			t.Errorf("%s again, for the version before: %v", name, err)
		}
	}
}
