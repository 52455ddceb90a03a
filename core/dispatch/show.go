package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/texts"
)

// Times of what a chat sees while it waits.
const (
	typingAfter  = 500 * time.Millisecond
	typingEvery  = 4 * time.Second
	previewAfter = time.Second
	previewGrown = 150                   // new bytes before the preview is worth another call
	previewWait  = 50 * time.Millisecond // that a final waits for the id of a preview under way
	stillAfter   = time.Minute           // without a change the preview says that work goes on
)

// A show is the chat's view of one run: a typing sign and a preview. It never
// makes the run wait, and it ends with it.
type show struct {
	d      *Dispatcher
	t      *queue.Turn
	cancel context.CancelFunc
	done   chan struct{}

	mu           sync.Mutex
	text         []byte    // of the model's present answer
	doing        string    // the tool at work, "" while the model speaks
	began, moved time.Time // of the run's show, and when something last happened
	notes        []string  // for the person, told under the answer; at most maxNotes

	lost bool // a preview may stand there that nobody finds again: one is enough; of run's goroutine

	keep sync.Mutex // over the storing of a preview's id
	over bool       // the final goes out without what a late preview shows; under keep
}

// maxNotes bounds the notes under one answer.
const maxNotes = 25

// told are the warnings that a chat reads too: what of a message could not be
// taken, and a budget that runs out.
var told = map[string]bool{"attachment": true, "budget": true}

// watch begins the show of a chat's run.
func (d *Dispatcher) watch(ctx context.Context, t *queue.Turn) *show {
	ctx, cancel := context.WithCancel(ctx)
	now := d.o.Clock.Now()
	s := &show{d: d, t: t, cancel: cancel, done: make(chan struct{}), began: now, moved: now}
	go s.run(ctx)
	return s
}

// see takes an event in. After a tool the model speaks anew.
func (s *show) see(e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = s.d.o.Clock.Now()
	switch e := e.(type) {
	case core.TextDelta:
		if s.doing != "" {
			s.text, s.doing = s.text[:0], ""
		}
		s.text = append(s.text, e.Content...)
	case core.Warning:
		if told[e.Code] && len(s.notes) < maxNotes {
			s.notes = append(s.notes, e.Message)
		}
	case core.ToolUseStart:
		s.doing = orchestrator.Label(e.Name, e.Input)
	}
}

// progress takes in what a tool says while it works.
func (s *show) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doing != "" {
		s.doing, s.moved = text, s.d.o.Clock.Now()
	}
}

// noted is what stands under the answer besides, in Markdown; "" for nothing.
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

// markdownEscaper lets a note, which may hold a file's name, style nothing.
var markdownEscaper = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "<", "\\<", "~", "\\~", "|", "\\|", "\n", " ")

// A sight is what a preview shows, in Markdown.
type sight struct {
	text  string
	state string // of it: the tool at work, and that work goes on
}

// now is what the preview should show.
func (s *show) now() sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var state []string
	if s.doing != "" {
		state = append(state, "`"+strings.ReplaceAll(s.doing, "`", "'")+" …`")
	}
	if now := s.d.o.Clock.Now(); now.Sub(s.moved) >= stillAfter {
		state = append(state, "*"+texts.Text("still_working", texts.With{"Minutes": int(now.Sub(s.began).Minutes())})+"*")
	}
	out := sight{text: string(s.text), state: strings.Join(state, "\n\n")}
	if out.state != "" {
		out.text = strings.TrimPrefix(out.text+"\n\n"+out.state, "\n\n")
	}
	return out
}

// end stops the show. A call on its way gets a moment to return, so that the
// preview it makes is known and the final replaces it; a preview that comes
// later is taken away again.
func (s *show) end() {
	s.cancel()
	select {
	case <-s.done:
	case <-s.d.o.Clock.After(previewWait):
		s.keep.Lock()
		s.over = true
		s.keep.Unlock()
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
	var shown sight
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
			shown, gap = now, min(gap+gap/2, 10*time.Second) // widening: a long answer is not a flood
			nextPreview = s.d.o.Clock.Now().Add(gap)
		}
	}
}

// preview shows the text so far when it is another or has grown enough, and at
// once which tool works and that work goes on; it returns what is shown.
func (s *show) preview(ctx context.Context, to core.Address, shown sight) sight {
	now := s.now()
	small := now.state == shown.state && len(now.text)-len(shown.text) < previewGrown && strings.HasPrefix(now.text, shown.text)
	if now == shown || shown.text != "" && small || s.lost {
		return shown
	}
	parts := s.d.o.Render(to, now.text)
	if len(parts) == 0 || len(parts) > 1 && shown.text != "" && s.t.Preview() != "" && len(now.text) > 2*4096 {
		return shown // the first message is full: the rest comes with the final
	}
	if s.d.o.Queue.Sending(ctx, to) {
		return shown // it would stand above the answer to an earlier message
	}
	part := parts[0]
	part.Buttons = [][]core.Button{{{Label: texts.Text("button_stop"), Data: command.StopData(s.t.Run)}}}
	if to.Group() {
		part.ReplyTo = s.t.First().MessageID
	}
	if ctx.Err() != nil {
		return shown // the final may be there already, and in the same message
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

// known keeps the id of a new preview for the final to replace; where that went
// out already, the preview goes.
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
