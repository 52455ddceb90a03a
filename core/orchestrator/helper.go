package orchestrator

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
)

// A helper is a sub-turn as users see it: its tool calls are events with the call of
// Task as parent, lines of a side chain in the transcript, and entries of the audit log.
type helper struct {
	r    *run
	c    *tool.Call // of Task
	side *transcript.Side
}

// show emits the helper's tool calls. Its text is only read by the agent that gave it
// the work, which gets it as the result.
func (h *helper) show(e core.Event) {
	switch e := e.(type) {
	case core.ToolUseStart:
		e.Parent = h.c.ID
		h.r.emit(e)
		h.c.Progress(call.Label(e.Name, e.Input))
	case core.ToolResult:
		e.Parent = h.c.ID
		h.r.emit(e)
	}
}

// keep writes a message of the helper's conversation into the transcript.
func (h *helper) keep(m transcript.Message) error {
	h.r.mu.Lock() // calls may run next to each other
	defer h.r.mu.Unlock()
	return h.side.Append(m)
}

// using notes calls that are about to be made.
func (h *helper) using(ctx context.Context, calls []core.Block) error {
	if h.r.o.Helped == nil {
		return nil
	}
	return h.r.o.Helped(ctx, h.r.t, h.c.ID, calls)
}

// numbered reports whether a call of the run has this id, and notes that one has.
func (r *run) numbered(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return true
	}
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.ids[id] = true
	return false
}
