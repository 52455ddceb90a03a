package pairing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/pairing/bots"
)

var (
	ctx   = context.Background()
	panel = core.Actor{User: core.Operator, Via: "panel"}
)

// A world is a Gate over a real database with the parts around it played by
// the test: a mailbox, the owner's buttons, the runs.
type world struct {
	t     testing.TB
	clock *coretest.Clock
	db    *store.DB
	gate  *Gate
	mail  *mailbox
	asks  *buttons
	runs  *aborted
	pol   map[string]bots.Policy
	n     int
}

func newWorld(t testing.TB, set ...func(*Options)) *world {
	w := &world{t: t, clock: coretest.NewClock(time.Time{}), mail: &mailbox{held: map[string][]core.Inbound{}}, asks: &buttons{}, runs: &aborted{}, pol: map[string]bots.Policy{
		"tg":  {Platform: "telegram", DM: bots.Pairing},
		"tg2": {Platform: "telegram", DM: bots.Pairing},
		"dc":  {Platform: "discord", DM: bots.Pairing},
	}}
	w.db = storetest.Open(t, w.clock)
	o := Options{
		Clock: w.clock,
		Bots: bots.New(func() []bots.Bot {
			return []bots.Bot{{Name: "tg", Platform: "telegram"}, {Name: "tg2", Platform: "telegram"}, {Name: "dc", Platform: "discord"}}
		}, func(bot string) bots.Policy { return w.pol[bot] }),
	}
	for _, f := range set {
		f(&o)
	}
	w.gate = New(w.db, o, w.mail, w.asks, w.runs)
	w.ok(w.gate.People.EnsureOperator(ctx))
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// put hands an update to the gate as the queue does.
func (w *world) put(in core.Inbound) core.Verdict {
	w.t.Helper()
	var v core.Verdict
	w.n++
	in.UpdateID = fmt.Sprintf("u%d", w.n)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		a, err := w.gate.Admit(ctx, tx, &in)
		v = a.Verdict
		return err
	}))
	if v.Action == core.Hold {
		w.mail.hold(v.Request, in)
	}
	return v
}

func (w *world) trust(in core.Inbound) (t core.Trust) {
	w.t.Helper()
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		t, err = w.gate.Trust(ctx, tx, &in)
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
	rs, err := w.gate.Requests(ctx, "pending", 0)
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
	_, err := w.gate.Approve(ctx, v.Request, core.Approval{Trust: trust}, panel)
	w.ok(err)
}

// claim makes a person the owner on bot.
func (w *world) claim(bot, id string) {
	w.t.Helper()
	code, _, err := w.gate.Codes.NewClaim(ctx, false)
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

func wantAction(t testing.TB, v core.Verdict, a core.Action) {
	t.Helper()
	if v.Action != a {
		t.Fatalf("verdict %+v, want action %d", v, a)
	}
	if v.Action != core.Run && v.Trust != core.Stranger || v.Action == core.Run && v.Trust == core.Stranger {
		t.Fatalf("verdict %+v: trust goes with Run and with nothing else", v)
	}
}

type mailbox struct {
	mu    sync.Mutex
	posts []core.Reply
	held  map[string][]core.Inbound
	freed []string // "text@trust" in order
}

func (m *mailbox) Post(_ context.Context, tx *store.Tx, r core.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.posts, func(p core.Reply) bool { return p.Key == r.Key }) {
		return core.Errorf(core.Conflict, "key %s is used", r.Key)
	}
	tx.OnCommit(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.posts = append(m.posts, r)
	})
	return nil
}

func (m *mailbox) hold(request string, in core.Inbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[request] = append(m.held[request], in)
}

func (m *mailbox) Reword(_ context.Context, _ *store.Tx, request string, in *core.Inbound) ([]core.Inbound, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.held[request], func(h core.Inbound) bool { return h.MessageID == in.MessageID })
	if i < 0 {
		return nil, nil
	}
	m.held[request][i].Text = in.Text
	return slices.Clone(m.held[request]), nil
}

func (m *mailbox) Free(_ context.Context, tx *store.Tx, request string, trust core.Trust) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.held[request]
	tx.OnCommit(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, in := range held {
			m.freed = append(m.freed, in.Text+"@"+trust.String())
		}
		delete(m.held, request)
	})
	return len(held), nil
}

func (m *mailbox) Discard(_ context.Context, tx *store.Tx, request string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx.OnCommit(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.held, request)
	})
	return len(m.held[request]), nil
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
	shown  []string // first messages after edits
	codes  []string // with them

	withdrawn int // requests
	room      int // for requests, plus one; 0: any number
}

func (a *buttons) Update(_ context.Context, tx *store.Tx, r core.PairingRequest, n int) error {
	tx.OnCommit(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.codes = append(a.codes, r.Code)
		a.shown = append(a.shown, fmt.Sprintf("%d %s", n, r.FirstMessage))
	})
	return nil
}

func (a *buttons) Open(_ context.Context, tx *store.Tx, r core.PairingRequest) (everywhere bool, err error) {
	if a.room > 0 {
		if a.room--; a.room == 0 {
			return false, nil
		}
	}
	tx.OnCommit(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.opened = append(a.opened, r)
	})
	return true, nil
}

func (a *buttons) Withdraw(_ context.Context, tx *store.Tx) error {
	tx.OnCommit(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.withdrawn += len(a.opened)
		a.opened = nil
	})
	return nil
}

func (a *buttons) Close(_ context.Context, tx *store.Tx, id, outcome string) error {
	tx.OnCommit(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.closed = append(a.closed, id+" "+outcome)
	})
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
