package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a Show that keeps what it was given.
type board struct {
	mu     sync.Mutex
	open   []ask.Ask
	closed map[string][]string
}

func (b *board) Open(_ context.Context, tx *store.Tx, a ask.Ask, _ core.PermissionRequest, _ permission.Profile) error {
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open = append(b.open, a)
	})
	return nil
}

func (b *board) Close(_ context.Context, tx *store.Tx, a ask.Ask, outcome string) error {
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closed[a.ID] = append(b.closed[a.ID], outcome)
	})
	return nil
}

func (b *board) outcome(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.closed[id])
}

// station is a guard with a run that asks.
type station struct {
	*world
	guard   *Guard
	board   *board
	metrics *Metrics
	events  chan core.Event
	slots   chan bool
}

func newStation(t *testing.T) *station {
	w := newWorld(t)
	s := &station{world: w, board: &board{closed: map[string][]string{}}, metrics: NewMetrics(prometheus.NewRegistry()), events: make(chan core.Event, 100), slots: make(chan bool, 1000)}
	s.guard = New(Options{DB: w.db, Asks: w.store, Clock: w.clock, Isolation: func() bool { return true }, Metrics: s.metrics, Show: s.board})
	return s
}

var (
	ownersTurn = permission.Profile{User: 1, Trust: core.Full, Session: "s", Run: "r", Owner: true, CanAsk: true, Configured: permission.ForOwner(), Bot: "tg", Chat: "c"}
	guestsTurn = permission.Profile{User: 7, Trust: core.Sandboxed, Session: "g", Run: "r7", CanAsk: true, Configured: permission.ForGuest(7), Bot: "tg", Chat: "d"}
)

type verdict struct {
	d   permission.Decision
	err error
}

// allow has a run ask for a call; the answer comes later.
func (s *station) allow(ctx context.Context, p permission.Profile, t tool.Tool, what string) <-chan verdict {
	out := make(chan verdict, 1)
	go func() {
		d, err := s.guard.Allow(ctx, p, t, &tool.Call{ID: "call", Input: json.RawMessage(`{}`), Access: access(t, what)}, func(e core.Event) { s.events <- e }, func(on bool) { s.slots <- on })
		out <- verdict{d, err}
	}()
	return out
}

// asked is the request that the run shows next.
func (s *station) asked() core.PermissionRequest {
	s.t.Helper()
	e := <-s.events
	r, ok := e.(core.PermissionRequest)
	if !ok {
		s.t.Fatalf("%T %+v is shown and no request", e, e)
	}
	return r
}

func (s *station) resolved(want, by string) {
	s.t.Helper()
	r, ok := (<-s.events).(core.PermissionResolved)
	if !ok || r.Decision != want || r.By != by {
		s.t.Fatalf("resolved %+v, want %s by %q", r, want, by)
	}
}

func TestACallWaitsForTheOwnerAndContinues(t *testing.T) {
	s := newStation(t)
	done := s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	r := s.asked()
	if r.ToolName != "Write" || r.Kind != "write" || r.Path != "Notes/a.md" || len(r.SuggestedGrants) != 4 || !r.ExpiresAt.Equal(s.clock.Now().Add(2*time.Minute)) {
		t.Fatalf("shown %+v", r)
	}
	if on := <-s.slots; !on {
		t.Fatal("the run keeps its slot while it waits")
	}
	waits, err := s.guard.Pending(ctx, 10)
	s.ok(err)
	if len(waits) != 1 || waits[0].Request.ID != r.ID || waits[0].Session != "s" || waits[0].User != 1 || waits[0].Trust != core.Full || waits[0].Run != "r" {
		t.Fatalf("pending %+v", waits)
	}
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	v := <-done
	if v.err != nil || v.d.Verdict != permission.Allow || v.d.Rule != permission.RulePerson {
		t.Fatalf("%+v", v)
	}
	s.resolved("granted", "operator via chat")
	if on := <-s.slots; on {
		t.Fatal("the slot is given back twice")
	}
	if got := s.board.outcome(r.ID); len(got) != 1 || got[0] != "Approved by operator via chat." {
		t.Fatalf("the buttons say %q", got)
	}
	// This once means once.
	done = s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	r = s.asked()
	s.ok(s.guard.Deny(ctx, r.ID, core.Actor{User: 1, Via: "panel"}))
	if v := <-done; v.err != nil || v.d.Verdict != permission.Deny || v.d.Rule != permission.RulePerson || !strings.Contains(v.d.Text, "operator via panel") {
		t.Fatalf("%+v", v)
	}
	s.resolved("denied", "operator via panel")
	if n := testutil.ToFloat64(s.metrics.denied.WithLabelValues(permission.RulePerson)); n != 1 {
		t.Fatalf("%v refusals are counted", n)
	}
}

func TestAGrantAppliesToSessionUserAndLevelUntilItIsRevoked(t *testing.T) {
	s := newStation(t)
	decide := func(p permission.Profile, what string) permission.Decision {
		d, err := s.guard.Decide(ctx, s.db, p, writeTool, json.RawMessage(`{}`), access(writeTool, what))
		s.ok(err)
		return d
	}
	done := s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	r := s.asked()
	for _, wide := range []string{"/etc/*", "[", "../*"} {
		wantKind(t, s.guard.Grant(ctx, r.ID, wide, owner), core.Invalid)
	}
	s.ok(s.guard.Grant(ctx, r.ID, "Notes/**/*", owner))
	if v := <-done; v.err != nil || v.d.Verdict != permission.Allow {
		t.Fatalf("%+v", v)
	}
	other, level, person := ownersTurn, ownersTurn, ownersTurn
	other.Session, level.Trust, person.User = "t", core.Vault, 2
	for _, c := range []struct {
		p    permission.Profile
		what string
		want permission.Verdict
	}{
		{ownersTurn, "Notes/x/b.md", permission.Allow}, {ownersTurn, "NotesPrivate/b.md", permission.MustAsk}, {ownersTurn, "Notes/.env", permission.Deny},
		{other, "Notes/b.md", permission.MustAsk}, {level, "Notes/b.md", permission.MustAsk}, {person, "Notes/b.md", permission.MustAsk},
	} {
		if d := decide(c.p, c.what); d.Verdict != c.want {
			t.Errorf("%+v %s: %+v", c.p, c.what, d)
		}
	}
	rows, err := s.guard.Grants(ctx, "s", 0)
	s.ok(err)
	if len(rows) != 1 || rows[0].Kind != "write" || rows[0].Pattern != "Notes/**/*" || rows[0].By != "operator via chat" || rows[0].Trust != core.Full || rows[0].At.IsZero() {
		t.Fatalf("grants %+v", rows)
	}
	if none, err := s.guard.Grants(ctx, "t", 0); err != nil || len(none) != 0 {
		t.Fatalf("%+v %v", none, err)
	}
	s.ok(s.guard.Revoke(ctx, rows[0].ID, owner))
	wantKind(t, s.guard.Revoke(ctx, rows[0].ID, owner), core.NotFound)
	if d := decide(ownersTurn, "Notes/x/b.md"); d.Verdict != permission.MustAsk {
		t.Errorf("after it was revoked: %+v", d)
	}
}

func TestAButtonGrantsWhatItsLabelShows(t *testing.T) {
	s := newStation(t)
	done := s.allow(ctx, ownersTurn, bashTool, "git status --short")
	r := s.asked()
	if r.Kind != "bash" || r.Command != "git status --short" {
		t.Fatalf("shown %+v", r)
	}
	wantKind(t, s.guard.Press(ctx, r.ID, "grant9", owner), core.Invalid)
	s.ok(s.guard.Press(ctx, r.ID, ask.OptionGrant(1), owner))
	if v := <-done; v.d.Verdict != permission.Allow {
		t.Fatalf("%+v", v)
	}
	for command, want := range map[string]permission.Verdict{"git status": permission.Allow, "git push": permission.MustAsk, "git status; rm x": permission.MustAsk, "git status; sudo ls": permission.Deny, "git status .env": permission.MustAsk} {
		d, err := s.guard.Decide(ctx, s.db, ownersTurn, bashTool, nil, access(bashTool, command))
		s.ok(err)
		if d.Verdict != want {
			t.Errorf("%q: %+v", command, d)
		}
	}
	for i := range 5 {
		if data := (ask.Ask{ID: r.ID}).Data(ask.OptionGrant(i)); len(data) > 64 {
			t.Errorf("%q is too long for a button", data)
		}
	}
	s.resolvedOnly(r.ID)
	done = s.allow(ctx, ownersTurn, bashTool, "make")
	r = s.asked()
	s.ok(s.guard.Press(ctx, r.ID, ask.OptionOnce, owner))
	<-done
	s.resolvedOnly(r.ID)
	done = s.allow(ctx, ownersTurn, bashTool, "make")
	r = s.asked()
	s.ok(s.guard.Press(ctx, r.ID, ask.OptionDeny, owner))
	if v := <-done; v.d.Verdict != permission.Deny {
		t.Fatalf("%+v", v)
	}
}

func (s *station) resolvedOnly(id string) {
	s.t.Helper()
	if r, ok := (<-s.events).(core.PermissionResolved); !ok || r.ID != id {
		s.t.Fatalf("%+v", r)
	}
}

func TestAnAskIsDeniedAfterTwoMinutesWithoutAnswer(t *testing.T) {
	s := newStation(t)
	done := s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	r := s.asked()
	for range 120 {
		s.clock.AwaitWaiters(1)
		select {
		case v := <-done:
			t.Fatalf("decided after less than two minutes: %+v", v)
		default:
		}
		s.clock.Advance(time.Second)
	}
	v := <-done
	if v.err != nil || v.d.Verdict != permission.Deny || v.d.Rule != permission.RuleTimeout {
		t.Fatalf("%+v", v)
	}
	s.resolved("timeout", "")
	wantKind(t, s.guard.Grant(ctx, r.ID, "", owner), core.Conflict)
	if got := s.board.outcome(r.ID); len(got) != 1 || !strings.Contains(got[0], "in time") {
		t.Fatalf("the buttons say %q", got)
	}
}

func TestAnAbortClosesTheAskSoThatItsButtonsReportIt(t *testing.T) {
	s := newStation(t)
	stop, cancel := context.WithCancelCause(ctx)
	done := s.allow(stop, ownersTurn, writeTool, "Notes/a.md")
	r := s.asked()
	<-s.slots
	cancel(errors.New("stopped"))
	if v := <-done; v.err == nil || v.err.Error() != "stopped" || v.d.Verdict != permission.Deny {
		t.Fatalf("%+v", v)
	}
	a, err := s.store.ByID(ctx, s.db, r.ID)
	s.ok(err)
	if got := s.board.outcome(r.ID); a.State != ask.Closed || len(got) != 1 || !strings.Contains(got[0], "Stopped") {
		t.Fatalf("the ask is %s, the buttons say %q", a.State, got)
	}
	wantKind(t, s.guard.Grant(ctx, r.ID, "", owner), core.Conflict)
	if len(s.events) != 0 {
		t.Fatalf("after the stop %+v is shown", <-s.events)
	}
}

// A decision made by another process rings no bell here: it is found by looking.
func TestADecisionOfAnotherProcessIsFound(t *testing.T) {
	s := newStation(t)
	done := s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	r := s.asked()
	s.clock.AwaitWaiters(1)
	other := New(Options{DB: s.db, Asks: ask.New(s.db, s.clock), Clock: s.clock})
	s.ok(other.Grant(ctx, r.ID, "", owner))
	s.clock.Advance(time.Second)
	if v := <-done; v.err != nil || v.d.Verdict != permission.Allow {
		t.Fatalf("%+v", v)
	}
}

// What an ended process left open ends by time, and is shown as ended.
func TestWhatAnEndedProcessLeftOpenExpires(t *testing.T) {
	s := newStation(t)
	a := s.begun(ownersTurn)
	changed := s.store.Changed()
	s.clock.Advance(2 * time.Minute)
	n, err := s.guard.Expire(ctx)
	if err != nil || n != 1 || len(s.board.outcome(a.ID)) != 1 {
		t.Fatalf("%d %v %q", n, err, s.board.outcome(a.ID))
	}
	<-changed
	if waits, err := s.guard.Pending(ctx, 10); err != nil || len(waits) != 0 {
		t.Fatalf("%+v %v", waits, err)
	}
}

// begun opens an ask that nobody waits for.
func (s *station) begun(p permission.Profile) ask.Ask {
	s.t.Helper()
	a, err := s.tryAsk(p)
	s.ok(err)
	return a
}

func (s *station) tryAsk(p permission.Profile) (ask.Ask, error) {
	body := ask.Payload{Request: &core.PermissionRequest{ToolName: "Write", Kind: "write", Path: "a", SuggestedGrants: []core.SuggestedGrant{{Scope: "file", Pattern: "a"}}}, User: p.User, Owner: p.Owner, Session: p.Session, Trust: p.Trust}
	return s.guard.open(ctx, ask.Ask{Kind: ask.KindPermission, Run: p.Run, Asker: p.User}, permissionTime, &body, p)
}

func TestACallIsDeniedAtOnceIfNoUserCanAnswer(t *testing.T) {
	s := newStation(t)
	p := ownersTurn
	p.CanAsk = false
	v := <-s.allow(ctx, p, writeTool, "Notes/a.md")
	if v.err != nil || v.d.Verdict != permission.Deny || v.d.Rule != permission.RuleNobody || !strings.Contains(v.d.Text, "no one can be asked") {
		t.Fatalf("%+v", v)
	}
	if len(s.events) != 0 || len(s.board.open) != 0 {
		t.Fatal("somebody was asked all the same")
	}
	_, err := s.guard.Ask(ctx, p, json.RawMessage(`[]`), nil, nil)
	wantKind(t, err, core.Denied)
}

func TestAGuestNeverApprovesItsOwnTools(t *testing.T) {
	s := newStation(t)
	done := s.allow(ctx, guestsTurn, bashTool, "ls")
	r := s.asked()
	for _, by := range []core.Actor{{User: 7, Via: "api"}, {}} {
		wantKind(t, s.guard.Grant(ctx, r.ID, "", by), core.Denied)
		wantKind(t, s.guard.Deny(ctx, r.ID, by), core.Denied)
		wantKind(t, s.guard.Press(ctx, r.ID, ask.OptionOnce, by), core.Denied)
	}
	wantKind(t, s.guard.Answer(ctx, r.ID, json.RawMessage(`"granted"`), core.Actor{User: 7}), core.NotFound)
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	if v := <-done; v.d.Verdict != permission.Allow {
		t.Fatalf("%+v", v)
	}
}

func TestGuestsAskOnlySoMuch(t *testing.T) {
	s := newStation(t)
	for range guestOpen {
		s.begun(guestsTurn)
	}
	_, err := s.tryAsk(guestsTurn)
	wantKind(t, err, core.Busy)
	if v := <-s.allow(ctx, guestsTurn, bashTool, "ls"); v.d.Verdict != permission.Deny || v.d.Rule != permission.RuleTooMany {
		t.Fatalf("%+v", v)
	}
	other := guestsTurn
	other.User = 8
	s.begun(other)
	for range guestOpen + 1 {
		s.begun(ownersTurn)
	}
	for i := guestOpen; i < guestDaily; i++ {
		s.clock.Advance(5 * time.Minute)
		s.begun(guestsTurn)
	}
	s.clock.Advance(5 * time.Minute)
	_, err = s.tryAsk(guestsTurn)
	wantKind(t, err, core.Busy)
	if !strings.Contains(core.TextOf(err), "24 hours") {
		t.Fatalf("told %q", err)
	}
	s.clock.Advance(24 * time.Hour)
	s.begun(guestsTurn)
	for {
		if _, err = s.tryAsk(ownersTurn); err != nil {
			break
		}
	}
	wantKind(t, err, core.Busy) // 100 in all, whoever asks
}

// First answer wins: the owner's chat, the panel, the API and the time that
// runs out, all at once. There is one winner, and one audit row at most.
func TestTheFirstAnswerWinsEverywhere(t *testing.T) {
	s := newStation(t)
	granted, denied, late := 0, 0, 0
	for i := range 100 {
		done := s.allow(ctx, ownersTurn, writeTool, fmt.Sprintf("Notes/%d.md", i))
		r := s.asked()
		s.clock.AwaitWaiters(1)
		var mu sync.Mutex
		won := []string{}
		var wg sync.WaitGroup
		try := func(via string, decide func(by core.Actor) error) {
			wg.Go(func() {
				err := decide(core.Actor{User: 1, Via: via})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, via)
				} else if core.KindOf(err) != core.Conflict {
					t.Errorf("%s is told %v", via, err)
				}
			})
		}
		try("chat", func(by core.Actor) error { return s.guard.Press(ctx, r.ID, ask.OptionOnce, by) })
		try("panel", func(by core.Actor) error { return s.guard.Deny(ctx, r.ID, by) })
		try("api", func(by core.Actor) error { return s.guard.Grant(ctx, r.ID, r.SuggestedGrants[0].Pattern, by) })
		if i%2 == 0 {
			wg.Go(func() { s.clock.Advance(2 * time.Minute) })
			wg.Go(func() { _, _ = s.guard.Expire(ctx) })
		}
		wg.Wait()
		v := <-done
		s.ok(v.err)
		a, err := s.store.ByID(ctx, s.db, r.ID)
		s.ok(err)
		var rows int
		s.ok(s.db.Get(ctx, &rows, `SELECT count(*) FROM audit_events WHERE action = 'ask.decide' AND subject = $1`, r.ID))
		var kept int
		s.ok(s.db.Get(ctx, &kept, `SELECT count(*) FROM tool_grants WHERE ask = $1`, r.ID))
		by := ""
		switch {
		case a.State == ask.Expired && len(won) == 0 && rows == 0 && v.d.Rule == permission.RuleTimeout && kept == 0:
			late++
		case a.State == ask.Decided && len(won) == 1 && rows == 1 && a.DecidedBy == "operator via "+won[0] && (v.d.Verdict == permission.Allow) == (won[0] != "panel") && (kept == 1) == (won[0] == "api"):
			by = a.DecidedBy
			if v.d.Verdict == permission.Allow {
				granted++
			} else {
				denied++
			}
		default:
			t.Fatalf("%s, won %q, %d audit rows, %d grants, decided %+v", a.State, won, rows, kept, v.d)
		}
		if e, ok := (<-s.events).(core.PermissionResolved); !ok || e.By != by {
			t.Fatalf("shown %+v, want by %q", e, by)
		}
		if got := s.board.outcome(r.ID); len(got) != 1 {
			t.Fatalf("the buttons were replaced by %q", got)
		}
	}
	t.Logf("granted %d, denied %d, late %d", granted, denied, late)
}

func TestOnlyTheAskedUserCanAnswer(t *testing.T) {
	s := newStation(t)
	questions := json.RawMessage(`[{"question":"Which colour?","options":[{"label":"red"}]}]`)
	ask := func() (core.UserQuestion, <-chan string) {
		out := make(chan string, 1)
		go func() {
			got, err := s.guard.Ask(ctx, guestsTurn, questions, func(e core.Event) { s.events <- e }, func(on bool) { s.slots <- on })
			out <- fmt.Sprint(string(got), err)
		}()
		q, ok := (<-s.events).(core.UserQuestion)
		if !ok || string(q.Questions) != string(questions) {
			t.Fatalf("shown %+v", q)
		}
		return q, out
	}
	open := func(session string, user int64) int {
		list, err := s.guard.Questions(ctx, session, user)
		s.ok(err)
		return len(list)
	}
	q, out := ask()
	if open(guestsTurn.Session, 7) != 1 || open(guestsTurn.Session, 8) != 0 || open("another", 7) != 0 {
		t.Error("the question is shown to somebody else, or elsewhere, or not at all")
	}
	wantKind(t, s.guard.Answer(ctx, q.ID, json.RawMessage(`{}`), core.Actor{User: 8}), core.NotFound)
	wantKind(t, s.guard.Answer(ctx, q.ID, json.RawMessage(`{`), core.Actor{User: 7}), core.Invalid)
	wantKind(t, s.guard.Grant(ctx, q.ID, "", owner), core.NotFound)
	s.ok(s.guard.Answer(ctx, q.ID, json.RawMessage(`{"Which colour?":"red"}`), core.Actor{User: 7, Via: "api"}))
	if got := <-out; got != `{"Which colour?":"red"}<nil>` {
		t.Fatalf("answered %s", got)
	}
	if open(guestsTurn.Session, 7) != 0 {
		t.Error("an answered question is still shown")
	}
	q, out = ask()
	_, err := s.decide(q.ID, "green", core.Actor{User: 7, Via: "chat"}) // typed in chat
	s.ok(err)
	if got := <-out; got != `{"Which colour?":"green"}<nil>` {
		t.Fatalf("answered %s", got)
	}
	q, out = ask()
	for range 300 {
		s.clock.AwaitWaiters(1)
		s.clock.Advance(time.Second)
	}
	if got := <-out; got != `{}<nil>` {
		t.Fatalf("nobody answered: %s", got)
	}
	if got := s.board.outcome(q.ID); len(got) != 1 {
		t.Fatalf("the buttons say %q", got)
	}
	_, err = s.guard.Ask(ctx, guestsTurn, json.RawMessage(`[`), nil, nil)
	wantKind(t, err, core.Invalid)
}

// What becomes forbidden while a person thinks is not opened by their yes.
func TestAYesOpensNothingThatIsForbiddenByThen(t *testing.T) {
	s := newStation(t)
	dir := t.TempDir()
	v, err := vault.Open(dir)
	s.ok(err)
	defer v.Close()
	s.guard.o.Vault = v
	done := s.allow(ctx, ownersTurn, readTool, "Notes/a.md")
	r := s.asked()
	s.ok(os.WriteFile(filepath.Join(dir, ".parachuteignore"), []byte("Notes/\n"), 0o600))
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	if got := <-done; got.err != nil || got.d.Verdict != permission.Deny || got.d.Rule != permission.RuleDenyList {
		t.Fatalf("%+v", got)
	}
	read, _ := s.guard.Bounds(ownersTurn)
	if read("Notes/a.md") || !read("a.md") {
		t.Error("the bounds do not know .parachuteignore")
	}
	s.ok(os.Remove(filepath.Join(dir, ".parachuteignore")))
	s.ok(os.Mkdir(filepath.Join(dir, ".parachuteignore"), 0o700))
	if read, _ := s.guard.Bounds(ownersTurn); read("a.md") {
		t.Error("a .parachuteignore that cannot be read opens everything")
	}
	s.ok(os.Symlink("/home/x/.ssh", filepath.Join(dir, "link")))
	s.ok(os.Remove(filepath.Join(dir, ".parachuteignore")))
	d, err := s.guard.Decide(ctx, s.db, ownersTurn, tool.Tool{Name: "mcp__any__t", Kind: tool.MCP}, json.RawMessage(`{"path":"link/config"}`), tool.Access{})
	s.ok(err)
	if d.Verdict != permission.Deny {
		t.Errorf("an argument behind a link: %+v", d)
	}
}

func TestWhatIsTooLongToJudgeIsNotAsked(t *testing.T) {
	s := newStation(t)
	if v := <-s.allow(ctx, ownersTurn, bashTool, "echo "+strings.Repeat("x", maxShown)); v.d.Verdict != permission.Deny || !strings.Contains(v.d.Text, "too long") {
		t.Fatalf("%+v", v)
	}
}

func TestGrantsAreBoundedAndForgotten(t *testing.T) {
	s := newStation(t)
	s.ok(s.db.Tx(ctx, func(tx *store.Tx) error {
		for i := range maxGrants {
			a := ask.Ask{ID: "x"}
			body := ask.Payload{Request: &core.PermissionRequest{Kind: "read"}, Session: "s", User: 1, Trust: core.Full}
			if err := keep(ctx, tx, a, body, fmt.Sprint("Notes/", i), owner); err != nil {
				return err
			}
		}
		return nil
	}))
	done := s.allow(ctx, ownersTurn, readTool, "Notes/more")
	r := s.asked()
	wantKind(t, s.guard.Grant(ctx, r.ID, "Notes/more", owner), core.Conflict)
	s.ok(s.guard.Grant(ctx, r.ID, "", owner)) // it was not lost with that
	if v := <-done; v.d.Verdict != permission.Allow {
		t.Fatalf("%+v", v)
	}
	s.ok(s.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := s.store.Forget(ctx, tx, 1)
		return errors.Join(s.guard.Forget(ctx, tx, 1), err)
	}))
	rows, err := s.guard.Grants(ctx, "", 0)
	if err != nil || len(rows) != 0 {
		t.Fatalf("%d grants left, %v", len(rows), err)
	}
	_, err = s.store.ByID(ctx, s.db, r.ID)
	wantKind(t, err, core.NotFound)
}
