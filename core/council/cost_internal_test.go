package council

import (
	"context"
	"iter"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
)

// priced is a model that is never called.
type priced string

func (p priced) About() llm.About { return llm.About{Name: string(p)} }

func (p priced) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] { return nil }

// Members and raters are asked at the same time.
func TestCallsThatRunAtTheSameTimeShareTheLimitOfAQuestion(t *testing.T) {
	h := &hearing{c: &Council{o: Options{Metrics: NewMetrics(prometheus.NewRegistry())}}, m: Members{Most: 2500}, s: &orchestrator.CouncilTurn{Cost: func(_ string, u core.Tokens) (int64, bool) { return u.Input + u.Output, true }}}
	req := &llm.Request{}
	asks := func(m string) bool { return len(h.afford([]llm.Model{priced(m)}, req)) == 1 }
	if !asks("one") || !asks("two") || asks("three") {
		t.Errorf("three calls of %d each within %d", answerTokens, h.m.Most)
	}
	cost := int64(10)
	h.recordCall("one", &orchestrator.Draft{Model: "its fallback", MicroUSD: &cost})
	if !asks("three") || asks("four") {
		t.Error("what a call was expected to cost counts after its end")
	}
}
