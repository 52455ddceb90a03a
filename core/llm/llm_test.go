package llm_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// scripted is a model that yields deltas, then err.
type scripted struct {
	name   string
	deltas []llm.Delta
	err    error
	asked  int
}

func (s *scripted) About() llm.About {
	return llm.About{Name: s.name, Tools: true, Window: len(s.name)}
}

func (s *scripted) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s.asked++
		for _, d := range s.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if s.err != nil {
			yield(llm.Delta{}, s.err)
		}
	}
}

func fault(code string, retry bool) error {
	return &llm.Fault{Code: code, Text: "sorry: " + code, CanRetry: retry}
}

func run(ctx context.Context, m llm.Model) (deltas []llm.Delta, err error) {
	for d, e := range m.Reply(ctx, &llm.Request{}) {
		if e != nil {
			err = e
			continue
		}
		deltas = append(deltas, d)
	}
	return deltas, err
}

func TestTheNextModelIsAskedWhereAnotherMayDoBetter(t *testing.T) {
	for _, c := range []struct {
		code  string
		retry bool
		next  bool
	}{
		{llm.CodeRateLimited, true, true},
		{llm.CodeAuth, false, true},
		{llm.CodeUnavailable, false, true},
		{llm.CodeCredit, false, true},
		{llm.CodeGarbage, true, true},
		{llm.CodeTooLong, false, false},
		{llm.CodeBadRequest, false, false},
		{llm.CodeFiltered, false, false},
	} {
		a := &scripted{name: "a", deltas: []llm.Delta{{Notice: "wait"}, {Model: "a"}}, err: fault(c.code, c.retry)}
		b := &scripted{name: "b", deltas: []llm.Delta{{Text: "hi"}, {Stop: "end_turn"}}}
		deltas, err := run(t.Context(), llm.Fallback(a, b))
		if (b.asked == 1) != c.next || (err == nil) != c.next {
			t.Errorf("%s: next asked %d times, err %v", c.code, b.asked, err)
		}
		if c.next && (len(deltas) != 5 || deltas[2].Model != "b" || !strings.Contains(deltas[2].Notice, "asking b instead") || deltas[3].Text != "hi") {
			t.Errorf("%s: %+v", c.code, deltas)
		}
	}
}

func TestNoFallbackAfterTheFirstPiece(t *testing.T) {
	for _, d := range []llm.Delta{{Text: "half"}, {Thinking: "hm"}, {Call: &core.Block{}}, {Usage: &core.Tokens{}}} {
		a := &scripted{name: "a", deltas: []llm.Delta{d}, err: fault(llm.CodeCutOff, true)}
		b := &scripted{name: "b"}
		_, err := run(t.Context(), llm.Fallback(a, b))
		var f *llm.Fault
		if !errors.As(err, &f) || f.Code != llm.CodeCutOff || b.asked != 0 {
			t.Errorf("%+v: %v, next asked %d times", d, err, b.asked)
		}
	}
}

func TestAnEndedContextIsNotPassedOn(t *testing.T) {
	b := &scripted{name: "b"}
	if _, err := run(t.Context(), llm.Fallback(&scripted{name: "a", err: context.Canceled}, b)); !errors.Is(err, context.Canceled) || b.asked != 0 {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, llm.Fallback(&scripted{name: "a", err: fault(llm.CodeSilence, true)}, b)); err == nil || b.asked != 0 {
		t.Errorf("%v", err)
	}
}

func TestWhenAllFaultTheFirstSpeaks(t *testing.T) {
	a := &scripted{name: "a", err: fault(llm.CodeAuth, false)}
	b := &scripted{name: "b", err: &llm.Fault{Code: llm.CodeRateLimited, CanRetry: true, After: time.Minute, Text: "busy b"}}
	c := &scripted{name: "c", err: &llm.Fault{Code: llm.CodeOverloaded, CanRetry: true, After: time.Second, Text: "busy c"}}
	_, err := run(t.Context(), llm.Fallback(a, b, c))
	var f *llm.Fault
	if !errors.As(err, &f) || f.Text != "sorry: auth" || !f.CanRetry || f.After != time.Second {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(err.Error(), "busy b") || !strings.Contains(err.Error(), "busy c") {
		t.Errorf("the log does not hear of the others: %v", err)
	}
	if _, err := run(t.Context(), llm.Fallback()); err == nil {
		t.Error("no model, no fault")
	}
}

func TestAModelThatMayNotBeAskedInsteadIsLeftOut(t *testing.T) {
	a := &scripted{name: "a", err: fault(llm.CodeUnavailable, false)}
	b := &scripted{name: "b"}
	c := &scripted{name: "c", deltas: []llm.Delta{{Text: "hi"}}}
	var asked []string
	req := &llm.Request{Instead: func(model string) error {
		asked = append(asked, model)
		if model == "b" {
			return errors.New("no price")
		}
		return nil
	}}
	var texts string
	for d, err := range llm.Fallback(a, b, c).Reply(t.Context(), req) {
		if texts += d.Text + d.Notice; err != nil {
			t.Error(err)
		}
	}
	if strings.Join(asked, " ") != "b c" || b.asked != 0 || c.asked != 1 || !strings.Contains(texts, "a does not answer") || !strings.HasSuffix(texts, "asking c insteadhi") {
		t.Errorf("asked whether %q may answer; b %d and c %d times; %q", asked, b.asked, c.asked, texts)
	}
	var f *llm.Fault
	var err error
	for _, e := range llm.Fallback(a, b).Reply(t.Context(), req) {
		err = e
	}
	if !errors.As(err, &f) || f.Text != "sorry: unavailable" || !strings.Contains(f.Error()+f.Err.Error(), "b is left out: no price") {
		t.Errorf("without another model: %v", err)
	}
}

func TestFallbackLosesNothing(t *testing.T) {
	a, b := &scripted{name: "first"}, &scripted{name: "b"}
	if d := cmp.Diff(a.About(), llm.Fallback(a, b).About()); d != "" {
		t.Error(d)
	}
	if llm.Fallback(a) != llm.Model(a) {
		t.Error("one model needs no wrapping")
	}
	for range llm.Fallback(&scripted{deltas: []llm.Delta{{Text: "a"}, {Text: "b"}}}, b).Reply(t.Context(), nil) {
		break // would panic if it went on
	}
	for range llm.Fallback(&scripted{err: fault(llm.CodeAuth, false)}, b).Reply(t.Context(), nil) {
		break // at the notice
	}
	if b.asked != 0 {
		t.Error("asked on behalf of nobody")
	}
}

func TestPrices(t *testing.T) {
	p, err := llm.ParsePrices([]byte(`
as_of: "2026-01"
models:
  openai/small: {input: 0.15, output: 0.60, cache_read: 0.075}
  anthropic/big: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
  openai/free: {input: 0, output: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model string
		u     core.Tokens
		cost  int64
		known bool
	}{
		{"openai/small", core.Tokens{Input: 1_000_000, Output: 1_000_000}, 750_000, true},
		{"openai/small", core.Tokens{Input: 20}, 3, true},
		{"openai/small", core.Tokens{Input: 21}, 4, true},
		{"openai/small", core.Tokens{Input: 1000, CacheRead: 1000, CacheWrite: 1000}, 375, true},
		{"openai/small-2024-07-18", core.Tokens{Output: 10}, 6, true},
		{"anthropic/big-20250929", core.Tokens{Input: 1, Output: 1, CacheRead: 10, CacheWrite: 4}, 36, true},
		{"openai/small-2", core.Tokens{Output: 10}, 0, false},
		{"openai/free", core.Tokens{Output: 10}, 0, true},
		{"local/quote:30ms", core.Tokens{Output: 10}, 0, true},
		{"openai/unheard", core.Tokens{Output: 10}, 0, false},
		{"anthropic/big", core.Tokens{Output: math.MaxInt64}, 1 << 62, true},
		{"anthropic/big", core.Tokens{Output: -5}, 0, true},
	} {
		if cost, known := p.Cost(c.model, c.u); cost != c.cost || known != c.known {
			t.Errorf("%s %+v: %d, %v; want %d, %v", c.model, c.u, cost, known, c.cost, c.known)
		}
	}
	over, err := llm.ParsePrices([]byte("models: {openai/small: {input: 1, output: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	both := p.With(over)
	if c, _ := both.Cost("openai/small", core.Tokens{Input: 5}); c != 5 {
		t.Errorf("override: %d", c)
	}
	if _, known := both.Cost("anthropic/big", core.Tokens{}); !known {
		t.Error("the built-in list is gone")
	}
	var none *llm.Prices
	if _, known := none.Cost("openai/small", core.Tokens{}); known {
		t.Error("nil knows a price")
	}
	if _, known := none.Cost("local/quote", core.Tokens{}); !known {
		t.Error("local models are free")
	}
}

func TestBadPriceListsAreRefused(t *testing.T) {
	for _, s := range []string{"models: {a: {input: -1}}", "models: {a: {input: .nan}}", "models: {a: {output: .inf}}",
		"models: {a: {inptu: 1}}", "models: {a: {cache_read: -0.1}}", "model: {}", "{{{", "models: 3", strings.Repeat("#", 2<<20)} {
		if _, err := llm.ParsePrices([]byte(s)); err == nil {
			t.Errorf("%.40q is taken", s)
		}
	}
	if _, err := llm.ParsePrices(nil); err != nil {
		t.Errorf("an empty list: %v", err)
	}
}

func TestTheBuiltInPriceListIsGood(t *testing.T) {
	b, err := os.ReadFile("../../configs/prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := llm.ParsePrices(b)
	if err != nil {
		t.Fatal(err)
	}
	if c, known := p.Cost("openai/gpt-4o-mini", core.Tokens{Input: 1_000_000}); !known || c != 150_000 {
		t.Errorf("gpt-4o-mini: %d, %v", c, known)
	}
}
