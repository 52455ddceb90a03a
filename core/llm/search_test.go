package llm_test

import (
	"context"
	"iter"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// seeker is a model that can search.
type seeker struct{ *scripted }

func (s seeker) About() llm.About {
	a := s.scripted.About()
	a.Search = true
	return a
}

func (s seeker) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return s.scripted.Reply(ctx, req)
}

func TestAModelThatCannotSearchIsPassedOver(t *testing.T) {
	blind := &scripted{name: "blind", deltas: []llm.Delta{{Text: "I guess"}}}
	sees := &scripted{name: "sees", deltas: []llm.Delta{{Text: "I looked"}}}
	m := llm.Fallback(blind, seeker{sees})
	for d, err := range m.Reply(t.Context(), &llm.Request{Search: &llm.Search{}}) {
		if err != nil || d.Text != "I looked" {
			t.Errorf("%+v %v", d, err)
		}
	}
	for range m.Reply(t.Context(), &llm.Request{}) {
	}
	if blind.asked != 1 || sees.asked != 1 {
		t.Errorf("asked %d and %d times", blind.asked, sees.asked)
	}
}

func TestSearchesCostWhatTheirProviderTakes(t *testing.T) {
	p, err := llm.ParsePrices([]byte("searches: {anthropic: 10}\nmodels: {anthropic/m: {input: 2, output: 10}, other/m: {input: 2, output: 10}}"))
	if err != nil {
		t.Fatal(err)
	}
	u := core.Tokens{Input: 10, Output: 1, Searches: 3}
	if got, known := p.Cost("anthropic/m", u); got != 30_030 || !known {
		t.Errorf("%d %t", got, known)
	}
	if _, known := p.Cost("other/m", u); known {
		t.Error("a search without a price is free")
	}
	over, err := llm.ParsePrices([]byte("searches: {anthropic: 5}"))
	if got, known := p.With(over).Cost("anthropic/m", u); err != nil || got != 15_030 || !known {
		t.Errorf("%v: %d %t", err, got, known)
	}
	if _, err := llm.ParsePrices([]byte("searches: {anthropic: -1}")); err == nil {
		t.Error("a negative price is taken")
	}
}
