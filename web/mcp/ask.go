package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
)

type askIn struct {
	Message    string `json:"message" jsonschema:"what the agent is asked"`
	Session    string `json:"session_id,omitempty" jsonschema:"go on in this conversation; without it a new one begins"`
	Agent      string `json:"agent_path,omitempty" jsonschema:"the agent that answers, by its name; without it the default one. Only for a new conversation"`
	Model      string `json:"model,omitempty" jsonschema:"the model that answers; without it the agent's"`
	Directory  string `json:"working_directory,omitempty" jsonschema:"the folder of the vault in which the agent works"`
	Workspace  string `json:"workspace,omitempty" jsonschema:"the workspace of a new conversation, by its name"`
	Background bool   `json:"background,omitempty" jsonschema:"do not wait for the answer: read it later with session_read"`
	Once       string `json:"once,omitempty" jsonschema:"a name of your own for this question, up to 128 characters without spaces: a repeat with the same one gets the answer of the first and asks nothing again"`
}

type askOut struct {
	Session   string   `json:"session_id" jsonschema:"to go on, or to read the conversation with session_read"`
	Run       string   `json:"run_id"`
	Status    string   `json:"status" jsonschema:"done; with background queued or running, for a repeat also ended"`
	Response  string   `json:"response,omitempty"`
	Model     string   `json:"model,omitempty"`
	ToolCalls int      `json:"tool_calls,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// askAgent has an agent answer. It reports the run's progress, and a call that is cancelled
// stops the run.
func (s *Server) askAgent(ctx context.Context, c *call, in askIn) (string, askOut, error) {
	body := map[string]any{"message": in.Message, "cancel_on_disconnect": !in.Background}
	for name, value := range map[string]string{"session_id": in.Session, "agent_path": in.Agent, "model": in.Model, "working_directory": in.Directory, "workspace": in.Workspace} {
		if value != "" {
			body[name] = value
		}
	}
	q := question{method: http.MethodPost, path: []string{"api", "chat"}, body: body, header: map[string]string{}}
	if once := c.once(in.Once); once != "" {
		q.header["Idempotency-Key"] = once
		body["cancel_on_disconnect"] = !in.Background && c.inSession()
	}
	if in.Background {
		q.header["Prefer"] = "respond-async"
		var out askOut
		err := s.ask(ctx, q, &out)
		return fmt.Sprintf("The agent works on it. Read the answer later: session_read with session_id %s.", out.Session), out, err
	}
	r := &run{ctx: ctx, clock: s.o.Clock, call: c}
	q.header["Accept"] = "text/event-stream"
	q.event = r.event
	if c.answer != nil {
		defer c.answer.beat(s.o.Clock)()
	}
	if err := s.follow(ctx, q); err != nil {
		return "", askOut{}, err
	}
	return r.result()
}

// onceKey is where a program that passes on the calls of a model has its name of a call.
const onceKey = "gatehouse/once"

// once returns the name of a call that may be repeated, "" for none.
func (c *call) once(argument string) string {
	if argument != "" {
		return argument
	}
	name, _ := c.req.Params.Meta[onceKey].(string)
	return name
}

// inSession reports whether the call is in a session: then the end of its request is only a
// lost connection, and a cancellation is a message. Else they are the same.
func (c *call) inSession() bool {
	x := c.req.GetExtra()
	return x != nil && x.Header.Get("Mcp-Session-Id") != ""
}

// follow makes a request whose answer is a stream, until ctx ends. The API stops the run then,
// which may take longer: the request goes on, and counts as a stream of its caller.
func (s *Server) follow(ctx context.Context, q question) error {
	answered := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				answered <- fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		answered <- s.ask(ctx, q, nil)
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A run is what the events of a run have reported. It is used by one goroutine at a time: until
// ctx ends by that of the API.
type run struct {
	ctx   context.Context
	clock core.Clock
	call  *call
	out   askOut
	err   error // of its end

	length int       // of the answer so far, in bytes
	told   time.Time // when the answer's progress was reported
	steps  float64   // that were reported
}

// event reads an event of the API (core/event.go).
func (r *run) event(data []byte) {
	var e struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Run       string `json:"run_id"`
		Session   string `json:"session_id"`
		From      string `json:"from"`
		Model     string `json:"model"`
		Content   string `json:"content"`
		Name      string `json:"name"`
		Tool      string `json:"tool_name"`
		Command   string `json:"command"`
		Path      string `json:"path"`
		URL       string `json:"url"`
		Message   string `json:"message"`
		Partial   string `json:"partial_response"`
		Response  string `json:"response"`
		ToolCalls int    `json:"tool_calls"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "session":
		r.out.Session, r.out.Run = e.ID, e.Run
		r.report(true, "conversation "+e.ID)
	case "model":
		r.report(true, line(e.Model, 80)+" answers")
	case "text":
		r.length += len(e.Content)
		r.report(false, fmt.Sprintf("%d bytes of the answer", r.length))
	case "thinking":
		r.report(false, "thinking")
	case "tool_use_start":
		r.report(true, "uses "+line(e.Name, 80))
	case "permission_request":
		what := line(strings.TrimSpace(e.Command+e.Path+e.URL), 200)
		r.report(true, fmt.Sprintf("waits until %s (%s) is allowed: the panel and the owner's chat ask for it", line(e.Tool, 80), what))
	case "user_question":
		r.report(true, "waits for the answer to a question, in the panel")
	case "warning":
		if len(r.out.Warnings) < 20 {
			r.out.Warnings = append(r.out.Warnings, line(e.Message, 500))
		}
	case "gap": // of a run whose events are not stored any more, or begin again
		r.out.Run, _, _ = strings.Cut(e.From, ".")
		r.out.Warnings, r.length = nil, 0
	case "done":
		r.out.Session, r.out.Status, r.out.Response, r.out.Model, r.out.ToolCalls = e.Session, "done", e.Response, e.Model, e.ToolCalls
	case "aborted":
		r.err = core.Errorf(core.Conflict, "the run was stopped: %s%s", e.Message, r.partly(e.Partial))
	case "error":
		r.err = core.Errorf(core.Invalid, "%s (session_id %s)", e.Message, r.out.Session)
	}
}

func (r *run) partly(answer string) string {
	if answer == "" {
		return ""
	}
	return "\nThe answer until then:\n" + core.CutRunes(answer, maxText)
}

// report reports progress to a client that asked for it, what is not important at most once
// a second.
func (r *run) report(important bool, text string) {
	token := r.call.req.Params.GetProgressToken()
	now := r.clock.Now()
	if token == nil || !important && now.Sub(r.told) < time.Second {
		return
	}
	if !important {
		r.told = now
	}
	r.steps++
	_ = r.call.req.Session.NotifyProgress(r.ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: text, Progress: r.steps}) // it is only shown
}

// result returns the result of a run whose events have ended.
func (r *run) result() (text string, out askOut, err error) {
	if r.err != nil {
		return "", r.out, r.err
	}
	if r.out.Status == "" {
		return "", r.out, core.Errorf(core.Busy, "the events of the run ended before the run did; session_read with session_id %s shows its answer later", r.out.Session)
	}
	if long := len(r.out.Response); long > maxText {
		r.out.Response = core.CutRunes(r.out.Response, maxText) +
			fmt.Sprintf("\n(cut: the answer has %d bytes; the resource gatehouse://session/%s has all of it)", long, r.out.Session)
	}
	text = r.out.Response
	for _, w := range r.out.Warnings {
		text += "\n(warning: " + w + ")"
	}
	return text + "\n\n(session_id " + r.out.Session + ")", r.out, nil
}
