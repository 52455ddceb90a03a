package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
)

// Times of what a chat sees while it waits.
const (
	typingAfter  = 500 * time.Millisecond
	typingEvery  = 4 * time.Second
	previewAfter = time.Second
	previewGrown = 150 // new bytes before the preview is worth another call
	previewWait  = time.Second
)

// A show is the chat's view of one run: a typing sign and a preview. It never
// makes the run wait, and it ends with it.
type show struct {
	d      *Dispatcher
	t      *queue.Turn
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	text  []byte // of the model's present answer
	doing string // the tool at work, "" while the model speaks
}

// watch begins the show of a chat's run.
func (d *Dispatcher) watch(ctx context.Context, t *queue.Turn) *show {
	ctx, cancel := context.WithCancel(ctx)
	s := &show{d: d, t: t, cancel: cancel, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

// see takes an event in. After a tool the model speaks anew.
func (s *show) see(e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case core.TextDelta:
		if s.doing != "" {
			s.text, s.doing = s.text[:0], ""
		}
		s.text = append(s.text, e.Content...)
	case core.ToolUseStart:
		s.doing = orchestrator.Label(e.Name, e.Input)
	}
}

// progress takes in what a tool says while it works.
func (s *show) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != "" {
		s.doing = text
	}
}

// now is what the preview should show, in Markdown.
func (s *show) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing == "" {
		return string(s.text)
	}
	doing := "`" + strings.ReplaceAll(s.doing, "`", "'") + " …`"
	if len(s.text) == 0 {
		return doing
	}
	return string(s.text) + "\n\n" + doing
}

// end stops the show. A call on its way gets a moment to return, so that the
// preview it makes is known and the final replaces it.
func (s *show) end() {
	s.cancel()
	select {
	case <-s.done:
	case <-s.d.o.Clock.After(previewWait):
	}
}

func (s *show) run(ctx context.Context) {
	defer close(s.done)
	defer func() {
		if p := recover(); p != nil { // the run goes on unseen
			s.d.o.Log.ErrorContext(ctx, "a preview panicked", "bot", s.t.First().Bot, "panic", p)
		}
	}()
	to := s.t.First().Address
	began := s.d.o.Clock.Now()
	nextTyping, nextPreview := began.Add(typingAfter), began.Add(previewAfter)
	gap := previewAfter
	shown := ""
	for {
		now := s.d.o.Clock.Now()
		if !core.Sleep(ctx, s.d.o.Clock, min(nextTyping.Sub(now), nextPreview.Sub(now))) {
			return
		}
		now = s.d.o.Clock.Now()
		if !now.Before(nextTyping) {
			nextTyping = now.Add(typingEvery)
			s.note(ctx, "typing", s.d.o.Screen.Typing(ctx, to))
		}
		if now.Before(nextPreview) {
			continue
		}
		nextPreview = now.Add(gap)
		if text := s.preview(ctx, to, shown); text != shown {
			shown, gap = text, min(gap+gap/2, 10*time.Second) // widening: a long answer is not a flood
			nextPreview = s.d.o.Clock.Now().Add(gap)
		}
	}
}

// preview shows the text so far when it is another or has grown enough; it
// returns what is shown.
func (s *show) preview(ctx context.Context, to core.Address, shown string) string {
	text := s.now()
	small := len(text)-len(shown) < previewGrown && strings.HasPrefix(text, shown)
	if text == shown || shown != "" && small || s.d.o.Queue.Sending(to) {
		return shown
	}
	parts := s.d.o.Render(to, text)
	if len(parts) == 0 || len(parts) > 1 && shown != "" && s.t.Preview() != "" && len(text) > 2*4096 {
		return shown // the first message is full: the rest comes with the final
	}
	part := parts[0]
	if to.Group() {
		part.ReplyTo = s.t.First().MessageID
	}
	id, err := s.d.o.Screen.Preview(context.WithoutCancel(ctx), to, s.t.Preview(), part)
	if err != nil {
		s.note(ctx, "preview", err)
		return shown
	}
	if id != s.t.Preview() {
		if err := s.d.o.Queue.SetPreview(context.WithoutCancel(ctx), s.t, id); err != nil && !errors.Is(err, queue.ErrFenced) {
			s.note(ctx, "keep the preview's id", err)
		}
	}
	return text
}

func (s *show) note(ctx context.Context, op string, err error) {
	if err != nil && ctx.Err() == nil {
		s.d.o.Log.DebugContext(ctx, op, "bot", s.t.First().Bot, "err", err)
	}
}
