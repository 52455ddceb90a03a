package chats

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// A questionCard is what a model asks, as a form.
type questionCard struct {
	ID, Session, CSRF string
	Left              int // seconds for the answer
	List              []askedOne
}

type askedOne struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Many     bool   `json:"multiSelect"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// inlineQuestions returns what a model asks user in one conversation.
func (p *Pages) inlineQuestions(ctx context.Context, id string, user int64, token string) page.Part[[]questionCard] {
	if p.o.Questions == nil {
		return page.Part[[]questionCard]{}
	}
	return page.Load(ctx, p.frame, "What the model asks", func(ctx context.Context) (cards []questionCard, err error) {
		open, err := p.o.Questions.Questions(ctx, id, user)
		for _, q := range open {
			c := questionCard{ID: q.ID, Session: id, CSRF: token, Left: page.Seconds(q.ExpiresAt.Sub(p.frame.Clock.Now()))}
			if json.Unmarshal(q.Questions, &c.List) == nil && len(c.List) > 0 {
				cards = append(cards, c)
			}
		}
		return cards, err
	})
}

// answerQuestion reads the form's choices and texts; a text overrides a choice.
func (p *Pages) answerQuestion(r *http.Request, by core.Actor) (page.Flash, string, error) {
	ctx, id, ask := r.Context(), r.PathValue("id"), r.PathValue("ask")
	back := URL(id) + "#end"
	open, err := p.o.Questions.Questions(ctx, id, by.User)
	if err != nil {
		return page.Flash{}, back, err
	}
	for _, q := range open {
		if q.ID != ask {
			continue
		}
		answers, err := chosenAnswers(q.Questions, r)
		if err == nil {
			err = p.o.Questions.Answer(ctx, id, ask, answers, by)
		}
		return page.Good("The model has your answer."), back, err
	}
	return page.Flash{}, back, core.Errorf(core.Conflict, "it was answered already, or its time is over")
}

func chosenAnswers(questions json.RawMessage, r *http.Request) (json.RawMessage, error) {
	var list []askedOne
	if err := json.Unmarshal(questions, &list); err != nil {
		return nil, err
	}
	answers := map[string]string{}
	for i, q := range list {
		n := strconv.Itoa(i)
		own := strings.TrimSpace(r.PostFormValue("own" + n)) // this parses the form
		if said := cmp.Or(own, strings.Join(r.PostForm["choice"+n], ", ")); said != "" {
			answers[q.Question] = core.CutRunes(said, maxSay)
		}
	}
	if len(answers) == 0 {
		return nil, core.Errorf(core.Invalid, "choose an option or write your own answer")
	}
	return json.Marshal(answers)
}
