// Package health knows which language models fail, since when and how. It is called by
// the answers themselves and keeps nothing over a restart.
package health

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/llm"
)

const (
	maxModels = 100 // that a Board knows; others are not watched
	maxRuns   = 64  // of a failing model that are remembered, to count each once
)

// recent is how long after its newest failure the metric shows a model as failing: one that
// is asked rarely, or is no longer in the settings, has no next answer.
const recent = 15 * time.Minute

// A Failing model has not answered since its first failure.
type Failing struct {
	Model   string
	Code    string    // of the newest failure, one of llm's
	Setting string    // to check; "" for none
	Since   time.Time // of the first failure after the last answer
	Runs    int       // that it failed; each is one message
}

// A Board collects what models answer. Its methods may be called concurrently.
type Board struct {
	clock   core.Clock
	failing *prometheus.Desc

	mu     sync.Mutex
	models map[string]*state // bounded by maxModels
}

type state struct {
	Failing
	last time.Time // when it failed last
	runs []string  // the newest; at most maxRuns
}

// New returns a Board whose metric gatehouse_model_failing is registered with reg; nil:
// nowhere.
func New(clock core.Clock, reg prometheus.Registerer) *Board {
	b := &Board{clock: clock, models: map[string]*state{},
		failing: prometheus.NewDesc("gatehouse_model_failing", "1 while a model fails: since its first failure, until its next answer, or 15 minutes after its newest failure.", []string{"model"}, nil)}
	if reg != nil {
		reg.MustRegister(b)
	}
	return b
}

// Describe implements prometheus.Collector.
func (b *Board) Describe(out chan<- *prometheus.Desc) { out <- b.failing }

// Collect implements prometheus.Collector.
func (b *Board) Collect(out chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for name, s := range b.models {
		value := 0.0
		if !s.Since.IsZero() && now.Sub(s.last) < recent {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(b.failing, prometheus.GaugeValue, value, name)
	}
}

// Failing returns those of these models that fail, in their order.
func (b *Board) Failing(names ...string) (list []Failing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if s := b.models[name]; s != nil && !s.Since.IsZero() {
			list = append(list, s.Failing)
		}
	}
	return list
}

// Watch returns m, whose answers and failures are reported to b. A nil Board watches
// nothing.
func (b *Board) Watch(m llm.Model) llm.Model {
	if b == nil {
		return m
	}
	name := m.About().Name
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.models[name] == nil {
		if len(b.models) >= maxModels {
			return m
		}
		b.models[name] = &state{}
	}
	return Watched{m, b, name}
}

// Watched is a model that reports to a Board.
type Watched struct {
	llm.Model
	board *Board
	name  string
}

// Reply passes the model's answer on. A request that its caller ends counts as
// nothing, unless the model was silent for too long.
func (w Watched) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		answered := false
		for d, err := range w.Model.Reply(ctx, req) {
			if err != nil {
				w.judge(ctx, req.Run, err)
				yield(d, err)
				return
			}
			answered = answered || d.Text != "" || d.Stop != "" || d.Usage != nil
			if !yield(d, nil) {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			w.judge(ctx, req.Run, ctx.Err())
		case answered:
			w.board.answered(w.name)
		}
	}
}

// judge reports the error that ended a reply, if it is the model's.
func (w Watched) judge(ctx context.Context, run string, err error) {
	var f *llm.Fault
	switch {
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), llm.ErrSilence) {
			w.board.failed(w.name, run, &llm.Fault{Code: llm.CodeSilence})
		}
	case errors.As(err, &f):
		w.board.failed(w.name, run, f)
	}
}

func (b *Board) answered(model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.models[model]; !s.Since.IsZero() {
		*s = state{}
	}
}

// failed notes a failure. A content filter, and a conversation that is too long or
// refused, say nothing of the model's next answers.
func (b *Board) failed(model, run string, f *llm.Fault) {
	switch f.Code {
	case llm.CodeFiltered, llm.CodeTooLong, llm.CodeBadRequest:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.models[model]
	s.last = b.clock.Now()
	if s.Since.IsZero() {
		s.Since = s.last
	}
	s.Model, s.Code, s.Setting = model, f.Code, f.Setting
	if run == "" || slices.Contains(s.runs, run) {
		return
	}
	s.Runs++
	if len(s.runs) == maxRuns {
		s.runs = slices.Delete(s.runs, 0, 1)
	}
	s.runs = append(s.runs, run)
}
