package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
	"gatehouse/core/session"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/stream"
	"gatehouse/web/api/turns"
	"gatehouse/web/auth"
	"gatehouse/web/upload"
)

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return string(b)
}

func kinds(events []sent) string {
	var k []string
	for _, e := range events {
		k = append(k, e.kind())
	}
	return strings.Join(k, " ")
}

func TestAMessageIsQueuedAndItsRunStreamedInOrder(t *testing.T) {
	h := open(t, options{})
	h.onPut = func(in core.Inbound) { h.reply(in, "Hel", "lo\n", "you") } // over before Put returns: nothing may be missed
	res := h.do(h.key(auth.ScopeChat), "POST", "/api/chat", `{"message":"hi"}`)
	events := parseEvents(readAll(t, res))
	if got, want := kinds(events), "session user_message prompt_metadata init model text text text done message_stop"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	in := h.last()
	if run := res.Header.Get("X-Run-Id"); run == "" || run != in.Turn.Run || !strings.HasPrefix(events[0].id, run+".1:1") {
		t.Errorf("X-Run-Id %q, turn %q, first event %q", run, in.Turn.Run, events[0].id)
	}
	if in.Bot != core.APIBot || in.Kind != core.KindMessage || in.Text != "hi" || in.From.ID != "user:7" || in.From.Platform != "api" ||
		in.Turn.User != 7 || in.Turn.Key == "" || !in.Addressed || in.Turn.Trust != core.Stranger || in.Chat != in.Turn.Session || uuid.Validate(in.Chat) != nil {
		t.Errorf("turn %+v %+v", in, in.Turn)
	}
	if want := "key:" + in.Turn.Key + ":"; !strings.HasPrefix(in.UpdateID, want) {
		t.Errorf("update id %q", in.UpdateID)
	}
}

func TestOneJSONAnswer(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) {
		s := h.begin(in, 1)
		h.opening(s, in)
		h.say(s, core.Warning{Code: "fallback", Message: "another model answers"}, core.TextDelta{Content: "yes"})
		h.finish(s, done(in, "yes"))
	}
	m := h.want(200, "", key, "POST", "/api/chat", `{"message":"hi"}`, "Accept", "application/json")
	if m["response"] != "yes" || m["run_id"] != h.last().Turn.Run || m["session_id"] != h.last().Chat || len(m["warnings"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	for _, c := range []struct {
		last   core.Event
		status int
		slug   string
	}{
		{core.Aborted{SessionID: "s", Message: "stopped", PartialResponse: "ha"}, 409, "run-aborted"},
		{core.Failed{Code: "auth", Message: "the provider refuses the key"}, 502, "model-failed"},
		{core.Failed{Code: "shutdown", Message: "restarting", CanRetry: true, RetryAfterMS: 1200}, 503, "unavailable"},
		{core.Failed{Code: "timeout", Message: "too long"}, 504, "run-timeout"},
		{core.Failed{Code: "internal", Message: "a fault"}, 500, "internal"},
	} {
		h.onPut = func(in core.Inbound) { h.finish(h.begin(in, 1), c.last) }
		m := h.want(c.status, c.slug, key, "POST", "/api/chat", `{"message":"hi"}`, "Accept", "application/json")
		if m["run_id"] != h.last().Turn.Run || m["detail"] == "" {
			t.Errorf("%v", m)
		}
	}
}

func TestRespondAsyncIsAcceptedAndFollowedBeforeItsRunBegins(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	res := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Prefer", "respond-async, wait=10")
	m := h.answer(res)
	where := res.Header.Get("Location")
	if res.StatusCode != 202 || res.Header.Get("Preference-Applied") != "respond-async" || m["run_id"] != res.Header.Get("X-Run-Id") {
		t.Fatalf("%d %v %v", res.StatusCode, res.Header, m)
	}
	in := h.last()
	if !in.Turn.Respond {
		t.Error("the turn does not say that it is run again after a crash")
	}
	follow := h.do(key, "GET", where, "") // no session, no run yet
	if follow.StatusCode != 200 {
		t.Fatalf("%s: %d", where, follow.StatusCode)
	}
	h.reply(in, "later")
	if got := kinds(parseEvents(readAll(t, follow))); !strings.HasSuffix(got, "text done message_stop") {
		t.Errorf("events %s", got)
	}
	h.want(404, "not-found", h.keyOf(8, core.Vault, auth.ScopeChat), "GET", where, "")
}

func TestARepeatedIdempotencyKeySaysHowFarTheRunIs(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	ask := func() map[string]any {
		return h.answer(h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Prefer", "respond-async", "Idempotency-Key", "k1"))
	}
	first := ask()
	in := h.last()
	again := ask()
	h.onPut = nil
	h.reply(in, "done")
	if ended := ask(); first["status"] != "queued" || again["status"] != "queued" || ended["status"] != "ended" || ended["run_id"] != first["run_id"] {
		t.Errorf("%v, %v, %v", first, again, ended)
	}
}

// What stands between a question and its first event is short: a run that was
// named just now is not looked for, one that may be a repeat is.
func TestANewRunIsNotLookedUp(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "here") }
	if got := readAll(t, h.do(key, "POST", "/api/chat", `{"message":"hi"}`)); !strings.Contains(got, "message_stop") || h.looked != 0 {
		t.Errorf("%d looks for a new run; %s", h.looked, got)
	}
	if got := readAll(t, h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")); !strings.Contains(got, "message_stop") || h.looked == 0 {
		t.Errorf("%d looks for one that may be a repeat; %s", h.looked, got)
	}
}

func TestTheSameIdempotencyKeyFollowsTheSameRun(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "once") }
	first := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")
	a := readAll(t, first)
	second := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")
	b := readAll(t, second)
	if a != b || first.Header.Get("X-Run-Id") != second.Header.Get("X-Run-Id") || len(h.put) != 1 {
		t.Errorf("%d turns; first %s, second %s", len(h.put), a, b)
	}
	h.want(409, "conflict", key, "POST", "/api/chat", `{"message":"something else"}`, "Idempotency-Key", "k1")
	other := h.do(h.keyOf(8, core.Vault, auth.ScopeChat), "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")
	readAll(t, other)
	if other.Header.Get("X-Run-Id") == first.Header.Get("X-Run-Id") || len(h.put) != 2 {
		t.Error("two keys share an idempotency key's run")
	}
	h.restart() // the memory is empty; the ids are the same
	third := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")
	if c := readAll(t, third); c != a {
		t.Errorf("after a restart: %s", c)
	}
	for _, bad := range []string{"", strings.Repeat("x", 129), "with space"} {
		h.want(400, "invalid-request", key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", bad)
	}
}

func TestARetryWhileTheRunContinuesSeesAllOfIt(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	streams := make(chan *bus.Stream, 1)
	h.onPut = func(in core.Inbound) {
		s := h.begin(in, 1)
		h.opening(s, in)
		streams <- s
	}
	a := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k")
	s := <-streams
	b := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k")
	h.say(s, core.TextDelta{Content: "both"})
	h.finish(s, done(h.last(), "both"))
	if x, y := readAll(t, a), readAll(t, b); x != y || !strings.Contains(x, "message_stop") {
		t.Errorf("first %s\nsecond %s", x, y)
	}
}

func TestBodiesOutsideTheContractAreRefusedByName(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(7, core.Vault, auth.ScopeChat, auth.ScopeAdmin) // who may choose an agent, too
	for _, c := range []struct {
		body, field string
		status      int
	}{
		{`{"message":""}`, "message", 400}, {`{"message":" \n"}`, "message", 400}, {`{}`, "message", 400}, {`[]`, "", 400}, {`null`, "", 400}, {`"x"`, "", 400},
		{`{"message":1}`, "message", 400}, {`{"message":"a","cancel_on_disconnect":"yes"}`, "cancel_on_disconnect", 400},
		{`{"message":"a","agent_path":"x"}`, "agent_path", 400}, {`{"message":"a","agentPath":"x"}`, "agent_path", 400}, {`{"message":"a","agent_path":".parachute/agents/x.md"}`, "agent_path", 400},
		{`{"message":"a","module":"a\nb"}`, "module", 400}, {`{"message":"a","module":"` + strings.Repeat("x", 65) + `"}`, "module", 413}, {`{"message":"a","module":[]}`, "module", 400},
		{`{"message":"a","workspace":"w"}`, "workspace", 400}, {`{"message":"a","workspace":"../kitchen"}`, "workspace", 400}, {`{"message":"a","attachments":["x"]}`, "attachments", 400},
		{`{"message":"a","contexts":"Tea"}`, "contexts", 400}, {`{"message":"a","contexts":[1]}`, "contexts", 400}, {`{"message":"a","contexts":["../x"]}`, "contexts", 400}, {`{"message":"a","contexts":["/etc"]}`, "contexts", 400},
		{`{"message":"a","contexts":[` + strings.Repeat(`"a",`, 100) + `"b"]}`, "contexts", 413},
		{`{"message":"a","initialContext":1}`, "initial_context", 400}, {`{"message":"a","initial_context":"` + strings.Repeat("x", turns.MaxInitial+1) + `"}`, "initial_context", 413},
		{`{"message":"a","continued_from":"nobodys"}`, "continued_from", 404}, {`{"message":"a","continuedFrom":"../x"}`, "continued_from", 404}, {`{"message":"a","continued_from":"` + strings.Repeat("x", 129) + `"}`, "continued_from", 413},
		{`{"message":"a","session_id":"b","sessionId":"c"}`, "session_id", 400}, {`{"message":"a","trust_level":"root"}`, "", 400},
		{`{"message":"a","trust_level":"full"}`, "", 403}, {`{"message":"a","session_id":"stream"}`, "", 400}, {`{"message":"a","session_id":"active-streams"}`, "", 400},
		{`{"message":"a","session_id":"sessions"}`, "", 400}, {`{"message":"a","session_id":"session"}`, "", 400}, {`{"message":"a","session_id":"count"}`, "", 400}, {`{"message":"a","session_id":"../x"}`, "", 400},
		{`{"message":"` + strings.Repeat("x", turns.MaxMessage+1) + `"}`, "message", 413}, {`{"message":"a","system_prompt":"` + strings.Repeat("x", turns.MaxSystemPrompt+1) + `"}`, "system_prompt", 413},
		{`{"message":"` + strings.Repeat("x", upload.MaxText) + `"}`, "", 413}, {`{"message":"a"}}`, "", 400},
	} {
		t.Run(fmt.Sprintf("%d %.60s", c.status, c.body), func(t *testing.T) {
			m := h.want(c.status, "", key, "POST", "/api/chat", c.body)
			if got, _ := m["field"].(string); got != c.field {
				t.Errorf("%.60s: field %q, want %q", c.body, got, c.field)
			}
		})
	}
	h.want(415, "unsupported-media-type", key, "POST", "/api/chat", `{"message":"a"}`, "Content-Type", "text/plain")
	h.want(406, "not-acceptable", key, "POST", "/api/chat", `{"message":"a"}`, "Accept", "text/html")
	h.want(400, "invalid-request", key, "POST", "/api/chat", `{"message":"a","cancel_on_disconnect":true}`, "Prefer", "respond-async")
	if len(h.put) != 0 {
		t.Errorf("%d turns were put", len(h.put))
	}
}

// A model that is not there, or not for the caller at the trust that they ask for, is refused
// before the turn is stored, and its files are removed.
func TestAModelThatCannotAnswerIsRefusedByField(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	for body, want := range map[string]int{
		`{"message":"a","model":"openai/gone"}`: 400, `{"message":"a","model":"openai/gone","session_id":"mine"}`: 400,
		`{"message":"a","model":"openai/gone","attachments":[{"name":"a.txt","data":"YQ=="}]}`: 400, `{"message":"a","model":"openai/dear","trust_level":"sandboxed"}`: 403,
	} {
		kind := map[int]string{400: "invalid-request", 403: "forbidden"}[want]
		if m := h.want(want, kind, key, "POST", "/api/chat", body); m["field"] != "model" || !strings.Contains(fmt.Sprint(m["detail"]), "local/quote") {
			t.Errorf("%s: %v", body, m)
		}
	}
	if len(h.put) != 0 {
		t.Errorf("%d turns were put", len(h.put))
	}
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	h.want(200, "", key, "POST", "/api/chat", `{"message":"a","model":"openai/dear"}`, "Accept", "application/json")
}

func TestNamesAreFoldedAndUnknownFieldsWarnedOf(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	res := h.do(key, "POST", "/api/chat", `{"message":"a","sessionId":"My.Notes","trustLevel":"sandboxed","workingDirectory":"Projects","systemPrompt":"be short","model":"local/quote","agentPath":null,"colour":"red","x\"y":1}`,
		"Accept", "application/json")
	h.answer(res)
	if got, want := res.Header.Get("Warning"), `299 - "unknown fields were ignored: colour, x?y"`; got != want {
		t.Errorf("Warning %q, want %q", got, want)
	}
	in := h.last()
	id, alias, _ := session.ID("My.Notes", 7)
	if !alias || in.Chat != id || in.Turn.Session != "My.Notes" || in.Turn.Trust != core.Sandboxed || in.Turn.WorkingDirectory != "Projects" || in.Turn.SystemPrompt != "be short" || in.Turn.Model != "local/quote" {
		t.Errorf("turn %+v", in.Turn)
	}
}

func TestALargeMessageOfEscapesFits(t *testing.T) {
	h := open(t, options{})
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	body := `{"message":"` + strings.Repeat(`\u00e9`, turns.MaxMessage/2) + `"}`
	h.want(200, "", h.key(auth.ScopeChat), "POST", "/api/chat", body, "Accept", "application/json")
	if n := len(h.last().Text); n != turns.MaxMessage {
		t.Errorf("%d bytes arrived", n)
	}
}

func TestAnotherUsersSessionIsNotFound(t *testing.T) {
	h := open(t, options{})
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 8}
	key := h.keyOf(7, core.Vault, auth.ScopeChat, auth.ScopeRead)
	h.want(404, "not-found", key, "POST", "/api/chat", `{"message":"a","session_id":"`+id+`"}`)
	h.want(404, "not-found", key, "GET", "/api/chat/"+id+"/events", "")
	h.want(404, "not-found", key, "POST", "/api/chat/"+id+"/abort", "")
	h.want(404, "not-found", key, "GET", "/api/chat/"+id+"/stream-status", "")
	h.want(404, "not-found", h.keyOf(1, core.Vault, auth.ScopeAdmin, auth.ScopeChat), "GET", "/api/chat/"+id+"/stream-status", "")
	h.want(200, "", h.keyOf(1, core.Vault, auth.ScopeAdmin, auth.ScopeRead), "GET", "/api/chat/"+id+"/stream-status", "")
	h.want(404, "not-found", key, "GET", "/api/chat/"+uuid.NewString()+"/stream-status", "")
	if len(h.aborted) != 0 || len(h.put) != 0 {
		t.Error("something was done to it")
	}
}

func TestAFailedPutIsAnErrorAndCanBeRepeated(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.putErr = errors.New("disk I/O error near hunter2")
	m := h.want(500, "internal", key, "POST", "/api/chat", `{"message":"a"}`, "Idempotency-Key", "k")
	if strings.Contains(fmt.Sprint(m), "hunter2") {
		t.Errorf("%v", m)
	}
	h.putErr = nil
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	h.want(200, "", key, "POST", "/api/chat", `{"message":"a"}`, "Idempotency-Key", "k", "Accept", "application/json")
}

func TestStreamsPerKeyAreLimited(t *testing.T) {
	h := open(t, options{streams: 2})
	key := h.key(auth.ScopeChat)
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	a := h.do(key, "GET", "/api/chat/"+id+"/events", "")
	h.do(key, "GET", "/api/chat/"+id+"/events", "")
	res := h.do(key, "GET", "/api/chat/"+id+"/events", "")
	if m := h.answer(res); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || m["type"] != "/docs/problems/too-many-requests" {
		t.Errorf("third stream: %d %v", res.StatusCode, m)
	}
	h.want(429, "too-many-requests", key, "POST", "/api/chat", `{"message":"a"}`)
	other := h.do(h.keyOf(7, core.Vault, auth.ScopeChat), "GET", "/api/chat/"+id+"/events", "")
	if other.StatusCode != 200 {
		t.Errorf("another key of the same user: %d", other.StatusCode)
	}
	a.Body.Close()
	for { // the server sees the closed connection when it does
		res, err := h.try(key, "GET", "/api/chat/"+id+"/events", "")
		if err != nil {
			t.Fatal(err)
		}
		status := res.StatusCode
		res.Body.Close()
		if status == 200 {
			break
		}
	}
}

func TestDisconnectStopsTheRunOnlyWhenRequested(t *testing.T) {
	for _, cancel := range []bool{true, false} {
		for _, begun := range []bool{true, false} {
			h := open(t, options{})
			key := h.key(auth.ScopeChat)
			url, ended := h.ending()
			aborted, put := make(chan string, 4), make(chan core.Inbound, 1)
			h.onAbort = func(s string) { aborted <- s }
			var s *bus.Stream
			h.onPut = func(in core.Inbound) {
				if begun {
					s = h.begin(in, 1)
					h.opening(s, in)
				}
				put <- in
			}
			ctx, leave := context.WithCancel(context.Background())
			r, _ := http.NewRequestWithContext(ctx, "POST", url+"/api/chat", strings.NewReader(fmt.Sprintf(`{"message":"a","cancel_on_disconnect":%v}`, cancel)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-API-Key", key)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			in := <-put
			leave()
			res.Body.Close()
			if !cancel {
				await(t, ended) // the server has seen that the client left
			}
			if !begun {
				s = h.begin(in, 1)
				h.opening(s, in)
			}
			if cancel {
				if got := <-aborted; got != in.Chat {
					t.Errorf("aborted %s, want %s", got, in.Chat)
				}
			}
			h.finish(s, done(in, "x"))
			if cancel {
				await(t, ended)
			}
			if n := len(aborted); n != 0 {
				t.Errorf("cancel %v, begun %v: %d more aborts", cancel, begun, n)
			}
		}
	}
}

// await waits for a signal, at most a minute.
func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("it has not happened within a minute")
	}
}

// ending serves the routes at another address; ended receives when a request there has ended, for
// the first of them.
func (h *harness) ending() (url string, ended <-chan struct{}) {
	handler, c := h.handler(), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		select {
		case c <- struct{}{}:
		default:
		}
	}))
	h.t.Cleanup(server.Close)
	return server.URL, c
}

// An hourClock signals that an hour is waited for.
type hourClock struct {
	*coretest.Clock
	hour chan<- struct{}
}

func (c hourClock) After(d time.Duration) <-chan time.Time {
	fires := c.Clock.After(d)
	if d == time.Hour {
		c.hour <- struct{}{}
	}
	return fires
}

// A turn that waits is remembered for an hour to be stopped for a client that has gone; then it
// runs, and its slot is free.
func TestADisconnectIsRememberedForAnHour(t *testing.T) {
	h := open(t, options{})
	hour := make(chan struct{}, 1)
	h.api.turns.Clock = hourClock{h.clock, hour}
	url, ended := h.ending()
	put := make(chan core.Inbound, 1)
	h.onPut = func(in core.Inbound) { put <- in }
	ctx, leave := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "POST", url+"/api/chat", strings.NewReader(`{"message":"a","cancel_on_disconnect":true}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", h.key(auth.ScopeChat))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	in := <-put
	leave()
	res.Body.Close()
	await(t, hour)
	h.clock.Advance(time.Hour)
	await(t, ended)
	if n := h.api.streams.Open(); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
	s := h.begin(in, 1)
	h.opening(s, in)
	h.finish(s, done(in, "x"))
	if len(h.aborted) != 0 {
		t.Errorf("aborted %v", h.aborted)
	}
}

func TestAQueuedTurnShowsOnlyItsOwnRun(t *testing.T) {
	h := open(t, options{})
	id := uuid.NewString()
	before := core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: id}, Text: "first", Turn: &core.Options{Run: "earlier", User: 7}}
	s := h.begin(before, 1)
	h.opening(s, before)
	h.onPut = func(in core.Inbound) {
		h.finish(s, done(before, "first answer"))
		h.reply(in, "second answer")
	}
	res := h.do(h.key(auth.ScopeChat), "POST", "/api/chat", `{"message":"second","session_id":"`+id+`"}`)
	events := parseEvents(readAll(t, res))
	if got, want := kinds(events), "session user_message prompt_metadata init model text done message_stop"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, e := range events {
		if !strings.HasPrefix(e.id, res.Header.Get("X-Run-Id")+".") {
			t.Errorf("event of another run: %s", e.id)
		}
	}
}

// A countingFollower counts the readers that the bus still holds.
type countingFollower struct {
	*bus.Bus
	open atomic.Int64
}

func (c *countingFollower) Follow(ctx context.Context, f bus.Follow) iter.Seq2[bus.Entry, error] {
	c.open.Add(1)
	events := c.Bus.Follow(ctx, f)
	return func(yield func(bus.Entry, error) bool) {
		defer c.open.Add(-1)
		events(yield)
	}
}

func TestNoReaderIsLeftOnTheBus(t *testing.T) {
	h := open(t, options{})
	c := &countingFollower{Bus: h.bus}
	h.api.turns.Follower = c
	key := h.key(auth.ScopeChat)
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	h.runs["over"] = turns.Run{ID: "over", Session: id, User: 7, Ended: true}
	h.want(404, "not-found", key, "GET", "/api/chat/"+id+"/events?run=no-such-run", "")
	readAll(t, h.do(key, "GET", "/api/chat/"+id+"/events?run=over", ""))
	h.putErr = core.Errorf(core.Busy, "the disk is full")
	h.want(503, "unavailable", key, "POST", "/api/chat", `{"message":"a"}`)
	h.putErr, h.onPut = nil, func(in core.Inbound) { h.reply(in, "ok") }
	h.want(200, "", key, "POST", "/api/chat", `{"message":"a"}`, "Accept", "application/json")
	h.do(key, "GET", "/api/chat/"+id+"/events", "").Body.Close()
	h.stop()
	if n := c.open.Load(); n != 0 {
		t.Errorf("%d readers are left", n)
	}
}

// TestAReplayHasNoGapAndNoRepeat cuts a reader off at random places and lets it
// come back with its last id, while the run goes on, and expects every event once.
func TestAReplayHasNoGapAndNoRepeat(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	for range 20 {
		h.answer(h.do(key, "POST", "/api/chat", `{"message":"a"}`, "Prefer", "respond-async"))
		in := h.last()
		total := 5 + random.IntN(40)
		go func() {
			s := h.begin(in, 1)
			h.opening(s, in)
			for i := range total {
				h.say(s, core.TextDelta{Content: fmt.Sprint(i)})
			}
			h.finish(s, done(in, "all"))
		}()
		var got []sent
		path := "/api/chat/" + in.Chat + "/events?run=" + in.Turn.Run
		for len(got) == 0 || got[len(got)-1].kind() != "message_stop" {
			header := []string{}
			if len(got) > 0 {
				header = []string{"Last-Event-ID", got[len(got)-1].id}
			}
			res := h.do(key, "GET", path, "", header...)
			if res.StatusCode != 200 {
				t.Fatalf("status %d after %d events", res.StatusCode, len(got))
			}
			got = append(got, take(t, res, 1+random.IntN(15))...)
		}
		for i, e := range got {
			if want := fmt.Sprintf("%s.1:%d", in.Turn.Run, i+1); e.id != want {
				t.Fatalf("event %d has id %s, want %s", i, e.id, want)
			}
		}
		if len(got) != total+7 {
			t.Fatalf("%d events, want %d", len(got), total+7)
		}
		after := h.do(key, "GET", path, "", "Last-Event-ID", got[len(got)-1].id)
		if readAll(t, after); after.StatusCode != 204 {
			t.Errorf("a reader that has all of it: %d, want 204", after.StatusCode)
		}
	}
}

// take reads at most n events and closes the stream.
func take(t *testing.T, res *http.Response, n int) (got []sent) {
	t.Helper()
	defer res.Body.Close()
	var block strings.Builder
	body := bufio.NewReader(res.Body)
	for len(got) < n {
		line, err := body.ReadString('\n')
		block.WriteString(line)
		if err != nil {
			break
		}
		if line == "\n" {
			got = append(got, parseEvents(block.String())...)
			block.Reset()
		}
	}
	return got
}

func TestAReaderOfAFailedAttemptGetsAGapEvent(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	in := core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: uuid.NewString()}, Turn: &core.Options{Run: "r1", User: 7}}
	first := h.begin(in, 1)
	h.say(first, core.TextDelta{Content: "half"})
	second := h.begin(in, 2)
	h.say(second, core.TextDelta{Content: "whole"})
	h.finish(second, done(in, "whole"))
	res := h.do(key, "GET", "/api/chat/"+in.Chat+"/events?run=r1", "", "Last-Event-ID", "r1.1:1")
	if got := parseEvents(readAll(t, res)); kinds(got) != "gap text done message_stop" || got[0].id != "r1.2:0" || got[3].id != "r1.2:3" {
		t.Errorf("%v", got)
	}
}

func TestASessionsStreamStaysOpenForTheNextRun(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	res := h.do(key, "GET", "/api/chat/"+id+"/events", "")
	h.reply(turnOf(id, "run-1"), "a")
	h.reply(turnOf(id, "run-2"), "b")
	got := take(t, res, 16)
	if len(got) != 16 || got[15].kind() != "message_stop" || !strings.HasPrefix(got[15].id, "run-2.") {
		t.Errorf("%d events: %s", len(got), kinds(got))
	}
	h.want(404, "not-found", key, "GET", "/api/chat/"+id+"/events?run=no-such-run", "")
	h.want(400, "invalid-request", key, "GET", "/api/chat/"+id+"/events?run=a/b", "")
	h.want(400, "invalid-request", key, "GET", "/api/chat/stream/events", "")
	h.want(405, "", key, "HEAD", "/api/chat/"+id+"/events", "")
}

func TestStatusAbortAndActiveStreamsShowOwnRuns(t *testing.T) {
	h := open(t, options{})
	mine, admin := h.key(auth.ScopeChat), h.keyOf(1, core.Vault, auth.ScopeRead, auth.ScopeAdmin)
	in := core.Inbound{Address: core.Address{Chat: uuid.NewString()}, Turn: &core.Options{Run: "r-7", User: 7}}
	other := core.Inbound{Address: core.Address{Chat: uuid.NewString()}, Turn: &core.Options{Run: "r-8", User: 8}}
	s, o := h.begin(in, 1), h.begin(other, 2)
	count := func(key string) int {
		return len(h.want(200, "", key, "GET", "/api/chat/active-streams", "")["streams"].([]any))
	}
	if count(mine) != 1 || count(admin) != 2 {
		t.Errorf("mine %d, admin's %d", count(mine), count(admin))
	}
	if m := h.want(200, "", mine, "GET", "/api/chat/"+in.Chat+"/stream-status", ""); m["active"] != true || m["run_id"] != "r-7" {
		t.Errorf("%v", m)
	}
	if m := h.want(200, "", mine, "POST", "/api/chat/"+in.Chat+"/abort", ""); m["aborted"] != true {
		t.Errorf("%v", m)
	}
	h.finish(s, core.Aborted{SessionID: in.Chat, Message: "stopped"})
	h.finish(o, done(other, ""))
	if m := h.want(200, "", mine, "POST", "/api/chat/"+in.Chat+"/abort", ""); m["aborted"] != false {
		t.Errorf("%v", m)
	}
	if m := h.want(200, "", mine, "GET", "/api/chat/"+in.Chat+"/stream-status", ""); m["active"] != false {
		t.Errorf("%v", m)
	}
}

func TestListsShowOwnSessionsUnlessAdmin(t *testing.T) {
	h := open(t, options{})
	now := h.clock.Now()
	for user, id := range map[int64]string{7: "a", 8: "b"} {
		h.sessions[id] = sessions.Row{ID: id, User: user, Trust: core.Vault, CreatedAt: now, LastAccessed: now}
	}
	count := func(key string) int { return len(h.want(200, "", key, "GET", "/api/chat", "")["sessions"].([]any)) }
	if n := count(h.key(auth.ScopeRead)); n != 1 {
		t.Errorf("read: %d", n)
	}
	if n := count(h.key(auth.ScopeChat)); n != 1 {
		t.Errorf("chat: %d", n)
	}
	if n := count(h.key(auth.ScopeRead, auth.ScopeAdmin)); n != 2 {
		t.Errorf("admin: %d", n)
	}
	key := h.key(auth.ScopeRead)
	h.want(200, "", key, "GET", "/api/chat?limit=3&cursor=abc&archived=true&source=x&module=chat&agent_type=y&tag=z&search=w", "")
	q := h.query
	if q.Limit != 3 || q.Cursor != "abc" || q.Archived == nil || !*q.Archived || q.Source != "x" || q.Module != "chat" || q.AgentType != "y" || q.Tag != "z" || q.Search != "w" || q.User != 7 || q.Everybody {
		t.Errorf("query %+v", q)
	}
	for _, bad := range []string{"limit=0", "limit=201", "limit=x", "offset=-1", "archived=maybe", "cursor=a&offset=1", "search=" + strings.Repeat("x", 257), "cursor=" + strings.Repeat("x", 513)} {
		h.want(400, "invalid-request", key, "GET", "/api/chat?"+bad, "")
	}
}

func TestARevokedKeysStreamsEndWithTheNextHeartbeat(t *testing.T) {
	h := open(t, options{})
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	secret, row, err := h.keys.Create(context.Background(), auth.NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{auth.ScopeChat}}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	follow := h.do(secret, "GET", "/api/chat/"+id+"/events", "")
	stays := h.do(h.key(auth.ScopeChat), "GET", "/api/chat/"+id+"/events", "")
	h.clock.AwaitWaiters(2) // the pulse of all streams, and the look at all keys
	h.clock.Advance(15 * time.Second)
	h.clock.AwaitWaiters(2)
	if err := h.keys.Revoke(context.Background(), row.ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(15 * time.Second)
	if body := readAll(t, follow); strings.Count(body, ": \n") > 2 {
		t.Errorf("%q", body)
	}
	h.reply(core.Inbound{Address: core.Address{Chat: id}, Turn: &core.Options{Run: "r", User: 7}}, "x")
	if got := take(t, stays, 8); len(got) != 8 {
		t.Errorf("the other key's stream ended too: %s", kinds(got))
	}
}

// A notedDoor notes that someone was gone.
type notedDoor struct {
	stream.Watcher
	gone atomic.Bool
}

func (d *notedDoor) Watch(r *http.Request, gone func()) (forget func()) {
	return d.Watcher.Watch(r, func() { d.gone.Store(true); gone() })
}

// The answer to an own message needs the scope chat alone.
func TestAnAnswerGoesOnWhenItsKeyLosesAdmin(t *testing.T) {
	h := open(t, options{})
	door := &notedDoor{Watcher: h.door}
	h.api.streams.Watcher = door
	secret, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{auth.ScopeChat, auth.ScopeAdmin}}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	var s *bus.Stream
	h.onPut = func(in core.Inbound) {
		s = h.begin(in, 1)
		h.opening(s, in)
	}
	res := h.do(secret, "POST", "/api/chat", `{"message":"hi"}`)
	readUntil(t, res, "init")
	if _, err := h.keys.Change(t.Context(), row.ID, auth.KeyChange{Scopes: &[]string{auth.ScopeChat}}, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	h.door.Look()
	if door.gone.Load() {
		t.Error("the answer is cut off")
	}
	h.finish(s, done(h.last(), "x"))
	if rest := readAll(t, res); !strings.Contains(rest, "message_stop") {
		t.Errorf("the answer ends with %s", rest)
	}
}

func TestAStreamEndsWhenTheServerStops(t *testing.T) {
	h := open(t, options{})
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	res := h.do(h.key(auth.ScopeChat), "GET", "/api/chat/"+id+"/events", "")
	h.stop()
	if body := readAll(t, res); !strings.HasPrefix(body, ": open") {
		t.Errorf("%q", body)
	}
}

// turnOf returns a turn of user 7 in a conversation.
func turnOf(session, run string) core.Inbound {
	return core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: session}, Text: "x", Turn: &core.Options{Run: run, User: 7}}
}

// events opens GET …/events without run and returns what came up to n events.
func (h *harness) events(key, session string, n int, header ...string) []sent {
	h.t.Helper()
	return take(h.t, h.do(key, "GET", "/api/chat/"+session+"/events", "", header...), n)
}

func TestEventsRightAfterTheEndDeliverTheJustFinishedRun(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	id := uuid.NewString()
	h.reply(turnOf(id, "run-1"), "a")
	h.reply(turnOf(id, "run-2"), "b")
	h.clock.Advance(bus.JustEnded)
	const whole = "session user_message prompt_metadata init model text done message_stop"
	stream := h.do(key, "GET", "/api/chat/"+id+"/events", "")
	h.reply(turnOf(id, "run-3"), "c") // the stream stays open for it
	got := take(t, stream, 16)
	if kinds(got) != whole+" "+whole || got[0].id != "run-2.1:1" || got[15].id != "run-3.1:8" {
		t.Errorf("got %v", got)
	}
	got = h.events(key, id, 5, "Last-Event-ID", "run-3.1:3")
	if kinds(got) != "init model text done message_stop" || got[0].id != "run-3.1:4" {
		t.Errorf("after the third event of run-3: %v", got)
	}
	got = h.events(key, id, 9, "Last-Event-ID", "run-1.1:7")
	if kinds(got) != "message_stop "+whole || got[0].id != "run-1.1:8" || got[1].id != "run-3.1:1" {
		t.Errorf("after done of run-1: %v", got)
	}
}

func TestEventsLongAfterTheEndBeginWithTheNextRun(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	id := uuid.NewString()
	h.reply(turnOf(id, "run-1"), "a")
	h.clock.Advance(bus.JustEnded + 1)
	stream := h.do(key, "GET", "/api/chat/"+id+"/events", "")
	h.reply(turnOf(id, "run-2"), "b")
	if got := take(t, stream, 1); got[0].id != "run-2.1:1" {
		t.Errorf("got %v", got)
	}
}

func TestTheLastEventIDOfAnotherSessionIsIgnored(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	theirs, own := uuid.NewString(), uuid.NewString()
	h.reply(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: theirs}, Text: "x", Turn: &core.Options{Run: "secret", User: 8}}, "a")
	h.sessions[own] = sessions.Row{ID: own, User: 7}
	stream := h.do(key, "GET", "/api/chat/"+own+"/events", "", "Last-Event-ID", "secret.1:1")
	h.reply(turnOf(own, "mine"), "b")
	if got := take(t, stream, 1); got[0].id != "mine.1:1" {
		t.Errorf("got %v", got)
	}
}

// A turn that was stored before a restart and refused since, as by a restore, has no run: who
// sends it again is told so, and does not wait for ever.
func TestARepeatOfATurnThatWillNeverBeginIsNotFollowed(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	h.answer(h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Prefer", "respond-async", "Idempotency-Key", "k0"))
	stored := h.last()
	stored.UpdateID, stored.MessageID = strings.TrimSuffix(stored.UpdateID, "k0")+"k1", ""
	h.put = append(h.put, stored) // as by an earlier process
	res := h.do(key, "POST", "/api/chat", `{"message":"hi"}`, "Prefer", "respond-async", "Idempotency-Key", "k1")
	if m := h.answer(res); res.StatusCode != 202 || m["status"] != "ended" {
		t.Errorf("%d %v", res.StatusCode, m)
	}
	h.want(404, "not-found", key, "GET", res.Header.Get("Location"), "")
	h.want(404, "not-found", key, "POST", "/api/chat", `{"message":"hi"}`, "Idempotency-Key", "k1")
}
