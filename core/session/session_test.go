package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/vector"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A house is a store of sessions with all that stands below it.
type house struct {
	t     testing.TB
	clock *coretest.Clock
	db    *store.DB
	vault *vault.Vault
	pause func(context.Context) // of Fill
	*session.Store
}

func open(t testing.TB) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	clock := coretest.NewClock(time.Time{})
	h := &house{t: t, clock: clock, db: storetest.Open(t, clock), vault: v}
	h.Store = h.another()
	t.Cleanup(func() { _ = v.Close() })
	return h
}

// another is a second store over the same files, as after a restart.
func (h *house) another() *session.Store {
	s := session.New(session.Options{DB: h.db, Vault: h.vault, Clock: h.clock, DropVectors: vector.Drop, Pause: h.pause})
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (h *house) tx(f func(context.Context, *store.Tx) error) {
	h.t.Helper()
	if err := h.try(f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) try(f func(context.Context, *store.Tx) error) error {
	ctx := context.Background()
	return h.db.Tx(ctx, func(tx *store.Tx) error { return f(ctx, tx) })
}

type resolved struct {
	session.Session
	isNew    bool
	warnings []core.Warning
	err      error
}

func (h *house) resolve(ref session.Ref) (r resolved) {
	r.err = h.try(func(ctx context.Context, tx *store.Tx) (err error) {
		r.Session, r.isNew, r.warnings, err = h.Resolve(ctx, tx, ref)
		return err
	})
	return r
}

func chat(user int64, id string) session.Ref {
	return session.Ref{Address: core.Address{Bot: "b", Chat: id}, User: user, Trust: core.Sandboxed, Source: "telegram"}
}

func api(user int64, id string) session.Ref {
	return session.Ref{Address: core.Address{Bot: core.APIBot}, User: user, Trust: core.Vault, Options: &core.Options{Session: id}}
}

func (h *house) sidecar(id string) map[string]any {
	h.t.Helper()
	_ = h.Close()
	var m map[string]any
	b, err := h.vault.Root().ReadFile(".parachute/sessions/" + id + ".json")
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func TestChatKeepsItsSessionUntilNew(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1"))
	if a.err != nil || !a.isNew || a.User != 5 || a.TrustLevel != core.Sandboxed || a.VaultRoot != h.vault.Path() || a.Source != "telegram" || a.Title != "" {
		t.Fatalf("first turn: %+v", a)
	}
	if b := h.resolve(chat(5, "c1")); b.isNew || b.ID != a.ID || !b.CreatedAt.Equal(a.CreatedAt) {
		t.Errorf("second turn: %+v", b)
	}
	if c := h.resolve(chat(5, "c2")); !c.isNew || c.ID == a.ID {
		t.Errorf("another chat: %+v", c)
	}
	addr := core.Address{Bot: "b", Chat: "c1"}
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Unbind(ctx, tx, addr) })
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Unbind(ctx, tx, addr) }) // twice is fine
	d := h.resolve(chat(5, "c1"))
	if !d.isNew || d.ID == a.ID {
		t.Errorf("after /new: %+v", d)
	}
	if s, err := h.ByID(context.Background(), h.db, a.ID); err != nil || s.ID != a.ID {
		t.Errorf("the old session is gone: %v", err)
	}
	if m := h.sidecar(a.ID); m["chat"] != nil {
		t.Errorf("the old session's sidecar still names the chat: %v", m)
	}
	if m := h.sidecar(d.ID); m["chat"] != "c1" || m["user_id"] != 5.0 || m["trust_level"] != "sandboxed" {
		t.Errorf("sidecar: %v", m)
	}
}

func TestStrangerResolvesNothing(t *testing.T) {
	ref := chat(5, "c1")
	ref.Trust = core.Stranger
	if r := open(t).resolve(ref); core.KindOf(r.err) != core.Denied {
		t.Errorf("got %+v", r)
	}
}

func TestGroupSharesOneSessionAndADirectChatDoesNot(t *testing.T) {
	h := open(t)
	group := func(user int64, name string) session.Ref {
		r := chat(user, "g")
		r.Place, r.PlaceName = "g", name
		return r
	}
	a, b := h.resolve(group(5, "Ops")), h.resolve(group(6, "Ops\u202e 2"))
	if a.ID != b.ID || b.isNew {
		t.Errorf("group: %s, %s", a.ID, b.ID)
	}
	var name, kind string
	_ = h.db.Get(context.Background(), &name, `SELECT name FROM chats WHERE chat = 'g'`)
	_ = h.db.Get(context.Background(), &kind, `SELECT kind FROM chats WHERE chat = 'g'`)
	if name != "Ops 2" || kind != "group" {
		t.Errorf("chat is %q, %q", name, kind)
	}
	c, d := h.resolve(chat(5, "dm")), h.resolve(chat(1, "dm"))
	if c.ID == d.ID || !d.isNew || d.User != 1 {
		t.Errorf("a direct chat went on with somebody else's session: %+v", d)
	}
}

func TestAPISessionByUUIDAndAlias(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	a := h.resolve(api(5, strings.ToUpper(id)))
	if a.err != nil || !a.isNew || a.ID != id || a.Source != "api" {
		t.Fatalf("own UUID: %+v", a)
	}
	if b := h.resolve(api(5, id)); b.ID != id || b.isNew {
		t.Errorf("again: %+v", b)
	}
	x, y, z := h.resolve(api(5, "my-notes")), h.resolve(api(5, "my-notes")), h.resolve(api(6, "my-notes"))
	if !x.isNew || y.isNew || x.ID != y.ID || z.ID == x.ID || z.err != nil {
		t.Errorf("alias: %+v, %+v, %+v", x, y, z)
	}
	if want, alias, err := session.ID("my-notes", 5); err != nil || !alias || want != x.ID {
		t.Errorf("ID says %s, the session is %s (%v)", want, x.ID, err)
	}
	if n := h.resolve(api(5, "")); !n.isNew || uuid.Validate(n.ID) != nil {
		t.Errorf("without id: %+v", n)
	}
	ref := api(5, "")
	ref.Chat = uuid.NewString()
	if n, m := h.resolve(ref), h.resolve(ref); n.ID != ref.Chat || m.isNew {
		t.Errorf("a retry made another session: %+v, %+v", n, m)
	}
}

func TestOthersSessionIsNotFound(t *testing.T) {
	h := open(t)
	a := h.resolve(api(5, uuid.NewString()))
	for _, id := range []string{a.ID, strings.ToUpper(a.ID)} {
		if r := h.resolve(api(6, id)); core.KindOf(r.err) != core.NotFound || core.TextOf(r.err) != "no such session" {
			t.Errorf("guest 6 got %+v", r)
		}
	}
	if r := h.resolve(api(core.Operator, a.ID)); r.err != nil || r.ID != a.ID || r.User != 5 {
		t.Errorf("operator: %+v", r)
	}
	admin := api(7, a.ID)
	admin.Admin = true
	if r := h.resolve(admin); r.err != nil || r.ID != a.ID {
		t.Errorf("admin: %+v", r)
	}
}

func TestGuessedAliasMeetsNoOnesSession(t *testing.T) {
	h := open(t)
	id, _, _ := session.ID("home", core.Operator)
	trap := h.resolve(api(6, id)) // a guest takes the id that the owner's alias would get
	own := h.resolve(api(core.Operator, "home"))
	again := h.resolve(api(core.Operator, "home"))
	if trap.err != nil || own.err != nil || own.ID == trap.ID || own.User != core.Operator || again.ID != own.ID || len(own.warnings) != 1 {
		t.Errorf("trap %+v, own %+v, again %+v", trap.Session, own, again.Session)
	}
}

func TestLocateReportsWhatResolveWillDo(t *testing.T) {
	h := open(t)
	mine, theirs, taken := h.resolve(chat(5, "c1")).ID, h.resolve(api(6, "")).ID, uuid.NewString()
	name, _ := h.vault.Transcript("", taken)
	if err := h.vault.WriteFile(name, []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	squat, _, _ := session.ID("squat", 5)
	h.resolve(api(6, squat))
	for _, given := range []string{mine, strings.ToUpper(mine), uuid.NewString(), strings.ToUpper(uuid.NewString()), "alias", "squat", taken, strings.ToUpper(taken)} {
		for round := range 2 {
			id, known, err := h.Locate(context.Background(), 5, given)
			r := h.resolve(api(5, given))
			if err != nil || r.err != nil || id != r.ID || known == r.isNew || round == 1 && !known {
				t.Errorf("%s: located %s, %v, %v; resolved %s, new %v, %v", given, id, known, err, r.ID, r.isNew, r.err)
			}
		}
	}
	if _, _, err := h.Locate(context.Background(), 5, theirs); core.KindOf(err) != core.NotFound {
		t.Errorf("somebody else's: %v", err)
	}
	if id, known, err := h.Locate(context.Background(), core.Operator, theirs); id != theirs || !known || err != nil {
		t.Errorf("the operator: %s, %v, %v", id, known, err)
	}
	if _, _, err := h.Locate(context.Background(), 5, "../../x"); core.KindOf(err) != core.Invalid {
		t.Errorf("hostile: %v", err)
	}
}

func TestHostileSessionIDsAreRefused(t *testing.T) {
	h := open(t)
	for _, id := range []string{"../../x", "a/b", "..", ".x", "a b", "a\x00", "é", "sessions", "stream", strings.Repeat("a", 129)} {
		if r := h.resolve(api(5, id)); core.KindOf(r.err) != core.Invalid {
			t.Errorf("%q: %+v", id, r)
		}
	}
}

func TestTakenTranscriptStartsANewSessionWithAWarning(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	name, _ := h.vault.Transcript("", id)
	body := `{"uuid":"a","type":"user","parentUuid":null,"message":{"role":"user","content":"the owner's secret"}}` + "\n"
	if err := h.vault.WriteFile(name, []byte(body)); err != nil {
		t.Fatal(err)
	}
	r := h.resolve(api(5, id))
	if r.err != nil || !r.isNew || r.ID == id || len(r.warnings) != 1 || r.warnings[0].Code != "session_collision" {
		t.Fatalf("guest: %+v", r)
	}
	if again := h.resolve(api(5, id)); again.ID != r.ID || again.isNew {
		t.Errorf("guest again: %+v", again)
	}
	op := h.resolve(api(core.Operator, id))
	if op.err != nil || op.ID != id || op.TrustLevel != core.Sandboxed || op.MessageCount != 1 {
		t.Errorf("operator: %+v", op)
	}
}

func TestWorkingDirectoryOfANewSession(t *testing.T) {
	h := open(t)
	if err := h.vault.Root().MkdirAll("Projects/a", 0o700); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for _, c := range []struct {
		dir   string
		trust core.Trust
		want  string
		kind  core.Kind
	}{
		{"Projects/a", core.Sandboxed, "Projects/a", 0},
		{filepath.Join(h.vault.Path(), "Projects"), core.Vault, "Projects", 0},
		{"none", core.Vault, "", 0},
		{"../..", core.Vault, "", core.Denied},
		{out, core.Vault, "", core.Denied},
		{out, core.Full, out, 0},
	} {
		ref := api(core.Operator, "")
		ref.Trust, ref.Options.WorkingDirectory = c.trust, c.dir
		if r := h.resolve(ref); core.KindOf(r.err) != c.kind || r.err == nil && r.WorkingDirectory != c.want {
			t.Errorf("%+v: %q, %v", c, r.WorkingDirectory, r.err)
		}
	}
}

func TestLaneFollowsTheBinding(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1"))
	lane := func(addr core.Address) (key string) {
		h.tx(func(ctx context.Context, tx *store.Tx) (err error) {
			key, err = h.Lane(ctx, tx, addr)
			return err
		})
		return key
	}
	free := uuid.NewString()
	for _, c := range []struct {
		addr core.Address
		want string
	}{
		{core.Address{Bot: "b", Chat: "c1"}, "b|c1"},
		{core.Address{Bot: core.APIBot, Chat: a.ID}, "b|c1"},
		{core.Address{Bot: core.APIBot, Chat: free}, "session:" + free},
	} {
		if got := lane(c.addr); got != c.want {
			t.Errorf("%+v: %s, want %s", c.addr, got, c.want)
		}
	}
	addr, ok, err := h.Bound(context.Background(), h.db, a.ID)
	if err != nil || !ok || addr.Bot != "b" || addr.Chat != "c1" {
		t.Errorf("bound to %+v, %v, %v", addr, ok, err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		if mode, err := h.BusyMode(ctx, tx, addr); mode != "" || err != nil {
			t.Errorf("busy mode %q, %v", mode, err)
		}
		_, err := tx.Exec(ctx, `UPDATE chats SET busy_mode = 'queue' WHERE chat = 'c1'`)
		return err
	})
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		if mode, err := h.BusyMode(ctx, tx, addr); mode != "queue" || err != nil {
			t.Errorf("busy mode %q, %v", mode, err)
		}
		return nil
	})
}

func TestFinishCountsAndTitlesOnce(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1"))
	for i, title := range []string{"", "\n  How do I\tbake bread?\nsecond line", "another question"} {
		h.clock.Advance(time.Minute)
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			return h.Finish(ctx, tx, a.ID, session.Finish{Messages: 2, Model: fmt.Sprint("m", i), Title: title, At: h.clock.Now()})
		})
	}
	s, err := h.ByID(context.Background(), h.db, a.ID)
	if err != nil || s.MessageCount != 6 || s.Model != "m2" || s.Title != "How do I bake bread?" || !s.LastAccessed.Equal(h.clock.Now()) {
		t.Errorf("%+v, %v", s, err)
	}
	if m := h.sidecar(a.ID); m["title"] != s.Title {
		t.Errorf("sidecar: %v", m)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET title = '', title_source = 'user'`)
		return err
	})
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return h.Finish(ctx, tx, a.ID, session.Finish{Title: "x", At: h.clock.Now()})
	})
	if s, _ := h.ByID(context.Background(), h.db, a.ID); s.Title != "" || s.Model != "m2" {
		t.Errorf("the user's empty title became %q, the model %q", s.Title, s.Model)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error { // a session that is gone
		return h.Finish(ctx, tx, uuid.NewString(), session.Finish{Messages: 2, At: h.clock.Now()})
	})
}

func TestTitleIsTheFirstLineCutAtAWord(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for text, want := range map[string]string{
		"":                                   "",
		" \n\t\n":                            "",
		"hello":                              "hello",
		"\x00\u202eab\u200b c":               "ab c",
		long:                                 strings.TrimSpace(strings.Repeat("word ", 11)) + "…",
		strings.Repeat("é", 70):              strings.Repeat("é", 59) + "…",
		strings.Repeat("a", 1<<20):           strings.Repeat("a", 59) + "…",
		strings.Repeat("x", 60):              strings.Repeat("x", 60),
		"ok " + strings.Repeat("y", 100):     "ok " + strings.Repeat("y", 56) + "…",
		"\xff\xfe broken \xc3":               "broken",
		strings.Repeat("\n", 10) + "deep":    "deep",
		"first\r\nsecond":                    "first",
		strings.Repeat("😀", 61):              strings.Repeat("😀", 59) + "…",
		strings.Repeat("a b", 1) + "\u2028c": "a b c",
	} {
		got := session.Title(text)
		if got != want || utf8.RuneCountInString(got) > 60 || !utf8.ValidString(got) {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

func TestSidecarIsWrittenOnlyWhenItChanges(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1"))
	finish := func() {
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			return h.Finish(ctx, tx, a.ID, session.Finish{Messages: 2, Title: "t", At: h.clock.Now()})
		})
		_ = h.Close()
	}
	finish()
	name := filepath.Join(h.vault.Path(), ".parachute/sessions", a.ID+".json")
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	h.resolve(chat(5, "c1"))
	finish()
	if after, _ := os.Stat(name); !os.SameFile(before, after) {
		t.Error("a turn that changed nothing in it replaced the sidecar")
	}
}

func TestRolledBackSessionLeavesNoSidecar(t *testing.T) {
	h := open(t)
	var id string
	err := h.try(func(ctx context.Context, tx *store.Tx) error {
		s, _, _, err := h.Resolve(ctx, tx, chat(5, "c1"))
		id = s.ID
		if err == nil {
			err = context.Canceled
		}
		return err
	})
	_ = h.Close()
	if _, serr := h.vault.Stat(".parachute/sessions/" + id + ".json"); err == nil || serr == nil {
		t.Errorf("tx %v, sidecar %v", err, serr)
	}
}

func TestRepairMakesSidecarsGood(t *testing.T) {
	h := open(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, h.resolve(chat(5, fmt.Sprint("c", i))).ID)
	}
	_ = h.Close()
	if n, err := h.Repair(context.Background()); n != 0 || err != nil {
		t.Errorf("repaired %d of good ones, %v", n, err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO session_tags VALUES ($1, 'blue', $2)`, ids[2], core.Stamp(tx.Time()))
		return err
	})
	dir := ".parachute/sessions/"
	_ = h.vault.Root().Remove(dir + ids[0] + ".json")
	_ = h.vault.Root().WriteFile(dir+ids[1]+".json", []byte("{torn"), 0o600)
	_ = h.vault.Root().WriteFile(dir+".abc.gatehouse-tmp", []byte("{torn"), 0o600)
	if n, err := h.Repair(context.Background()); n != 3 || err != nil {
		t.Errorf("repaired %d, %v; want 3", n, err)
	}
	if m := h.sidecar(ids[2]); fmt.Sprint(m["tags"]) != "[blue]" || m["chat"] != "c2" {
		t.Errorf("sidecar: %v", m)
	}
	if entries, _ := os.ReadDir(filepath.Join(h.vault.Path(), dir)); len(entries) != 3 {
		t.Errorf("folder holds %v", entries)
	}
}

func TestCursorPagingIsStable(t *testing.T) {
	h := open(t)
	want := map[string]bool{}
	for i := range 25 {
		if i%5 == 0 { // ties in time are paged by id
			h.clock.Advance(time.Second)
		}
		want[h.resolve(chat(5, fmt.Sprint("c", i))).ID] = true
	}
	h.resolve(chat(6, "other"))
	seen := map[string]bool{}
	cursor, pages := "", 0
	for {
		page, next, err := h.List(context.Background(), session.Filter{User: 5, Limit: 7, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			if seen[s.ID] || !want[s.ID] {
				t.Errorf("page %d: %s repeated or not ours", pages, s.ID)
			}
			seen[s.ID] = true
		}
		h.clock.Advance(time.Second)
		h.resolve(chat(5, fmt.Sprint("new", pages))) // somebody writes while we page
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if len(seen) != 25 || pages != 4 {
		t.Errorf("saw %d sessions on %d pages", len(seen), pages)
	}
	for _, bad := range []string{"x", "!!", "AAAA"} {
		if _, _, err := h.List(context.Background(), session.Filter{Cursor: bad}); core.KindOf(err) != core.Invalid {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

func TestListFilters(t *testing.T) {
	h := open(t)
	a, b := h.resolve(chat(5, "a")), h.resolve(chat(5, "b"))
	c := h.resolve(api(6, ""))
	yes, no, title := true, false, "Fifty 50% off"
	if _, err := h.update(a.ID, session.Change{Title: &title, Archived: &yes, AddTags: []string{"blue"}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		filter session.Filter
		want   []string
	}{
		{session.Filter{All: true}, []string{a.ID, b.ID, c.ID}},
		{session.Filter{User: 5}, []string{a.ID, b.ID}},
		{session.Filter{User: 7}, nil},
		{session.Filter{}, nil},
		{session.Filter{All: true, Source: "api"}, []string{c.ID}},
		{session.Filter{All: true, Module: "daily"}, nil},
		{session.Filter{All: true, AgentType: "vault-agent"}, []string{a.ID, b.ID, c.ID}},
		{session.Filter{All: true, Archived: &yes}, []string{a.ID}},
		{session.Filter{User: 5, Archived: &no}, []string{b.ID}},
		{session.Filter{All: true, Tag: "Blue"}, []string{a.ID}},
		{session.Filter{All: true, Search: "50%"}, []string{a.ID}},
		{session.Filter{All: true, Search: "fifty"}, []string{a.ID}},
		{session.Filter{All: true, Search: "5_%5"}, nil},
		{session.Filter{All: true, Search: "bl", Archived: &yes}, []string{a.ID}},
		{session.Filter{All: true, Search: "bl", Archived: &no}, nil},
		{session.Filter{User: 6, Search: "fifty"}, nil},
		{session.Filter{All: true, Search: "' OR 1=1 --"}, nil},
	} {
		list, _, err := h.List(context.Background(), f.filter)
		got := map[string]bool{}
		for _, s := range list {
			got[s.ID] = true
		}
		ok := err == nil && len(list) == len(f.want)
		for _, id := range f.want {
			ok = ok && got[id]
		}
		if !ok {
			t.Errorf("%+v: %d sessions, %v; want %d", f.filter, len(list), err, len(f.want))
		}
	}
	if list, _, err := h.List(context.Background(), session.Filter{All: true, Limit: 1, Offset: 2}); err != nil || len(list) != 1 {
		t.Errorf("offset: %d, %v", len(list), err)
	}
	if _, _, err := h.List(context.Background(), session.Filter{Offset: -1}); core.KindOf(err) != core.Invalid {
		t.Errorf("offset below zero: %v", err)
	}
}

func TestMoveTakesTheConversationAlong(t *testing.T) {
	h := open(t)
	ref := chat(5, "g1")
	ref.Place = "g1"
	a := h.resolve(ref)
	to := chat(5, "g2")
	to.Place = "g2"
	b := h.resolve(to) // a message under the new id came first
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Move(ctx, tx, "b", "g1", "g2") })
	if r := h.resolve(to); r.ID != a.ID || r.isNew {
		t.Errorf("after the move the chat has %s, want %s (not %s)", r.ID, a.ID, b.ID)
	}
	if m := h.sidecar(a.ID); m["chat"] != "g2" || m["place"] != "g2" {
		t.Errorf("sidecar: %v", m)
	}
	if m := h.sidecar(b.ID); m["chat"] != nil {
		t.Errorf("sidecar of the other: %v", m)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Move(ctx, tx, "b", "g1", "g2") })
	if r := h.resolve(to); r.ID != a.ID {
		t.Errorf("a second move changed the session to %s", r.ID)
	}
}

func TestForgetLeavesNothingOfAPersonInTheLists(t *testing.T) {
	h := open(t)
	a, other := h.resolve(chat(5, "c1")), h.resolve(chat(6, "c2"))
	c, err := h.Open(context.Background(), a.Session)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append("r", 0, user("private")); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_ = h.Close()
	var ids []string
	h.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		ids, err = h.Forget(ctx, tx, core.Person{User: 5, Chats: []core.Address{{Bot: "b", Chat: "c1"}}})
		return err
	})
	for range 2 { // a second time finds nothing to do
		for _, id := range ids {
			if err := h.Erase(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if trash, _ := h.vault.Root().Open(".parachute/trash"); trash != nil {
		t.Error("what was forgotten lies in the trash")
	}
	if _, err := h.ByID(context.Background(), h.db, a.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("row: %v", err)
	}
	if files, _ := h.vault.FindTranscripts(a.ID); len(files) != 0 {
		t.Errorf("transcripts: %v", files)
	}
	if _, err := h.vault.Stat(".parachute/sessions/" + a.ID + ".json"); err == nil {
		t.Error("the sidecar is still there")
	}
	if r := h.resolve(chat(5, "c1")); !r.isNew {
		t.Errorf("the chat still has %s", r.ID)
	}
	if r := h.resolve(chat(6, "c2")); r.ID != other.ID {
		t.Error("somebody else was forgotten too")
	}
}

func BenchmarkResolve(b *testing.B) {
	h := open(b)
	h.resolve(chat(5, "c1"))
	ctx := context.Background()
	if err := h.db.Tx(ctx, func(tx *store.Tx) error {
		for b.Loop() {
			if _, _, _, err := h.Resolve(ctx, tx, chat(5, "c1")); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFirstTurn is a new chat's whole cost here: session, sidecar, transcript.
func BenchmarkFirstTurn(b *testing.B) {
	h := open(b)
	for i := 0; b.Loop(); i++ {
		r := h.resolve(chat(5, fmt.Sprint("c", i)))
		h.turn(h.Store, r.Session, fmt.Sprint("run-", i), "How do I bake bread?", "With flour, water, salt and time.")
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			return h.Finish(ctx, tx, r.ID, session.Finish{Messages: 2, Model: "m", Title: "How do I bake bread?", At: h.clock.Now()})
		})
	}
}
