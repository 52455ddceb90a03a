package connectors

import (
	"context"
	"sync"
	"time"

	"gatehouse/core"
)

// overtakeAfter is how long a final waits for a running preview. Most end in that
// time, and then nothing has to be corrected.
const overtakeAfter = 50 * time.Millisecond

// Turns prevents a late preview from replacing the final after it. They use
// different connections, and an edit that arrives late would show the partial
// answer. A final does not wait for a preview that hangs: it is sent first, and
// shown again when the preview has ended. K is the platform's key of a chat. A
// chat has an entry only during a call. The zero value is ready, and safe for
// concurrent use.
type Turns[K comparable] struct {
	mu    sync.Mutex
	chats map[K]*chatTurn
}

type chatTurn struct {
	preview chan struct{} // closed when the running preview has ended; nil without one
	met     bool          // a final was sent during it
	mends   []func()      // show the overtaking finals again; bounded by the sends during the preview
	sends   int           // running, or waiting for the preview
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

// Preview begins a preview, or returns false during another call to the chat. The
// caller calls end once. It reports whether a final was sent during the preview,
// which does not know the message that the preview has made. It shows a final
// again that the preview may have replaced.
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

// ended ends the running preview after it has shown the overtaking finals again.
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

// Previewing reports whether a preview to the chat is running.
func (t *Turns[K]) Previewing(chat K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.chats[chat]
	return e != nil && e.preview != nil
}

// Send begins a final, after waiting up to overtakeAfter for a running preview. The
// caller calls end once. If the final has overtaken a preview, shown edits the
// final to show it again, at once or after the preview; nil if there is nothing to
// show again.
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
