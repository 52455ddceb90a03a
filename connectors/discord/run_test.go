package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/readback"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// hurried is a clock that goes a hundred times as fast.
type hurried struct{ began time.Time }

func (h hurried) Now() time.Time { return h.began.Add(100 * time.Since(h.began)) }
func (h hurried) After(d time.Duration) <-chan time.Time {
	return time.After(d / 100)
}

// A running bot is one Run with what it reports.
type running struct {
	t      testing.TB
	states chan core.BotState
	cancel context.CancelFunc
	ended  chan error
}

func run(t testing.TB, b *Bot, store *connectorstest.Store) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, states: make(chan core.BotState, 100_000), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		r.ended <- b.Run(ctx, store, func(s core.BotState) { r.states <- s })
		close(r.ended)
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	r.cancel()
	for range r.ended {
	}
}

// await reads reports until one is in phase.
func (r *running) await(phase core.Phase) core.BotState {
	r.t.Helper()
	late := time.After(5 * time.Minute)
	for {
		select {
		case s := <-r.states:
			if s.State == phase {
				return s
			}
		case <-late:
			r.t.Fatalf("never reported %s", phase)
		}
	}
}

// end is what Run returned by itself.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(5 * time.Minute):
		r.t.Fatal("Run goes on")
		return nil
	}
}

// hurry gives simulator and bot the same fast clock.
func hurry(t testing.TB, o discordtest.Options) (*discordtest.Server, func(*Options)) {
	clock := hurried{time.Now()}
	o.Clock = clock
	return platform(t, o), func(o *Options) { o.Clock = clock }
}

func textsOf(rows []core.Inbound) []string {
	var out []string
	for _, in := range rows {
		if in.Kind == core.KindMessage || in.Kind == core.KindCommand {
			out = append(out, in.Text)
		}
	}
	return out
}

func TestARestartContinuesWithTheSession(t *testing.T) {
	s := platform(t, discordtest.Options{})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	r := run(t, connect(t, s, store, nil), store)
	r.await(core.Running)
	ada.Send("one")
	store.Await(t, 1)
	r.stop()
	if left := gatewayEvent(t, s, 0, "left"); left.Code == 1000 || left.Code == 1001 {
		t.Errorf("the bot left with %d: that ends the session", left.Code)
	}
	ada.Send("two")
	b := connect(t, s, store, nil)
	r = run(t, b, store)
	r.await(core.Running)
	ada.Send("three")
	if got := textsOf(store.Await(t, 3)); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("stored %q", got)
	}
	if n := len(s.GatewayLog(0, "identify")); n != 1 {
		t.Errorf("%d sessions were begun", n)
	}
	if n := testutil.ToFloat64(b.o.Metrics.resumes.WithLabelValues("bot", resumed)); n != 1 {
		t.Errorf("%v resumes counted", n)
	}
}

func TestAnOutageIsOverWithoutLossOrRepeat(t *testing.T) {
	for name, disturb := range map[string]func(discordtest.Bot){
		"op 7":              func(b discordtest.Bot) { b.Reconnect() },
		"op 9, resumable":   func(b discordtest.Bot) { b.Invalidate(true) },
		"op 9, not":         func(b discordtest.Bot) { b.Invalidate(false) },
		"a cut":             func(b discordtest.Bot) { b.Drop() },
		"4000":              func(b discordtest.Bot) { b.Hangup(4000, "Unknown error.") },
		"4007":              func(b discordtest.Bot) { b.Hangup(4007, "Invalid seq.") },
		"4009":              func(b discordtest.Bot) { b.Hangup(4009, "Session timed out.") },
		"a heartbeat asked": func(b discordtest.Bot) { b.AskHeartbeat() },
	} {
		t.Run(name, func(t *testing.T) {
			s, fast := hurry(t, discordtest.Options{})
			store := &connectorstest.Store{}
			ada := s.NewUser("Ada")
			r := run(t, connect(t, s, store, fast), store)
			r.await(core.Running)
			for i := range 30 {
				ada.Send(fmt.Sprint(i))
				if i == 10 {
					store.Await(t, 1) // the channel is known
					disturb(s.Bot())
				}
			}
			for i, text := range textsOf(store.Await(t, 30)) {
				if text != fmt.Sprint(i) {
					t.Fatalf("message %d is %q", i, text)
				}
			}
			if n := len(connectorstest.Said(store.Rows())); n != 30 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

func TestAFatalCloseCodeStopsTheBotWithAFix(t *testing.T) {
	for code, want := range map[int]string{
		4004: "Reset Token", 4010: "report it", 4011: "too many servers", 4012: "update", 4013: "update", 4014: "Privileged Gateway Intents",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := platform(t, discordtest.Options{FloodOff: true})
			if code == 4014 {
				s.Bot().SetIntents(0)
			}
			store := &connectorstest.Store{}
			r := run(t, connect(t, s, store, func(o *Options) { o.Clock = hurried{time.Now()} }), store)
			if code == 4014 {
				r.await(core.Degraded)
			} else {
				r.await(core.Running)
			}
			s.Bot().Hangup(code, "told so")
			err := r.end()
			if core.KindOf(err) != core.Denied || !strings.Contains(core.TextOf(err), want) || !strings.Contains(core.TextOf(err), fmt.Sprint(code)) {
				t.Errorf("Run ended with %v", err)
			}
		})
	}
}

func TestWithoutTheMessageContentIntentTheBotHearsWhatIsMeantForIt(t *testing.T) {
	s, fast := hurry(t, discordtest.Options{})
	s.Bot().SetIntents(0)
	ada := s.NewUser("Ada")
	club := s.NewGuild("Club", ada)
	club.AddBot(s.Bot())
	talk := club.NewChannel("talk")
	store := &connectorstest.Store{}
	r := run(t, connect(t, s, store, fast), store)
	if st := r.await(core.Degraded); !strings.Contains(st.Reason, "Message Content Intent") {
		t.Errorf("state %+v", st)
	}
	ada.Send("in private")
	say(t, ada, talk, "to nobody")
	say(t, ada, talk, s.Bot().Mention()+" to you")
	got := store.Await(t, 3)
	if got[0].Text != "in private" || got[1].Text != "" || got[1].Addressed || got[2].Text != "to you" || !got[2].Addressed {
		t.Errorf("stored %+v", got)
	}
	r.stop()
	r = run(t, connect(t, s, store, fast), store)
	r.await(core.Degraded) // and it is still said after a restart that resumes
	r.stop()
	s.Bot().SetIntents(discordtest.IntentContent)
	r = run(t, connect(t, s, store, fast), store)
	r.await(core.Running)
	say(t, ada, talk, "to all")
	if got := store.Await(t, 4)[3]; got.Text != "to all" {
		t.Errorf("with the intent switched on: %+v", got)
	}
}

func say(t testing.TB, u *discordtest.User, in discordtest.ID, text string) discordtest.Message {
	t.Helper()
	m, err := u.Say(in, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAHeartbeatWithoutAnswerLeadsToAResume(t *testing.T) {
	s := platform(t, discordtest.Options{Heartbeat: 200 * time.Millisecond, FloodOff: true})
	store := &connectorstest.Store{}
	r := run(t, connect(t, s, store, func(o *Options) { o.Random = func(int64) int64 { return 0 } }), store)
	r.await(core.Running)
	s.Bot().Deafen(true)
	left := gatewayEvent(t, s, 0, "left")
	if left.Code == 1000 || left.Code == 1001 {
		t.Errorf("the bot left with %d: that ends the session", left.Code)
	}
	s.Bot().Deafen(false)
	gatewayEvent(t, s, left.Seq, "resumed")
	r.await(core.Running)
	if n := len(s.GatewayLog(0, "identify")); n != 1 {
		t.Errorf("%d sessions were begun", n)
	}
}

func TestTheFirstHeartbeatComesAtARandomMoment(t *testing.T) {
	s := platform(t, discordtest.Options{Heartbeat: time.Hour})
	store := &connectorstest.Store{}
	clock := coretest.NewClock(time.Time{})
	r := run(t, connect(t, s, store, func(o *Options) {
		o.Clock, o.Random = clock, func(n int64) int64 { return n / 4 }
	}), store)
	r.await(core.Running)
	clock.Advance(15*time.Minute - time.Second)
	if n := len(s.GatewayLog(0, "heartbeat")); n != 0 {
		t.Errorf("%d heartbeats before the time", n)
	}
	clock.Advance(time.Second)
	gatewayEvent(t, s, 0, "heartbeat")
}

func TestFramesThatCantBeDecodedBecomeDeadRowsAndTheStreamContinues(t *testing.T) {
	s := platform(t, discordtest.Options{})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	r := run(t, connect(t, s, store, nil), store)
	r.await(core.Running)
	bad := []string{`{not json`, `[]`, `{"op":0,"t":null,"s":null,"d":null}`, `{"op":"x"}`, strings.Repeat("[", 20_000), "\x00\x01"}
	for _, text := range bad {
		s.Bot().InjectRaw(text)
	}
	for _, data := range []string{`null`, `[]`, `{"id":"1"}`, `{"id":"2","channel_id":"3","author":7}`} {
		if err := s.Bot().Dispatch("MESSAGE_CREATE", json.RawMessage(data)); err != nil {
			t.Fatal(err)
		}
	}
	ada.Send("after")
	got := store.Await(t, len(bad)+5)
	for i, in := range got[:len(bad)+4] {
		if in.Malformed == "" || in.UpdateID == "" {
			t.Errorf("row %d: %+v", i, in)
		}
	}
	if last := got[len(got)-1]; last.Text != "after" || last.Malformed != "" {
		t.Errorf("then %+v", last)
	}
	s.Bot().InjectRaw(`{"op":99,"d":{}}`)
	if err := s.Bot().Dispatch("SOMETHING_NEW", json.RawMessage(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	ada.Send("and on")
	if got := store.Await(t, len(got)+1); got[len(got)-1].Text != "and on" {
		t.Errorf("then %+v", got[len(got)-1])
	}
}

// recorder is a still clock that tells how long its users want to wait.
type recorder struct {
	*coretest.Clock
	waits chan time.Duration
}

func (r *recorder) After(d time.Duration) <-chan time.Time {
	r.waits <- d
	return r.Clock.After(d)
}

func TestAPlatformThatIsAwayIsNotStormed(t *testing.T) {
	s := platform(t, discordtest.Options{})
	s.Down()
	store := &connectorstest.Store{}
	clock := &recorder{coretest.NewClock(time.Time{}), make(chan time.Duration, 100)}
	run(t, connect(t, s, store, func(o *Options) { o.Clock, o.Random = clock, func(n int64) int64 { return n - 1 } }), store)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := <-clock.waits; got.Round(10*time.Millisecond) != want*time.Second {
			t.Errorf("wait %d is %v, want %v", i, got, want*time.Second)
		}
		clock.AwaitWaiters(1)
		clock.Advance(want*time.Second + time.Second)
	}
}

func TestAConnectionThatBreaksAtOnceIsNotStormed(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	r := &receiver{bot: b, report: func(core.BotState) {}}
	b.o.Random = func(n int64) int64 { return n - 1 }
	var waits []time.Duration
	for range 8 { // as Run does for connections that lived less than a minute
		waits = append(waits, r.trouble(fmt.Errorf("cut")).Round(time.Second))
	}
	if waits[0] != time.Second || waits[7] != time.Minute {
		t.Errorf("waits %v", waits)
	}
}

func TestNewSessionsKeepThePlatformsPace(t *testing.T) {
	s, fast := hurry(t, discordtest.Options{})
	store := &connectorstest.Store{}
	r := run(t, connect(t, s, store, fast), store)
	for range 4 {
		r.await(core.Running)
		s.Bot().Hangup(4009, "Session timed out.")
	}
	r.await(core.Running)
	if n := len(s.GatewayLog(0, "invalid")); n != 0 {
		t.Errorf("%d IDENTIFYs came too early", n)
	}
}

func TestADayWithoutNewSessionsIsWaitedOut(t *testing.T) {
	s, fast := hurry(t, discordtest.Options{Starts: 2})
	store := &connectorstest.Store{}
	r := run(t, connect(t, s, store, fast), store)
	r.await(core.Running)
	s.Bot().Hangup(4009, "")
	r.await(core.Running)
	s.Bot().Hangup(4009, "")
	if st := r.await(core.Degraded); !strings.Contains(st.Reason, "no new session") {
		t.Errorf("state %+v", st)
	}
	if n := len(s.GatewayLog(0, "identify")); n != 2 {
		t.Errorf("%d IDENTIFYs, 2 are allowed: the third resets the token", n)
	}
}

func TestWhatWasMissedIsReadBackInOrderAndOnce(t *testing.T) {
	s, fast := hurry(t, discordtest.Options{FloodOff: true})
	ada, eve := s.NewUser("Ada"), s.NewUser("Eve")
	club := s.NewGuild("Club", ada, eve)
	club.AddBot(s.Bot())
	talk := club.NewChannel("talk")
	thread, err := ada.StartThread(talk, 0, "Thread")
	if err != nil {
		t.Fatal(err)
	}
	store := &connectorstest.Store{}
	b := connect(t, s, store, fast)
	r := run(t, b, store)
	r.await(core.Running)
	ada.Send("dm 0")
	say(t, ada, thread, s.Bot().Mention()+" thread 0")
	store.Await(t, 2)
	if d := b.Send(t.Context(), core.Outgoing{Address: direct(ada.DM()), Part: core.Part{Text: "ours"}}); d.Outcome != core.Sent {
		t.Fatalf("delivery %+v", d)
	}
	r.stop()
	gatewayEvent(t, s, 0, "left")
	for i := 1; i <= 250; i++ {
		ada.Send(fmt.Sprint("dm ", i))
	}
	say(t, eve, thread, s.Bot().Mention()+" thread 1")
	s.Bot().EndSessions()
	b = connect(t, s, store, fast)
	r = run(t, b, store)
	ada.Send("dm 251")
	n := 0
	for _, in := range store.Await(t, 254) {
		if in.Chat == thread.String() {
			if in.Address != inThread(talk, thread) || !in.Addressed {
				t.Errorf("in the thread: %+v", in)
			}
			continue
		}
		if in.Text != fmt.Sprint("dm ", n) || in.Place != "" {
			t.Fatalf("direct message %d is %+v", n, in)
		}
		n++
	}
	r.await(core.Running)
	if n := len(connectorstest.Said(store.Rows())); n != 254 {
		t.Errorf("%d rows", n)
	}
	if n := testutil.ToFloat64(b.o.Metrics.resumes.WithLabelValues("bot", refused)); n != 1 {
		t.Errorf("%v refused resumes counted", n)
	}
}

func TestMoreEventsThanFitAreKeptByThePlatform(t *testing.T) {
	// On this fast clock a loaded machine would miss a heartbeat, or come too late
	// to resume.
	s, fast := hurry(t, discordtest.Options{FloodOff: true, Heartbeat: 10 * time.Hour, SessionLife: 100 * time.Hour})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	r := run(t, connect(t, s, store, fast), store)
	r.await(core.Running)
	began := s.GatewayLog(0, "ready")
	store.Break(true)
	const n = maxWaiting + 1000
	for i := range n {
		ada.Send(fmt.Sprint(i))
	}
	left := gatewayEvent(t, s, began[len(began)-1].Seq, "left")
	if resumes := s.GatewayLog(left.Seq, "resume"); len(resumes) != 0 {
		t.Error("it connects again while nothing can be stored")
	}
	store.Break(false)
	for i, text := range textsOf(store.Await(t, n)) {
		if text != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, text)
		}
	}
}

// forget makes the bot ask for a channel again.
func forget(t *testing.T, b *Bot, channel discordtest.ID) {
	t.Helper()
	e := gateway.Event{Type: "CHANNEL_DELETE", Data: json.RawMessage(`{"id":"` + channel.String() + `"}`)}
	if in, err := b.decoder.Read(t.Context(), e); err == nil {
		t.Fatalf("the channel is reported as deleted: %+v", in)
	}
	if guild := b.decoder.GuildOf(channel.String()); guild != "" {
		t.Fatalf("the channel is still known in %s", guild)
	}
}

func TestARefusedTokenEndsTheLookupOfAChannel(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	club := s.NewGuild("Club", ada)
	club.AddBot(s.Bot())
	talk := club.NewChannel("talk")
	store := &connectorstest.Store{}
	b := connect(t, s, store, func(o *Options) { o.Clock = hurried{time.Now()} })
	r := run(t, b, store)
	r.await(core.Running)
	say(t, ada, talk, "hello")
	store.Await(t, 1)
	forget(t, b, talk)
	inject(t, s, discordtest.Fault{Kind: discordtest.Broken, Method: "getChannel"})
	say(t, ada, talk, "again")
	r.await(core.Degraded)
	s.ClearFaults()
	s.Bot().Revoke()
	if err := r.end(); core.KindOf(err) != core.Denied {
		t.Errorf("Run ended with %v", err)
	}
}

func TestAChannelThatCantBeLookedUpDoesNotBlockTheOthers(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	club := s.NewGuild("Club", ada)
	club.AddBot(s.Bot())
	talk := club.NewChannel("talk")
	store := &connectorstest.Store{}
	b := connect(t, s, store, func(o *Options) { o.Clock = hurried{time.Now()} })
	r := run(t, b, store)
	r.await(core.Running)
	ada.Send("warm")
	store.Await(t, 1)
	forget(t, b, talk)
	inject(t, s, discordtest.Fault{Kind: discordtest.Broken, Status: 500, Method: "getChannel"})
	say(t, ada, talk, "lost in a broken channel")
	ada.Send("still heard")
	got := store.Await(t, 3)
	if got[1].Malformed == "" || got[2].Text != "still heard" {
		t.Errorf("stored %+v", got)
	}
}

// The new session counts only when it is kept which channels are to be read back, and events
// of theirs do not count before: a gateway that ends in between goes on with both.
func TestAnEndDuringTheReadingBackLosesNothing(t *testing.T) {
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			s, fast := hurry(t, discordtest.Options{FloodOff: true})
			ada := s.NewUser("Ada")
			store := &connectorstest.Store{}
			r := run(t, connect(t, s, store, fast), store)
			r.await(core.Running)
			ada.Send("one")
			store.Await(t, 1)
			r.stop()
			gatewayEvent(t, s, 0, "left")
			s.Bot().EndSessions()
			ada.Send("two")
			inject(t, s, discordtest.Fault{Kind: discordtest.Hang, Method: "getMessages"})
			seq := lastSeq(s, "ready")
			r = run(t, connect(t, s, store, fast), store)
			gatewayEvent(t, s, seq, "ready")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if _, err := s.AwaitRequest(ctx, 0, "getMessages", nil); err != nil {
				t.Fatal(err)
			}
			ada.Send("three")
			s.NewUser("Eve").Send("from another")
			store.Await(t, 2)   // and what Ada wrote before is held
			store.Break(killed) // a process that was killed stores nothing more
			r.stop()
			store.Break(false)
			s.ClearFaults()
			run(t, connect(t, s, store, fast), store)
			if got := textsOf(store.Await(t, 4)); !slices.Equal(got, []string{"one", "from another", "two", "three"}) {
				t.Errorf("stored %q", got)
			}
		})
	}
}

// again begins a session of which the platform does not know what came before, with what
// goes wrong in requests to come and the options as changed. Retries come at once.
func again(t *testing.T, s *discordtest.Server, store *connectorstest.Store, f discordtest.Fault, change ...func(*Options)) *running {
	t.Helper()
	s.Bot().EndSessions()
	seq := lastSeq(s, "ready")
	if f.Kind != "" {
		inject(t, s, f)
	}
	r := run(t, connect(t, s, store, func(o *Options) {
		o.Random = func(int64) int64 { return 0 }
		for _, c := range change {
			c(o)
		}
	}), store)
	gatewayEvent(t, s, seq, "ready")
	return r
}

// asked waits until the histories of channels were asked for so many times.
func asked(t *testing.T, s *discordtest.Server, times int) {
	t.Helper()
	eventually(t, "histories are asked for", func() bool { return len(s.Requests(0, "getMessages")) >= times })
}

// chats is a bot that knows direct chats with users, and is away.
func chats(t *testing.T, names ...string) (*discordtest.Server, *connectorstest.Store, []*discordtest.User) {
	t.Helper()
	s, store := platform(t, discordtest.Options{FloodOff: true}), &connectorstest.Store{}
	r := run(t, connect(t, s, store, nil), store)
	r.await(core.Running)
	var users []*discordtest.User
	for n, name := range names {
		users = append(users, s.NewUser(name))
		users[n].Send("one of " + name)
		store.Await(t, n+1)
	}
	r.stop()
	left(t, s)
	return s, store, users
}

// A platform that cannot be reached, or answers for no history, while the missed messages are read
// back has them still; what is written in the same channel until then is stored behind them.
func TestAChannelThatCannotBeReadBackNowIsReadBackLaterAndInOrder(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"no response": {Kind: discordtest.Reset, Method: "getMessages"},
		"errors":      {Kind: discordtest.Broken, Status: 500, Method: "getMessages"},
	} {
		t.Run(name, func(t *testing.T) {
			s, store, users := chats(t, "Ada")
			users[0].Send("two")
			again(t, s, store, fault)
			asked(t, s, 8)
			users[0].Send("three")
			s.NewUser("Eve").Send("from another")
			if got := textsOf(store.Await(t, 2)); !slices.Equal(got, []string{"one of Ada", "from another"}) {
				t.Errorf("stored meanwhile: %q", got)
			}
			s.ClearFaults()
			if got := textsOf(store.Await(t, 4)); !slices.Equal(got[2:], []string{"two", "three"}) {
				t.Errorf("stored %q", got)
			}
		})
	}
}

// An edit waits with the message that it may belong to, and no longer.
func TestAnEditWaitsOnlyForAMessageThatIsNotStored(t *testing.T) {
	s, store, users := chats(t, "Ada")
	ada := users[0]
	first, err := discordtest.ParseID(store.Rows()[0].MessageID)
	if err != nil {
		t.Fatal(err)
	}
	missed := ada.Send("missed")
	again(t, s, store, discordtest.Fault{Kind: discordtest.Broken, Status: 500, Method: "getMessages"})
	asked(t, s, 1)
	edit := func(id discordtest.ID, text string) {
		t.Helper()
		if _, err := ada.Edit(ada.DM(), id, text); err != nil {
			t.Fatal(err)
		}
	}
	edit(missed.ID, "edited")
	edit(first, "what is stored is edited")
	if in := store.Await(t, 2)[1]; in.Kind != core.KindEdit || in.Text != "what is stored is edited" {
		t.Errorf("stored meanwhile: %+v", in)
	}
	s.ClearFaults()
	if got := store.Await(t, 4)[2:]; got[0].Kind != core.KindMessage || got[0].Text != "edited" || got[0].MessageID != missed.ID.String() || got[1].Kind != core.KindEdit || got[1].Text != "edited" {
		t.Errorf("then %+v", got)
	}
}

// between has f respond to requests for the history of a channel.
func between(t *testing.T, s *discordtest.Server, channel discordtest.ID, f http.HandlerFunc) func(*Options) {
	t.Helper()
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/channels/"+channel.String()+"/messages") && r.Method == http.MethodGet {
			f(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return func(o *Options) { o.APIURL = srv.URL + target.Path }
}

func TestAChannelThatIsClosedWhenItIsReadBackIsForgottenAndWhatWasHeldIsStored(t *testing.T) {
	s, store, users := chats(t, "Ada", "Eve")
	ada, eve := users[0], users[1]
	eve.Send("two of Eve")
	gate := make(chan struct{})
	var reads atomic.Int32
	change := between(t, s, ada.DM(), func(w http.ResponseWriter, r *http.Request) {
		reads.Add(1)
		<-gate
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"code":50001,"message":"Missing Access"}`)
	})
	again(t, s, store, discordtest.Fault{}, change)
	eventually(t, "the history is asked for", func() bool { return reads.Load() > 0 })
	ada.Send("held")
	eve.Send("three of Eve")
	if got := textsOf(store.Await(t, 4)); !slices.Equal(got[2:], []string{"two of Eve", "three of Eve"}) {
		t.Errorf("stored meanwhile: %q", got)
	}
	close(gate)
	if got := textsOf(store.Await(t, 5)); got[4] != "held" {
		t.Errorf("stored %q", got)
	}
	eventually(t, "the channel is forgotten", func() bool {
		raw, err := store.Load(t.Context(), "discord:"+s.Bot().ID().String())
		return err == nil && !strings.Contains(raw, ada.DM().String()) && strings.Contains(raw, eve.DM().String())
	})
	if n := reads.Load(); n != 1 {
		t.Errorf("it is asked for %d times", n)
	}
}

func TestATokenThatIsRefusedWhenAChannelIsReadBackEndsTheBot(t *testing.T) {
	s, store, users := chats(t, "Ada")
	s.Bot().EndSessions()
	r := run(t, connect(t, s, store, between(t, s, users[0].DM(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"code":0,"message":"401: Unauthorized"}`)
	})), store)
	if err := r.end(); core.KindOf(err) != core.Denied {
		t.Errorf("Run ended with %v", err)
	}
}

// A button belongs to a message of the bot: it does not wait for what was missed.
func TestAPressedButtonDoesNotWaitForAChannelThatCannotBeReadBack(t *testing.T) {
	s, store, users := chats(t, "Ada")
	o := out(direct(users[0].DM()), 1, "which?")
	o.Buttons = [][]core.Button{{{Label: "Stop", Data: "stop"}}}
	d := connect(t, s, store, nil).Send(t.Context(), o)
	message, err := discordtest.ParseID(d.MessageID)
	if err != nil {
		t.Fatalf("delivery %+v", d)
	}
	again(t, s, store, discordtest.Fault{Kind: discordtest.Broken, Status: 500, Method: "getMessages"})
	asked(t, s, 1)
	if _, err := users[0].Press(users[0].DM(), message, "stop"); err != nil {
		t.Fatal(err)
	}
	if in := store.Await(t, 2)[1]; in.Kind != core.KindCallback {
		t.Errorf("stored %+v", in)
	}
}

// A slash command is in no history, and its user waits for a response: it is stored at once, behind
// what was written before it since the bot is back, and before what was written behind it. It is stored
// before the session ends, so whatever ends it loses no command.
func TestASlashCommandDoesNotWaitForAChannelThatCannotBeReadBack(t *testing.T) {
	s, store, users := chats(t, "Ada")
	users[0].Send("missed")
	s.Bot().EndSessions()
	inject(t, s, discordtest.Fault{Kind: discordtest.Broken, Status: 500, Method: "getMessages"})
	run(t, connect(t, s, store, func(o *Options) {
		o.Menu, o.Random = []connectors.Command{{Name: "stop", Description: "Stop"}}, func(int64) int64 { return 0 }
	}), store)
	eventually(t, "the command is registered", func() bool { return len(s.Bot().Commands(0)) > 0 })
	asked(t, s, 1)
	users[0].Send("before it")
	if _, err := users[0].Slash(users[0].DM(), "stop", nil); err != nil {
		t.Fatal(err)
	}
	users[0].Send("behind it")
	got := store.Await(t, 3)
	if got[1].Text != "before it" || got[2].Kind != core.KindCommand || got[2].Command != "stop" {
		t.Errorf("stored %+v", got[1:])
	}
	s.Bot().EndSessions()
	s.ClearFaults()
	if got := textsOf(store.Await(t, 5)); !slices.Equal(got[3:], []string{"missed", "behind it"}) {
		t.Errorf("then %q", got[3:])
	}
}

// A history may contain what was written behind a slash command that came while the store was busy.
func TestASlashCommandStaysBeforeWhatFollowedItInAHistory(t *testing.T) {
	s, store, users := chats(t, "Ada")
	users[0].Send("behind it")
	b := connect(t, s, store, nil)
	r := &receiver{bot: b, in: store, report: func(core.BotState) {}, marks: connectors.NewLRU[string, *mark](maxMarks), intake: newIntake()}
	defer r.tasks.Wait()
	r.back = readback.New(readback.Options{API: b.api, Decode: b.decoder.Decode, Clock: core.System{}, Log: b.o.Log, Beside: func(_ string, f func()) { f() }})
	if err := r.loadMarks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.memory() {
		r.back.Owe(m)
	}
	r.back.Ask(t.Context(), "s") // and its page is there
	const others = 3 * pageLimit / 2
	for n := range int64(others) {
		r.intake.take(gateway.Event{Seq: n + 1, Type: "MESSAGE_CREATE", Data: json.RawMessage(fmt.Sprintf(`{"id":"%d","channel_id":"12","content":"of another","author":{"id":"13","username":"Eve"}}`, 100+n))})
	}
	r.intake.take(gateway.Event{Seq: others + 1, Type: "INTERACTION_CREATE", Data: json.RawMessage(fmt.Sprintf(
		`{"id":"14","type":2,"token":"t","channel_id":"%s","user":{"id":"%s","username":"Ada"},"data":{"name":"new"}}`, users[0].DM(), users[0].ID()))})
	over := make(chan struct{})
	close(over)
	if err := r.process(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	got := store.Rows()
	if n := len(got); n != 1+others+2 || got[n-2].Command != "new" || got[n-1].Text != "behind it" {
		t.Errorf("the last of %d: %+v", n, got[max(0, n-2):])
	}
}

// Channels that become known while others are not read back yet do not take their places, also where
// the gateway is killed then.
func TestANewChannelDoesNotTakeThePlaceOfOneThatIsToBeReadBack(t *testing.T) {
	for _, then := range []string{"resumed", "killed", "killed, and a new session"} {
		t.Run(then, func(t *testing.T) {
			s, store, users := chats(t, "Ada")
			users[0].Send("two")
			key := "discord:" + s.Bot().ID().String()
			raw, err := store.Load(t.Context(), key)
			var list []mark
			if err != nil || json.Unmarshal([]byte(raw), &list) != nil || len(list) != 1 {
				t.Fatalf("memory %q, %v", raw, err)
			}
			var full []mark
			for n := range maxMarks - 1 { // used after Ada's
				full = append(full, mark{Channel: fmt.Sprint(1000 + n), Message: "1"})
			}
			whole, err := json.Marshal(append(full, list...))
			if err == nil {
				err = store.Save(t.Context(), key, string(whole))
			}
			if err != nil {
				t.Fatal(err)
			}
			var dead atomic.Bool
			s.Bot().EndSessions()
			inject(t, s, discordtest.Fault{Kind: discordtest.Hang, Method: "getMessages"})
			r := run(t, connect(t, s, store, func(o *Options) { o.Memory = mortal{o.Memory, &dead} }), store)
			asked(t, s, 4)
			s.NewUser("Eve").Send("of a new channel")
			store.Await(t, 2)
			s.NewUser("Bob").Send("of another")
			store.Await(t, 3)
			seq := lastSeq(s, "")
			if then == "resumed" {
				s.ClearFaults()
				s.Bot().Drop()
				gatewayEvent(t, s, seq, "resumed")
			} else {
				dead.Store(true)
				store.Break(true)
				r.stop()
				left(t, s)
				store.Break(false)
				s.ClearFaults()
				if then != "killed" {
					s.Bot().EndSessions()
				}
				run(t, connect(t, s, store, nil), store)
			}
			if got := textsOf(store.Await(t, 4)); got[3] != "two" {
				t.Errorf("stored %q", got)
			}
		})
	}
}

// A session does not begin before it is stored what is to be read back: who looks sees why.
func TestASessionThatWaitsForTheMemoryOfChannelsSaysSo(t *testing.T) {
	s, store, _ := chats(t, "Ada")
	s.Bot().EndSessions()
	var dead atomic.Bool
	dead.Store(true)
	r := run(t, connect(t, s, store, func(o *Options) {
		o.Memory, o.Random = mortal{o.Memory, &dead}, func(int64) int64 { return 0 }
	}), store)
	for r.await(core.Degraded).Reason != storeReason {
	}
	dead.Store(false)
	r.await(core.Running)
}

// A history that gets no response holds neither other channels nor the connection.
func TestAChannelWhoseHistoryGetsNoResponseHoldsNoOther(t *testing.T) {
	s, store, users := chats(t, "Ada", "Eve")
	users[0].Send("two of Ada")
	users[1].Send("two of Eve")
	again(t, s, store, discordtest.Fault{Kind: discordtest.Hang, Method: "getMessages", Count: 1})
	asked(t, s, 2)
	users[0].Send("three of Ada")
	users[1].Send("three of Eve")
	s.NewUser("Bob").Send("one of Bob")
	got := textsOf(store.Await(t, 5))
	slices.Sort(got)
	all := []string{"one of Ada", "one of Bob", "one of Eve", "three of Ada", "two of Ada"}
	if !slices.Equal(got, all) && !slices.Equal(got, []string{"one of Ada", "one of Bob", "one of Eve", "three of Eve", "two of Eve"}) {
		t.Errorf("stored %q", got)
	}
	seq := lastSeq(s, "")
	s.Bot().Drop()
	gatewayEvent(t, s, seq, "resumed")
	if got := textsOf(store.Await(t, 7)); got[5][:3] != "two" || got[6][:5] != "three" || got[5][3:] != got[6][5:] {
		t.Errorf("stored %q", got)
	}
}

// The order in which channels were used decides which are known: a new session keeps it.
func TestANewSessionKeepsWhichChannelsWereUsedLast(t *testing.T) {
	s, store, users := chats(t, "Ada", "Eve", "Bob")
	known := func() (ids []string) {
		raw, err := store.Load(t.Context(), "discord:"+s.Bot().ID().String())
		var list []mark
		if err != nil || json.Unmarshal([]byte(raw), &list) != nil {
			t.Fatalf("memory %q, %v", raw, err)
		}
		for _, m := range list {
			if m.Owed {
				return nil
			}
			ids = append(ids, m.Channel)
		}
		return ids
	}
	ada, eve, bob := users[0].DM().String(), users[1].DM().String(), users[2].DM().String()
	for n, want := range [][]string{{bob, eve, ada}, {bob, eve, ada}, {eve, ada, bob}} {
		if got := known(); !slices.Equal(got, want) {
			t.Fatalf("known are %v, want %v", got, want)
		}
		if n == 1 {
			users[0].Send("missed")
			users[1].Send("missed")
		}
		before := len(s.Requests(0, "getMessages"))
		r := again(t, s, store, discordtest.Fault{})
		asked(t, s, before+3)
		eventually(t, "all are read", func() bool { return known() != nil })
		r.stop()
		left(t, s)
	}
}

// A panic while a channel is read back does not lose that it is to be.
func TestAPanicWhileAChannelIsReadBackLosesNothing(t *testing.T) {
	s, store, users := chats(t, "Ada")
	users[0].Send("two")
	var puts atomic.Int32
	store.Watch(func(page []core.Inbound) {
		if page[0].Text == "two" && puts.Add(1) == 1 {
			panic("a fault")
		}
	})
	r := again(t, s, store, discordtest.Fault{Kind: discordtest.Broken, Status: 500, Method: "getMessages", Count: 5})
	r.await(core.Reconnecting)
	users[0].Send("three")
	if got := textsOf(store.Await(t, 3)); !slices.Equal(got, []string{"one of Ada", "two", "three"}) {
		t.Errorf("stored %q", got)
	}
}

// A mortal Memory takes nothing any more once its process is dead.
type mortal struct {
	connectors.Memory
	dead *atomic.Bool
}

func (m mortal) Save(ctx context.Context, key, value string) error {
	if m.dead.Load() {
		return connectorstest.ErrStore
	}
	return m.Memory.Save(ctx, key, value)
}

// A gateway that is killed right after it has stored the first message of a
// channel reads the channel back all the same.
func TestAChannelIsKnownBeforeItsFirstMessageIsStored(t *testing.T) {
	s, fast := hurry(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	var dead atomic.Bool
	store := &connectorstest.Store{OnPut: func([]core.Inbound) { dead.Store(true) }}
	r := run(t, connect(t, s, store, func(o *Options) { fast(o); o.Memory = mortal{o.Memory, &dead} }), store)
	r.await(core.Running)
	ada.Send("one")
	store.Await(t, 1)
	r.stop()
	gatewayEvent(t, s, 0, "left")
	s.Bot().EndSessions()
	ada.Send("two")
	run(t, connect(t, s, store, fast), store)
	if got := textsOf(store.Await(t, 2)); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("stored %q", got)
	}
}

// What is read back is a help for an outage, and no reason to answer nothing.
func TestAMessageIsStoredWhereItsChannelCannotBeRecorded(t *testing.T) {
	s, store := platform(t, discordtest.Options{FloodOff: true}), &connectorstest.Store{}
	var dead atomic.Bool
	dead.Store(true)
	run(t, connect(t, s, store, func(o *Options) { o.Memory = mortal{o.Memory, &dead} }), store).await(core.Running)
	s.NewUser("Ada").Send("one")
	if got := textsOf(store.Await(t, 1)); got[0] != "one" {
		t.Errorf("stored %q", got)
	}
}

// The platform gives bots no list of private channels: what somebody writes in
// one that was never seen comes while the session can be resumed, else not.
func TestDirectMessagesOfStrangersComeByResumeOnly(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumed %v", resumed), func(t *testing.T) {
			s, fast := hurry(t, discordtest.Options{FloodOff: true})
			store := &connectorstest.Store{}
			r := run(t, connect(t, s, store, fast), store)
			r.await(core.Running)
			r.stop()
			gatewayEvent(t, s, 0, "left")
			ada := s.NewUser("Ada")
			ada.Send("one")
			if !resumed {
				s.Bot().EndSessions()
			}
			seq := lastSeq(s, "ready")
			r = run(t, connect(t, s, store, fast), store)
			want := []string{"one", "two"}
			if !resumed {
				want = want[1:]
				gatewayEvent(t, s, seq, "ready")
			}
			r.await(core.Running)
			ada.Send("two")
			if got := textsOf(store.Await(t, len(want))); !slices.Equal(got, want) {
				t.Errorf("stored %q, want %q", got, want)
			}
		})
	}
}
