package connectors

import (
	"context"
	"sync"
	"time"

	"gatehouse/core"
)

// overtakeAfter is how long a final waits for a preview under way: most end in
// that time, and then nothing has to be put right behind them.
const overtakeAfter = 50 * time.Millisecond

// Turns keeps a preview from standing over the final behind it: they travel on
// different connections, and an edit that arrives late would put the half
// answer over the whole one. A final waits for no preview that hangs: it
// overtakes it, and what the preview has done is put right when it has ended.
// K is what a platform knows a chat by. A chat has an entry only while a call to
// it is under way, so the map is bounded by those. The zero value is ready; it
// is safe for concurrent use.
type Turns[K comparable] struct {
	mu    sync.Mutex
	chats map[K]*chatTurn
}

type chatTurn struct {
	preview chan struct{} // closed when the preview under way has ended; nil without one
	met     bool          // a final came while it was under way
	mends   []func()      // show again what has overtaken it; bounded by what is sent while it is under way
	sends   int           // under way or waiting for it
}

func (t *Turns[K]) of(chat K) *chatTurn {
	if t.chats == nil {
		t.chats = map[K]*chatTurn{}
	}
	e, ok := t.chats[chat]
	if !ok {
		e = &chatTurn{}
		t.chats[chat] = e
	}
	return e
}

func (t *Turns[K]) forget(chat K, e *chatTurn) {
	if e.sends == 0 && e.preview == nil {
		delete(t.chats, chat)
	}
}

// Preview begins a preview; false while something else is on its way to the
// chat. end is to be called once. It reports whether a final came meanwhile,
// which can't know of a message that the preview has made; a final that the
// preview may stand over now is shown again by it.
func (t *Turns[K]) Preview(chat K) (end func() (met bool), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of(chat)
	if e.sends > 0 || e.preview != nil {
		return nil, false
	}
	e.preview = make(chan struct{})
	return func() bool { return t.ended(chat, e) }, true
}

// ended ends the preview under way, when everything that has overtaken it is
// shown again.
func (t *Turns[K]) ended(chat K, e *chatTurn) (met bool) {
	for {
		t.mu.Lock()
		mends := e.mends
		if e.mends = nil; len(mends) == 0 {
			defer t.mu.Unlock()
			met = e.met
			close(e.preview)
			e.preview, e.met = nil, false
			t.forget(chat, e)
			return met
		}
		t.mu.Unlock()
		for _, mend := range mends {
			mend()
		}
	}
}

// Previewing reports whether a preview is on its way to the chat.
func (t *Turns[K]) Previewing(chat K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.chats[chat]
	return e != nil && e.preview != nil
}

// Send begins a final: it waits a moment for a preview under way. end is to be
// called once; shown shows again, by an edit, what was just sent, where the
// preview was overtaken and so may stand over it: at once, or when the preview
// has ended. nil where there is nothing to show again.
func (t *Turns[K]) Send(ctx context.Context, clock core.Clock, chat K) (end func(shown func())) {
	t.mu.Lock()
	e := t.of(chat)
	e.sends++
	preview, overtook := e.preview, false
	e.met = e.met || preview != nil
	t.mu.Unlock()
	if preview != nil {
		select {
		case <-preview:
		case <-ctx.Done():
			overtook = true
		case <-clock.After(overtakeAfter):
			overtook = true
		}
	}
	return func(shown func()) {
		t.mu.Lock()
		e.sends--
		waits := e.preview != nil
		if overtook && waits && shown != nil {
			e.mends = append(e.mends, shown)
		}
		t.forget(chat, e)
		t.mu.Unlock()
		if overtook && !waits && shown != nil {
			shown()
		}
	}
}
