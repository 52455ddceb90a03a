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

// gather adds to o what the servers offer to t. It does not wait for servers
// that are not connected, except once for each: FirstWait in all.
func (v *Servers) gather(ctx context.Context, t *tool.Turn, list []*entry.Server, o *Offer) {
	var late <-chan time.Time
	for _, s := range list {
		found, pending, err := v.toolsOf(s, t)
		if pending != nil {
			if late == nil {
				late = v.o.Clock.After(FirstWait)
			}
			select {
			case <-pending.ready:
			case <-late:
				late = closedTime
			case <-ctx.Done():
			}
			if known := v.knows(s, t); known != nil {
				found = known
			} else if why := pending.failure(); why != nil {
				err = why
			}
		}
		if found == nil {
			o.unavailable(s, t, err)
			continue
		}
		v.add(s, found, o)
	}
}

// closedTime is a timer that has fired for good.
var closedTime = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

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

// toolsOf returns a server's known tools at t's trust. Without any it connects in
// the background and returns an error that reports how far that is, and the first
// time for this trust, unless it has failed, the connection to wait for. Known tools that are older than
// freshTime are asked for again in the background.
func (v *Servers) toolsOf(s *entry.Server, t *tool.Turn) (found *tools, pending *link, err error) {
	known := v.knows(s, t)
	v.mu.Lock()
	defer v.mu.Unlock()
	if known != nil {
		if v.o.Clock.Now().Sub(known.at) >= freshTime {
			_, _ = v.learn(s, t)
		}
		return known, nil, nil
	}
	l, err := v.learn(s, t)
	if err != nil {
		return nil, nil, err
	}
	st := v.states[s.Short]
	if st.awaited[t.Trust] || st.fails > 0 {
		l = nil
	}
	st.awaited[t.Trust] = true
	if st.err != "" {
		return nil, l, core.Errorf(core.Busy, "%s (it is tried again now)", st.err)
	}
	return nil, l, core.Errorf(core.Busy, "it is still connecting; its tools are offered once it has answered")
}

// knows returns the tools that the server has named at t's trust; nil for none.
func (v *Servers) knows(s *entry.Server, t *tool.Turn) *tools {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.known[toolsKeyOf(s, t.Trust)]; known != nil && known.s == s {
		return known
	}
	return nil
}

// learn has the server asked for its tools at t's trust, in the background, and
// returns the connection; a Busy error until the next try. v.mu is held.
func (v *Servers) learn(s *entry.Server, t *tool.Turn) (*link, error) {
	k := key{short: s.Short, trust: core.Full}
	if s.Transport == entry.Stdio && t.Trust < core.Full {
		k.trust, k.probe, k.run = t.Trust, true, "tools of "+s.Short+" at "+t.Trust.String()
		probe := *t
		probe.Run, t = k.run, &probe
	}
	l, isNew, err := v.begin(s, k, t)
	if err != nil || isNew || !l.isReady() {
		return l, err
	}
	if !k.probe && !l.asking {
		l.asking = true
		l.busy++
		v.work.Go(func() { v.refresh(l) })
	}
	return l, nil
}

// refresh asks for the tools over a connection that exists. A server that does
// not answer has failed, unless a call is in flight: one that works on it may answer
// nothing else meanwhile, and is asked again after freshTime.
func (v *Servers) refresh(l *link) {
	ctx, cancel := v.within(l.life, startTime)
	defer cancel()
	_, err := v.listTools(ctx, l)
	if err != nil && ctx.Err() != nil {
		err = errLate(startTime)
	}
	switch {
	case err == nil:
		v.became(l, Ready, "")
	case l.life.Err() == nil && v.working(l):
		v.o.Log.Info("an MCP server does not name its tools during a call", "server", l.s.Name, "trust", l.key.trust, "err", reason(l.s, err))
	case l.life.Err() == nil:
		v.failed(l, err)
		l.cancel()
	}
	v.mu.Lock()
	l.asking = false
	v.mu.Unlock()
	v.release(l)
}

// working reports whether a call is in flight on l beside the question for the tools; then
// the tools that are known are taken for fresh.
func (v *Servers) working(l *link) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.busy < 2 {
		return false
	}
	if known := v.known[toolsKeyOf(l.s, l.key.trust)]; known != nil && known.s == l.s {
		still := *known
		still.at = v.o.Clock.Now()
		v.known[toolsKeyOf(l.s, l.key.trust)] = &still
	}
	return true
}

// connectAll connects in the background to the servers whose tools are not known,
// where no turn is needed for it: not to programs that are also for lower trust,
// which a turn starts first.
func (v *Servers) connectAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.list {
		if (s.Transport == entry.HTTP || s.Trust == core.Full) && v.known[toolsKeyOf(s, core.Full)] == nil {
			_, _ = v.learn(s, &tool.Turn{Trust: core.Full, Vault: v.o.Vault})
		}
	}
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
		v.known[toolsKeyOf(l.s, l.key.trust)] = found
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

// about returns a description that names its origin: it is the server's own.
func about(s *entry.Server, raw *sdk.Tool) string {
	text := raw.Description
	if strings.TrimSpace(text) == "" {
		text = cmp.Or(raw.Title, raw.Name)
	}
	return fmt.Sprintf("A tool of the MCP server %s, which describes it so: %s", s.Name, core.CutRunes(strings.TrimSpace(printable(text)), maxAbout))
}
