package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/cmd/gatehouse/stage/scripted"
)

// answers waits until the bot has sent a person a message that fits, after what they
// wrote last.
func (p *proc) answers(who player, fits func(phones.Message) bool) (m phones.Message) {
	p.t.Helper()
	p.sees(func() bool {
		for _, c := range p.world(who.platform).Chats {
			if c.Person != who.id {
				continue
			}
			for _, m = range slices.Backward(c.Messages) {
				if !m.From.Bot {
					return false
				}
				if fits(m) {
					return true
				}
			}
		}
		return false
	})
	return m
}

// asked writes a message of a person and waits for an answer with text.
func (p *proc) asked(who player, write, text string) phones.Message {
	p.t.Helper()
	p.writes(who, write)
	return p.answers(who, func(m phones.Message) bool { return strings.Contains(m.Text, text) })
}

// presses presses a button of a message.
func (p *proc) presses(who player, m phones.Message, b phones.Button) {
	p.t.Helper()
	body, err := json.Marshal(phones.Action{Platform: who.platform, From: who.id, Message: m.ID, Data: b.Data})
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.Post(p.shows(phonesLink)+"press", "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		p.t.Fatalf("pressing %q: %s", b.Text, resp.Status)
	}
}

// labels returns the texts of a message's buttons.
func labels(m phones.Message) (list []string) {
	for _, row := range m.Buttons {
		for _, b := range row {
			list = append(list, b.Text)
		}
	}
	return list
}

func TestTheDemosCouncilDisagreesOnOneQuestionAndAgreesOnTheOther(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	disputed, agreed := scripted.Questions()[0], scripted.Questions()[1]
	if offered := p.state().Prepared; !slices.Contains(offered, "/accuracy high") || !slices.Contains(offered, disputed) || !slices.Contains(offered, agreed) {
		t.Errorf("the phones offer %q", offered)
	}
	olga := p.player("telegram", "Olga")
	p.asked(olga, p.shows(`(/claim \S+)\n`), "You are the owner now")
	p.asked(olga, "How long should green tea brew?", "No language model is configured") // the council changes nothing without /accuracy
	p.asked(olga, "/accuracy high", "The council answers")

	p.writes(olga, disputed)
	m := p.answers(olga, func(m phones.Message) bool { // the buttons come with its end
		return strings.Contains(m.Text, "The models contradict each other") && len(m.Buttons) > 0
	})
	if got := labels(m); !slices.Equal(got, []string{"Answer 1", "Answer 2"}) || !strings.Contains(m.Text, "1610") || !strings.Contains(m.Text, "1606") {
		t.Errorf("a dispute has the buttons %q under %q", got, m.Text)
	}
	p.presses(olga, m, m.Buttons[0][1])
	second := "scripted/oak" // alone with its answer, so it is never the shown one at first
	p.sees(func() bool {
		return strings.Contains(p.asked(olga, "/why", "Accuracy high").Text, "You picked the answer of "+second)
	})

	if m := p.asked(olga, agreed, "100 °C"); strings.Contains(m.Text, "contradict") {
		t.Errorf("the models do not agree: %q", m.Text)
	}
	if m := p.asked(olga, "/why", "topic science"); !strings.Contains(m.Text, "confidence High") || strings.Count(m.Text, "scripted/") < len(scripted.Members()) {
		t.Errorf("why says %q", m.Text)
	}
	v := p.visitor()
	v.read(v.http.Get(p.shows(panelLink)))
	if _, page := v.get("/admin/council"); !strings.Contains(page, disputed) || !strings.Contains(page, agreed) || !strings.Contains(page, second) {
		t.Errorf("the panel's page of the council:\n%s", page)
	}
	p.interrupt()

	db, err := sql.Open("sqlite3", filepath.Join(h.dir, "Gatehouse-demo", "Chat", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var winners int
	var winner string
	err = db.QueryRow(`SELECT count(*), max(model_id) FROM model_runs r JOIN council_queries q USING (query_id) WHERE vcg_winner = 1 AND q.callout_type = 'disagreement'`).Scan(&winners, &winner)
	if err != nil || winners != 1 || winner != second {
		t.Errorf("%d winners, %s, %v; want %s alone", winners, winner, err, second)
	}
}

func TestTheDemoLeavesACouncilOfTheOperatorAlone(t *testing.T) {
	h := newDemoHome(t)
	h.env["GATEHOUSE_OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1" // no one listens there
	p := h.demo()
	if offered := p.state().Prepared; len(offered) > 0 {
		t.Errorf("the phones offer %q", offered)
	}
	p.interrupt()
}
