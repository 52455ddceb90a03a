package anthropic_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-test-0123456789-secret"

// The fake's two models: one that thinks where it sees fit, and an older one.
const (
	newer = "claude-fake-5"
	older = "claude-old-4-5"
)

// jump is a clock on which every wait is over at once; it keeps the waits.
type jump struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (j *jump) Now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

func (j *jump) After(d time.Duration) <-chan time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = j.now.Add(d)
	j.waits = append(j.waits, d)
	c := make(chan time.Time, 1)
	c <- j.now
	return c
}

// never is a clock on which no wait ends.
type never struct{}

func (never) Now() time.Time                       { return time.Time{} }
func (never) After(time.Duration) <-chan time.Time { return nil }

// client is a client of the fake; o is completed.
func client(t *testing.T, url string, o anthropic.Options) (*anthropic.Client, *jump) {
	t.Helper()
	clock := &jump{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.BaseURL, o.Clock, o.Rand = url, clock, func() float64 { return 0 }
	c, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, clock
}

// got is a reply put together.
type got struct {
	Text, Thinking, Signature, Model, Stop string
	Calls                                  []llm.Block
	Usage                                  *llm.Usage
	Notices                                []string
	Pieces                                 int
	err                                    error
}

func (g *got) fault(t *testing.T) *llm.Fault {
	t.Helper()
	var f *llm.Fault
	if !errors.As(g.err, &f) {
		t.Fatalf("error %v (text %q) is no Fault", g.err, g.Text)
	}
	return f
}

func collect(seq iter.Seq2[llm.Delta, error]) *got {
	var g got
	for d, err := range seq {
		if err != nil {
			g.err = err
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

func ask(c llm.Model, text string) *got {
	return collect(c.Reply(context.Background(), &llm.Request{System: "Be brief.", MaxTokens: 100, Messages: say(text),
		Tools: []llm.Tool{{Name: "Read", About: "reads a file"}}}))
}

func say(text string) []llm.Message {
	return []llm.Message{{Role: "user", Blocks: []llm.Block{{Type: "text", Text: text}}}}
}

// raw is a server that answers everything with one body.
func raw(t *testing.T, kind, body string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write([]byte(body))
	})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
