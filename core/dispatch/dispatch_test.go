package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/core/dispatch"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

// A hall is a dispatcher between a real queue and a real orchestrator; gate,
// platform and model are the test's. Its clock runs ahead of the machine's.
type hall struct {
	t     *testing.T
	db    *store.DB
	clock *coretest.Clock
	bus   *bus.Bus
	reads func() *bus.Bus // one that has storage alone, as after a restart
	queue *queue.Queue
	next  int
	level core.Trust // everybody's; the zero value is vault

	mu      sync.Mutex
	sent    map[string][]string // by chat
	model   func(ctx context.Context, text string) (string, error)
	speak   func(ctx context.Context, text string) iter.Seq2[llm.Delta, error] // instead of model
	reserve func() error                                                       // before a model is asked
	revoked map[string]bool                                                    // chats that nobody may use any more
	acked   []string                                                           // answers to pressed buttons
	fullFor int                                                                // removals of emoji for which the platform has no room
	reacted []string                                                           // emoji put under messages
	cmd     command.Handler
	d       *dispatch.Dispatcher
	running *dispatch.Running
	runs    *orchestrator.Orchestrator
	ends    *dispatch.Ends
	preview func(to core.Address, id string, part core.Part) (string, error)
	sending func(out core.Outgoing) // before a send is done
	write   func() error            // in the transaction that ends a run
	shows   func() []core.Part      // the files of an answer
	removed []core.File             // that are not sent after all
	stops   dispatch.Stops
	rate    atomic.Int32 // of messages in a minute; 0: any number
	still   atomic.Bool  // the clock does not run on
	stop    func()       // the gateway stops, gracefully
}

func (h *hall) Admit(context.Context, *store.Tx, *core.Inbound) (queue.Admission, error) {
	v := core.Verdict{Action: core.Run, Trust: cmp.Or(h.level, core.Vault)}
	return queue.Admission{Admission: core.Admission{Verdict: v}}, nil
}
func (h *hall) Claim(_ context.Context, _ *store.Tx, in *core.Inbound) (a queue.Admission, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.revoked[in.Chat] {
		a.Trust = cmp.Or(h.level, core.Vault)
	}
	return a, nil
}
func (h *hall) Prepare(ctx context.Context, tx *store.Tx, q *queue.Turn) error {
	if q.First().Kind != core.KindMessage {
		return nil
	}
	turn := &orchestrator.Turn{Run: q.Run, Attempt: q.Attempt, Rows: q.Rows}
	err := h.runs.Prepare(ctx, tx, turn, session.Ref{Address: q.First().Address, User: 2, Trust: q.Trust, Options: q.First().Turn})
	q.Work = turn
	return err
}
func (h *hall) Ended(ctx context.Context, tx *store.Tx, run string) error {
	return h.ends.Abandon(ctx, tx, run)
}
func (h *hall) Wait(core.Address) time.Duration { return 0 }
func (h *hall) Repeats(string) time.Duration    { return 0 }
func (h *hall) Send(_ context.Context, out core.Outgoing) core.Delivery {
	if h.sending != nil {
		h.sending(out)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !out.Deletes() { // its preview, where the clock had run ahead
		h.sent[out.Chat] = append(h.sent[out.Chat], out.Text)
	}
	return core.Delivery{Outcome: core.Sent, MessageID: "m"}
}
func (h *hall) Preview(_ context.Context, to core.Address, id string, part core.Part) (string, error) {
	if h.preview != nil {
		return h.preview(to, id, part)
	}
	return "", errors.New("no previews here")
}
func (h *hall) Typing(context.Context, core.Address) error { return nil }
func (h *hall) Acknowledge(_ context.Context, _ core.Address, _, text string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked = append(h.acked, text)
	return nil
}

func (h *hall) React(_ context.Context, to core.Address, id, emoji string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if emoji == "" && h.fullFor > 0 {
		h.fullFor--
		return core.Errorf(core.Busy, "not now")
	}
	h.reacted = append(h.reacted, to.Chat+"/"+id+":"+emoji)
	return nil
}
func (h *hall) Remember(context.Context, *orchestrator.Turn, orchestrator.Said) (orchestrator.Remembered, error) {
	return orchestrator.Remembered{Write: func(context.Context, *store.Tx, orchestrator.Given) error { return h.write() }}, nil
}
func (h *hall) About() llm.About { return llm.About{Name: "test/model"} }
func (h *hall) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	blocks := req.Messages[len(req.Messages)-1].Blocks
	if h.speak != nil {
		return h.speak(ctx, blocks[len(blocks)-1].Text)
	}
	return func(yield func(llm.Delta, error) bool) {
		text, err := h.model(ctx, blocks[len(blocks)-1].Text)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		yield(llm.Delta{Text: text}, nil)
	}
}

func open(t *testing.T) *hall {
	t.Helper()
	h := &hall{t: t, sent: map[string][]string{}, revoked: map[string]bool{}}
	h.model = func(_ context.Context, text string) (string, error) { return "re: " + text, nil }
	h.reserve, h.write = func() error { return nil }, func() error { return nil }
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		return command.Outcome{Text: "done"}, nil
	}
	clock := coretest.NewClock(time.Time{})
	h.clock = clock
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	h.db = storetest.Open(t, clock)
	sessions := session.New(session.Options{DB: h.db, Vault: v, Clock: clock})
	events := runs.New(h.db, clock)
	h.reads = func() *bus.Bus { return bus.New(stored(events), events.Latest) }
	h.bus = h.reads()
	ends, running := dispatch.NewEnds(events, h.bus, clock), dispatch.NewRunning(clock)
	runs := orchestrator.New(orchestrator.Options{
		Clock: clock, Sessions: sessions, Agents: agent.New(v, agent.Options{}), Usage: usage.New(nil, usage.Budgets{}),
		Model:   func(string, bool) (llm.Model, error) { return h, nil },
		Cost:    func(string, core.Tokens) (int64, bool) { return 0, false },
		MayRead: func(core.Trust, int64, string) bool { return false },
		Memory:  h,
		Reserve: func(context.Context, usage.Row) (int64, string, error) { return 0, "", h.reserve() },
		Limits:  orchestrator.Limits{RunTime: 24 * time.Hour, Silence: 24 * time.Hour},
	})
	out := outbox.New(h.db, outbox.Options{Clock: clock, Node: "n"})
	h.queue = queue.New(h.db, out, queue.Options{
		Clock: clock, Node: "n", Texts: queue.Texts{GaveUp: "gave up", TooMany: "too many"},
		Rate: func() queue.Rate { return queue.Rate{N: int(h.rate.Load()), Per: time.Minute} },
		Lane: func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
			return in.Bot + "|" + in.Chat, nil
		},
	})
	d := dispatch.New(dispatch.Options{
		Clock: clock, Queue: h.queue, Outbox: out, Runs: runs, Events: events, Bus: h.bus, Ends: ends, Running: running, Screen: h,
		Render: func(_ core.Address, text string) (parts []core.Part) {
			if text == "one two" {
				return []core.Part{{Text: "one"}, {Text: "two"}}
			}
			return []core.Part{{Text: text}}
		},
		Attach: func(context.Context, *orchestrator.Turn, string) ([]core.Part, []string) {
			if h.shows == nil {
				return nil, nil
			}
			return h.shows(), nil
		},
		Detach:   func(files []core.File) { h.removed = append(h.removed, files...) },
		Commands: map[string]command.Handler{"do": func(ctx context.Context, c command.Call) (command.Outcome, error) { return h.cmd(ctx, c) }},
		Unknown: func(context.Context, command.Call) (command.Outcome, error) {
			return command.Outcome{Text: "unknown"}, nil
		},
		Callback: func(ctx context.Context, c command.Call) (command.Outcome, error) { return h.cmd(ctx, c) },
	})
	h.d, h.running, h.stops = d, running, dispatch.Stops{DB: h.db, Queue: h.queue, Running: running, Events: events}
	h.runs, h.ends = runs, ends
	if err := h.queue.TakeOver(t.Context(), []string{"b"}, h, h); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := h.queue.Serve(ctx, time.Minute, d); err != nil {
			t.Error(err)
		}
	})
	ticking, still := context.WithCancel(context.Background())
	parts.Go(func() {
		events.Run(ticking, func(err error) { t.Error(err) })
	})
	parts.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
				if !h.still.Load() {
					clock.Advance(100 * time.Millisecond)
				}
			case <-ticking.Done():
				tick.Stop()
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		h.until("it drains", func() bool { return h.queue.Running() == 0 })
		still()
		parts.Wait()
		_ = sessions.Close()
		_ = v.Close()
	})
	return h
}

// stored is the event store as a bus reads it.
func stored(events *runs.Store) bus.Load {
	return func(ctx context.Context, run string, attempt, n int) (out []bus.Entry, _ error) {
		pieces, err := events.Load(ctx, run, attempt, n)
		for _, p := range pieces {
			out = append(out, bus.Entry{Run: run, Attempt: attempt, N: p.N, Type: core.EncodedType(p.Data), Data: p.Data})
		}
		return out, err
	}
}

func (h *hall) until(what string, f func() bool) {
	h.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatal("never: ", what)
		}
	}
}

// put stores one update of a chat.
func (h *hall) put(in core.Inbound) {
	h.t.Helper()
	h.next++
	in.UpdateID, in.MessageID = fmt.Sprint(h.next), fmt.Sprint(h.next)
	in.From = core.Peer{Platform: "p", ID: in.Chat}
	in.At = time.Now()
	if in.Kind == "" {
		in.Kind = core.KindMessage
	}
	if err := h.queue.Put(h.t.Context(), []core.Inbound{in}, nil); err != nil {
		h.t.Fatal(err)
	}
}

func chat(name string) core.Address { return core.Address{Bot: "b", Chat: name} }

func (h *hall) heard(chat string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sent[chat])
}

// A panic in one person's run is that run's alone: it is tried again, and
// nobody else waits.
func TestAPanicInARunIsTriedAgainAndTouchesNoOneElse(t *testing.T) {
	h := open(t)
	var once sync.Once
	h.model = func(_ context.Context, text string) (string, error) {
		if text == "explode" {
			once.Do(func() { panic("boom") })
		}
		return "re: " + text, nil
	}
	h.put(core.Inbound{Address: chat("1"), Text: "explode"})
	h.put(core.Inbound{Address: chat("2"), Text: "hello"})
	h.until("both are answered", func() bool { return len(h.heard("1")) == 1 && len(h.heard("2")) == 1 })
	if got := h.heard("1")[0]; got != "re: explode" {
		t.Errorf("after the panic: %q", got)
	}
}

// What a stop cuts short is no failed try, whichever error of its context it returns.
func TestWhatAStopCutsShortIsReturnedUntried(t *testing.T) {
	h := open(t)
	began := make(chan struct{})
	h.cmd = func(ctx context.Context, _ command.Call) (command.Outcome, error) {
		close(began)
		<-ctx.Done()
		return command.Outcome{}, fmt.Errorf("ask a server: %w", ctx.Err())
	}
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCommand, Command: "do"})
	<-began
	h.stop()
	h.until("it has ended", func() bool { return h.queue.Running() == 0 })
	var row string
	if err := h.db.Get(t.Context(), &row, `SELECT state || ' after ' || attempts FROM inbox`); err != nil || row != "ready after 0" {
		t.Errorf("%q %v", row, err)
	}
}

// What fails five times is put aside, the chat is told once, and the next
// message is answered.
func TestWhatFailsFiveTimesIsPutAsideAndTheChatContinues(t *testing.T) {
	h := open(t)
	tries := 0
	h.model = func(_ context.Context, text string) (string, error) {
		if text == "poison" {
			tries++ // one lane: never two at once
			panic("boom")
		}
		return "re: " + text, nil
	}
	h.put(core.Inbound{Address: chat("1"), Text: "poison"})
	h.put(core.Inbound{Address: chat("1"), Text: "next"})
	h.until("the next is answered", func() bool { return slices.Contains(h.heard("1"), "re: next") })
	if got := h.heard("1"); tries != queue.MaxAttempts || !slices.Equal(got, []string{"gave up", "re: next"}) {
		t.Errorf("%d tries; the chat heard %q", tries, got)
	}
	dead, err := inspect.New(h.db, inspect.Options{Clock: h.clock}).Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Text != "poison" || dead[0].Error == "" {
		t.Errorf("dead letters: %+v %v", dead, err)
	}
}

// The terminal event is told after the commit: whoever hears it finds the
// run, the message and the reply in the tables.
func TestTheEndIsReportedOnlyWhenItIsStored(t *testing.T) {
	h := open(t)
	for i := range 20 {
		run := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		sess := fmt.Sprintf("10000000-0000-4000-8000-%012d", i)
		follow := h.bus.Follow(t.Context(), bus.Follow{Session: sess})
		h.put(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: sess}, Text: "hello", Turn: &core.Options{Session: sess, Run: run, User: 2}})
		for e, err := range follow {
			if err != nil {
				t.Fatal(err)
			}
			if !core.Terminal(e.Event) {
				continue
			}
			var state string
			if err := h.db.Get(t.Context(), &state, `SELECT r.state || ' ' || i.state FROM runs r JOIN inbox i ON i.run = r.id WHERE r.id = $1`, run); err != nil || state != "done done" {
				t.Fatalf("at %s the tables say %q %v", e.Type, state, err)
			}
			break
		}
	}
}

// An API client whose run panics is told so, and the run is not made again.
func TestAnAPIRunThatPanicsEndsWithAnErrorOnce(t *testing.T) {
	h := open(t)
	calls := 0
	h.model = func(context.Context, string) (string, error) { calls++; panic("boom") }
	const run, sess = "00000000-0000-4000-8000-000000000001", "10000000-0000-4000-8000-000000000001"
	follow := h.bus.Follow(t.Context(), bus.Follow{Session: sess})
	h.put(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: sess}, Text: "hello", Turn: &core.Options{Session: sess, Run: run, User: 2}})
	var types []string
	for e, err := range follow {
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := e.Event.(core.Failed); ok && (f.Code != "internal" || strings.Contains(f.Message, "boom")) {
			t.Errorf("the client is told %+v", f)
		}
		if types = append(types, e.Type); e.Type == "message_stop" {
			break
		}
	}
	if types[len(types)-2] != "error" || calls != 1 {
		t.Errorf("%d calls, events %v", calls, types)
	}
	var state string
	if err := h.db.Get(t.Context(), &state, `SELECT state FROM runs WHERE id = $1`, run); err != nil || state != "error" {
		t.Errorf("the run is %q %v", state, err)
	}
}

// A command's error with a kind is the answer; one of ours is tried again.
func TestACommandsErrorIsReportedOrTriedAgain(t *testing.T) {
	h := open(t)
	errs := []error{errors.New("the disk"), nil}
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		err := errs[0]
		errs = errs[1:]
		return command.Outcome{Text: "done"}, err
	}
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCommand, Command: "do"})
	h.until("it is done", func() bool { return slices.Equal(h.heard("1"), []string{"done"}) })
	errs = []error{core.Errorf(core.Denied, "not you")}
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCommand, Command: "do"})
	h.until("it is told", func() bool { return slices.Equal(h.heard("1"), []string{"done", "not you"}) })
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCommand, Command: "other"})
	h.put(core.Inbound{Address: chat("1"), Unsupported: "hologram"})
	h.until("the rest is told", func() bool {
		return slices.Equal(h.heard("1"), []string{"done", "not you", "unknown", "I cannot read that kind of message. Please write it as text."})
	})
}

// Without a file descriptor left nothing was tried: the message waits, however often.
func TestAMessageWaitsWhereNoFileDescriptorIsLeft(t *testing.T) {
	h := open(t)
	tries := 0
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		if tries++; tries <= queue.MaxAttempts+2 {
			return command.Outcome{}, fmt.Errorf("open transcript: %w", syscall.EMFILE)
		}
		return command.Outcome{Text: "done"}, nil
	}
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCommand, Command: "do"})
	h.until("it is done", func() bool { return slices.Equal(h.heard("1"), []string{"done"}) })
}

// A pressed button is answered when its decision is stored, and not before.
func TestAButtonIsAnsweredAfterItsDecisionIsStored(t *testing.T) {
	h := open(t)
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		return command.Outcome{Text: "Approved", Write: func(ctx context.Context, tx *store.Tx) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.acked) > 0 {
				t.Error("the button was answered before its decision was stored")
			}
			return store.SetMetadata(ctx, tx, "decided", "yes")
		}}, nil
	}
	h.put(core.Inbound{Address: chat("1"), Kind: core.KindCallback, Callback: &core.Callback{ID: "q", Data: "x:y"}})
	h.until("it is answered", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return slices.Equal(h.acked, []string{"Approved"}) })
	if v, ok, err := store.Metadata(t.Context(), h.db, "decided"); v != "yes" || !ok || err != nil {
		t.Errorf("stored: %q %v %v", v, ok, err)
	}
}
