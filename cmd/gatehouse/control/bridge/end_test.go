package bridge_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/cmd/gatehouse/control/bridge"
)

// A wire answers requests in this process: with what it returns for a method.
type wire func(r *http.Request, id, method string) (status int, body string)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&m)
	}
	status, body := w(r, string(m.ID), m.Method)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"text/event-stream"}}
	if strings.HasPrefix(body, "{") {
		header.Set("Content-Type", "application/json")
	}
	if m.Method == "initialize" {
		header.Set("Mcp-Session-Id", rand.Text())
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// begun is the answer to initialize.
func begun(id string) string {
	return `data: {"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-06-18"}}` + "\n\n"
}

// pass has a bridge over w pass on input, and returns what it wrote.
func pass(ctx context.Context, w wire, input io.Reader) (string, error) {
	var out strings.Builder
	err := bridge.Run(ctx, bridge.Options{Client: &http.Client{Transport: w}, URL: "http://gatehouse/mcp", In: input, Out: &out,
		Header: func() (http.Header, error) { return http.Header{}, nil }})
	return out.String(), err
}

// What was asked before the input ended is answered, however long it takes.
func TestCallsThatRunWhenTheInputEndsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []string
		out, err := pass(t.Context(), func(r *http.Request, id, method string) (int, string) {
			methods = append(methods, r.Method+" "+method)
			if method == "initialize" {
				return 200, begun(id)
			}
			if method == "tools/call" {
				time.Sleep(time.Hour)
			}
			return 200, `data: {"id":` + id + `,"result":"late"}` + "\n\n"
		}, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`))
		if err != nil || !strings.Contains(out, `{"id":2,"result":"late"}`) || strings.Contains(out, "error") {
			t.Errorf("%v %s", err, out)
		}
		if got := strings.Join(methods, ", "); got != "POST initialize, POST tools/call, DELETE " {
			t.Error(got)
		}
	})
}

// An interrupted program ends its session, which stops what runs in it, and answers nothing.
func TestAnInterruptAfterTheInputHasEndedEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := false
		out, err := pass(ctx, func(r *http.Request, id, method string) (int, string) {
			if method == "initialize" {
				return 200, begun(id)
			}
			if r.Method == http.MethodDelete {
				ended = true
				return 204, ""
			}
			<-r.Context().Done()
			return 200, ""
		}, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`+"\n"))
		if err != nil || !ended || strings.Contains(out, `"id":2`) {
			t.Errorf("%v %v %s", err, ended, out)
		}
		synctest.Wait()
	})
}

// Progress is no answer: a call whose answer breaks off after it is answered with an error.
func TestAnAnswerThatBreaksOffIsAnError(t *testing.T) {
	for name, body := range map[string]string{"nothing": ": open\n\n", "progress": `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}` + "\n\n",
		"another's": `data: {"jsonrpc":"2.0","id":8,"result":{}}` + "\n\n"} {
		out, err := pass(t.Context(), func(*http.Request, string, string) (int, string) { return 200, body }, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`))
		if err != nil || !strings.Contains(out, "ended the answer before it was complete") || !strings.Contains(out, `"id":7`) || strings.Contains(out, "nil>") {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

// An answer has the id that the client wrote, also where the gateway writes it differently.
func TestAnIDMayBeWrittenDifferently(t *testing.T) {
	out, _ := pass(t.Context(), func(*http.Request, string, string) (int, string) {
		return 200, `data: {"jsonrpc":"2.0","id":"\u003cé\u003e","result":{}}` + "\n\n"
	}, strings.NewReader(`{"jsonrpc":"2.0","id":"<\u00e9>","method":"ping"}`))
	if strings.Contains(out, "error") {
		t.Error(out)
	}
}

// An error of the protocol reaches the client as it is, whatever its HTTP status: clients act by
// its code.
func TestErrorsOfTheProtocolArePassedOn(t *testing.T) {
	out, err := pass(t.Context(), func(*http.Request, string, string) (int, string) {
		return 400, `{"jsonrpc":"2.0","id":7,` + "\n" + `"error":{"code":-32022,"message":"no such version","data":{"supported":["2025-11-25"]}}}`
	}, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"server/discover"}`))
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"no such version","data":{"supported":["2025-11-25"]}}}` + "\n"; err != nil || out != want {
		t.Errorf("%v %s", err, out)
	}
}

// A line that is no message is answered, and what the client answers is not.
func TestLinesThatAreNoCalls(t *testing.T) {
	var mu sync.Mutex
	var got []string
	out, err := pass(t.Context(), func(_ *http.Request, id, method string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, id+method)
		return 202, ""
	}, strings.NewReader("{\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n"))
	if err != nil || strings.Count(out, `"id":null`) != 2 || strings.Contains(out, `"id":5`) || !slices.Equal(got, []string{"5"}) {
		t.Errorf("%v %q %s", err, got, out)
	}
}

// Calls that find their session forgotten together begin one session, and all are answered.
func TestCallsThatRunAtOnceBeginTheSessionAgainOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begins := 0
		in, to := io.Pipe()
		go func() {
			_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`+"\n")
			for _, id := range []string{"1", "2", "3"} {
				_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`+"\n")
			}
			_ = to.Close()
		}()
		out, err := pass(t.Context(), func(_ *http.Request, id, method string) (int, string) {
			mu.Lock()
			known := begins
			if method == "initialize" {
				begins++
			}
			mu.Unlock()
			if method == "initialize" {
				return 200, begun(id)
			}
			if method == "tools/list" && known == 1 {
				time.Sleep(time.Second) // until all three are here
				return 404, "session not found"
			}
			return 200, `data: {"id":` + id + `,"result":{}}` + "\n\n"
		}, in)
		if err != nil || begins != 2 || strings.Contains(out, "error") || strings.Count(out, "result") != 4 {
			t.Errorf("%v, begun %d times: %s", err, begins, out)
		}
	})
}

// In the generation without sessions, the end of the request cancels a call. It has no answer.
func TestCancellingACallOutsideASessionEndsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, passed := false, false
		out, err := pass(t.Context(), func(r *http.Request, _, method string) (int, string) {
			if passed = passed || method == "notifications/cancelled"; passed {
				return 202, ""
			}
			<-r.Context().Done()
			ended = true
			return 200, ""
		}, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask_agent","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
`))
		if err != nil || out != "" || passed || !ended {
			t.Errorf("%v %v %v %s", err, ended, passed, out)
		}
	})
}

// A cancellation that has overtaken its call is passed on again once the call has arrived.
func TestACancellationThatOvertookItsCallIsPassedOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, after atomic.Int32
		var arrived atomic.Bool
		_, err := pass(t.Context(), func(_ *http.Request, id, method string) (int, string) {
			switch method {
			case "initialize":
				return 200, begun(id)
			case "notifications/cancelled":
				if n.Add(1); arrived.Load() {
					after.Add(1)
				}
				return 202, ""
			case "tools/call":
				time.Sleep(time.Second)
				arrived.Store(true)
				return 200, `data: {"id":7,"result":{}}` + "\n\n"
			}
			return 204, ""
		}, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","id":7,"method":"tools/call"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
`))
		if err != nil || n.Load() != 2 || after.Load() != 1 {
			t.Errorf("%v: passed on %d times, %d after the call", err, n.Load(), after.Load())
		}
	})
}

// broken fails to write.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// When nothing reads the answers any more it ends, and the session with it, though the input is
// still open.
func TestWithoutAReaderItEnds(t *testing.T) {
	deleted := make(chan bool, 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted <- true
			return
		}
		w.Header().Set("Mcp-Session-Id", "s1")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, begun("1"))
	}))
	defer site.Close()
	in, to := io.Pipe()
	defer to.Close()
	go func() { _, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n") }()
	if err := bridge.Run(t.Context(), bridge.Options{Client: http.DefaultClient, URL: site.URL, In: in, Out: broken{}, Header: func() (http.Header, error) { return http.Header{}, nil }}); err != nil {
		t.Error(err)
	}
	<-deleted
}
