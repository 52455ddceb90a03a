package telegram

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// A session is a bot that runs, and what it reports.
type session struct {
	*testing.T
	bot    *Bot
	states chan core.BotState
	ended  chan error
	cancel context.CancelFunc
}

func run1(t *testing.T, b *Bot, in connectors.Inbox) *session {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{T: t, bot: b, states: make(chan core.BotState, 10_000), ended: make(chan error, 1), cancel: cancel}
	go func() { s.ended <- b.Run(ctx, in, func(st core.BotState) { s.states <- st }) }()
	t.Cleanup(func() { cancel(); <-s.ended })
	return s
}

// await reads reports until one is in phase and says why.
func (s *session) await(phase core.Phase, why string) core.BotState {
	s.Helper()
	late := time.After(5 * time.Minute)
	for {
		select {
		case st := <-s.states:
			if st.State == phase && strings.Contains(st.Reason, why) {
				return st
			}
		case <-late:
			s.Fatalf("never reported %s because of %q", phase, why)
		}
	}
}

// awaitAdvancing is await, with the clock moving on while nothing is reported.
func (s *session) awaitAdvancing(clock *coretest.Clock, phase core.Phase) {
	s.Helper()
	late := time.After(5 * time.Minute)
	for {
		select {
		case st := <-s.states:
			if st.State == phase {
				return
			}
		case <-time.After(time.Millisecond):
			clock.Advance(connectors.BackoffMax)
		case <-late:
			s.Fatalf("never reported %s", phase)
		}
	}
}

// longest makes every backoff take its longest.
func longest(n int64) int64 { return n - 1 }

func TestAnHourWithoutPlatformIsWaitedOutWithoutAStorm(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
	var tries atomic.Int64
	b := connect(t, s, store, func(o *Options) {
		o.Clock, o.Random = clock, func(n int64) int64 { tries.Add(1); return longest(n) } // drawn once after each try
	})
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	s.Down()
	if st := ses.await(core.Reconnecting, "cannot be reached"); st.LastError == "" {
		t.Errorf("state %+v", st)
	}
	for began := clock.Now(); clock.Now().Sub(began) < time.Hour && tries.Load() <= 100; {
		clock.AwaitWaiters(1)
		clock.Advance(time.Second)
	}
	if n := tries.Load(); n < 60 || n > 70 {
		t.Errorf("%d tries in an hour", n)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	s.NewUser("Ada").Send("are you there?")
	ses.awaitAdvancing(clock, core.Running)
	if got := store.Await(t, 1); got[0].Text != "are you there?" {
		t.Errorf("stored %+v", got)
	}
}

func TestBackoffWithoutAnswerStaysBelowAStorm(t *testing.T) {
	store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(502)
		fmt.Fprint(w, "<html>Bad Gateway</html>")
	}))
	defer srv.Close()
	b, err := New(Options{Name: "bot", Token: "42:secret", APIURL: srv.URL, Cursors: store, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ses := run1(t, b, store)
	for began := clock.Now(); clock.Now().Sub(began) < time.Hour; {
		clock.AwaitWaiters(1)
		clock.Advance(100 * time.Millisecond)
	}
	ses.await(core.Reconnecting, "answers with an error")
	if n := asked.Load(); n > 250 || n < 60 {
		t.Errorf("asked %d times in an hour", n)
	}
	ses.cancel()
	ses.ended <- <-ses.ended
}

func TestASecondPollerMakesItDegradedUntilItIsAlone(t *testing.T) {
	t.Parallel()
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
	b := connect(t, s, store, func(o *Options) { o.Clock, o.Random = clock, longest })
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	for range 2 {
		for !s.Bot().Polling() { // the simulator logs a poll only when it has ended
			runtime.Gosched()
		}
		other := httpPoll(s, 1)
		st := ses.await(core.Degraded, "another program polls")
		if !strings.Contains(st.LastError, "409") {
			t.Errorf("state %+v", st)
		}
		<-other
		clock.AwaitWaiters(1)
		clock.Advance(conflictWait + time.Second)
	}
	s.NewUser("Ada").Send("hi")
	ses.await(core.Running, "")
	store.Await(t, 1)
}

// httpPoll polls beside the bot, as a second program would.
func httpPoll(s *telegramtest.Server, seconds int) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := http.Get(fmt.Sprintf("%s/bot%s/getUpdates?timeout=%d", s.URL(), s.Token(), seconds)); err == nil {
			resp.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	return done
}

func TestAWebhookAndASecondPollerHaveDifferentReasons(t *testing.T) {
	if got := conflict("Conflict: can't use getUpdates method while webhook is active"); !strings.Contains(got, "deleteWebhook") {
		t.Error(got)
	}
}

func TestARevokedTokenStopsThatBotAloneInTheHub(t *testing.T) {
	token2 := "7000000002:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bd"
	s := platform(t, telegramtest.Options{Bots: []telegramtest.BotAccount{{}, {Token: token2, Username: "other_bot"}}})
	store := &connectorstest.Store{}
	one := connect(t, s, store, nil)
	two := connect(t, s, store, func(o *Options) { o.Name, o.Token = "two", token2 })
	hub, err := connectors.NewHub(store, connectors.HubOptions{}, one, two)
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan core.BotState, 100)
	hub.OnChange(func(st core.BotState) { states <- st })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	defer func() { cancel(); <-ended; hub.Close() }()
	running := 0
	for st := range states {
		if st.State == core.Running {
			if st.Username == "" || st.Platform != "telegram" {
				t.Errorf("state %+v", st)
			}
			if running++; running == 2 {
				s.Bot().Revoke()
			}
		}
		if st.State == core.FailedPhase {
			if st.Bot != "bot" || !strings.Contains(st.Reason, "@BotFather") || strings.Contains(st.Reason+st.LastError, s.Token()) {
				t.Errorf("state %+v", st)
			}
			break
		}
	}
	ada := s.NewUser("Ada")
	if _, err := ada.Post(ada.With(s.Bots()[1]), telegramtest.Outgoing{Text: "hi two"}); err != nil {
		t.Fatal(err)
	}
	if got := store.Await(t, 1); got[0].Bot != "two" {
		t.Errorf("stored %+v", got)
	}
	if d := hub.Send(ctx, core.Outgoing{Address: chatOf(ada.ID()), Part: core.Part{Text: "x"}}); d.Outcome != core.NotSent {
		t.Errorf("a message for the bot without token must be kept: %+v", d)
	}
}

func TestACursorOlderThanSixDaysIsNotSent(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		sent string
	}{{6*24*time.Hour - time.Minute, "5000"}, {6*24*time.Hour + time.Minute, ""}, {-time.Hour, "5000"}} {
		s := platform(t, telegramtest.Options{FloodOff: true})
		clock := coretest.NewClock(time.Time{})
		store := &connectorstest.Store{Clock: clock}
		b := connect(t, s, store, func(o *Options) { o.Clock = clock })
		store.SetCursor("telegram:7000000001", "5000", clock.Now().Add(-c.age))
		s.Bot().SetNextUpdateID(77) // numbered anew, below the old cursor
		s.NewUser("Ada").Send("after an idle week")
		ses := run1(t, b, store)
		ses.await(core.Running, "")
		first := s.Requests(0, "getUpdates")[0]
		if first.Params["offset"] != c.sent {
			t.Errorf("age %v: offset %q sent, want %q", c.age, first.Params["offset"], c.sent)
		}
		if c.sent == "" {
			if got := store.Await(t, 1); got[0].UpdateID != "7000000001:77" {
				t.Errorf("stored %+v", got)
			}
			if v, _, _ := store.Cursor(t.Context(), "telegram:7000000001"); v != "78" {
				t.Errorf("cursor %q", v)
			}
		}
	}
}

// skewed is the machine's clock, which can be moved ahead.
type skewed struct {
	core.System
	ahead atomic.Int64
}

func (c *skewed) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func TestAnIdleWeekWhileRunningLosesNothing(t *testing.T) {
	t.Parallel()
	s := platform(t, telegramtest.Options{FloodOff: true})
	clock := &skewed{}
	store := &connectorstest.Store{Clock: clock}
	b := connect(t, s, store, func(o *Options) { o.Clock, o.PollTimeout = clock, time.Second })
	ada := s.NewUser("Ada")
	s.Bot().SetNextUpdateID(9000)
	ada.Send("before")
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	store.Await(t, 1)
	if _, err := s.AwaitRequest(t.Context(), 0, "getUpdates", func(r telegramtest.Request) bool { return r.Params["offset"] == "9001" }); err != nil {
		t.Fatal(err) // the update is confirmed before the idle week begins
	}
	clock.ahead.Store(int64(8 * 24 * time.Hour))
	if _, err := s.AwaitRequest(t.Context(), 0, "getUpdates", func(r telegramtest.Request) bool {
		return r.Params["timeout"] == "1" && r.Params["offset"] == ""
	}); err != nil {
		t.Fatal(err)
	}
	s.Bot().SetNextUpdateID(20)
	ada.Send("after")
	if got := store.Await(t, 2); got[1].Text != "after" || got[1].UpdateID != "7000000001:20" {
		t.Errorf("stored %+v", got)
	}
}

func TestWhatIsAskedOfThePlatform(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	ada := s.NewUser("Ada")
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	m := ada.Send("one")
	if err := ada.React(ada.DM(), m.ID, "👍"); err != nil {
		t.Fatal(err)
	}
	if got := store.Await(t, 2); got[1].Kind != core.KindReaction || got[1].Text != "👍" {
		t.Errorf("a reaction was not asked for: %+v", got)
	}
	if n := s.Count("getMe"); n != 1 {
		t.Errorf("getMe was called %d times", n)
	}
	for _, r := range s.Requests(0, "getUpdates") {
		if r.Params["limit"] != "100" || !strings.Contains(r.Params["allowed_updates"], "message_reaction") {
			t.Errorf("asked with %v", r.Params)
		}
	}
}

func TestFaultyPollsLoseNothing(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]telegramtest.Fault{
		"HTML 502":       {Kind: telegramtest.Broken, Method: "getUpdates", Count: 3},
		"HTML 502 after": {Kind: telegramtest.Broken, Method: "getUpdates", After: true, Count: 3},
		"reset":          {Kind: telegramtest.Reset, Method: "getUpdates", Count: 3},
		"reset after":    {Kind: telegramtest.Reset, Method: "getUpdates", After: true, Count: 3},
		"half an answer": {Kind: telegramtest.Half, Method: "getUpdates", Count: 3},
		"getMe fails":    {Kind: telegramtest.Broken, Method: "getMe", Count: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := platform(t, telegramtest.Options{FloodOff: true})
			store := &connectorstest.Store{}
			b := connect(t, s, store, func(o *Options) { o.Random = func(int64) int64 { return 0 } })
			inject(t, s, f)
			ada := s.NewUser("Ada")
			for i := range 150 {
				ada.Send(fmt.Sprint(i))
			}
			ses := run1(t, b, store)
			ses.await(core.Reconnecting, "")
			for i, in := range store.Await(t, 150) {
				if in.Text != fmt.Sprint(i) {
					t.Fatalf("message %d is %+v", i, in)
				}
			}
			if store.Repeats() != 0 {
				t.Errorf("%d updates were put twice", store.Repeats())
			}
		})
	}
}

// The front of a Bot API in maintenance asks for a day, which the platform has not.
func TestAPauseThatAProxyAsksOfThePollIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		most   time.Duration
	}{
		"a proxy": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "<html>Maintenance</html>")
		}, connectors.BackoffMax},
		"a proxy's limit": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "9223372036")
			w.WriteHeader(http.StatusTooManyRequests)
		}, connectors.BackoffMax},
		"the platform": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 86400}}`)
		}, maxPollPause},
	} {
		t.Run(name, func(t *testing.T) {
			s := platform(t, telegramtest.Options{FloodOff: true})
			var broken atomic.Bool
			broken.Store(true)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() && strings.HasSuffix(r.URL.Path, "getUpdates") {
					c.answer(w)
					return
				}
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
			b := connect(t, s, store, func(o *Options) { o.Clock, o.APIURL = clock, front.URL })
			ses := run1(t, b, store)
			ses.await(core.Degraded, "asks to wait")
			clock.AwaitWaiters(1)
			broken.Store(false)
			clock.Advance(c.most)
			ses.await(core.Running, "")
		})
	}
}

func TestAPauseThePlatformAsksOfThePollIsObeyed(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
	reg := prometheus.NewRegistry()
	b := connect(t, s, store, func(o *Options) { o.Clock, o.Metrics = clock, NewMetrics(reg) })
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Flooded, Method: "getUpdates", RetryAfter: 700, Count: 1})
	ses := run1(t, b, store)
	ses.await(core.Degraded, "asks to wait 11m40s")
	if got := testutil.ToFloat64(b.o.Metrics.retryAfter.WithLabelValues("bot")); got != 700 {
		t.Errorf("gatehouse_retry_after_seconds is %v", got)
	}
	clock.AwaitWaiters(1)
	clock.Advance(699 * time.Second)
	if n := s.Count("getUpdates"); n != 1 {
		t.Errorf("asked %d times within the pause", n)
	}
	clock.Advance(time.Second)
	ses.await(core.Running, "")
	if got := testutil.ToFloat64(b.o.Metrics.lastPoll.WithLabelValues("bot")); got != float64(clock.Now().Unix()) {
		t.Errorf("gatehouse_poll_last_success_timestamp_seconds is %v", got)
	}
}

func TestASilentPollRebuildsItsTransport(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, clock := &connectorstest.Store{}, coretest.NewClock(time.Time{})
	b := connect(t, s, store, func(o *Options) { o.Clock, o.Random, o.PollTimeout = clock, longest, time.Millisecond })
	b.margin = 50 * time.Millisecond
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	first := b.polls.t.Load()
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Hang, Method: "getUpdates"})
	ses.await(core.Reconnecting, "cannot be reached")
	if b.polls.t.Load() != first {
		t.Error("rebuilt too early")
	}
	for n := 0; b.polls.t.Load() == first; n++ {
		if n > 10 {
			t.Fatal("the transport is not made anew")
		}
		clock.AwaitWaiters(1)
		clock.Advance(connectors.BackoffMax + time.Second)
		ses.await(core.Reconnecting, "")
	}
	s.ClearFaults()
	s.NewUser("Ada").Send("hi")
	ses.awaitAdvancing(clock, core.Running)
	store.Await(t, 1)
}

func TestHostileAndHugeUpdatesArriveWhole(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	s.Bot().SetNextUpdateID(1<<53 + 1)
	big := strings.Repeat("wörter 😀 ", 1<<16)
	s.Bot().InjectRaw(`{"update_id":{id},"message":{"message_id":1,"date":1,"from":{"id":9007199254740993,"first_name":"x"},"chat":{"id":9007199254740993,"type":"private"},"text":"` + big + `"}}`)
	s.Bot().InjectRaw(`{"update_id":"none","message":7}`)
	s.Bot().InjectRaw(`{"update_id":{id},"message":{"message_id":{},"deep":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}`)
	u, err := s.AddUser(telegramtest.Account{FirstName: "\u202e<script>alert(1)</script>\x00\n", LastName: strings.Repeat("系", 300)})
	if err != nil {
		t.Fatal(err)
	}
	u.Send("last")
	run1(t, b, store)
	got := store.Await(t, 4)
	if got[0].UpdateID != "7000000001:9007199254740993" || got[0].Text != big || got[0].Chat != "9007199254740993" || got[0].From.ID != "9007199254740993" {
		t.Errorf("the first is %q with %d bytes", got[0].UpdateID, len(got[0].Text))
	}
	if got[1].Malformed == "" || got[2].Malformed == "" {
		t.Errorf("not malformed: %+v, %+v", got[1], got[2])
	}
	if name := got[3].From.Name; got[3].Text != "last" || strings.ContainsAny(name, "\u202e\x00\n") || len([]rune(name)) > core.MaxName+2 {
		t.Errorf("the last is %+v", got[3])
	}
	if v, _, _ := store.Cursor(t.Context(), "telegram:7000000001"); v != "9007199254740997" {
		t.Errorf("cursor %q", v)
	}
}

func TestUpdatesWithoutAReadableNumberDoNotBlock(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, func(o *Options) { o.Random = func(int64) int64 { return 0 } })
	ada := s.NewUser("Ada")
	ada.Send("before")
	run1(t, b, store)
	store.Await(t, 1)
	s.Bot().InjectRaw(`{"update_id":[]}`)
	store.Await(t, 2)
	ada.Send("after")
	if got := store.Await(t, 3); got[1].Malformed == "" || got[2].Text != "after" {
		t.Errorf("stored %+v", got)
	}
}

func TestARestartUnderTheHubDeliversOnce(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	hub, err := connectors.NewHub(store, connectors.HubOptions{}, b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, running := make(chan error, 1), make(chan core.BotState, 1000)
	hub.OnChange(func(st core.BotState) { running <- st })
	go func() { ended <- hub.Run(ctx) }()
	defer func() { cancel(); <-ended; hub.Close() }()
	for st := range running {
		if st.State == core.Running {
			break
		}
	}
	ada := s.NewUser("Ada")
	for i := range 20 {
		ada.Send(fmt.Sprint(i))
		if i%2 == 0 {
			store.Await(t, i)
		}
		if err := hub.Stop("bot"); err != nil {
			t.Fatal(err)
		}
		if err := hub.Start("bot"); err != nil {
			t.Fatal(err)
		}
	}
	for i, in := range store.Await(t, 20) {
		if in.Text != fmt.Sprint(i) {
			t.Fatalf("message %d is %+v", i, in)
		}
	}
}

func TestTheMenuIsSetOncePerChange(t *testing.T) {
	t.Parallel()
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	menu := []connectors.Command{{Name: "new", Description: "a new conversation"}, {Name: "stop", Description: "stop"}}
	for range 2 {
		b := connect(t, s, store, func(o *Options) { o.Menu = menu })
		ses := run1(t, b, store)
		ses.await(core.Running, "")
		if _, err := s.AwaitRequest(t.Context(), 0, "setMyCommands", nil); err != nil {
			t.Fatal(err)
		}
		for hash := ""; hash == ""; hash, _ = store.Load(t.Context(), "telegram:7000000001:menu") {
			runtime.Gosched()
		}
		ses.cancel()
		ses.ended <- <-ses.ended
	}
	b := connect(t, s, store, nil)
	for _, m := range [][]connectors.Command{menu, menu[:1], menu[:1]} {
		if err := b.SetCommands(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if n, got := s.Count("setMyCommands"), s.Bot().Commands(); n != 2 || len(got) != 1 || got[0].Command != "new" {
		t.Errorf("set %d times, now %+v", n, got)
	}
}

func TestOptionsThatMakeNoSenseAreRefusedWithoutTheToken(t *testing.T) {
	good := Options{Name: "bot", Token: "42:very-secret", Cursors: noCursor{}}
	for name, change := range map[string]func(*Options){
		"token":  func(o *Options) { o.Token = "very-secret" },
		"number": func(o *Options) { o.Token = "9999999999999999999:very-secret" },
		"name":   func(o *Options) { o.Name = "" },
		"store":  func(o *Options) { o.Cursors = nil },
		"url":    func(o *Options) { o.APIURL = "localhost:8081" },
		"scheme": func(o *Options) { o.APIURL = "ftp://localhost" },
	} {
		o := good
		change(&o)
		if _, err := New(o); core.KindOf(err) != core.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLibrarysOwnLogHoldsNoToken(t *testing.T) {
	var b strings.Builder
	l := libraryLog{slog.New(slog.NewTextHandler(&b, nil))}
	var _ tgbotapi.BotLogger = l
	l.Printf("Post %q: refused", "https://api.telegram.org/bot7000000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc/getMe")
	l.Println("bot7000000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc")
	if strings.Contains(b.String(), "AAEh") || !strings.Contains(b.String(), "refused") {
		t.Error(b.String())
	}
}

type noCursor struct{}

func (noCursor) Cursor(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

// Users mention a bot by the name that it has now.
func TestABotThatWasRenamedLearnsItsNameWithoutARestart(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	b := connect(t, s, store, nil)
	ada := s.NewUser("Ada")
	for _, name := range []string{"first_bot", "second_bot"} { // each Run asks
		s.Bot().Rename(name)
		ada.Send("hello") // ends the poll
		run := run1(t, b, store)
		if st := run.await(core.Running, ""); st.Username != name {
			t.Errorf("it is called %q, want %q", st.Username, name)
		}
		run.cancel()
		run.ended <- <-run.ended // for the cleanup
	}
}
