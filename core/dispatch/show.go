package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/command"
	toolcall "gatehouse/core/orchestrator/call"
	"gatehouse/core/queue"
	"gatehouse/core/texts"
)

// Timing of what a chat shows during a run.
const (
	typingAfter  = 500 * time.Millisecond
	typingEvery  = 4 * time.Second
	previewAfter = time.Second
	previewGrown = 150                   // new characters that are worth another call
	previewWait  = 50 * time.Millisecond // for the id of a preview that is being sent
	editWait     = 6 * time.Second       // for an edit of a preview, which connectors give 5 seconds
	stillAfter   = time.Minute           // without a change the preview shows that the run continues
)

// A show shows one run in its chat: typing and a preview. It never blocks the
// run, and it ends with it.
type show struct {
	d      *Dispatcher
	t      *queue.Turn
	cancel context.CancelFunc
	done   chan struct{}

	mu           sync.Mutex
	text         []byte    // of the model's current answer
	doing        string    // the running tool, "" while the model answers
	heard        string    // of a recording that is being transcribed, shown until the model answers
	began, moved time.Time // when the show began, and when the last event arrived
	notes        []string  // shown under the answer; at most maxNotes
	editing      bool      // a call edits the preview, which the final replaces

	lost bool // a preview of unknown id may exist, so no other is made; used by run's goroutine only

	keep sync.Mutex // held while a preview's id is stored
	over bool       // the final does not replace a later preview; guarded by keep
}

// maxNotes bounds the notes under one answer.
const maxNotes = 25

// shownWarnings are the codes of the warnings that a chat shows.
var shownWarnings = map[string]bool{"attachment": true, "budget": true, "runtime_model": true}

// watch returns a show that has begun.
func (d *Dispatcher) watch(ctx context.Context, t *queue.Turn) *show {
	ctx, cancel := context.WithCancel(ctx)
	now := d.o.Clock.Now()
	s := &show{d: d, t: t, cancel: cancel, done: make(chan struct{}), began: now, moved: now}
	go s.run(ctx)
	return s
}

// see records an event. After a tool call the preview's text starts again.
func (s *show) see(e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = s.d.o.Clock.Now()
	switch e := e.(type) {
	case core.TextDelta:
		if s.doing != "" {
			s.text, s.doing = s.text[:0], ""
			e.Content = strings.TrimLeft(e.Content, "\n")
		}
		s.text = append(s.text, e.Content...)
	case core.Warning:
		if shownWarnings[e.Code] && len(s.notes) < maxNotes {
			s.notes = append(s.notes, e.Message)
		}
	case core.ToolUseStart:
		s.doing = toolcall.Label(e.Name, e.Input)
	case core.Deliberation:
		s.doing = texts.Text("council_stage", texts.With{"Stage": e.Stage, "Answered": e.Answered(), "Of": len(e.Members)})
	}
}

// progress records the progress that a tool reports.
func (s *show) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != "" {
		s.doing, s.moved = text, s.d.o.Clock.Now()
	}
}

// hear records the text of a recording so far.
func (s *show) hear(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard, s.moved = text, s.d.o.Clock.Now()
}

// noted returns the notes under the answer in Markdown, or "".
func (s *show) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return noted(s.notes)
}

func noted(notes []string) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString("\n\n*" + markdownEscaper.Replace(core.Visible(n)) + "*")
	}
	return b.String()
}

// markdownEscaper escapes a note, which may contain a file's name.
var markdownEscaper = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "<", "\\<", "~", "\\~", "|", "\\|", "\n", " ")

// A previewText is the content of a preview, in Markdown.
type previewText struct {
	text  string
	state string // part of text: the running tool, and how long the run takes
}

// now returns the current content of the preview.
func (s *show) now() previewText {
	s.mu.Lock()
	defer s.mu.Unlock()
	var state []string
	if s.doing != "" {
		state = append(state, "`"+strings.ReplaceAll(s.doing, "`", "'")+" …`")
	}
	if now := s.d.o.Clock.Now(); now.Sub(s.moved) >= stillAfter {
		state = append(state, "*"+texts.Text("still_working", texts.With{"Minutes": int(now.Sub(s.began).Minutes())})+"*")
	}
	text := string(s.text)
	if text == "" && s.heard != "" {
		text = texts.Text("voice_heard", texts.With{"Text": markdownEscaper.Replace(core.Visible(s.heard))})
	}
	out := previewText{text: text, state: strings.Join(state, "\n\n")}
	if out.state != "" {
		out.text = strings.TrimPrefix(out.text+"\n\n"+out.state, "\n\n")
	}
	return out
}

// end stops the show. It waits up to previewWait for a call that is running, so
// that the final replaces its preview. A later preview is deleted. For an edit it waits
// up to editWait: one that comes later would overwrite the final.
func (s *show) end() {
	s.cancel()
	wait := previewWait
	s.mu.Lock()
	if s.editing {
		wait = editWait
	}
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-s.d.o.Clock.After(wait):
		s.keep.Lock()
		s.over = true
		s.keep.Unlock()
	}
}

func (s *show) run(ctx context.Context) {
	defer close(s.done)
	defer func() {
		if p := recover(); p != nil { // the run continues without its show
			s.d.o.Log.ErrorContext(ctx, "a preview panicked", "bot", s.t.First().Bot, "panic", p)
		}
	}()
	to := s.t.First().Address
	began := s.d.o.Clock.Now()
	nextTyping, nextPreview := began.Add(typingAfter), began.Add(previewAfter)
	gap := previewAfter
	var shown previewText
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
		if now := s.preview(ctx, to, shown); now != shown {
			shown, gap = now, min(gap+gap/2, 10*time.Second) // widening, so that a long answer makes few calls
			nextPreview = s.d.o.Clock.Now().Add(gap)
		}
	}
}

// preview updates the preview if the text was replaced or has grown enough, or if
// the state has changed. It returns what the preview shows.
func (s *show) preview(ctx context.Context, to core.Address, shown previewText) previewText {
	now := s.now()
	small := now.state == shown.state && strings.HasPrefix(now.text, shown.text) && utf8.RuneCountInString(now.text[len(shown.text):]) < previewGrown
	if now == shown || shown.text != "" && small || s.lost {
		return shown
	}
	parts := s.d.o.Render(to, now.text)
	if len(parts) == 0 || len(parts) > 1 && shown.text != "" && s.t.Preview() != "" && len(now.text) > 2*4096 {
		return shown // the first message is full: the final has the rest
	}
	if s.d.o.Outbox.Sending(ctx, to) || !s.d.o.Queue.Holds(ctx, s.t) {
		return shown // it would precede the answer to an earlier message, or replace another gateway's
	}
	part := parts[0]
	part.Buttons = [][]core.Button{{{Label: texts.Text("button_stop"), Data: command.StopData(s.t.Run)}}}
	if to.Group() {
		part.ReplyTo = s.t.First().MessageID
	}
	s.edits(s.t.Preview() != "")
	defer s.edits(false)
	if ctx.Err() != nil { // checked after edits, as end checks it after cancel
		return shown // the final may have replaced the preview already
	}
	id, err := s.d.o.Screen.Preview(context.WithoutCancel(ctx), to, s.t.Preview(), part)
	if err != nil {
		s.lost = errors.Is(err, core.ErrInDoubt)
		s.note(ctx, "preview", err)
		return shown
	}
	if id != s.t.Preview() {
		s.known(context.WithoutCancel(ctx), to, id)
	}
	return now
}

// edits records whether a call edits the preview.
func (s *show) edits(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editing = on
}

// known stores the id of a new preview, which the final replaces. If the final
// was sent already, known deletes the preview.
func (s *show) known(ctx context.Context, to core.Address, id string) {
	s.keep.Lock()
	defer s.keep.Unlock()
	if s.over {
		_, err := s.d.o.Screen.Preview(ctx, to, id, core.Part{})
		s.note(ctx, "take a late preview away", err)
		return
	}
	if err := s.d.o.Queue.SetPreview(ctx, s.t, id); err != nil && !errors.Is(err, queue.ErrFenced) {
		s.note(ctx, "keep the preview's id", err)
	}
}

func (s *show) note(ctx context.Context, op string, err error) {
	if err != nil && ctx.Err() == nil {
		s.d.o.Log.DebugContext(ctx, op, "bot", s.t.First().Bot, "err", err)
	}
}
