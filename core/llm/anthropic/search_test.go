package anthropic_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	fake "gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/wiretest"
)

var teahouse = fake.Search{Query: "tea", Pages: []fake.Page{{Title: "Tea", URL: "https://tea.example/", Age: "2 days ago"}}}

// search asks with a search, and returns what was found beside the rest.
func search(c *anthropic.Client, s *llm.Search) (g *wiretest.Got, found []llm.Found) {
	req := &llm.Request{System: "Search.", Messages: wiretest.Said("tea?"), Search: s}
	g = wiretest.Collect(func(yield func(llm.Delta, error) bool) {
		for d, err := range c.Reply(context.Background(), req) {
			if d.Found != nil {
				found = append(found, *d.Found)
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	})
	return g, found
}

func TestTheProvidersSearchIsOfferedOnlyWhereItIsAskedFor(t *testing.T) {
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if !c.About().Search {
		t.Error("the model does not say that it can search")
	}
	wiretest.Ask(c, "x")
	s.Script(fake.Reply{Searches: []fake.Search{teahouse}, Text: []string{"Tea ", "is fine."}})
	g, found := search(c, &llm.Search{Most: 3, Only: []string{"tea.example"}, Without: []string{"coffee.example"}})
	if g.Err != nil || g.Text != "Tea is fine." || g.Usage == nil || g.Usage.Searches != 1 {
		t.Errorf("%+v", g)
	}
	if d := cmp.Diff([]llm.Found{{Title: "Tea", URL: "https://tea.example/", Age: "2 days ago"}}, found); d != "" {
		t.Error(d)
	}
	requests := s.Requests()
	for _, x := range requests[0].Message.Tools {
		if x.Type != "" {
			t.Errorf("without a search there is %+v", x)
		}
	}
	tools := requests[1].Message.Tools
	if len(tools) != 1 || tools[0].Type != "web_search_20250305" || *tools[0].MaxUses != 3 || len(tools[0].Blocked) != 0 || tools[0].Allowed[0] != "tea.example" {
		t.Errorf("%+v", tools)
	}
}

// What the provider paused goes back unchanged, encrypted parts included: the
// fake refuses anything else. All parts are counted together.
func TestAPausedSearchIsGoneOnWith(t *testing.T) {
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	s.Script(
		fake.Reply{Thinking: []string{"hm"}, Signature: fake.Signed + "1", Searches: []fake.Search{teahouse}, Text: []string{"First, "}, Stop: "pause_turn", Usage: &fake.Tokens{Input: 10, Output: 5}},
		fake.Reply{Searches: []fake.Search{{Query: "more", Pages: []fake.Page{{Title: "Pots", URL: "https://pots.example/"}}}}, Stop: "pause_turn", Usage: &fake.Tokens{Input: 20, Output: 6}},
		fake.Reply{Text: []string{"then pots."}, Usage: &fake.Tokens{Input: 30, Output: 7}},
	)
	g, found := search(c, &llm.Search{Most: 3})
	if g.Err != nil || g.Text != "First, then pots." || len(found) != 2 || g.Stop != "end_turn" {
		t.Errorf("%+v %v", g, found)
	}
	if d := cmp.Diff(&core.Tokens{Input: 60, Output: 18, Searches: 2}, g.Usage); d != "" {
		t.Error(d)
	}
	if last := s.Requests()[2].Message.Messages; len(last) != 3 && len(last) != 2 {
		t.Errorf("%d messages", len(last))
	}
}

func TestASearchThatPausesForEverEnds(t *testing.T) {
	s := fake.New(t, fake.Options{Default: fake.Reply{Searches: []fake.Search{teahouse}, Stop: "pause_turn"}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g, found := search(c, &llm.Search{}); g.Err != nil || s.Total() != 9 || len(found) != 9 {
		t.Errorf("%+v after %d requests, %d found", g, s.Total(), len(found))
	}
}

func TestAFailedSearchIsSaidAndAnEmptyOneIsNone(t *testing.T) {
	for code, retry := range map[string]bool{"too_many_requests": true, "unavailable": true, "query_too_long": false} {
		s := fake.New(t, fake.Options{Default: fake.Reply{Searches: []fake.Search{{Query: "q", Error: code}}, Text: []string{"I could not."}}})
		c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
		g, _ := search(c, &llm.Search{})
		if f := g.Fault(t); f.Code != llm.CodeUnavailable || f.CanRetry != retry || f.Text != "The model provider's web search has failed ("+code+")." {
			t.Errorf("%s: %+v", code, f)
		}
	}
	s := fake.New(t, fake.Options{Default: fake.Reply{Searches: []fake.Search{teahouse, {Query: "q", Error: "max_uses_exceeded"}}, Text: []string{"Tea."}}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g, found := search(c, &llm.Search{}); g.Err != nil || g.Text != "Tea." || len(found) != 1 {
		t.Errorf("one search of two: %+v %v", g, found)
	}
}

func TestAProviderThatDoesNotSearchIsNotAskedAgain(t *testing.T) {
	s := fake.New(t, fake.Options{NoSearch: true})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	g, _ := search(c, &llm.Search{})
	if f := g.Fault(t); f.Code != llm.CodeUnavailable || f.CanRetry || s.Total() != 1 {
		t.Errorf("%+v after %d requests", f, s.Total())
	}
	if c.About().Search {
		t.Error("the model still says that it can search")
	}
	if g := wiretest.Ask(c, "x"); g.Err != nil {
		t.Error(g.Err)
	}
}
