package mcp_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/mcp"
)

// operator lets everyone in as the operator.
type operator struct{}

func (operator) Identify(r *http.Request) (*http.Request, error) {
	return auth.AsOperator(r, "test"), nil
}

// An auditor fails with err, or records what was called.
type auditor struct {
	err    error
	called *[]string
}

func (a auditor) Called(_ context.Context, _ core.Actor, what, _ string) error {
	if a.called != nil {
		*a.called = append(*a.called, what)
	}
	return a.err
}

// serve returns the address of a server over api, and its log.
func serve(t *testing.T, api http.HandlerFunc, audit auditor) (url string, log *coretest.Log) {
	t.Helper()
	return serveCounted(t, api, audit, nil)
}

// serveCounted is serve with metrics.
func serveCounted(t *testing.T, api http.HandlerFunc, audit auditor, reg prometheus.Registerer) (url string, log *coretest.Log) {
	t.Helper()
	log = &coretest.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	s := mcp.New(mcp.Options{Authenticator: operator{}, API: api, Audit: audit, Files: fstest.MapFS{}, MayRead: func(core.Trust, int64, string) bool { return true },
		Now:  func(context.Context, int64) (time.Time, error) { return time.Time{}, nil },
		Bots: func() []string { return []string{"one", "two"} }, Agents: func() []mcp.Agent { return nil }, Log: logger, Registry: reg})
	site := httptest.NewServer(web.Serve(logger, web.WriteProblem, s.Serve))
	t.Cleanup(func() {
		_ = s.Close()
		site.Close()
	})
	return site.URL, log
}

// call sends one call of a tool.
func call(t *testing.T, url, tool, arguments string) string {
	t.Helper()
	_, got := post(t, url, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`)
	return got
}

// post sends a message in a session or none, and returns the session that it began and the
// answer.
func post(t *testing.T, url, session, body string) (begun, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Get("Mcp-Session-Id"), string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// A panic in the API does not end the program, and its text stays in the log.
func TestAPanicOfTheAPIIsAnError(t *testing.T) {
	url, log := serve(t, func(http.ResponseWriter, *http.Request) { panic("Antelope") }, auditor{})
	for _, c := range [][2]string{{"sessions_list", "{}"}, {"ask_agent", `{"message":"x"}`}} {
		if got := call(t, url, c[0], c[1]); !strings.Contains(got, "internal error") || strings.Contains(got, "Antelope") {
			t.Errorf("%s: %s", c[0], got)
		}
	}
	if n := strings.Count(log.String(), "Antelope"); n < 2 {
		t.Errorf("the log: %s", log.String())
	}
}

// A call that cannot be recorded is not made.
func TestACallThatCannotBeAuditedIsNotMade(t *testing.T) {
	made := false
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) { made = true }, auditor{err: io.ErrUnexpectedEOF})
	if got := call(t, url, "sessions_list", "{}"); !strings.Contains(got, "internal error") || !strings.Contains(got, `"isError":true`) || made {
		t.Errorf("%v %s", made, got)
	}
}

// An answer of the API that is none, too large or of another form is an error of the tool.
func TestAnswersOfTheAPIThatAreNoneAreErrors(t *testing.T) {
	for name, api := range map[string]http.HandlerFunc{
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusMovedPermanently) },
		"no JSON":    func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"too large": func(w http.ResponseWriter, r *http.Request) {
			for range 40 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		},
	} {
		url, _ := serve(t, api, auditor{})
		if got := call(t, url, "sessions_list", "{}"); !strings.Contains(got, `"isError":true`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A stream that ends without the run's end is no answer.
func TestARunWhoseEventsEndEarlyIsAnError(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, s := range []string{": open\n\n", "id: 1\ndata: {\"type\":\"session\",", "\"id\":\"s1\",\"run_id\":\"r\"}\n\ndata: nonsense\n\n", "data: {\"type\":\"text\",\"content\":\"Hal"} {
			_, _ = w.Write([]byte(s))
		}
	}, auditor{})
	if got := call(t, url, "ask_agent", `{"message":"x"}`); !strings.Contains(got, "session_read with session_id s1") || !strings.Contains(got, `"isError":true`) {
		t.Error(got)
	}
}

func TestAMessageThroughOneOfSeveralBotsNamesIt(t *testing.T) {
	url, _ := serve(t, func(http.ResponseWriter, *http.Request) {}, auditor{})
	if got := call(t, url, "send_message", `{"text":"x"}`); !strings.Contains(got, "name the bot: one, two") {
		t.Error(got)
	}
}

// A session is one, however often a client begins it: beginning it again does not use up the
// sessions of the key, nor end it.
func TestASessionThatBeginsAgainIsCountedOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	url, _ := serveCounted(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"sessions":[]}`)) }, auditor{}, reg)
	session, _ := post(t, url, "", initialize)
	for range mcp.MaxSessions + 1 {
		if _, got := post(t, url, session, initialize); !strings.Contains(got, "duplicate") {
			t.Fatal(got)
		}
	}
	if _, got := post(t, url, session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); !strings.Contains(got, `"result"`) {
		t.Errorf("the session has ended: %s", got)
	}
	want := "# HELP gatehouse_mcp_sessions Sessions of other agents over MCP that are open now.\n# TYPE gatehouse_mcp_sessions gauge\ngatehouse_mcp_sessions 1\n"
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gatehouse_mcp_sessions"); err != nil {
		t.Error(err)
	}
}

// A request that ends no session, as one of the generation without them, does not end the calls
// in it.
func TestADeletionOutsideTheSessionLeavesIt(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select { // a call that was ended is so at once
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
		_, _ = w.Write([]byte(`{"sessions":[]}`))
	}, auditor{})
	session, _ := post(t, url, "", initialize)
	req, err := http.NewRequestWithContext(t.Context(), "DELETE", url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%s", resp.Status)
	}
	_, got := post(t, url, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sessions_list"}}`)
	if !strings.Contains(got, "There are no such conversations") {
		t.Errorf("a call in the session: %s", got)
	}
}

// What reads is recorded, whatever the method: tools, resources, their list, prompts.
func TestEveryMethodThatReadsIsAudited(t *testing.T) {
	var called []string
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"sessions":[{"id":"s1","title":"A"}]}`))
	}, auditor{called: &called})
	call(t, url, "sessions_list", "{}")
	for method, params := range map[string]string{"resources/read": `{"uri":"gatehouse://note/x.md"}`, "resources/list": `{}`, "prompts/get": `{"name":"cook"}`} {
		called = nil
		_, got := post(t, url, "", `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":`+params+`}`)
		if len(called) != 1 || called[0] != method {
			t.Errorf("%s: recorded %v: %s", method, called, got)
		}
	}
}

// No call makes the server panic, in a session or none.
func TestNoCallIsAFaultOfTheServer(t *testing.T) {
	url, log := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }, auditor{})
	session, _ := post(t, url, "", initialize)
	for _, method := range []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
		"subscriptions/listen", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel"} {
		for _, params := range []string{``, `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":7`, `,"params":{"_meta":null}`, `,"params":{"_meta":{"progressToken":{}}}`, `,"params":{"name":null,"arguments":[]}`,
			`,"params":{"name":"search","arguments":"x"}`, `,"params":{"uri":"gatehouse://note/%zz"}`, `,"params":{"uri":"gatehouse://session/"}`, `,"params":{"notifications":{"toolsListChanged":true}}`, `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`} {
			call := `{"jsonrpc":"2.0","id":1,"method":"` + method + `"` + params + `}`
			post(t, url, "", call)
			post(t, url, session, call)
		}
	}
	if text := log.String(); strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
		t.Errorf("%.3000s", text)
	}
}

// A connection that is lost ends the request of the API, and so its run, only where no session
// goes on.
func TestALostConnectionLeavesTheRunOfASession(t *testing.T) {
	begun, lost, ended := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"type\":\"session\",\"id\":\"s1\",\"run_id\":\"r\"}\n\n"))
		begun <- struct{}{}
		<-lost
		select { // a run that is stopped is so soon
		case <-r.Context().Done():
			ended <- true
		case <-time.After(100 * time.Millisecond):
			ended <- false
		}
	}, auditor{})
	session, _ := post(t, url, "", initialize)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent","arguments":{"message":"x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Mcp-Session-Id": {session}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if close(lost); err == nil || <-ended {
		t.Errorf("the run ended with the connection (%v)", err)
	}
}
