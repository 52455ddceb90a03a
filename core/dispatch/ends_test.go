package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/llm"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A play is what a message's attempts come to, one after the other: say, fail
// (of the model), panic; "disk": the end cannot be stored; "revoke": access is
// lost meanwhile.
type play struct {
	api, respond bool
	acts         []string
}

var plays = []play{
	{acts: []string{"say"}},
	{acts: []string{"fail"}},
	{acts: []string{"panic", "say"}},
	{acts: []string{"panic", "disk", "say"}},
	{acts: []string{"disk", "panic", "fail"}},
	{acts: []string{"panic revoke"}},
	{acts: []string{"panic", "panic", "panic", "panic", "panic"}},
	{acts: []string{"disk", "disk", "disk", "disk", "disk"}},
	{api: true, acts: []string{"say"}},
	{api: true, acts: []string{"fail"}},
	{api: true, acts: []string{"panic"}},
	{api: true, acts: []string{"disk"}},
	{api: true, respond: true, acts: []string{"disk", "say"}},
	{api: true, respond: true, acts: []string{"disk", "disk revoke"}},
	{api: true, respond: true, acts: []string{"disk", "disk", "disk", "disk", "disk"}},
}

// However the attempts at a message come out, its run ends once, with one
// terminal event and message_stop: for whoever followed it, in storage, and for
// whoever comes back with any id that was told, also after a restart.
func TestARunEndsOnceWhateverBecomesOfItsAttempts(t *testing.T) {
	h := open(t)
	h.do(`CREATE TABLE broken (chat TEXT, attempt INTEGER)`)
	const when = `NEW.state IN ('done', 'error') AND EXISTS (SELECT 1 FROM broken WHERE chat = NEW.chat AND attempt = NEW.attempt)`
	if storetest.Postgres() {
		h.do(`CREATE FUNCTION disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF ` + when + ` THEN RAISE EXCEPTION 'disk full'; END IF; RETURN NEW; END $$`)
		h.do(`CREATE TRIGGER disk BEFORE UPDATE OF state ON runs FOR EACH ROW EXECUTE FUNCTION disk()`)
	} else {
		h.do(`CREATE TRIGGER disk BEFORE UPDATE OF state ON runs WHEN ` + when + ` BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
	}
	stage := h.stage()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // whoever is told no end
	defer cancel()
	var all sync.WaitGroup
	for i := range 4 * len(plays) {
		p := plays[i%len(plays)]
		session, run := h.cast(p, i)
		said := h.bus.Follow(ctx, bus.Follow{Session: session})
		stage.put(h, p, session, run, i)
		all.Go(func() { h.watchPlay(p, fmt.Sprintf("%d. %+v", i, p), said, session) })
	}
	all.Wait()
}

// A stage has every play's model speak.
type stage struct {
	mu    sync.Mutex
	plays map[string]play // by the message's text
	tries map[string]int
}

func (h *hall) stage() *stage {
	s := &stage{plays: map[string]play{}, tries: map[string]int{}}
	h.speak = func(ctx context.Context, text string) iter.Seq2[llm.Delta, error] {
		s.mu.Lock()
		p, try := s.plays[text], s.tries[text]
		s.tries[text]++
		s.mu.Unlock()
		act := "say"
		if try < len(p.acts) {
			act = p.acts[try]
		}
		return func(yield func(llm.Delta, error) bool) {
			if strings.HasSuffix(act, "revoke") {
				h.mu.Lock()
				h.revoked[strings.Fields(text)[0]] = true
				h.mu.Unlock()
			}
			for range 3 { // now and then for longer than a flush
				if !yield(llm.Delta{Text: "word "}, nil) || !core.Sleep(ctx, h.clock, rand.N(200*time.Millisecond)) {
					return
				}
			}
			switch {
			case strings.HasPrefix(act, "panic"):
				panic("boom")
			case act == "fail":
				yield(llm.Delta{}, &llm.Fault{Code: "invalid", Text: "The model does not want to."})
			}
		}
	}
	return s
}

// cast gives the play's session and, of an API turn, its run.
func (h *hall) cast(p play, i int) (session, run string) {
	if p.api {
		return fmt.Sprintf("10000000-0000-4000-8000-%012d", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
	}
	c := fmt.Sprint("chat", i)
	h.put(core.Inbound{Address: chat(c), Text: "hello"})
	h.until("the session is there", func() bool { return len(h.heard(c)) == 1 })
	if err := h.db.Get(h.t.Context(), &session, `SELECT session_id FROM runs WHERE chat = $1`, c); err != nil {
		h.t.Fatal(err)
	}
	h.until("the first run is over, and none joins it", func() bool {
		return !slices.ContainsFunc(h.bus.Active(), func(r bus.Info) bool { return r.Session == session })
	})
	return session, ""
}

func (s *stage) put(h *hall, p play, session, run string, i int) {
	h.t.Helper()
	c := chat(fmt.Sprint("chat", i))
	if p.api {
		c = core.Address{Bot: core.APIBot, Chat: session}
	}
	text := c.Chat + " plays"
	s.mu.Lock()
	s.plays[text] = p
	s.mu.Unlock()
	for try, act := range p.acts {
		if strings.HasPrefix(act, "disk") {
			h.do(`INSERT INTO broken (chat, attempt) VALUES ($1, $2)`, c.Chat, try+1)
		}
	}
	in := core.Inbound{Address: c, Text: text}
	if p.api {
		in.Turn = &core.Options{Session: session, Run: run, User: 2, Respond: p.respond}
	}
	h.put(in)
}

// do runs a statement.
func (h *hall) do(query string, args ...any) {
	h.t.Helper()
	err := h.db.Tx(h.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(h.t.Context(), query, args...)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// watchPlay follows the play's run to its end and looks at it from everywhere.
func (h *hall) watchPlay(p play, name string, said iter.Seq2[bus.Entry, error], session string) {
	var told []bus.Entry
	for e, err := range said {
		if err != nil {
			h.t.Errorf("%s: %v", name, err)
			return
		}
		if told = append(told, e); e.Type == "message_stop" {
			break
		}
	}
	if len(told) == 0 {
		h.t.Errorf("%s: nothing was told", name)
		return
	}
	run := told[0].Run
	h.until("the run is over", func() bool {
		var n int
		return h.db.Get(h.t.Context(), &n, `SELECT count(*) FROM runs WHERE id = $1 AND state <> 'running'`, run) == nil && n == 1
	})
	if why := endsOnce(told); why != "" {
		h.t.Errorf("%s: the one who followed got %s in %v", name, why, ids(told))
	}
	var stored int
	if err := h.db.Get(h.t.Context(), &stored, `SELECT count(*) FROM run_events WHERE run = $1`, run); err != nil {
		h.t.Error(err)
	}
	h.comesBack(name, "memory", h.bus, told, session, run)
	if stored == 0 && !p.api && len(p.acts) == 1 {
		return // an answer at once in a chat: it stands there
	}
	h.comesBack(name, "storage", h.reads(), told, session, run)
}

// comesBack has a reader cut off after each event, who asks b for the rest.
func (h *hall) comesBack(name, from string, b *bus.Bus, told []bus.Entry, session, run string) {
	for i := range told {
		var rest []bus.Entry
		for e, err := range b.Follow(h.t.Context(), bus.Follow{Session: session, Run: run, LastID: told[i].ID()}) {
			if err != nil {
				h.t.Errorf("%s: %v", name, err)
			}
			rest = append(rest, e)
		}
		if told[i].Type == "message_stop" {
			if len(rest) > 0 {
				h.t.Errorf("%s: after the end %s has %v", name, from, ids(rest))
			}
			continue
		}
		whole := slices.Concat(told[:i+1], rest)
		if why := endsOnce(whole); why != "" {
			h.t.Errorf("%s: cut after %s, from %s came %s in %v", name, told[i].ID(), from, why, ids(whole))
		}
	}
}

// endsOnce says what is wrong with a run's events, as a reader has them.
func endsOnce(es []bus.Entry) string {
	terminal := 0
	for i, e := range es {
		if e.Type == "done" || e.Type == "aborted" || e.Type == "error" {
			terminal++
			if i != len(es)-2 {
				return "a terminal event before others"
			}
		}
		if i > 0 && e.Type != "gap" && es[i-1].Type != "gap" && (e.Attempt != es[i-1].Attempt || e.N != es[i-1].N+1) {
			return "a hole before " + e.ID()
		}
	}
	if terminal != 1 || es[len(es)-1].Type != "message_stop" {
		return fmt.Sprintf("%d terminal events", terminal)
	}
	return ""
}

func ids(es []bus.Entry) (out []string) {
	for _, e := range es {
		out = append(out, e.ID()[strings.LastIndexByte(e.ID(), '.')+1:]+" "+e.Type)
	}
	return out
}

// A run that says more at once than is kept in memory waits for storage: all of
// it is there for a reader who joins meanwhile, and after a restart.
func TestABurstIsStoredWhole(t *testing.T) {
	h := open(t)
	const pieces, size = 30, 100 << 10
	half := make(chan struct{})
	h.speak = func(context.Context, string) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			for i := range pieces {
				if i == pieces/2 {
					close(half)
				}
				if !yield(llm.Delta{Text: fmt.Sprintf("%0*d", size, i)}, nil) {
					return
				}
			}
		}
	}
	const run, session = "00000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000001"
	h.put(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: session}, Text: "hello", Turn: &core.Options{Session: session, Run: run, User: 2}})
	<-half
	for _, from := range []string{"memory", "storage"} {
		b, n, last := h.bus, 0, ""
		if from == "storage" {
			b = h.reads()
		}
		for e, err := range b.Follow(t.Context(), bus.Follow{Session: session, Run: run}) {
			if err != nil {
				t.Fatal(err)
			}
			if last = e.Type; e.Type == "text" {
				if want := fmt.Sprintf(`{"type":"text","content":"%0*d"}`, size, n); string(e.Data) != want {
					t.Fatalf("%s: piece %d is another: %.80s", from, n, e.Data)
				}
				n++
			}
		}
		if n != pieces || last != "message_stop" {
			t.Errorf("%s has %d of %d pieces, and then %q", from, n, pieces, last)
		}
	}
}

// A turn that survives a restart survives a fault of the gateway, such as a database that is
// away; the client of any other turn is told of it at once.
func TestATurnThatMayRunAgainIsTriedAgainAfterAFaultOfTheGateway(t *testing.T) {
	h := open(t)
	var faults atomic.Int32
	h.reserve = func() error {
		if faults.Add(-1) >= 0 {
			return errors.New("the database is away")
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i, respond := range []bool{true, false} {
		session, run := h.cast(play{api: true}, i)
		said := h.bus.Follow(ctx, bus.Follow{Session: session})
		faults.Store(1)
		h.put(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: session}, Text: "hello", Turn: &core.Options{Session: session, Run: run, User: 2, Respond: respond}})
		var ends []string
		for e, err := range said {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == "done" || e.Type == "error" {
				ends = append(ends, e.Type)
			}
			if e.Type == "message_stop" {
				break
			}
		}
		if want := map[bool]string{true: "done", false: "error"}[respond]; len(ends) != 1 || ends[0] != want {
			t.Errorf("respond-async %v: the turn ends with %v, want %s", respond, ends, want)
		}
	}
}
