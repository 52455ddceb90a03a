package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp/entry"
)

// Bounds of what a server reports of its tools.
const (
	maxAbout  = 4000     // bytes of a description
	maxSchema = 64 << 10 // bytes of a schema
	maxPages  = 32       // of a list of tools
)

// tools are those of a server, as it named them at some time. They are not
// changed once they are known.
type tools struct {
	s       *entry.Server
	at      time.Time
	list    []listed // at most MaxTools
	leftOut int      // that were not as they must be
}

// listed is one of them.
type listed struct {
	name string // as the server has it
	tool tool.Tool
}

// Warning is the code of the warnings of an Offer.
const Warning = "mcp"

func (o *Offer) warn(text string) {
	o.Warnings = append(o.Warnings, core.Warning{Code: Warning, Message: text})
}

// gather adds to o what the servers offer to t.
func (v *Servers) gather(ctx context.Context, t *tool.Turn, list []*entry.Server, o *Offer) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		i     int
		tools *tools
		err   error
	}
	answers := make(chan answer, len(list))
	late := v.o.Clock.After(firstWait)
	for i, s := range list {
		go func() { // ends with ctx at the latest
			found, err := v.toolsOf(ctx, s, t)
			answers <- answer{i, found, err}
		}()
	}
	found, errs := make([]*tools, len(list)), make([]error, len(list))
	for i := range errs {
		errs[i] = core.Errorf(core.Busy, "it has not answered yet; its tools come once it has")
	}
	for waiting := len(list); waiting > 0; {
		select {
		case a := <-answers:
			found[a.i], errs[a.i] = a.tools, a.err
			waiting--
		case <-late:
			waiting = 0
		case <-ctx.Done():
			waiting = 0
		}
	}
	for i, s := range list {
		if found[i] == nil && core.KindOf(errs[i]) == core.Busy { // perhaps in the very last moment
			if known := v.knows(s, t); known != nil {
				found[i], errs[i] = known, nil
			}
		}
		if errs[i] != nil {
			o.unavailable(s, t, errs[i])
			continue
		}
		v.add(s, found[i], o)
	}
}

// unavailable means that a server is not there: to the owner why, to others only that.
func (o *Offer) unavailable(s *entry.Server, t *tool.Turn, err error) {
	text := "The MCP server " + s.Name + " is not available"
	if t.Trust == core.Full {
		text += ": " + reason(s, err)
	}
	o.warn(text + ".")
}

func (v *Servers) add(s *entry.Server, found *tools, o *Offer) {
	o.Servers = append(o.Servers, s.Name)
	for _, l := range found.list {
		if len(o.Tools) >= MaxTools {
			o.warn(fmt.Sprintf("Of the tools of MCP servers only the first %d are offered.", MaxTools))
			return
		}
		x := l.tool
		x.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) { return v.call(ctx, s, l.name, c) }
		o.Tools = append(o.Tools, x)
	}
}

// toolsOf returns a server's tools at t's trust: those known where there are some,
// else it waits for the server. What is known for long is asked for again,
// in the meantime where that needs no program of t's run.
func (v *Servers) toolsOf(ctx context.Context, s *entry.Server, t *tool.Turn) (*tools, error) {
	known := v.knows(s, t)
	if known == nil {
		return v.ask(ctx, s, t)
	}
	if v.o.Clock.Now().Sub(known.at) >= freshTime {
		if keyOf(s, t).run != "" {
			return v.ask(ctx, s, t)
		}
		v.spawn(func() { _, _ = v.ask(v.life, s, t) })
	}
	return known, nil
}

// knows returns the tools that the server has named recently at t's trust; nil for none.
func (v *Servers) knows(s *entry.Server, t *tool.Turn) *tools {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.known[shelf{s.Short, t.Trust}]; known != nil && known.s == s {
		return known
	}
	return nil
}

// ask asks the server for its tools, at most once in freshTime.
func (v *Servers) ask(ctx context.Context, s *entry.Server, t *tool.Turn) (*tools, error) {
	l, err := v.use(ctx, s, t)
	if err != nil {
		return nil, err
	}
	defer v.release(l)
	v.mu.Lock()
	known := v.known[shelf{s.Short, t.Trust}]
	v.mu.Unlock()
	if known != nil && v.o.Clock.Now().Sub(known.at) < freshTime {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return v.listTools(ctx, l)
}

// listTools asks over l, and keeps the answer.
func (v *Servers) listTools(ctx context.Context, l *link) (*tools, error) {
	found := &tools{s: l.s, at: v.o.Clock.Now()}
	cursor := ""
	for range maxPages {
		page, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		for _, raw := range page.Tools {
			found.take(raw)
		}
		if cursor = page.NextCursor; cursor == "" || len(found.list) >= MaxTools {
			break
		}
	}
	if found.leftOut > 0 {
		v.o.Log.Warn("tools of an MCP server are left out", "server", l.s.Name, "left_out", found.leftOut)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if st := v.states[l.s.Short]; st != nil && st.s == l.s {
		v.known[shelf{l.s.Short, l.key.trust}] = found
		st.tools = len(found.list)
	}
	return found, nil
}

// take adds a tool as it is offered, or counts it as left out.
func (ts *tools) take(raw *sdk.Tool) {
	if len(ts.list) >= MaxTools {
		ts.leftOut++
		return
	}
	schema, err := json.Marshal(raw.InputSchema)
	if err != nil || len(schema) > maxSchema || raw.Name == "" || len(raw.Name) > 256 {
		ts.leftOut++
		return
	}
	name := entry.ToolName(ts.s.Short, raw.Name, func(n string) bool {
		return slices.ContainsFunc(ts.list, func(l listed) bool { return l.tool.Name == n })
	})
	x := tool.Tool{
		Name: name, About: about(ts.s, raw), Schema: schema, Kind: tool.MCP, Isolated: ts.s.Transport == entry.Stdio,
		Least: ts.s.Trust, Effects: raw.Annotations == nil || !raw.Annotations.ReadOnlyHint,
		Timeout: cmp.Or(ts.s.Timeout, time.Minute),
		Run:     func(context.Context, *tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("not joined") },
	}
	if tool.Check(x) != nil {
		ts.leftOut++
		return
	}
	ts.list = append(ts.list, listed{raw.Name, x})
}

// about returns a description whose origin is said: it is the server's own.
func about(s *entry.Server, raw *sdk.Tool) string {
	text := raw.Description
	if strings.TrimSpace(text) == "" {
		text = cmp.Or(raw.Title, raw.Name)
	}
	return fmt.Sprintf("A tool of the MCP server %s, which describes it so: %s", s.Name, core.CutRunes(strings.TrimSpace(printable(text)), maxAbout))
}
