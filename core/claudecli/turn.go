package claudecli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// A talk is one turn with one process. Its fields are of the goroutine of run,
// but for asks.
type talk struct {
	r *Runner
	p *process
	t *Turn
	a Answer

	began   bool            // Init is shown
	message string          // id of the current message
	text    strings.Builder // of it
	words   bool            // it is counted in Said
	wrote   bool            // text was shown
	apart   bool            // the next text is shown behind a blank line
	shown   map[string]bool // messages with text shown as a stream; limited by the turn
	open    map[string]bool // tools running
	used    map[string]core.Tokens

	mu     sync.Mutex
	asks   map[string]context.CancelFunc // by request; at most maxAsks
	asking sync.WaitGroup
}

// Bounds of a turn.
const (
	maxAsks   = 32      // tool calls that wait for a decision at once
	maxResult = 100_000 // bytes of a tool's result that are shown
	maxReason = 300     // bytes of the CLI's error
)

// run asks and listens until the turn has its result, the process is gone, or
// ctx ends.
func (k *talk) run(ctx context.Context) Answer {
	lines := k.p.begin()
	defer func() {
		k.p.finish(lines)
		k.settle()
	}()
	within, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan error, 1)
	fresh := k.p.used.IsZero()
	go func() { asked <- k.ask(fresh) }() // the CLI may have much to say before it reads all
	for {
		select {
		case err := <-asked:
			if asked = nil; err != nil {
				return k.lost(within, lines)
			}
		case l := <-lines.lines:
			if k.hear(within, &l) {
				return k.a
			}
		case <-k.p.gone:
			return k.crashed()
		case <-ctx.Done():
			stop()
			if asked == nil {
				k.interrupt(lines)
			}
			k.a.Text = k.said()
			return k.a
		}
	}
}

// ask sends the message, to a new process behind its greeting.
func (k *talk) ask(fresh bool) error {
	if fresh {
		if err := k.p.send(hello(k.t.System, k.t.Replace)); err != nil {
			return err
		}
	}
	return k.p.send(says(k.t.Line, k.t.Said))
}

// lost ends a process that cannot be written to, and hears what it still says: its
// output is read until nothing is left of it.
func (k *talk) lost(ctx context.Context, lines *turnLines) Answer {
	k.p.kill()
	ended := false
	for {
		select {
		case l := <-lines.lines:
			ended = ended || k.hear(ctx, &l)
		case <-k.p.gone:
			if ended {
				return k.a
			}
			return k.crashed()
		}
	}
}

// interrupt asks the CLI to stop, so that its transcript records it, and waits up to
// Grace.
func (k *talk) interrupt(lines *turnLines) {
	if k.p.send(interrupt()) != nil {
		return
	}
	patience := k.r.o.Clock.After(k.r.o.Grace)
	for {
		select {
		case l := <-lines.lines:
			switch l.Type {
			case "result":
				k.result(&l)
				k.a.Fault = nil
				return
			case "control_request":
				_ = k.p.send(refuses(l.RequestID, "the turn was stopped"))
			}
		case <-k.p.gone:
			return
		case <-patience:
			return
		}
	}
}

// settle waits for pending decisions, and withdraws the report of running tools.
func (k *talk) settle() {
	k.mu.Lock()
	for _, cancel := range k.asks {
		cancel()
	}
	k.mu.Unlock()
	k.asking.Wait()
	k.t.Busy(-len(k.open))
}

// hear takes one line, and reports whether the turn has ended.
func (k *talk) hear(ctx context.Context, l *line) bool {
	switch l.Type {
	case "stream_event":
		k.t.Heard()
		k.stream(l)
	case "assistant":
		k.t.Heard()
		k.assistant(l)
	case "user":
		k.t.Heard()
		k.results(l)
	case "system":
		return k.system(l)
	case "control_request":
		k.t.Heard()
		k.decide(ctx, l)
	case "control_cancel_request":
		k.withdraw(l.RequestID)
	case "result":
		k.result(l)
		return true
	}
	return false
}

func (k *talk) system(l *line) (ended bool) {
	switch l.Subtype {
	case "init":
		k.init(l)
	case "api_retry": // not heard: a provider that only refuses is silent
		var m retries
		if json.Unmarshal(l.raw, &m) == nil && (m.Status == http.StatusUnauthorized || m.Status == http.StatusForbidden) {
			k.fail(&Fault{Code: CodeAuth, Text: texts.Text("cli_key"), Err: fmt.Errorf("status %d", m.Status)})
			return true
		}
	}
	return false
}

// init reports once what answers.
func (k *talk) init(l *line) {
	var m starts
	if k.began || json.Unmarshal(l.raw, &m) != nil {
		return
	}
	k.began = true
	init := core.Init{Tools: m.Tools, PermissionMode: m.PermissionMode, MCPServers: []string{}, Runtime: "Claude Code " + core.CutRunes(core.CleanName(m.Version), 40)}
	if init.Tools == nil {
		init.Tools = []string{}
	}
	if k.t.Profile.Auto {
		init.PermissionMode = "auto"
	}
	for _, s := range m.MCPServers {
		if s.Status == "connected" {
			init.MCPServers = append(init.MCPServers, s.Name)
		}
	}
	k.t.Emit(init)
	k.t.Emit(core.ModelChosen{Model: Prefix + k.t.Model})
}

// stream shows the model's output as it arrives, without that of sub-agents.
func (k *talk) stream(l *line) {
	var m streamed
	if l.ParentToolUseID != "" || json.Unmarshal(l.raw, &m) != nil {
		return
	}
	switch m.Event.Type {
	case "message_start":
		k.next(m.Event.Message.ID)
	case "content_block_delta":
		switch d := m.Event.Delta; d.Type {
		case "text_delta":
			k.say(d.Text)
		case "thinking_delta":
			if d.Thinking != "" {
				k.shown[k.message] = true
				k.t.Emit(core.Thinking{Content: d.Thinking})
			}
		}
	}
}

// next begins another message.
func (k *talk) next(id string) {
	if id != k.message {
		k.a.Text = k.said()
		k.message, k.words = id, false
		k.text.Reset()
	}
}

func (k *talk) say(text string) {
	if text == "" {
		return
	}
	k.shown[k.message] = true
	if !k.words {
		k.words = true
		k.a.Said++
	}
	k.text.WriteString(text)
	if k.apart { // of the text before the last calls
		text = "\n\n" + strings.TrimLeft(text, "\n")
	}
	k.wrote, k.apart = true, false
	k.t.Emit(core.TextDelta{Content: text})
}

// said returns the text of the newest message that has some.
func (k *talk) said() string {
	if k.text.Len() > 0 {
		return k.text.String()
	}
	return k.a.Text
}

// assistant handles one complete block of a message.
func (k *talk) assistant(l *line) {
	var m spoken
	if json.Unmarshal(l.raw, &m) != nil {
		return
	}
	if l.ParentToolUseID != "" { // of a helper: its text is for the agent
		for _, b := range blocks(m.Message.Content) {
			if b.Type == "tool_use" {
				k.t.Emit(core.ToolUseStart{ID: b.ID, Name: b.Name, Input: b.Input, Parent: l.ParentToolUseID})
			}
		}
		return
	}
	if m.Message.Usage != nil {
		k.used[m.Message.ID] = *m.Message.Usage
	}
	k.next(m.Message.ID)
	streamed := k.shown[m.Message.ID]
	for _, b := range blocks(m.Message.Content) {
		switch b.Type {
		case "text":
			if !streamed {
				k.say(b.Text)
				k.shown[m.Message.ID] = false
			}
		case "thinking":
			if !streamed && b.Thinking != "" {
				k.t.Emit(core.Thinking{Content: b.Thinking})
			}
		case "tool_use":
			if !k.open[b.ID] {
				k.open[b.ID] = true
				k.a.Calls++
				k.t.Busy(1)
			}
			k.apart = k.wrote
			k.t.Emit(core.ToolUseStart{ID: b.ID, Name: b.Name, Input: b.Input})
		}
	}
}

// results handles the results of tools.
func (k *talk) results(l *line) {
	var m spoken
	if json.Unmarshal(l.raw, &m) != nil {
		return
	}
	for _, b := range blocks(m.Message.Content) {
		if b.Type != "tool_result" {
			continue
		}
		if k.open[b.ToolUseID] {
			delete(k.open, b.ToolUseID)
			k.t.Busy(-1)
		}
		var text []string
		for _, c := range blocks(b.Content) {
			if c.Type == "text" {
				text = append(text, c.Text)
			}
		}
		k.t.Emit(core.ToolResult{ToolUseID: b.ToolUseID, Result: core.CutRunes(strings.ToValidUTF8(strings.Join(text, "\n"), "�"), maxResult), IsError: b.IsError, Parent: l.ParentToolUseID})
	}
}

// result ends the turn.
func (k *talk) result(l *line) {
	var m ends
	if err := json.Unmarshal(l.raw, &m); err != nil {
		k.fail(&Fault{Code: CodeUnavailable, Text: texts.Text("cli_garbage"), CanRetry: true, Err: err})
		return
	}
	if m.Usage != nil {
		k.a.Usage, k.a.Counted = core.Tokens(*m.Usage), true
	}
	if m.Cost != nil && *m.Cost >= k.p.cost {
		micro := int64((*m.Cost-k.p.cost)*1e6 + .5)
		k.a.MicroUSD, k.p.cost = &micro, *m.Cost
	}
	k.a.Text = k.said()
	switch reason := k.r.clean(m.Result); {
	case m.IsError && (m.Status == http.StatusUnauthorized || strings.Contains(strings.ToLower(reason), "/login")):
		k.fail(&Fault{Code: CodeAuth, Text: texts.Text("cli_login"), Err: fmt.Errorf("claude: %s", reason)})
	case m.IsError && reason == "":
		k.fail(&Fault{Code: CodeUnavailable, Text: texts.Text("cli_error", texts.With{"Why": core.CutRunes(core.CleanName(l.Subtype), 40)}), CanRetry: true})
	case m.IsError:
		k.fail(&Fault{Code: CodeUnavailable, Text: texts.Text("cli_reports", texts.With{"Why": reason}), CanRetry: true})
	case m.Result != "" && k.a.Text == "":
		k.a.Text, k.a.Said = m.Result, 1
	case k.a.Text == "":
		k.fail(&Fault{Code: "empty", Text: texts.Text("cli_empty"), CanRetry: true})
	}
}

// fail ends the turn with a fault.
func (k *talk) fail(f *Fault) {
	k.a.Text, k.a.Fault = k.said(), f
	k.count()
}

// crashed returns the end of a turn after its process has gone.

func (k *talk) crashed() Answer {
	complaint := k.r.clean(k.p.stderr.String())
	text := texts.Text("cli_crashed")
	if !k.began {
		text = texts.Text("cli_not_begun")
	}
	k.fail(&Fault{Code: CodeUnavailable, Text: text, CanRetry: true, Err: fmt.Errorf("claude: exit code %d: %s", k.p.code, complaint)})
	return k.a
}

// count adds up what the messages say they took, where no result does.
func (k *talk) count() {
	if k.a.Counted || len(k.used) == 0 {
		return
	}
	k.a.Counted = true
	for _, u := range k.used {
		k.a.Usage.Input += u.Input
		k.a.Usage.Output += u.Output
		k.a.Usage.CacheRead += u.CacheRead
		k.a.Usage.CacheWrite += u.CacheWrite
	}
}

// clean returns a text of the CLI's fit for users and logs: short, without our key.
func (r *Runner) clean(s string) string {
	if r.o.Key != "" {
		s = strings.ReplaceAll(s, r.o.Key, "[redacted]")
	}
	return core.CutRunes(strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " "), maxReason)
}
