package discord

import (
	"context"
	"sync"
)

// turns keeps a preview from overtaking the final behind it: they travel on
// different connections, and an edit that arrives late would put the half
// answer over the whole one. A chat has an entry only while a call to it is
// under way, so the map is bounded by those.
type turns struct {
	mu    sync.Mutex
	chats map[string]*turn
}

type turn struct {
	preview chan struct{} // closed when the preview under way has ended; nil without one
	sends   int           // under way or waiting for it
}

func (t *turns) of(chat string) *turn {
	if t.chats == nil {
		t.chats = map[string]*turn{}
	}
	e, ok := t.chats[chat]
	if !ok {
		e = &turn{}
		t.chats[chat] = e
	}
	return e
}

func (t *turns) forget(chat string, e *turn) {
	if e.sends == 0 && e.preview == nil {
		delete(t.chats, chat)
	}
}

// previewing begins a preview, unless something else is on its way to the
// chat. end reports whether a final came to wait for it meanwhile.
func (t *turns) previewing(chat string) (end func() (overtaken bool), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of(chat)
	if e.sends > 0 || e.preview != nil {
		return nil, false
	}
	e.preview = make(chan struct{})
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(e.preview)
		e.preview = nil
		t.forget(chat, e)
		return e.sends > 0
	}, true
}

// sending begins a final: it waits for a preview under way, which has a short
// deadline, or for ctx. end is to be called either way.
func (t *turns) sending(ctx context.Context, chat string) (end func()) {
	t.mu.Lock()
	e := t.of(chat)
	e.sends++
	preview := e.preview
	t.mu.Unlock()
	if preview != nil {
		select {
		case <-preview:
		case <-ctx.Done():
		}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		e.sends--
		t.forget(chat, e)
	}
}
