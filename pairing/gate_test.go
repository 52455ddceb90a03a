package pairing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

var (
	ctx   = context.Background()
	panel = core.Actor{User: core.Operator, Via: "panel"}
)

// a world is a Book over a real database with the parts around it played by
// the test: a mailbox, the owner's buttons, the runs.
type world struct {
	t     testing.TB
	clock *coretest.Clock
	db    *store.DB
	book  *Book
	mail  *mailbox
	asks  *buttons
	runs  *aborted
	pol   map[string]Policy
	n     int
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, clock: coretest.NewClock(time.Time{}), mail: &mailbox{held: map[string][]string{}}, asks: &buttons{}, runs: &aborted{}, pol: map[string]Policy{
		"tg":  {Platform: "telegram", DM: PolicyPairing},
		"tg2": {Platform: "telegram", DM: PolicyPairing},
		"dc":  {Platform: "discord", DM: PolicyPairing},
	}}
	w.db = storetest.Open(t, w.clock)
	w.book = New(w.db, Options{
		Clock:  w.clock,
		Policy: func(bot string) Policy { return w.pol[bot] },
		Bots: func() []BotName {
			return []BotName{{"tg", "telegram"}, {"tg2", "telegram"}, {"dc", "discord"}}
		},
	}, w.mail, w.asks, w.runs)
	w.ok(w.book.EnsureOperator(ctx))
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// put hands an update to the gate as the queue does.
func (w *world) put(in core.Inbound) Verdict {
	w.t.Helper()
	var v Verdict
	w.n++
	in.UpdateID = fmt.Sprintf("u%d", w.n)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		v, err = w.book.Admit(ctx, tx, &in)
		return err
	}))
	if v.Action == Hold {
		w.mail.hold(v.Request, in.Text)
	}
	return v
}

func (w *world) trust(in core.Inbound) (t core.Trust) {
	w.t.Helper()
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		t, err = w.book.Trust(ctx, tx, &in)
		return err
	}))
	return t
}

func peer(id string) core.Peer { return core.Peer{Platform: "telegram", ID: id, Name: "P" + id} }

func dm(bot, id, text string) core.Inbound {
	return core.Inbound{Address: core.Address{Bot: bot, Chat: "c" + id}, Kind: core.KindMessage, From: peer(id), Text: text, Addressed: true}
}

func command(bot, id, name, args string) core.Inbound {
	in := dm(bot, id, args)
	in.Kind, in.Command = core.KindCommand, name
	return in
}

func inGroup(in core.Inbound, place string) core.Inbound {
	in.Place, in.Chat, in.PlaceName = place, place+"/0", "Group "+place
	return in
}

// pending is the one request that waits.
func (w *world) pending() core.PairingRequest {
	w.t.Helper()
	rs, err := w.book.Requests(ctx, "pending", 0)
	w.ok(err)
	if len(rs) != 1 {
		w.t.Fatalf("%d requests wait, want 1", len(rs))
	}
	return rs[0]
}

// admit lets a person in by a request and its approval.
func (w *world) admit(bot, id string, trust core.Trust) {
	w.t.Helper()
	v := w.put(dm(bot, id, "let me in"))
	_, err := w.book.Approve(ctx, v.Request, core.Approval{Trust: trust}, panel)
	w.ok(err)
}

// claim makes a person the owner on bot.
func (w *world) claim(bot, id string) {
	w.t.Helper()
	code, _, err := w.book.NewClaim(ctx, false)
	w.ok(err)
	w.put(command(bot, id, "claim", code))
}

func (w *world) audits(action string) (n int) {
	w.t.Helper()
	w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM audit_events WHERE action LIKE $1`, action))
	return n
}

func wantKind(t testing.TB, err error, kind core.Kind) {
	t.Helper()
	if core.KindOf(err) != kind {
		t.Fatalf("error %v is of kind %d, want %d", err, core.KindOf(err), kind)
	}
}

func wantAction(t testing.TB, v Verdict, a Action) {
	t.Helper()
	if v.Action != a {
		t.Fatalf("verdict %+v, want action %d", v, a)
	}
	if v.Action != Run && v.Trust != core.Stranger || v.Action == Run && v.Trust == core.Stranger {
		t.Fatalf("verdict %+v: trust goes with Run and with nothing else", v)
	}
}

type mailbox struct {
	mu    sync.Mutex
	posts []core.Reply
	held  map[string][]string
	freed []string // "text@trust" in order
}

func (m *mailbox) Post(_ context.Context, _ *store.Tx, r core.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.posts, func(p core.Reply) bool { return p.Key == r.Key }) {
		return core.Errorf(core.Conflict, "key %s is used", r.Key)
	}
	m.posts = append(m.posts, r)
	return nil
}

func (m *mailbox) hold(request, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[request] = append(m.held[request], text)
}

func (m *mailbox) Free(_ context.Context, _ *store.Tx, request string, trust core.Trust) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.held[request])
	for _, text := range m.held[request] {
		m.freed = append(m.freed, text+"@"+trust.String())
	}
	delete(m.held, request)
	return n, nil
}

func (m *mailbox) Discard(_ context.Context, _ *store.Tx, request string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.held[request])
	delete(m.held, request)
	return n, nil
}

// said is the texts posted since the last call.
func (m *mailbox) said() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, r := range m.posts {
		for _, p := range r.Parts {
			out = append(out, r.Chat+": "+p.Text)
		}
	}
	m.posts = nil
	return out
}

type buttons struct {
	mu     sync.Mutex
	opened []core.PairingRequest
	closed []string
}

func (a *buttons) Open(_ context.Context, _ *store.Tx, r core.PairingRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, r)
	return nil
}

func (a *buttons) Close(_ context.Context, _ *store.Tx, id, outcome string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = append(a.closed, id+" "+outcome)
	return nil
}

type aborted struct {
	mu   sync.Mutex
	runs []string
}

func (a *aborted) AbortUser(bot string, user int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = append(a.runs, fmt.Sprintf("%s/%d", bot, user))
}

func TestFirstMessageIsHeldAndAnsweredAfterApproval(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		v := w.put(dm("tg", "7", fmt.Sprint("message ", i)))
		if i < maxHeld {
			wantAction(t, v, Hold)
		} else {
			wantAction(t, v, Drop)
		}
	}
	r := w.pending()
	if r.Held != maxHeld || r.FirstMessage != "message 0" || len(r.Code) != 8 || r.Display != "P7" {
		t.Fatalf("request %+v", r)
	}
	said := w.mail.said()
	if len(said) != 1 || !strings.Contains(said[0], r.Code) || !strings.HasPrefix(said[0], "c7: ") {
		t.Fatalf("the stranger was told %q", said)
	}
	if len(w.asks.opened) != 1 || w.asks.opened[0].Code != r.Code {
		t.Fatalf("the owner was shown %+v", w.asks.opened)
	}
	got, err := w.book.Approve(ctx, r.Code[:4]+"-"+strings.ToLower(r.Code[4:]), core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if got.Status != "approved" || got.ApprovedTrustLevel != core.Vault || got.ResolvedBy != "operator via panel" {
		t.Fatalf("approved request %+v", got)
	}
	want := []string{"message 0@vault", "message 1@vault", "message 2@vault", "message 3@vault", "message 4@vault"}
	if !slices.Equal(w.mail.freed, want) {
		t.Fatalf("freed %q, want %q", w.mail.freed, want)
	}
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "You're in") {
		t.Fatalf("the person was told %q", said)
	}
	if len(w.asks.closed) != 1 || w.asks.closed[0] != r.ID+" Approved as vault by operator via panel." {
		t.Fatalf("the owner's buttons ended as %q", w.asks.closed)
	}
	if v := w.put(dm("tg", "7", "and now?")); v.Action != Run || v.Trust != core.Vault {
		t.Fatalf("after approval %+v", v)
	}
	if n := w.audits("pairing.approve"); n != 1 {
		t.Fatalf("%d audit rows for one approval", n)
	}
}

func TestCodeRotatesAfterAnHourAndIsToldOncePerTenMinutes(t *testing.T) {
	w := newWorld(t)
	w.put(dm("tg", "7", "a"))
	first := w.pending().Code
	w.clock.Advance(9 * time.Minute)
	w.put(dm("tg", "7", "b"))
	if said := w.mail.said(); len(said) != 1 {
		t.Fatalf("told %d times in nine minutes", len(said))
	}
	w.clock.Advance(50 * time.Minute)
	w.put(command("tg", "7", "start", ""))
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], first) {
		t.Fatalf("after 59 minutes told %q, want the same code %s", said, first)
	}
	w.clock.Advance(11 * time.Minute)
	if _, err := w.book.Approve(ctx, first, core.Approval{}, panel); core.KindOf(err) != core.NotFound {
		t.Fatalf("an old code approved: %v", err)
	}
	w.put(command("tg", "7", "help", ""))
	second := w.pending().Code
	if said := w.mail.said(); second == first || len(said) != 1 || !strings.Contains(said[0], second) {
		t.Fatalf("after 70 minutes told %q; code %s then %s", said, first, second)
	}
	w.clock.Advance(-48 * time.Hour) // a clock set back must not silence anybody for days
	w.put(dm("tg", "7", "c"))
	if said := w.mail.said(); len(said) != 1 {
		t.Fatalf("with the clock set back told %q", said)
	}
}

func TestRequestLivesFourteenDays(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	w.clock.Advance(RequestLife - time.Minute)
	if n, err := w.book.Expire(ctx); n != 0 || err != nil {
		t.Fatalf("expired %d, %v before its time", n, err)
	}
	w.clock.Advance(2 * time.Minute)
	_, err := w.book.Approve(ctx, v.Request, core.Approval{}, panel)
	wantKind(t, err, core.Conflict)
	if n, err := w.book.Expire(ctx); n != 1 || err != nil {
		t.Fatalf("expired %d, %v", n, err)
	}
	if len(w.mail.held) != 0 {
		t.Fatalf("still held: %v", w.mail.held)
	}
	wantAction(t, w.put(dm("tg", "7", "again")), Hold)
	if w.pending().ID == v.Request {
		t.Fatal("the expired request was revived")
	}
}

func TestDeniedOnceToldThenSilenceThenMayAskAgain(t *testing.T) {
	w := newWorld(t)
	for range 3 { // any number of times
		v := w.put(dm("tg", "7", "a"))
		wantAction(t, v, Hold)
		w.mail.said()
		_, err := w.book.Deny(ctx, v.Request, panel)
		w.ok(err)
		if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "declined") {
			t.Fatalf("told %q", said)
		}
		w.clock.Advance(CoolOff - time.Minute)
		wantAction(t, w.put(dm("tg", "7", "b")), Drop)
		wantAction(t, w.put(command("tg", "7", "start", "")), Drop)
		if said := w.mail.said(); len(said) != 0 {
			t.Fatalf("in the cool-off told %q", said)
		}
		if _, err := w.book.Expire(ctx); err != nil || len(w.mail.held) != 0 {
			t.Fatalf("what a denied person wrote is kept: %v, %v", w.mail.held, err)
		}
		w.clock.Advance(2 * time.Minute)
	}
	if n := w.audits("pairing.deny"); n != 3 {
		t.Fatalf("%d audit rows for three denials", n)
	}
}

func TestUndoWithinTenSeconds(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	for name, decide := range map[string]func() error{
		"deny":  func() error { _, err := w.book.Deny(ctx, v.Request, panel); return err },
		"block": func() error { _, err := w.book.Block(ctx, v.Request, panel); return err },
		"approve": func() error {
			_, err := w.book.Approve(ctx, v.Request, core.Approval{}, panel)
			return err
		},
	} {
		w.ok(decide())
		if name != "approve" && len(w.mail.freed) == 0 && len(w.mail.held[v.Request]) == 0 {
			t.Fatalf("%s lost the message before it could be undone", name)
		}
		w.clock.Advance(9 * time.Second)
		r, err := w.book.Undo(ctx, v.Request, panel)
		w.ok(err)
		if r.Status != "pending" || w.trust(dm("tg", "7", "")) != core.Stranger {
			t.Fatalf("after undoing %s: %+v", name, r)
		}
		if v := w.put(dm("tg", "7", "b")); v.Action != Hold {
			t.Fatalf("after undoing %s the person gets %+v", name, v)
		}
	}
	if n, _ := w.book.Access(ctx, 0); len(n) != 0 {
		t.Fatalf("access left: %+v", n)
	}
	if bl, _ := w.book.Blocks(ctx); len(bl) != 0 {
		t.Fatalf("blocks left: %+v", bl)
	}
	if !slices.Contains(w.runs.runs, "tg/2") {
		t.Fatalf("undoing an approval stopped nothing: %v", w.runs.runs)
	}
	_, err := w.book.Deny(ctx, v.Request, panel)
	w.ok(err)
	w.clock.Advance(11 * time.Second)
	_, err = w.book.Undo(ctx, v.Request, panel)
	wantKind(t, err, core.Conflict)
}

func TestBlockLeavesNothing(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.book.Block(ctx, v.Request, panel)
	w.ok(err)
	w.mail.said()
	for _, in := range []core.Inbound{dm("tg", "7", "x"), command("tg", "7", "claim", "x"), inGroup(dm("tg", "7", "x"), "g")} {
		wantAction(t, w.put(in), Forget)
	}
	if said := w.mail.said(); len(said) != 0 {
		t.Fatalf("a blocked person was told %q", said)
	}
	wantAction(t, w.put(dm("tg2", "7", "x")), Hold) // another bot's block is not this one's
	w.ok(w.book.BlockUser(ctx, "*", "telegram", "7", panel))
	wantAction(t, w.put(dm("tg2", "7", "x")), Forget)
	w.ok(w.book.Unblock(ctx, "*", "telegram", "7", panel))
	w.ok(w.book.Unblock(ctx, "tg", "telegram", "7", panel))
	wantAction(t, w.put(dm("tg", "7", "x")), Hold)
	wantKind(t, w.book.Unblock(ctx, "tg", "telegram", "7", panel), core.NotFound)
}

func TestBlockTakesAccess(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.book.BlockUser(ctx, "*", "telegram", "7", panel))
	w.ok(w.book.Unblock(ctx, "*", "telegram", "7", panel))
	if got := w.trust(dm("tg", "7", "")); got != core.Stranger {
		t.Fatalf("unblocking gave %v back", got)
	}
	if !slices.Contains(w.runs.runs, "tg/2") {
		t.Fatalf("blocking stopped nothing: %v", w.runs.runs)
	}
}

func TestRevokedIsRefusedStoppedAndCoolsOff(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	queued := dm("tg", "7", "in the queue")
	wantAction(t, w.put(queued), Run)
	n, err := w.book.Revoke(ctx, "tg", "7", panel)
	if n != 1 || err != nil {
		t.Fatalf("revoked %d, %v", n, err)
	}
	if got := w.trust(queued); got != core.Stranger {
		t.Fatalf("what waited still runs at %v", got)
	}
	if !slices.Equal(w.runs.runs, []string{"tg/2"}) {
		t.Fatalf("stopped %v", w.runs.runs)
	}
	wantAction(t, w.put(dm("tg", "7", "x")), Drop)
	w.ok(w.book.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	wantAction(t, w.put(inGroup(dm("tg", "7", "x"), "g")), Drop) // nor by way of a group
	_, err = w.book.Revoke(ctx, "tg", "7", panel)
	wantKind(t, err, core.NotFound)
	w.clock.Advance(CoolOff + time.Minute)
	wantAction(t, w.put(dm("tg", "7", "x")), Hold)
	if n := w.audits("access.revoke"); n != 1 {
		t.Fatalf("%d audit rows for one revocation", n)
	}
}

func TestRemoveAccessOfOneRow(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	rows, err := w.book.Access(ctx, 0)
	w.ok(err)
	if len(rows) != 1 || rows[0].PlatformUserID != "7" || rows[0].Platform != "telegram" || rows[0].Trust != core.Vault || rows[0].Display != "P7" {
		t.Fatalf("access %+v", rows)
	}
	w.ok(w.book.RemoveAccess(ctx, rows[0].ID, panel))
	wantKind(t, w.book.RemoveAccess(ctx, rows[0].ID, panel), core.NotFound)
	wantAction(t, w.put(dm("tg", "7", "x")), Drop)
}

func TestPlatformNameMeansItsOnlyBot(t *testing.T) {
	w := newWorld(t)
	_, err := w.book.Revoke(ctx, "telegram", "7", panel)
	wantKind(t, err, core.Invalid) // there are two
	in := dm("dc", "9", "hi")
	in.From.Platform = "discord"
	v := w.put(in)
	_, err = w.book.Approve(ctx, v.Request, core.Approval{}, panel)
	w.ok(err)
	if n, err := w.book.Revoke(ctx, "discord", "9", panel); n != 1 || err != nil {
		t.Fatalf("revoked %d, %v", n, err)
	}
}

func TestAccessEnds(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.book.Approve(ctx, v.Request, core.Approval{ExpiresAt: w.clock.Now().Add(-time.Second)}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.book.Approve(ctx, v.Request, core.Approval{Trust: core.Full}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.book.Approve(ctx, v.Request, core.Approval{Scope: core.ScopeGroup}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.book.Approve(ctx, v.Request, core.Approval{ExpiresAt: w.clock.Now().Add(24 * time.Hour)}, panel)
	w.ok(err)
	if v := w.put(dm("tg", "7", "b")); v.Trust != core.Sandboxed {
		t.Fatalf("the preset is %v", v.Trust)
	}
	w.clock.Advance(24 * time.Hour)
	if got := w.trust(dm("tg", "7", "b")); got != core.Stranger {
		t.Fatalf("after the end %v", got)
	}
	wantAction(t, w.put(dm("tg", "7", "c")), Hold) // a stranger again, who may ask
}

func TestFloodOfStrangersPutsOutNoRealRequest(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.put(dm("tg", fmt.Sprint(1000+i), "spam"))
	}
	rs, err := w.book.Requests(ctx, "pending", 0)
	w.ok(err)
	if len(rs) != maxPending {
		t.Fatalf("%d wait, want %d", len(rs), maxPending)
	}
	for _, r := range rs {
		if r.PlatformUserID >= "1100" {
			t.Fatalf("%s came after the list was full and put out an earlier one", r.PlatformUserID)
		}
	}
	wantAction(t, w.put(dm("tg2", "5", "another bot's list is its own")), Hold)
	w.clock.Advance(25 * time.Hour)
	wantAction(t, w.put(dm("tg", "7", "a day later")), Hold)
	rs, err = w.book.Requests(ctx, "pending", 0)
	w.ok(err)
	if len(rs) != maxPending+1 { // and the other bot's
		t.Fatalf("%d wait, want %d", len(rs), maxPending+1)
	}
	for i := range 300 { // whoever empties the list is not flooded without end
		rs, err := w.book.Requests(ctx, "pending", 1)
		w.ok(err)
		_, err = w.book.Deny(ctx, rs[0].ID, panel)
		w.ok(err)
		w.put(dm("tg", fmt.Sprint(5000+i), "spam"))
	}
	var n int
	w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM pairing_requests WHERE bot = 'tg' AND created_at > $1`, core.Stamp(w.clock.Now().Add(-time.Hour))))
	if n > newPerHour {
		t.Fatalf("%d new requests in an hour", n)
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   Verdict
	}{
		{Policy{DM: PolicyPairing}, Verdict{Action: Hold}},
		{Policy{}, Verdict{Action: Hold}},
		{Policy{DM: PolicyAllowlist}, Verdict{}},
		{Policy{DM: PolicyAllowlist, Allowed: []string{"8"}}, Verdict{}},
		{Policy{DM: PolicyAllowlist, Allowed: []string{"7"}}, Verdict{Action: Run, Trust: core.Sandboxed}},
		{Policy{DM: PolicyAllowlist, Allowed: []string{"7"}, DMTrust: core.Vault}, Verdict{Action: Run, Trust: core.Vault}},
		{Policy{DM: PolicyAllowlist, Allowed: []string{""}}, Verdict{}},
		{Policy{DM: PolicyOpen}, Verdict{Action: Run, Trust: core.Sandboxed}},
		{Policy{DM: PolicyOpen, DMTrust: core.Full}, Verdict{Action: Run, Trust: core.Vault}},
		{Policy{DM: PolicyDisabled}, Verdict{}},
		{Policy{DM: "everyone"}, Verdict{}}, // a word nobody knows opens nothing
	} {
		t.Run(fmt.Sprintf("%s %v", c.policy.DM, c.policy.Allowed), func(t *testing.T) {
			w := newWorld(t)
			w.pol["tg"] = c.policy
			got := w.put(dm("tg", "7", "x"))
			got.Request = ""
			if got != c.want {
				t.Fatalf("%+v, want %+v", got, c.want)
			}
			if said := w.mail.said(); len(said) > 0 && c.want.Action != Hold {
				t.Fatalf("told %q", said)
			}
			if c.want.Action == Run {
				id, role, err := w.book.User(ctx, w.db, peer("7"))
				if id < 2 || role != "guest" || err != nil {
					t.Fatalf("whom a policy lets in is user %d, %q, %v: their things would be shared", id, role, err)
				}
				w.put(dm("tg", "8", "y"))
				if other, _, _ := w.book.User(ctx, w.db, peer("8")); other == id {
					t.Fatal("two people are one user")
				}
			}
		})
	}
}
