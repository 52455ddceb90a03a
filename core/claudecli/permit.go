package claudecli

import (
	"context"
	"encoding/json"
	"strings"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/tool"
)

// askTool is the CLI's tool for questions to the user.
const askTool = "AskUserQuestion"

// decide answers a request of the CLI's. What needs a decision is decided
// next to the turn: a user may take minutes.
func (k *talk) decide(ctx context.Context, l *line) {
	var m asks
	if err := json.Unmarshal(l.raw, &m); err != nil {
		_ = k.p.send(refuses(l.RequestID, "not understood"))
		return
	}
	q := &m.Request
	switch q.Subtype {
	case "hook_callback":
		_ = k.p.send(answers(l.RequestID, askFirst()))
		return
	case "can_use_tool":
	default:
		_ = k.p.send(refuses(l.RequestID, "not supported"))
		return
	}
	mine, cancel := context.WithCancel(ctx)
	k.mu.Lock()
	full := len(k.asks) >= maxAsks
	if !full {
		k.asks[l.RequestID] = cancel
	}
	k.mu.Unlock()
	if full {
		cancel()
		_ = k.p.send(answers(l.RequestID, deny(q.ToolUseID, "too many calls wait for a decision")))
		return
	}
	k.t.Busy(1)
	k.asking.Go(func() {
		defer cancel()
		response := k.permit(mine, q.ToolName, q.ToolUseID, q.Input)
		k.mu.Lock()
		_, wanted := k.asks[l.RequestID]
		delete(k.asks, l.RequestID)
		k.mu.Unlock()
		k.t.Busy(-1)
		if wanted && mine.Err() == nil {
			_ = k.p.send(answers(l.RequestID, response)) // a process that is gone is seen by run
		}
	})
}

// withdraw handles the CLI's cancellation of a request.
func (k *talk) withdraw(request string) {
	k.mu.Lock()
	cancel := k.asks[request]
	delete(k.asks, request)
	k.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// permit returns the answer to can_use_tool.
func (k *talk) permit(ctx context.Context, name, call string, input json.RawMessage) object {
	if len(input) == 0 || !json.Valid(input) {
		input = json.RawMessage("{}")
	}
	if !k.t.Offers(name) {
		return deny(call, "This agent does not use "+name+".")
	}
	if name == askTool {
		return k.question(ctx, call, input)
	}
	t, access, err := k.touches(name, input)
	if err != nil {
		return deny(call, core.TextOf(err))
	}
	d, err := k.r.o.Guard.Allow(ctx, k.t.Profile, t, &tool.Call{ID: call, Input: input, Turn: k.t.Tools, Access: access}, k.t.Emit, k.t.Waiting)
	switch {
	case err != nil && ctx.Err() == nil:
		k.r.o.Log.Error("a tool call could not be decided", "run", k.t.Profile.Run, "tool", name, "err", err)
		return deny(call, "The gateway could not decide about this call: the answer is no.")
	case err != nil || d.Verdict != permission.Allow:
		return deny(call, d.Text)
	}
	if k.t.Still != nil { // an approval may have taken long
		switch ok, err := k.t.Still(ctx); {
		case err != nil:
			return deny(call, "The gateway could not decide about this call: the answer is no.")
		case !ok:
			return deny(call, "This person's access changed concurrently: the call was not made.")
		}
	}
	return allow(call, input)
}

// question asks the user the model's questions.
func (k *talk) question(ctx context.Context, call string, input json.RawMessage) object {
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil || len(in["questions"]) == 0 {
		return deny(call, "questions is missing")
	}
	given, err := k.r.o.Guard.Ask(ctx, k.t.Profile, in["questions"], k.t.Emit, k.t.Waiting)
	if err != nil {
		return deny(call, core.TextOf(err))
	}
	plain := plainAnswers(given)
	if len(plain) == 0 {
		return deny(call, "The person has not answered. Go on as well as you can without, or end your turn.")
	}
	in["answers"], _ = json.Marshal(plain)
	all, err := json.Marshal(in)
	if err != nil {
		return deny(call, "the answers cannot be told")
	}
	return allow(call, all)
}

// plainAnswers returns answers by question as the CLI takes them: one text each.
func plainAnswers(given json.RawMessage) map[string]string {
	var m map[string]any
	if json.Unmarshal(given, &m) != nil {
		return nil
	}
	out := map[string]string{}
	for q, a := range m {
		switch a := a.(type) {
		case string:
			out[q] = a
		case []any:
			var parts []string
			for _, one := range a {
				if s, ok := one.(string); ok {
					parts = append(parts, s)
				}
			}
			out[q] = strings.Join(parts, ", ")
		}
	}
	return out
}

// inner are the CLI's tools that touch nothing on their own: what they start
// asks on its own.
var inner = map[string]bool{
	"Task": true, "Agent": true, "TaskCreate": true, "TaskGet": true, "TaskList": true, "TaskOutput": true, "TaskStop": true, "TaskUpdate": true,
	"TodoWrite": true, "Skill": true, "SlashCommand": true, "ToolSearch": true, "ReportFindings": true, "BashOutput": true, "KillShell": true,
	"KillBash": true, "ListAgents": true, "EnterPlanMode": true, "ExitPlanMode": true,
}

// touches returns a tool of the CLI's as the Guard knows tools, and what the call
// touches.
func (k *talk) touches(name string, input json.RawMessage) (tool.Tool, tool.Access, error) {
	x, a, err := touches(k.t.Tools, name, input)
	for _, own := range k.r.o.Files {
		if own.Name == name {
			x.Change = own.Change
		}
	}
	return x, a, err
}

// touches returns what a call of the tool name touches. A tool that is not known has
// no kind, and is no one's.
func touches(t *tool.Turn, name string, input json.RawMessage) (tool.Tool, tool.Access, error) {
	var in struct {
		FilePath string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		Command  string `json:"command"`
		URL      string `json:"url"`
	}
	if err := json.Unmarshal(input, &in); err != nil && !strings.HasPrefix(name, "mcp__") {
		return tool.Tool{}, tool.Access{}, core.Errorf(core.Invalid, "the input of %s is not understood", name)
	}
	x := tool.Tool{Name: name}
	var a tool.Access
	switch name {
	case "Read", "NotebookRead":
		x.Name, x.Kind = "Read", tool.Read
		return named(x, t, in.FilePath+in.Notebook, &a.Read, &a)
	case "Glob", "Grep", "LS":
		x.Kind = tool.Read
		if in.Path == "" {
			in.Path = "."
		}
		return named(x, t, in.Path, &a.Read, &a)
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		x.Kind, x.Effects = tool.Write, true
		return named(x, t, in.FilePath+in.Notebook, &a.Write, &a)
	case "Bash":
		x.Kind, x.Effects, a.Command, a.Dir = tool.Shell, true, in.Command, t.Dir.Path
	case "WebFetch", "WebSearch":
		x.Kind, a.URL = tool.Network, in.URL
	case "ListMcpResourcesTool", "ReadMcpResourceTool":
		x.Kind = tool.MCP
	default:
		switch {
		case strings.HasPrefix(name, "mcp__"):
			x.Kind, x.Effects = tool.MCP, true
		case inner[name]:
			x.Kind = tool.Inner
		}
	}
	return x, a, nil
}

// named inserts the real name of path into list.
func named(x tool.Tool, t *tool.Turn, path string, list *[]string, a *tool.Access) (tool.Tool, tool.Access, error) {
	if path == "" {
		return x, *a, core.Errorf(core.Invalid, "%s names no file", x.Name)
	}
	name, err := t.Name(path)
	*list = []string{name}
	return x, *a, err
}
