package health_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/llm/health"
)

// model answers, or fails with fault.
type model struct{ fault *llm.Fault }

func (*model) About() llm.About { return llm.About{Name: "openai/x"} }

func (m *model) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if m.fault != nil {
			yield(llm.Delta{}, m.fault)
			return
		}
		_ = yield(llm.Delta{Text: "hello"}, nil) && yield(llm.Delta{Stop: "end_turn"}, nil)
	}
}

func TestModelFailsFromItsFirstFailureUntilItsNextAnswer(t *testing.T) {
	clock, reg := coretest.NewClock(time.Date(2026, 11, 23, 19, 2, 0, 0, time.UTC)), prometheus.NewRegistry()
	b, m := health.New(clock, reg), &model{}
	w := b.Watch(m)
	ask := func(ctx context.Context, run string) {
		for range w.Reply(ctx, &llm.Request{Run: run}) {
		}
	}
	gauge := func() float64 {
		t.Helper()
		v, err := testutil.GatherAndCount(reg, "gatehouse_model_failing")
		if err != nil || v != 1 {
			t.Fatalf("%v series, %v", v, err)
		}
		all, _ := reg.Gather()
		return all[0].GetMetric()[0].GetGauge().GetValue()
	}
	ask(t.Context(), "r0")
	m.fault = &llm.Fault{Code: llm.CodeFiltered}
	ask(t.Context(), "r1")
	if list := b.Failing("openai/x"); len(list) != 0 || gauge() != 0 {
		t.Fatalf("failing before a failure: %v", list)
	}
	since := clock.Now()
	m.fault = &llm.Fault{Code: llm.CodeRateLimited}
	ask(t.Context(), "r2")
	clock.Advance(time.Minute)
	m.fault = &llm.Fault{Code: llm.CodeAuth, Setting: "KEY"}
	for i := range 200 {
		ask(t.Context(), fmt.Sprint("s", i/2)) // each run asks twice
	}
	ask(t.Context(), "") // no message: a title
	if list := b.Failing("openai/y", "openai/x"); len(list) != 1 || list[0] != (health.Failing{Model: "openai/x", Code: llm.CodeAuth, Setting: "KEY", Since: since, Runs: 101}) || gauge() != 1 {
		t.Errorf("failing: %+v, %v", list, gauge())
	}
	m.fault = nil
	ask(t.Context(), "r3")
	if list := b.Failing("openai/x"); len(list) != 0 || gauge() != 0 {
		t.Errorf("still failing: %v", list)
	}
	silent, cancel := context.WithCancelCause(t.Context())
	cancel(llm.ErrSilence)
	m.fault = &llm.Fault{Code: llm.CodeUnavailable}
	ask(silent, "r4")
	if list := b.Failing("openai/x"); len(list) != 1 || list[0].Code != llm.CodeSilence {
		t.Errorf("after silence: %+v", list)
	}
}

// A model that is asked once, or is taken out of the settings, has no next answer.
func TestTheMetricOfAModelThatIsNoLongerAskedEnds(t *testing.T) {
	clock, reg := coretest.NewClock(time.Date(2026, 11, 23, 19, 2, 0, 0, time.UTC)), prometheus.NewRegistry()
	b := health.New(clock, reg)
	w := b.Watch(&model{fault: &llm.Fault{Code: llm.CodeAuth}})
	fail := func() {
		for range w.Reply(t.Context(), &llm.Request{}) {
		}
	}
	gauge := func(want float64) {
		t.Helper()
		all, err := reg.Gather()
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if got := all[0].GetMetric()[0].GetGauge().GetValue(); got != want {
			t.Errorf("it is %v, want %v", got, want)
		}
	}
	fail()
	clock.Advance(14 * time.Minute)
	gauge(1)
	fail()
	clock.Advance(14 * time.Minute)
	gauge(1)
	clock.Advance(time.Minute)
	gauge(0)
	if list := b.Failing("openai/x"); len(list) != 1 {
		t.Errorf("the panel shows %v: it has not answered since", list)
	}
	fail()
	gauge(1)
}
