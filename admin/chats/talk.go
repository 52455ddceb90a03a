package chats

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/web"
	"gatehouse/web/auth"
)

const (
	talkPath = "/admin/talk"
	maxSay   = 20_000 // bytes of one message's text
	ownChats = 12
)

type talkBody struct {
	Compose composer
	Chats   page.Part[[]chatRow]
}

// A composer is the form that a message is written in.
type composer struct {
	CSRF    string
	ID      string // of the conversation, or "new"
	Error   string
	Text    string // the text before the error
	Attach  bool
	Speak   bool
	Running bool
	Asked   bool     // the model asks something: a message is the answer
	Agents  []string // to choose from; with those below only for a new one
	Models  []string
	Saved   []string
	Agent   string // chosen before the error
	Model   string
	Context string
}

// Files returns how many files may come with a message.
func (c composer) Files() int { return maxFiles }

// Bytes returns how large they may be together.
func (c composer) Bytes() int { return page.MaxUpload }

// talkPage begins a conversation in the browser; it goes on at its own page.
func (p *Pages) talkPage(w http.ResponseWriter, r *http.Request) error {
	return p.showTalk(w, r, http.StatusOK, composer{})
}

func (p *Pages) showTalk(w http.ResponseWriter, r *http.Request, status int, c composer) error {
	c.CSRF, c.ID, c.Attach, c.Speak = page.Token(r), "new", p.o.Files != nil, p.listen(w)
	who, _ := page.Principal(r)
	c.Agents, c.Models, c.Saved = p.links.Agents(), p.links.Models(), p.links.Contexts(who)
	b := talkBody{Compose: c}
	no := false
	b.Chats = page.Load(r.Context(), p.frame, "The list of conversations", func(ctx context.Context) (rows []chatRow, err error) {
		list, _, err := p.o.Chats.List(ctx, session.Filter{User: who.User, Archived: &no, Limit: ownChats})
		running := p.running()
		for _, s := range list {
			rows = append(rows, chatRow{Session: s, Running: running[s.ID]})
		}
		return rows, err
	})
	return p.frame.Show(w, r, status, "talk", page.View{Title: "New chat", In: "chats", Still: true, Body: b})
}

// listen lets the page use the microphone where speech is transcribed, and reports whether
// it is.
func (p *Pages) listen(w http.ResponseWriter) bool {
	if p.o.Speech {
		web.AllowMicrophone(w.Header())
	}
	return p.o.Speech
}

// say stores what the person who is signed in wrote and goes to the conversation, where the
// answer appears as it is made.
func (p *Pages) say(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	s, err := p.saying(r)
	if err == nil {
		err = p.checkSaying(&s, who)
	}
	if err == nil {
		var id string
		if id, err = p.deliver(r.Context(), s, who.Actor()); err == nil {
			to := URL(id)
			if s.Session == "" {
				to += "?new=1"
			}
			http.Redirect(w, r, to+"#end", http.StatusSeeOther)
			return nil
		}
	}
	if p.o.Files != nil {
		p.o.Files.Remove(s.Files)
	}
	status, text, told := notTaken(err)
	if !told {
		return err
	}
	c := composer{Error: page.Sentence(text), Text: s.Text, Agent: s.Agent, Model: s.Model, Context: s.Context}
	if s.Session == "" {
		return p.showTalk(w, r, status, c)
	}
	return p.showChat(w, r, status, s.Session, c)
}

// deliver passes the message to the model that waits for an answer, or else to
// the conversation.
func (p *Pages) deliver(ctx context.Context, s Saying, by core.Actor) (session string, err error) {
	if answered, err := p.answerInWords(ctx, s, by); answered || err != nil {
		return s.Session, err
	}
	return p.o.Say(ctx, s, by)
}

// answerInWords answers the model's open question with a message, and reports
// whether there was one.
func (p *Pages) answerInWords(ctx context.Context, s Saying, by core.Actor) (bool, error) {
	if p.o.Questions == nil || s.Session == "" || s.Text == "" || len(s.Files) > 0 {
		return false, nil
	}
	open, err := p.o.Questions.Questions(ctx, s.Session, by.User)
	if err != nil || len(open) == 0 {
		return false, err
	}
	text, err := json.Marshal(s.Text)
	if err != nil {
		return false, err
	}
	err = p.o.Questions.Answer(ctx, s.Session, open[0].ID, text, by)
	if core.KindOf(err) == core.Conflict { // it was answered concurrently: this is a message
		return false, nil
	}
	return err == nil, err
}

// notTaken returns the status and text of an error that the form shows.
func notTaken(err error) (status int, text string, told bool) {
	p := web.ProblemOf(err)
	switch status = p.Fault.Status; {
	case status == http.StatusBadRequest:
		status = http.StatusUnprocessableEntity
	case status >= http.StatusInternalServerError && core.KindOf(err) != core.Busy:
		return 0, "", false
	}
	return status, p.Detail, true
}

func (p *Pages) checkSaying(s *Saying, who auth.Principal) error {
	switch {
	case s.Text == "" && len(s.Files) == 0:
		return core.Errorf(core.Invalid, "write something first")
	case len(s.Text) > maxSay:
		return core.Errorf(core.TooLarge, "a message is at most %s", core.ByteSize(maxSay))
	case s.Session != "":
		s.Agent, s.Model, s.Context = "", "", "" // they are the conversation's own
	case s.Agent != "" && !slices.Contains(p.links.Agents(), s.Agent):
		return core.Errorf(core.Invalid, "there is no agent named %s", core.CutRunes(s.Agent, 60))
	case s.Model != "" && !slices.Contains(p.links.Models(), s.Model):
		return core.Errorf(core.Invalid, "the model %s is not configured here", core.CutRunes(s.Model, 60))
	}
	if s.Context == "" {
		return nil
	}
	paths, _, err := p.links.ContextPaths(who, s.Context, who.Trust, who.User)
	s.Contexts = paths
	return err
}

// words returns a message's text as it is stored.
func words(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}
