package main

import (
	"io"
	"slices"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// A response that is stored costs little beside a chat completion.
func TestAResponseCostsTwoCommitsMoreThanACompletion(t *testing.T) {
	storetest.SQLiteOnly(t, "others share its commits on a server")
	model := llmtest.New(t, llmtest.Options{})
	w := newWorld(t, func(c *configs.Config) {
		unguarded(c)
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
	})
	const n = 20
	cost := func(run func()) (commits, statements int64) {
		run()
		c, s := w.app.db.Commits(), w.app.db.Statements()
		for range n {
			run()
		}
		return w.app.db.Commits() - c, w.app.db.Statements() - s
	}
	commits, statements := cost(func() { w.complete(map[string]any{"model": fakeModel, "messages": user("Hello")}) })
	more, stated := cost(func() { w.askResponse(nil) })
	t.Logf("%d commits and %d statements, %d completions %d and %d", more, stated, n, commits, statements)
	if more-commits > 2*n+4 || stated-statements > 10*n+20 { // a clock may write a few
		t.Errorf("%d responses take %d commits and %d statements more than completions, want %d and %d", n, more-commits, stated-statements, 2*n, 10*n)
	}
}

// BenchmarkResponses is what the gateway takes for an answer of a model that answers at once,
// over the Responses API in each way and as a chat completion. The ways take turns.
func BenchmarkResponses(b *testing.B) {
	model := llmtest.New(b, llmtest.Options{})
	w := newWorld(b, func(c *configs.Config) {
		unguarded(c)
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
	})
	ask := func(path string, body map[string]any) {
		body["model"] = fakeModel
		resp := w.open("POST", path, body, nil)
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			b.Fatalf("%d %s %v", resp.StatusCode, text, err)
		}
	}
	last := w.askResponse(nil).ID
	ways := []struct {
		name string
		run  func()
	}{
		{"completion", func() { ask("/v1/chat/completions", map[string]any{"messages": user("Hello")}) }},
		{"completion-stream", func() { ask("/v1/chat/completions", map[string]any{"messages": user("Hello"), "stream": true}) }},
		{"response", func() { ask("/v1/responses", map[string]any{"input": "Hello"}) }},
		{"response-stream", func() { ask("/v1/responses", map[string]any{"input": "Hello", "stream": true}) }},
		{"response-unstored", func() { ask("/v1/responses", map[string]any{"input": "Hello", "store": false}) }},
		{"response-next", func() { last = w.askResponse(map[string]any{"previous_response_id": last}).ID }},
	}
	took := make([][]time.Duration, len(ways))
	statements, commits := make([]int64, len(ways)), make([]int64, len(ways))
	for b.Loop() {
		for i, way := range ways {
			s, c, at := w.app.db.Statements(), w.app.db.Commits(), time.Now()
			way.run()
			took[i] = append(took[i], time.Since(at))
			statements[i] += w.app.db.Statements() - s
			commits[i] += w.app.db.Commits() - c
		}
	}
	for i, way := range ways {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, way.name+"-ms")
		b.ReportMetric(float64(statements[i])/float64(b.N), way.name+"-stmts")
		b.ReportMetric(float64(commits[i])/float64(b.N), way.name+"-commits")
	}
}
