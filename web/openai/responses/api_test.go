package responses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
	"gatehouse/core/response"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const user = 7

// A harness is the API with runs that the test plays: each ends at once, with the
// events of end.
type harness struct {
	t    *testing.T
	db   *store.DB
	bus  *bus.Bus
	api  *API
	url  string
	key  string
	turn core.Inbound // the last one
	end  []core.Event

	mu      sync.Mutex
	ended   map[string]bool
	runs    map[string]int        // further ones of a session
	trust   map[string]core.Trust // of sessions; else core.Vault
	deleted []string
	broken  string // the session that cannot be deleted
}

func (h *harness) Put(_ context.Context, page []core.Inbound, _ *core.Cursor) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn = page[0]
	run := h.turn.Turn.Run
	s := h.bus.Begin(bus.Info{Run: run, Session: h.turn.Chat, Attempt: 1})
	for _, e := range h.end {
		s.Publish(e)
	}
	s.Publish(core.MessageStop{})
	h.ended[run] = true
	h.runs[h.turn.Chat]++
	s.End()
	return nil
}

func (h *harness) Abort(string) bool { return false }
func (h *harness) Models(auth.Principal) []answer.Model {
	return []answer.Model{{ID: "m", Model: "m"}}
}

func (h *harness) Run(_ context.Context, id string) (begun, ended bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended[id], h.ended[id], nil
}

func (h *harness) Queued(_ context.Context, update string) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended[strings.TrimPrefix(update, "openai:")], nil
}

func (h *harness) Latest(_ context.Context, session string) (string, int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turn.Turn.Run, h.runs[session], nil
}

func (h *harness) Trust(_ context.Context, session string) (core.Trust, error) {
	if trust, ok := h.trust[session]; ok {
		return trust, nil
	}
	return core.Vault, nil
}

func (h *harness) Delete(ctx context.Context, session string) error {
	if session == h.broken {
		return errors.New("the disk is full")
	}
	h.deleted = append(h.deleted, session)
	return h.db.Tx(ctx, func(tx *store.Tx) error { return h.api.Rows.ForgetSession(ctx, tx, session) })
}

func open(t *testing.T) *harness {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	h := &harness{t: t, db: storetest.Open(t, clock), bus: bus.New(nil, nil), ended: map[string]bool{}, runs: map[string]int{}, trust: map[string]core.Trust{}}
	h.bus.Clock = clock
	h.end = []core.Event{core.TextDelta{Content: "Tea."}, core.Done{Response: "Tea.", StopReason: "end_turn"}}
	keys := auth.NewKeys(h.db, clock, nil)
	var err error
	if h.key, _, err = keys.Create(t.Context(), auth.NewKey{Label: "test", User: user, Trust: core.Vault, Scopes: []string{auth.ScopeChat}}, core.Actor{Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	site, err := web.NewSite(web.SiteOptions{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	door := auth.NewAuthenticator(keys, auth.NewAdmins(h.db, auth.AdminOptions{Clock: clock}), auth.AuthenticatorOptions{Clock: clock})
	desk := answer.New(answer.Options{Authenticator: door, Inbox: h, Follower: h.bus, Runs: h, Models: h, Clock: clock, Open: 1})
	h.api = New(Options{Desk: desk, Rows: response.New(h.db, clock), Runs: h, Sessions: h})
	mux := http.NewServeMux()
	h.api.Register(mux)
	srv := httptest.NewServer(site.Wrap(mux))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	h.url = srv.URL
	return h
}

// do makes a request and returns the status and the body.
func (h *harness) do(method, path, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest(method, h.url+"/v1/responses"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// respond makes a response to input with further members, and returns its id and that
// of its session.
func (h *harness) respond(input, more string) (id, session string) {
	h.t.Helper()
	status, body := h.do("POST", "", `{"model":"m","input":`+input+more+`}`)
	var r struct{ ID string }
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 {
		h.t.Fatalf("%d %.300s", status, body)
	}
	return r.ID, h.turn.Chat
}

func (h *harness) count(query string) (n int) {
	h.t.Helper()
	if err := h.db.Get(h.t.Context(), &n, query); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// What a session said at a low trust is repeated at no higher one: a new session has
// the least ceiling of those that it repeats.
func TestANewSessionHasNoMoreTrustThanWhatItRepeats(t *testing.T) {
	t.Parallel()
	h := open(t)
	low, session := h.respond(`"Hello"`, "")
	h.trust[session] = core.Sandboxed
	h.respond(`"And?"`, `,"previous_response_id":"`+low+`","store":false`)
	if h.turn.Chat == session || h.turn.Turn.Trust != core.Sandboxed {
		t.Errorf("a branch of a sandboxed session: %v", h.turn.Turn.Trust)
	}
	h.respond(`[{"type":"item_reference","id":"`+strings.Replace(low, "resp_", "msg_", 1)+`"},{"role":"user","content":"Why?"}]`, "")
	if h.turn.Turn.Trust != core.Sandboxed {
		t.Errorf("an item of a sandboxed session: %v", h.turn.Turn.Trust)
	}
	if h.respond(`"Hello"`, ""); h.turn.Turn.Trust != core.Stranger {
		t.Errorf("one that repeats nothing is limited to %v", h.turn.Turn.Trust)
	}
}

func TestWhatReferencesRepeatIsBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, _ := h.respond(`"`+strings.Repeat("x", 100<<10)+`"`, "")
	item := `{"type":"item_reference","id":"` + strings.Replace(id, "resp_", "msg_", 1) + `i0"},`
	status, body := h.do("POST", "", `{"model":"m","input":[`+strings.Repeat(item, 200)+`{"role":"user","content":"Why?"}]}`)
	if status != 400 || !strings.Contains(body, "string_above_max_length") {
		t.Errorf("20 MB of references: %d %.200s", status, body)
	}
	if n := h.count(`SELECT count(*) FROM responses`); n != 1 {
		t.Errorf("%d responses are stored", n)
	}
	h.respond(`[`+strings.Repeat(item, 20)+`{"role":"user","content":"Why?"}]`, "")
	if n := len(h.turn.Turn.Before); n != 20 {
		t.Errorf("%d messages before", n)
	}
}

// One session that cannot be deleted keeps no other one.
func TestTidyGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, h.broken = h.respond(`"Hello"`, `,"store":false`)
	_, second := h.respond(`"Hello"`, `,"store":false`)
	h.turn.Turn = &core.Options{} // neither is the newest run
	for range 2 {
		if _, err := h.api.Tidy(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("the failure is not reported: %v", err)
		}
	}
	if fmt.Sprint(h.deleted) != fmt.Sprint([]string{second}) {
		t.Errorf("%q are deleted, want %q", h.deleted, second)
	}
}

// A session that was continued elsewhere, before its last response, stays.
func TestASessionWithOtherTurnsIsNotDeletedWithItsResponses(t *testing.T) {
	t.Parallel()
	h := open(t)
	one, session := h.respond(`"Hello"`, "")
	h.runs[session]++ // in the panel
	two, again := h.respond(`"And?"`, `,"previous_response_id":"`+one+`"`)
	if again != session {
		t.Fatalf("%s, want %s", again, session)
	}
	for _, id := range []string{one, two} {
		if status, body := h.do("DELETE", "/"+id, ""); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		if status, _ := h.do("GET", "/"+id, ""); status != 404 {
			t.Errorf("it is still shown: %d", status)
		}
	}
	if len(h.deleted) != 0 {
		t.Errorf("%q are deleted", h.deleted)
	}
}

// Clients try a status like 503 again on their own; a response that failed is read well.
func TestTheStreamOfAFailedResponseHasItsFailureAsAnEvent(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.end = []core.Event{core.Failed{Code: "overloaded", Message: "The model is overloaded.", CanRetry: true}}
	id, _ := h.respond(`"Hello"`, `,"background":true`)
	status, body := h.do("GET", "/"+id+"?stream=true", "")
	if status != 200 || !strings.Contains(body, "event: response.created") || !strings.Contains(body, "event: error") || !strings.Contains(body, "event: response.failed") {
		t.Errorf("%d %s", status, body)
	}
}

// Streams that are read again count as those that are waited for.
func TestStreamsThatAreReadAgainAreLimitedPerKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, session := h.respond(`"Hello"`, `,"background":true`)
	h.mu.Lock()
	h.ended = map[string]bool{}
	h.mu.Unlock()
	s := h.bus.Begin(bus.Info{Run: h.turn.Turn.Run, Session: session, Attempt: 1}) // it is still going on
	s.Publish(core.TextDelta{Content: "Tea"})
	for _, want := range []int{200, 429} { // both stay open
		req, _ := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/responses/"+id+"?stream=true", nil)
		req.Header.Set("Authorization", "Bearer "+h.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	if status, body := h.do("GET", "/"+id, ""); status != 200 {
		t.Errorf("the response itself: %d %s", status, body)
	}
	s.End()
}

// A stream in the background that ends before its run, as where the server stops, does
// not say that the response has failed.
func TestAStreamThatEndsEarlyDoesNotEndItsResponse(t *testing.T) {
	t.Parallel()
	h := open(t)
	id, session := h.respond(`"Hello"`, `,"background":true`)
	h.mu.Lock()
	h.ended = map[string]bool{}
	h.mu.Unlock()
	s := h.bus.Begin(bus.Info{Run: h.turn.Turn.Run, Session: session, Attempt: 1})
	s.Publish(core.TextDelta{Content: "Tea"})
	defer s.End()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", h.url+"/v1/responses/"+id+"?stream=true", nil)
	req.Header.Set("Authorization", "Bearer "+h.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	h.bus.CutAll()
	b, _ := io.ReadAll(resp.Body)
	if got := string(b); !strings.Contains(got, "event: error") || strings.Contains(got, "response.failed") {
		t.Errorf("%s", got)
	}
	if _, body := h.do("GET", "/"+id, ""); !strings.Contains(body, `"status":"queued"`) {
		t.Errorf("the response: %s", body)
	}
}

// An id that no database can compare is not found, as any other.
func TestStrangeIDsAreNotFound(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, id := range []string{"resp_%00", "resp_%ff", "resp_x", "x"} {
		if status, body := h.do("GET", "/"+id, ""); status != 404 || !strings.Contains(body, "not found") {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	for param, more := range map[string]string{"previous_response_id": `"Hello","previous_response_id":"resp_\u0000"`, "input[0].id": `[{"type":"item_reference","id":"msg_\u0000"},{"role":"user","content":"Why?"}]`} {
		if status, body := h.do("POST", "", `{"model":"m","input":`+more+`}`); status != 404 || !strings.Contains(body, param) {
			t.Errorf("%s: %d %s", param, status, body)
		}
	}
}

func TestInputTokensAreAllThatTheModelRead(t *testing.T) {
	h := open(t)
	h.end = []core.Event{core.TextDelta{Content: "Tea."}, core.Done{Response: "Tea.", StopReason: "end_turn", Usage: core.Usage{InputTokens: 5, OutputTokens: 3, CacheReadTokens: 20, CacheWriteTokens: 500}}}
	_, got := h.do("POST", "", `{"model":"m","input":"Hello"}`)
	const want = `"usage":{"input_tokens":525,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":500},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":528}`
	if !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}
