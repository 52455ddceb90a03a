package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// occur holds a stream against the lines of an example: each occurs in it, in
// their order, with at least its fields; "*" matches any value.
func occur(t *testing.T, file string, events []sent) {
	t.Helper()
	example, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range bytes.Lines(bytes.TrimSpace(example)) {
		var want map[string]any
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		for ; at < len(events); at++ {
			var got map[string]any
			if err := json.Unmarshal([]byte(events[at].data), &got); err != nil {
				t.Fatal(err)
			}
			if within(want, got) {
				break
			}
		}
		if at == len(events) {
			t.Fatalf("%s: nowhere after what stands before it: %s\n%v", file, line, events)
		}
		at++
	}
}

// within reports whether got has all that want has.
func within(want, got any) bool {
	if want == "*" {
		return got != nil
	}
	w, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, got)
	}
	g, ok := got.(map[string]any)
	for k, v := range w {
		ok = ok && within(v, g[k])
	}
	return ok
}

func TestV0_StreamHasItsOwnFormat(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat, auth.ScopeAdmin)
	h.onPut = func(in core.Inbound) {
		s := h.begin(in, 1)
		h.opening(s, in)
		h.say(s, core.Thinking{Content: "hm"}, core.TextDelta{Content: "I will look "}, core.TextDelta{Content: "at the plan."},
			core.ToolUseStart{ID: "call1", Name: "Read", Input: json.RawMessage(`{"file_path":"Plans/garden.md"}`)}, core.ToolResult{ToolUseID: "call1", Result: "beds"},
			core.ToolUseStart{ID: "call2", Name: "Task", Input: json.RawMessage(`{"prompt":"count"}`)}, core.ToolResult{ToolUseID: "call2", Result: "3"},
			core.Warning{Code: "x", Message: "y"}, core.TextDelta{Content: "Three beds:"}, core.TextDelta{Content: " roses, beans, peas."})
		d := done(in, "Three beds: roses, beans, peas.")
		d.SessionResume, d.ToolCalls = &core.SessionResume{Method: "new", PreviousMessageCount: 10, LoadedFromDisk: true}, 2
		h.finish(s, d)
	}
	res := h.do(key, "POST", "/api/chat/stream", `{"message":"a","sessionId":"mine","agentPath":".parachute/agents/cook.md"}`)
	events := parseEvents(readAll(t, res))
	occur(t, "testdata/first-generation.jsonl", events)
	if in := h.last(); in.Turn.Session != "mine" || in.Turn.Agent != "cook" || in.Turn.Alone || res.Header.Get("X-Run-Id") != in.Turn.Run {
		t.Errorf("%+v", in.Turn)
	}
	known := map[string]bool{"session": true, "init": true, "text": true, "tool_use": true, "done": true}
	for _, e := range events {
		if !known[e.kind()] || e.id != "" {
			t.Errorf("an event that its clients do not know: %+v", e)
		}
	}
	if got := kinds(events); !strings.HasSuffix(got, " done") || strings.Count(got, "done") != 1 {
		t.Errorf("%s", got)
	}
}

// However a run ends, its stream has one last event.
func TestV0_StreamEndsOnce(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	for _, c := range []struct {
		last core.Event
		want string
	}{
		{core.Aborted{SessionID: "s", Message: "stopped by somebody", PartialResponse: "half"}, `"code":"aborted"`},
		{core.Failed{Code: "rate_limited", Message: "The model is busy.", CanRetry: true, SessionID: "s"}, `"canRetry":true`},
	} {
		h.onPut = func(in core.Inbound) {
			s := h.begin(in, 1)
			h.opening(s, in)
			h.say(s, core.TextDelta{Content: "half"})
			h.finish(s, c.last)
		}
		events := parseEvents(readAll(t, h.do(key, "POST", "/api/chat/stream", `{"message":"a"}`)))
		if got := kinds(events); got != "session init text error" || !strings.Contains(events[3].data, c.want) {
			t.Errorf("%s: %v", got, events)
		}
	}
}

// A long answer is not sent as often as pieces of it come: all of it each time
// would be its square.
func TestV0_LongAnswerIsNotSentForEveryDelta(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	const pieces = 500 // within what the bus keeps for a reader
	h.onPut = func(in core.Inbound) {
		s := h.begin(in, 1)
		h.opening(s, in)
		for range pieces {
			h.say(s, core.TextDelta{Content: strings.Repeat("0123456789", 10)})
		}
		h.finish(s, done(in, strings.Repeat("0123456789", 10*pieces)))
	}
	body := readAll(t, h.do(key, "POST", "/api/chat/stream", `{"message":"a"}`))
	events := parseEvents(body)
	if len(body) > 1<<20 { // all of it each time would be 12 MB
		t.Errorf("%d bytes for an answer of %d", len(body), 100*pieces)
	}
	last := events[len(events)-2]
	if last.kind() != "text" || !strings.Contains(last.data, strings.Repeat("0123456789", 10*pieces)) {
		t.Errorf("the last text is not all of it: %.100s", last.data)
	}
}

func TestV0_SessionsAreShared(t *testing.T) {
	h := open(t, options{})
	furnish(h, 7)
	key, others := h.key(auth.ScopeChat, auth.ScopeRead), h.keyOf(8, core.Vault, auth.ScopeChat, auth.ScopeRead)
	sid, _, _ := (*sessionsDouble)(h).Locate(t.Context(), 7, "s1")
	list := h.want(200, "", key, "GET", "/api/chat/sessions", "")["sessions"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != sid || list[0].(map[string]any)["agentPath"] != "vault-agent" {
		t.Errorf("%v", list)
	}
	if list := h.want(200, "", others, "GET", "/api/chat/sessions", "")["sessions"].([]any); len(list) != 0 {
		t.Errorf("somebody else is shown %v", list)
	}
	if m := h.want(200, "", key, "GET", "/api/chat/session/"+sid, ""); m["id"] != sid || m["title"] != "old" || m["messages"] == nil {
		t.Errorf("%v", m)
	}
	archived := func() any { return h.want(200, "", key, "GET", "/api/chat/session/"+sid, "")["archived"] }
	counts := func(key string) string {
		return fmt.Sprint(h.want(200, "", key, "GET", "/api/stats", "")["sessions"])
	}
	if m := h.want(200, "", key, "POST", "/api/chat/session/"+sid+"/archive", ""); m["success"] != true || archived() != true {
		t.Errorf("%v", m)
	}
	if got := counts(key) + counts(others); got != "map[active:0 archived:1 total:1]map[active:0 archived:0 total:0]" {
		t.Error(got)
	}
	if m := h.want(200, "", key, "POST", "/api/chat/session/"+sid+"/unarchive", ""); m["success"] != true || archived() != false {
		t.Errorf("%v", m)
	}
	h.want(400, "invalid-request", key, "DELETE", "/api/chat/session", "")
	h.want(404, "not-found", key, "DELETE", "/api/chat/session?agentPath=cook", "")
	h.want(404, "not-found", others, "DELETE", "/api/chat/session?agentPath=vault-agent", "")
	if m := h.want(200, "", key, "DELETE", "/api/chat/session", `{"agentPath":"vault-agent"}`); m["sessionId"] != sid || archived() != true {
		t.Errorf("%v", m)
	}
	h.want(404, "not-found", key, "DELETE", "/api/chat/session?agentPath=vault-agent", "")
	h.want(200, "", key, "POST", "/api/chat/session/"+sid+"/unarchive", "")
	res := h.do(key, "DELETE", "/api/chat/session", `{"agent_path":"vault-agent","colour":"red"}`)
	if m := h.answer(res); res.StatusCode != 200 || m["sessionId"] != sid || archived() != true || !strings.Contains(res.Header.Get("Warning"), "colour") {
		t.Errorf("by the field's other name, beside an unknown one: %d %v %q", res.StatusCode, m, res.Header.Get("Warning"))
	}
	h.want(400, "invalid-request", key, "DELETE", "/api/chat/session", `{"agentPath":7}`)
	h.want(404, "not-found", others, "DELETE", "/api/chat/session/"+sid, "")
	h.want(200, "", key, "DELETE", "/api/chat/session/"+sid, "")
	if got := counts(key); got != "map[active:0 archived:0 total:0]" {
		t.Error(got)
	}
	if agents := h.want(200, "", key, "GET", "/api/agents", "")["agents"].([]any); len(agents) != 2 || fmt.Sprint(agents[1]) != "map[description:Cooks. model:local/quote name:cook path:.parachute/agents/cook.md]" {
		t.Errorf("%v", agents)
	}
	if m := h.want(200, "", key, "GET", "/api/stats", ""); fmt.Sprint(m["memory"]) != "map[loaded_sessions:3 rss_bytes:1.048576e+06]" {
		t.Errorf("%v", m)
	}
}

// The names of the first generation's routes are no session ids of today's, and
// other methods on them get the methods that exist.
func TestV0_PathNamesAreNotSessionIDs(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.Scopes()...)
	for _, id := range []string{"session", "sessions", "stream", "active-streams"} {
		h.want(400, "invalid-request", key, "POST", "/api/chat", `{"message":"a","session_id":"`+id+`"}`)
		if id != "session" { // where messages is an id
			h.want(400, "invalid-request", key, "GET", "/api/chat/"+id+"/messages", "")
		}
	}
	for path, allow := range map[string]string{"/api/chat/stream": "POST", "/api/chat/session": "DELETE", "/api/agents": "GET", "/api/chat/session/x": "GET, DELETE"} {
		res := h.do(key, "PUT", path, `{}`)
		if h.answer(res); res.StatusCode != 405 || res.Header.Get("Allow") != allow {
			t.Errorf("%s: %d %q", path, res.StatusCode, res.Header.Get("Allow"))
		}
		h.want(401, "unauthorized", "", "PUT", path, `{}`)
	}
}
