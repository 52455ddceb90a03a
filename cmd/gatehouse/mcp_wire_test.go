package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/mcp"
)

// rpc sends a message as it is, in a session or none.
func (w *world) rpc(key, session, body string) (status int, answer string) {
	w.t.Helper()
	resp := w.postWith(http.Header{"Authorization": {"Bearer " + key}, "Mcp-Session-Id": {session}}, body)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (w *world) postWith(header http.Header, body string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", "http://"+w.cfg.Addr+"/mcp", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		if name == "Host" {
			req.Host = values[0]
		} else if values[0] != "" {
			req.Header[name] = values
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// Whatever comes in has an answer that says what is wrong with it, and none is a fault of the
// gateway.
func TestMCP_BadInputIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	o := w.outside(w.key, protocols[0])
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"empty":          {"", 400, "body"},
		"not JSON":       {"{", 400, "malformed"},
		"no JSON-RPC":    {`{"hello":1}`, 400, ""},
		"another method": {`{"jsonrpc":"2.0","id":1,"method":"files/delete"}`, 400, "files/delete"},
		"batch":          {` [{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 400, "batches are not supported"},
		"over the limit": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", mcp.MaxBody) + `"}}`, 413, "large"},
		"deep":           {strings.Repeat(`{"a":`, 100_000), 400, ""},
		"unknown tool":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}`, 200, `unknown tool`},
		"wrong type":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":7}}}`, 200, `"isError":true`},
		"unknown field":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x","sudo":true}}}`, 200, `"isError":true`},
		"missing field":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}`, 200, `"isError":true`},
		"null arguments": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sessions_list","arguments":null}}`, 200, `"result"`},
		"huge cursor":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sessions_list","arguments":{"cursor":"` + strings.Repeat("c", 5000) + `"}}}`, 200, "cursor"},
		"foreign cursor": {`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"` + strings.Repeat("!", 400) + `"}}`, 200, `"error"`},
		"negative limit": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x","limit":-5}}}`, 200, "limit"},
		"another path":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_read","arguments":{"session_id":"../../keys"}}}`, 200, `"isError":true`},
		"dots":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_read","arguments":{"session_id":".."}}}`, 200, `"isError":true`},
		"a date as path": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"journal_add","arguments":{"text":"x","date":"entries"}}}`, 200, `"isError":true`},
		"resource":       {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, 200, `"error"`},
		"no params":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, ""},
		"null id":        {`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, 400, ""},
		"object as id":   {`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := w.rpc(w.key, o.ID(), c.body)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %.500s, want %d with %q", status, body, c.status, c.want)
			}
		})
	}
	o.must("sessions_list", nil) // the session is still there
	if text := w.log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log:\n%s", text)
	}
}

// The checks before every route hold here: a page of another site reaches nothing, also not
// by a name of its own that leads here.
func TestMCP_HostOriginAndKeyAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	key := "Bearer " + w.key
	for name, c := range map[string]struct {
		header http.Header
		status int
	}{
		"no key":          {http.Header{}, 401},
		"a wrong key":     {http.Header{"Authorization": {"Bearer gh_wrong"}}, 401},
		"another host":    {http.Header{"Authorization": {key}, "Host": {"evil.example"}}, 421},
		"another origin":  {http.Header{"Authorization": {key}, "Origin": {"https://evil.example"}}, 403},
		"a page":          {http.Header{"Authorization": {key}, "Sec-Fetch-Site": {"cross-site"}}, 403},
		"no such session": {http.Header{"Authorization": {key}, "Mcp-Session-Id": {"x"}}, 404},
		"an old protocol": {http.Header{"Authorization": {key}, "Mcp-Protocol-Version": {"1999-01-01"}}, 400},
		"not JSON":        {http.Header{"Authorization": {key}, "Content-Type": {"text/plain"}}, 415},
		"X-API-Key":       {http.Header{"X-Api-Key": {w.key}}, 200},
		"a key":           {http.Header{"Authorization": {key}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			resp := w.postWith(c.header, initialize)
			defer resp.Body.Close()
			if b, _ := io.ReadAll(resp.Body); resp.StatusCode != c.status {
				t.Errorf("%s %.300s, want %d", resp.Status, b, c.status)
			}
			if resp.StatusCode == 401 && resp.Header.Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
		})
	}
	metrics, _ := w.keyFor(core.Operator, core.Vault, "metrics")
	if status, body := w.rpc(metrics, "", initialize); status != 403 {
		t.Errorf("a key without a scope of a tool: %d %s", status, body)
	}
	if resp := w.open("GET", "/mcp", nil, http.Header{"Accept": {"text/event-stream"}}); resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST, DELETE" {
		t.Errorf("GET: %s %v", resp.Status, resp.Header)
	}
}

// The gateway answers with a version that it speaks, and with the client's where it does.
func TestMCP_TheProtocolVersionIsNegotiated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2099-01-01": "2025-11-25"} {
		if _, body := w.rpc(w.key, "", strings.Replace(initialize, "2025-06-18", asked, 1)); !strings.Contains(body, `"protocolVersion":"`+want+`"`) || !strings.Contains(body, `"name":"gatehouse"`) {
			t.Errorf("%s: %s", asked, body)
		}
	}
}

// One key has a limited number of sessions: the one that was idle for longest ends.
func TestMCP_SessionsOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first, second := w.outside(w.key, protocols[0]), w.outside(w.key, protocols[0])
	for i := 2; i < mcp.MaxSessions; i++ {
		w.outside(w.key, protocols[0])
	}
	first.must("sessions_list", nil) // used last
	last := w.outside(w.key, protocols[0])
	w.until("the idle session has ended", func() bool {
		status, _ := w.rpc(w.key, second.ID(), `{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		return status == 404
	})
	first.must("sessions_list", nil)
	last.must("sessions_list", nil)
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	w.until("they are counted", func() bool {
		_, page := w.call("GET", "/metrics", nil)
		return strings.Contains(page, "gatehouse_mcp_sessions 15\n")
	})
}

// A client may send the id of a call again after its end, not while it runs.
func TestMCP_AnIDOfARunningCallIsRefused(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(hanging())
	o := w.outside(w.key, protocols[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.cfg.Addr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"ask_agent","arguments":{"message":"x"}}}`))
		if err != nil {
			return
		}
		req.Header = http.Header{"Authorization": {"Bearer " + w.key}, "Mcp-Session-Id": {o.ID()}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	w.until("the call runs", func() bool { return model.Total() == 1 })
	ping := `{"jsonrpc":"2.0","id":77,"method":"ping"}`
	if status, body := w.rpc(w.key, o.ID(), ping); status != 400 || !strings.Contains(body, "duplicate") {
		t.Errorf("%d %s", status, body)
	}
	for range 2 {
		if status, body := w.rpc(w.key, o.ID(), strings.Replace(ping, "77", "78", 1)); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
	if err := o.Close(); err != nil { // which ends the session, and so the run
		t.Error(err)
	}
	w.until("the run is stopped", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'running'`) == 0 })
}

// One key has a limited number of calls at once; more are refused as results that say so.
func TestMCP_CallsOfAKeyAreBounded(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	o := w.outside(w.key, protocols[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range mcp.MaxCalls {
		model.Script(hanging())
		go func() {
			_, _ = o.CallTool(ctx, &sdk.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"message": "x"}})
		}()
	}
	w.until("all run", func() bool { return model.Total() == mcp.MaxCalls })
	o.refused("sessions_list", nil, "at most 16 calls of one key run at once")
	other, _ := w.keyFor(core.Operator, core.Vault, "read")
	w.outside(other, protocols[0]).must("sessions_list", nil)
	cancel()
	w.until("they are free again", func() bool { _, failed, _ := o.use("sessions_list", nil); return !failed })
}

// A request may have fewer scopes than its key, never more.
func TestMCP_TheScopesHeaderNarrowsAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	header := http.Header{"Authorization": {"Bearer " + w.key}, "Gatehouse-Scopes": {"read"}}
	resp := w.postWith(header, initialize)
	_ = resp.Body.Close()
	header["Mcp-Session-Id"] = []string{resp.Header.Get("Mcp-Session-Id")}
	resp = w.postWith(header, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if text := string(b); !strings.Contains(text, `"read_note"`) || strings.Contains(text, `"ask_agent"`) || strings.Contains(text, `"pairing_list"`) {
		t.Errorf("%s", text)
	}
	reads, _ := w.keyFor(core.Operator, core.Vault, "read")
	header = http.Header{"Authorization": {"Bearer " + reads}, "Gatehouse-Scopes": {"admin"}}
	if resp := w.postWith(header, initialize); resp.StatusCode != 403 {
		t.Errorf("a key with read alone, with admin asked for: %s", resp.Status)
	}
}

// hanging is an answer that begins and does not end.
func hanging() llmtest.Reply { return llmtest.Reply{Text: []string{"Begun"}, Hang: true} }
