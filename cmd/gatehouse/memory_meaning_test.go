package main

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/llm/llmtest"
)

// What is remembered is in the prompt for a message in other words where there is an embedder,
// for its user alone.
func TestMemoryIsChosenByItsMeaningWhereThereIsAnEmbedder(t *testing.T) {
	t.Parallel()
	const about, fact = "Barns, gutter and guttering?", "barn gutters"
	for _, on := range []bool{false, true} {
		server := embedtest.New(t, 512)
		w, model := newModelWorld(t, func(c *configs.Config) {
			if on {
				c.EmbedURL, c.EmbedModel, c.BudgetDay.Tokens = server.URL, "small", 1_000_000
			}
		})
		boss, ada := w.boss(), w.guest("Ada")
		for _, u := range []*telegramtest.User{boss, ada} {
			m := w.replies(u, "correction: we decided that barn gutters are guttered by "+u.Account().FirstName)
			if m = w.hearsText(u, "Remembered as #1"); m.Text == "" {
				t.Fatal("it is not remembered")
			}
			w.quiet()
		}
		server.Asked()
		for _, u := range []*telegramtest.User{boss, ada} {
			w.replies(u, "/new")
			w.quiet()
			w.replies(u, about)
			w.quiet()
			got := wire(t, model)
			if strings.Contains(got, "guttered by "+u.Account().FirstName) != on {
				t.Errorf("with an embedder: %t; the request for %s is %s", on, u.Account().FirstName, got)
			}
			if other := map[bool]string{true: "Ada", false: boss.Account().FirstName}[u == boss]; strings.Contains(got, "guttered by "+other) {
				t.Errorf("the memory of %s is in a request for %s", other, u.Account().FirstName)
			}
		}
		asked := server.Asked()
		if slices.Contains(asked, about) != on {
			t.Errorf("with an embedder: %t; it was asked %q", on, asked)
		}
		if n := w.count(`SELECT count(DISTINCT user_id) FROM usage WHERE model = 'openai/small' AND state = 'settled' AND user_id > 0`); n != map[bool]int{false: 0, true: 2}[on] {
			t.Errorf("with an embedder: %t; the usage of %d users has its calls", on, n)
		}
		if !on {
			continue
		}
		server.Fail(func([]string) int { return 503 })
		w.replies(boss, "What about barn gutters?")
		w.quiet()
		if got := wire(t, model); !strings.Contains(got, fact) {
			t.Errorf("without the server words do not choose: %s", got)
		}
	}
}

// A domain that a member names in other words is that of its meaning, in the counts too, and
// what is asked is on the account of who asks.
func TestADomainIsResolvedByItsMeaningWhereThereIsAnEmbedder(t *testing.T) {
	t.Parallel()
	says := func(llmtest.Request) llmtest.Reply {
		return llmtest.Say("It is so.", "\nREPORT: {\"confidence\": 0.9, \"domain\": \"mathematical computations of mathematicians\"}")
	}
	for _, on := range []bool{false, true} {
		server := embedtest.New(t, 512)
		s := newSeats(t, func(c *configs.Config) {
			if on {
				c.EmbedURL, c.EmbedModel, c.BudgetDay.Tokens = server.URL, "small", 10_000_000
			}
		}, says, says)
		boss := s.boss()
		s.replies(boss, "/accuracy fast")
		for _, q := range []string{"Is it so?", "Is it so, again?", "Is it so, at last?"} { // labels are read over several answers
			s.replies(boss, q)
			s.quiet()
		}
		n := s.count(`SELECT count(*) FROM domain_candidates WHERE nearest_node = 'math' AND similarity > 100000`)
		if (n == 1) != on {
			t.Errorf("with an embedder: %t; %d candidates are near mathematics", on, n)
		}
		if n := s.count(`SELECT count(*) FROM usage WHERE model = 'openai/small' AND state = 'settled' AND user_id = 1`); (n > 0) != on {
			t.Errorf("with an embedder: %t; %d calls are on the asker's account", on, n)
		}
	}
}
