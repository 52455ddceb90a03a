package v0

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
)

// Text is sent whole each time. So that a long answer does not cost its square,
// beyond eagerText bytes it is sent at most once in textEvery.
const (
	eagerText = 2 << 10
	textEvery = 100 * time.Millisecond
)

// taskTool is the tool whose calls are sub-turns.
const taskTool = "Task"

// maxCalls bounds the calls that the last event lists; a run makes fewer.
const maxCalls = 1000

// stream serves POST /api/chat/stream.
func (a *API) stream(w http.ResponseWriter, r *http.Request) error {
	t := &translator{clock: a.Clock, spawned: []string{}, calls: []call{}}
	return a.Today.Converse(w, r, t.write)
}

type call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// A resume is core.SessionResume in camelCase.
type resume struct {
	Method               string `json:"method"`
	SDKSessionValid      bool   `json:"sdkSessionValid"`
	SDKResumeAttempted   bool   `json:"sdkResumeAttempted"`
	ContextInjected      bool   `json:"contextInjected"`
	MessagesInjected     int    `json:"messagesInjected"`
	TokensEstimate       int    `json:"tokensEstimate"`
	PreviousMessageCount int    `json:"previousMessageCount"`
	LoadedFromDisk       bool   `json:"loadedFromDisk"`
	CacheHit             bool   `json:"cacheHit"`
}

// A translator writes one run as the first generation's events.
type translator struct {
	clock   core.Clock
	text    strings.Builder // the whole text; bounded by the limit of a run
	sent    int             // bytes of it
	at      time.Time       // when it was sent last
	round   bool            // text of another round follows
	calls   []call
	spawned []string
	session string
}

// write sends one event of the present format in that of the first generation;
// events that it does not have are left out.
func (t *translator) write(s *web.Stream, e bus.Entry) error {
	if e.Type == "text" {
		var d core.TextDelta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return fmt.Errorf("event %s: %w", e.ID(), err)
		}
		return t.add(s, d.Content)
	}
	if e.Type == "session" { // of a later attempt too: what was sent before is void
		t.text.Reset()
		t.sent, t.round, t.calls, t.spawned = 0, false, []call{}, []string{}
	} else if err := t.flush(s); err != nil {
		return err
	}
	event, err := t.translate(e)
	if err != nil || event == nil {
		return err
	}
	return send(s, event)
}

func send(s *web.Stream, event map[string]any) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.Send("", data)
}

func (t *translator) add(s *web.Stream, piece string) error {
	if t.round && t.text.Len() > 0 && !strings.HasPrefix(piece, "\n\n") { // kept from before the runs did it
		t.text.WriteString("\n\n")
	}
	t.round = false
	t.text.WriteString(piece)
	if t.text.Len() > eagerText && t.clock.Now().Sub(t.at) < textEvery {
		return nil
	}
	return t.flush(s)
}

// flush sends the text as it is so far, where there is more of it.
func (t *translator) flush(s *web.Stream) error {
	if t.text.Len() == t.sent {
		return nil
	}
	t.sent, t.at = t.text.Len(), t.clock.Now()
	return send(s, map[string]any{"type": "text", "content": t.text.String()})
}

func (t *translator) translate(e bus.Entry) (map[string]any, error) {
	into := func(v any) error {
		if err := json.Unmarshal(e.Data, v); err != nil {
			return fmt.Errorf("event %s: %w", e.ID(), err)
		}
		return nil
	}
	switch e.Type {
	case "session":
		var v core.Session
		err := into(&v)
		t.session = v.ID
		return map[string]any{"type": "session", "sessionId": v.ID, "title": v.Title, "trustLevel": v.TrustLevel,
			"sessionResume": map[string]any{"method": v.ResumeInfo.Method, "previousMessageCount": v.ResumeInfo.PreviousMessageCount, "sdkSessionValid": v.ResumeInfo.SDKSessionAvailable}}, err
	case "init":
		var v core.Init
		err := into(&v)
		return map[string]any{"type": "init", "tools": v.Tools, "sessionId": t.session}, err
	case "tool_use_start":
		var v core.ToolUseStart
		err := into(&v)
		if v.Parent != "" { // of a helper, which the first generation does not show
			return nil, err
		}
		t.called(v)
		return map[string]any{"type": "tool_use", "id": v.ID, "name": v.Name, "input": v.Input}, err
	case "done":
		var v core.Done
		err := into(&v)
		return t.done(v), err
	case "aborted":
		var v core.Aborted
		err := into(&v)
		return map[string]any{"type": "error", "error": v.Message, "code": "aborted", "canRetry": false, "sessionId": v.SessionID}, err
	case "error":
		var v core.Failed
		err := into(&v)
		return map[string]any{"type": "error", "error": v.Message, "code": v.Code, "canRetry": v.CanRetry, "sessionId": v.SessionID}, err
	}
	return nil, nil
}

func (t *translator) called(v core.ToolUseStart) {
	t.round = true
	if len(t.calls) < maxCalls {
		t.calls = append(t.calls, call{v.ID, v.Name, v.Input})
	}
	if v.Name == taskTool {
		t.spawned = append(t.spawned, v.ID)
	}
}

// done returns the last event. Its response is the whole text, like the text
// events, and not that of the last round only.
func (t *translator) done(v core.Done) map[string]any {
	response := v.Response
	if all := t.text.String(); strings.HasSuffix(all, response) {
		response = all
	}
	out := map[string]any{"type": "done", "response": response, "sessionId": v.SessionID, "model": v.Model, "durationMs": v.DurationMS,
		"toolCalls": t.calls, "spawned": t.spawned, "sessionResume": nil}
	if v.SessionResume != nil {
		out["sessionResume"] = resume(*v.SessionResume)
	}
	return out
}
