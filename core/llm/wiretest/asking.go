package wiretest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// A Jump is a clock on which every wait has ended at once; it keeps the waits.
type Jump struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

// NewJump begins on a fixed day.
func NewJump() *Jump { return &Jump{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (j *Jump) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

func (j *Jump) After(d time.Duration) <-chan time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = j.now.Add(d)
	j.waits = append(j.waits, d)
	c := make(chan time.Time, 1)
	c <- j.now
	return c
}

// Waits returns those so far.
func (j *Jump) Waits() []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.waits
}

// Never is a clock on which no wait ends.
type Never struct{}

func (Never) Now() time.Time                       { return time.Time{} }
func (Never) After(time.Duration) <-chan time.Time { return nil }

// Got is a reply put together.
type Got struct {
	Text, Thinking, Signature, Model, Stop string
	Calls                                  []core.Block
	Usage                                  *core.Tokens
	Notices                                []string
	Pieces                                 int // of text
	Err                                    error
}

// Fault returns the error as the Fault that it must be.
func (g *Got) Fault(t *testing.T) *llm.Fault {
	t.Helper()
	var f *llm.Fault
	if !errors.As(g.Err, &f) {
		t.Fatalf("error %v (text %q) is no Fault", g.Err, g.Text)
	}
	return f
}

// Collect takes a reply to its end.
func Collect(seq iter.Seq2[llm.Delta, error]) *Got {
	var g Got
	for d, err := range seq {
		if err != nil {
			g.Err = err
			continue
		}
		g.Text += d.Text
		g.Thinking += d.Thinking
		g.Signature += d.Signature
		if d.Text != "" {
			g.Pieces++
		}
		if d.Model != "" {
			g.Model = d.Model
		}
		if d.Call != nil {
			g.Calls = append(g.Calls, *d.Call)
		}
		if d.Notice != "" {
			g.Notices = append(g.Notices, d.Notice)
		}
		if d.Usage != nil {
			g.Usage = d.Usage
		}
		if d.Stop != "" {
			g.Stop = d.Stop
		}
	}
	return &g
}

// Ask asks m for a short answer, with a tool at hand.
func Ask(m llm.Model, text string) *Got {
	return Collect(m.Reply(context.Background(), &llm.Request{System: "Be brief.", MaxTokens: 100, Messages: Said(text),
		Tools: []llm.Tool{{Name: "Read", About: "reads a file"}}}))
}

// Said returns a conversation that a user begins.
func Said(text string) []llm.Message {
	return []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}}}
}
