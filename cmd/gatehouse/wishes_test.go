package main

import (
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// cheering answers the question with an emoji, and without one where it is asked to write
// the answer again.
func cheering(text string) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		if r.Format == "" && strings.HasPrefix(r.Messages[len(r.Messages)-1].Content, "Your answer does not follow") {
			return llmtest.Say(text, "\nREPORT: {\"confidence\": 0.9, \"domain\": \"history\"}")
		}
		return opinion(text + " 😀")(r)
	}
}

// The first answer that breaks a wish is shown and stresses it. The second is written again
// before it is shown: the chat has it once, and so has the transcript.
func TestACouncilsAnswerThatBreaksAWishAgainIsWrittenAgainAndSentOnce(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, cheering("It opened in 1932."), cheering("The bridge opened in 1932."))
	boss := s.boss()
	s.replies(boss, "/remember never use emojis")
	s.replies(boss, "/accuracy high")
	s.quiet()
	if got := s.replies(boss, "When was the bridge opened?"); !strings.Contains(got.Text, "😀") {
		t.Errorf("the first time is written again: %q", got.Text)
	}
	s.quiet()
	if n := s.count(`SELECT emphasis FROM corrections`); n != 1 {
		t.Errorf("emphasis %d", n)
	}
	before := s.count(`SELECT count(*) FROM usage WHERE state = 'settled'`)
	if got := s.replies(boss, "And when was the bridge opened, again?"); strings.Contains(got.Text, "😀") || !strings.Contains(got.Text, "1932") {
		t.Errorf("%q", got.Text)
	}
	s.quiet()
	if n := s.count(`SELECT count(*) FROM correction_events WHERE kind = 'rewritten'`); n != 1 {
		t.Errorf("%d rewritten answers are recorded", n)
	}
	if n := s.count(`SELECT count(*) FROM correction_events WHERE kind = 'followed'`); n != 1 {
		t.Errorf("%d answers are found to follow", n)
	}
	if n := s.count(`SELECT count(*) FROM usage WHERE state = 'settled'`) - before; n != 5 { // two answers, two ratings, the rewritten one
		t.Errorf("%d calls are billed", n)
	}
	emojis := 0
	for _, server := range s.servers {
		all := server.Requests()
		emojis = max(emojis, strings.Count(string(all[len(all)-1].Body), "the last answer did not follow it"))
	}
	if emojis == 0 {
		t.Error("the prompt does not stress the wish")
	}
	shown := 0
	for _, text := range s.said(boss.DM(), 0) {
		shown += strings.Count(text, "opened in 1932")
	}
	if shown != 2 {
		t.Errorf("%d answers are in the chat", shown)
	}
}

// In a group both ask the same council. The model that judges reads the wishes of the one
// who asked, and no wish of a guest: their messages go to the council alone.
func TestWishesOfOnePersonAreInNoRequestForAnother(t *testing.T) {
	t.Parallel()
	judging := func(text string) func(llmtest.Request) llmtest.Reply {
		return func(r llmtest.Request) llmtest.Reply {
			if r.Format == "wishes" {
				return llmtest.Say(`{"wishes":[{"wish":1,"verdict":"not_followed"}]}`)
			}
			return opinion(text)(r)
		}
	}
	s := newSeats(t, func(c *configs.Config) {
		c.Model, c.GuestModel, c.TitleModel = "council/high", "council/high", "memberc/m"
		c.Council = c.Council[:2]
	}, judging("It opened in 1932."), judging("The bridge opened in 1932."), judging("x"))
	boss, ada := s.boss(), s.guest("Ada")
	for _, u := range []*telegramtest.User{boss, ada} {
		s.replies(u, "/remember always be kind to the friends of "+u.Account().FirstName)
	}
	g := s.group(telegramtest.Supergroup, boss, ada)
	for _, c := range []struct {
		user       *telegramtest.User
		own, other string
		judged     int
	}{{boss, "friends of Olga", "friends of Ada", 1}, {ada, "friends of Ada", "friends of Olga", 0}} {
		before := make([]int, len(s.servers))
		for i := range s.servers {
			before[i] = len(s.servers[i].Requests())
		}
		m := s.post(c.user, g.Conversation(), telegramtest.Outgoing{Text: s.mention("when was the bridge opened?")})
		s.answers(g.Conversation(), m.ID)
		s.quiet()
		own, judged := 0, 0
		for i, server := range s.servers {
			for _, r := range server.Requests()[before[i]:] {
				if strings.Contains(string(r.Body), c.other) {
					t.Errorf("a request for %s has the wish of another: %s", c.user.Account().FirstName, r.Body)
				}
				if strings.Contains(string(r.Body), c.own) {
					own++
				}
				if r.Format == "wishes" {
					judged++
				}
			}
		}
		if own == 0 || judged != c.judged {
			t.Errorf("%s: %d requests have the own wish, %d were judged", c.user.Account().FirstName, own, judged)
		}
		if n := s.count(`SELECT emphasis FROM corrections WHERE user_id = $1`, s.user(c.user)); n != c.judged {
			t.Errorf("emphasis %d of the wish of %s", n, c.user.Account().FirstName)
		}
	}
}
