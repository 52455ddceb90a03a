package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	chatcommand "gatehouse/core/command"
)

// buttonsOf returns the labels under a message.
func buttonsOf(m telegramtest.Message) (labels []string) {
	for _, row := range m.Buttons {
		for _, b := range row {
			labels = append(labels, b.Text)
		}
	}
	return labels
}

// labelOf returns the label of the button that picks the answer of the third member.
func labelOf(m telegramtest.Message, query string) string {
	for _, b := range m.Buttons[0] {
		if b.CallbackData == chatcommand.PickData(query, "memberc/m") {
			return b.Text
		}
	}
	return ""
}

// However an answer is picked, the message of the dispute states which one, and has no buttons to
// pick any more; what its other messages say stays.
func TestThePickIsShownInTheMessageOfTheDispute(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("It is a long story of bridges and of those who built them. ", 80)
	s := newSeats(t, nil, opinion("It opened in 1932. "+long), opinion("The bridge opened in 1932."), opinion("It opened in 1937."))
	boss := s.boss()
	s.replies(boss, "/accuracy high")
	key := s.keyOf(boss, core.Vault, "chat", "read")
	panel := s.browser()
	if page := panel.page("/admin/council"); strings.Count(page, `</span> <span class="pill">Member</span>`) != 3 || !strings.Contains(page, `<span class="num">memberb/m</span>`) {
		t.Errorf("before the first question the page of the council does not name its members: %s", page)
	}
	dispute := func() (m telegramtest.Message, query string) {
		t.Helper()
		after := boss.Send("When was the bridge opened?").ID
		m = s.hears(boss.DM(), func(m telegramtest.Message) bool {
			return m.ID > after && len(m.Buttons) > 0 && strings.HasPrefix(m.Buttons[0][0].Text, "Answer")
		})
		s.quiet()
		if err := s.app.db.Get(t.Context(), &query, `SELECT query_id FROM council_queries ORDER BY created_at DESC, query_id DESC LIMIT 1`); err != nil {
			t.Fatal(err)
		}
		return m, query
	}
	for name, pick := range map[string]func(m telegramtest.Message, query string){
		"button":   func(m telegramtest.Message, query string) { tap(t, boss, m, labelOf(m, query)) },
		"/pick":    func(telegramtest.Message, string) { s.replies(boss, "/pick memberc/m") },
		"the list": func(telegramtest.Message, string) { tap(t, boss, s.replies(boss, "/pick"), "Pick memberc/m") },
		"the panel": func(_ telegramtest.Message, query string) {
			at := "/admin/council/queries/" + query
			if status, body := panel.submit(at+"/pick", panel.page(at), url.Values{"model": {"memberc/m"}}); status != 200 || !strings.Contains(body, "You picked") {
				t.Fatalf("%d %s", status, body)
			}
		},
		"the API": func(_ telegramtest.Message, query string) {
			for range 2 {
				if got := s.status(key, "POST", "/api/council/queries/"+query+"/pick", map[string]any{"model_id": "memberc/m"}); got != 200 {
					t.Fatal(got)
				}
			}
		},
	} {
		m, query := dispute()
		pick(m, query)
		shown := s.hears(boss.DM(), func(x telegramtest.Message) bool {
			return x.ID <= m.ID && x.ID > m.ID-10 && strings.Contains(x.Text, "The models contradicted each other. Picked: "+labelOf(m, query)+", of memberc/m.")
		})
		last := s.hears(boss.DM(), func(x telegramtest.Message) bool { return x.ID == m.ID && len(x.Buttons) == 0 })
		s.quiet()
		if strings.Contains(shown.Text, "provisionally") || len(last.Text) < 20 {
			t.Errorf("%s: %q, %q", name, shown.Text, last.Text)
		}
		styled := false
		for _, e := range shown.Entities {
			styled = styled || e.Type == "bold"
		}
		if !styled {
			t.Errorf("%s: the styles are lost: %+v", name, shown.Entities)
		}
		if n := s.count(`SELECT count(*) FROM outbox WHERE key = 'run:` + query + `' AND ordinal >= 900`); n > 2 || n == 0 {
			t.Errorf("%s: %d edits", name, n)
		}
	}
	if n := s.count(`SELECT count(*) FROM model_runs WHERE vcg_winner = 1 AND model_id = 'memberc/m'`); n != 5 {
		t.Errorf("%d picks are stored, want 5", n)
	}
}

// A button of an earlier /why claims no pick that did not happen, and picks in no other dispute
// than that which it was shown for.
func TestAnOldButtonOfWhyClaimsNoPickThatDidNotHappen(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, opinion("It opened in 1932."), opinion("The bridge opened in 1932."), opinion("It opened in 1937."))
	boss := s.boss()
	s.replies(boss, "/accuracy high")
	s.replies(boss, "When was the bridge opened?")
	s.quiet()
	why := s.replies(boss, "/why")
	if got := buttonsOf(why); len(got) != 3 || got[2] != "Pick memberc/m" {
		t.Fatalf("the buttons %q", got)
	}
	s.replies(boss, "/pick membera/m")
	s.quiet()
	s.replies(boss, "And when was it closed?")
	s.quiet()
	tap(t, boss, why, "Pick memberc/m")
	now := s.hears(boss.DM(), func(m telegramtest.Message) bool { return m.ID == why.ID && len(m.Buttons) == 0 })
	if !strings.Contains(now.Text, "You picked the answer of membera/m.") || strings.Contains(now.Text, "Pick memberc/m") || strings.Contains(now.Text, "✓") {
		t.Errorf("%q", now.Text)
	}
	s.quiet()
	var picked []string
	if err := s.app.db.Select(t.Context(), &picked, `SELECT picked FROM council_queries ORDER BY created_at, query_id`); err != nil || fmt.Sprint(picked) != "[membera/m ]" {
		t.Errorf("picked are %q, %v", picked, err)
	}
}
