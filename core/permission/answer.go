package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Options on the buttons of a permission.
const (
	OptionOnce = "once" // this call only
	OptionDeny = "deny"
)

// Options on the buttons of the choice after an interrupted run.
const (
	OptionGoOn = "go"
	OptionStop = "stop"
)

// OptionGrant is the option of the i-th suggested grant.
func OptionGrant(i int) string { return "grant" + strconv.Itoa(i) }

// Press decides an ask by the option of a button. The caller has made sure
// that by is owner or admin.
func (g *Guard) Press(ctx context.Context, askID, option string, by core.Actor) error {
	switch option {
	case OptionOnce:
		return g.Grant(ctx, askID, "", by)
	case OptionDeny:
		return g.Deny(ctx, askID, by)
	}
	a, err := g.o.Desk.ByID(ctx, g.o.DB, askID)
	if err != nil {
		return err
	}
	body, err := read(a)
	if err != nil {
		return err
	}
	for i, s := range body.Request.SuggestedGrants {
		if option == OptionGrant(i) {
			return g.Grant(ctx, askID, s.Pattern, by)
		}
	}
	return texts.Error(core.Invalid, "button_gone")
}

// Grant lets the call of an open ask go on. An empty pattern means this once;
// else it is one of the suggested grants or narrower (Invalid if not), and
// calls that it covers go on unasked in this session for this person at this
// trust, until it is revoked. What is on the deny list stays closed whatever is
// granted. The caller has made sure that by is owner or admin; a guest is
// refused here, too, for asks of its own. Conflict when somebody was first.
func (g *Guard) Grant(ctx context.Context, askID, pattern string, by core.Actor) error {
	return g.decide(ctx, askID, decisionGranted, by, func(tx *store.Tx, a Ask, body payload) error {
		if pattern == "" {
			return nil
		}
		if !narrower(body.Request.Kind, pattern, body.Request.SuggestedGrants) {
			return core.Errorf(core.Invalid, "the pattern is neither one of the suggested grants nor narrower than one")
		}
		return keep(ctx, tx, a, body, pattern, by)
	})
}

// Deny refuses the call of an open ask. The caller has made sure that by is
// owner or admin. Conflict when somebody was first.
func (g *Guard) Deny(ctx context.Context, askID string, by core.Actor) error {
	return g.decide(ctx, askID, decisionDenied, by, func(*store.Tx, Ask, payload) error { return nil })
}

func (g *Guard) decide(ctx context.Context, askID, decision string, by core.Actor, and func(*store.Tx, Ask, payload) error) error {
	return g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		a, err := g.o.Desk.ByID(ctx, tx, askID)
		if err != nil {
			return err
		}
		body, err := read(a)
		if err != nil {
			return err
		}
		if by.User <= 0 || !body.Owner && by.User == body.User {
			return texts.Error(core.Denied, "permission_not_yours")
		}
		if a, err = g.o.Desk.Decide(ctx, tx, askID, decision, by); err != nil {
			return err
		}
		if err := and(tx, a, body); err != nil {
			return err
		}
		return g.closed(ctx, tx, []Ask{a})
	})
}

// read is the payload of a permission.
func read(a Ask) (payload, error) {
	var body payload
	if a.Kind != KindPermission || json.Unmarshal([]byte(a.Payload), &body) != nil || body.Request == nil {
		return payload{}, texts.Error(core.NotFound, "question_gone")
	}
	return body, nil
}

// A Waiting is an ask that waits for the owner, as the panel and the API show it.
type Waiting struct {
	Request  core.PermissionRequest `json:"request"`
	Session  string                 `json:"session_id"`
	Run      string                 `json:"run_id"`
	Bot      string                 `json:"bot"`
	User     int64                  `json:"user_id"` // for whom the call is
	Trust    core.Trust             `json:"trust_level"`
	Reason   string                 `json:"reason"`             // why it is asked
	Commands []string               `json:"commands,omitempty"` // of a shell, as parsed
	At       time.Time              `json:"created_at"`
}

// Caution returns why it is asked, where that is more than that nothing allows
// it: a command that hides what it runs, that is not wholly understood, or that
// names what is on the deny list.
func (w Waiting) Caution() string {
	if strings.HasPrefix(w.Reason, w.Request.ToolName+wantsTo) {
		return ""
	}
	return w.Reason
}

// wantsTo follows a tool's name in the reason of an ask that nothing allows.
const wantsTo = " wants to "

// Pending are the asks that wait for the owner, oldest first, at most limit.
func (g *Guard) Pending(ctx context.Context, limit int) ([]Waiting, error) {
	var rows []row
	err := g.o.DB.Select(ctx, &rows, askColumns+` WHERE state = 'open' AND kind = 'permission' AND (expires_at = '' OR expires_at > $1)
		ORDER BY created_at, id LIMIT $2`, core.Stamp(g.o.Clock.Now()), max(0, min(limit, maxOpen)))
	if err != nil {
		return nil, fmt.Errorf("pending asks: %w", err)
	}
	out := make([]Waiting, 0, len(rows))
	for _, r := range rows {
		if w, err := View(r.ask()); err == nil {
			out = append(out, w)
		}
	}
	return out, nil
}

// View is an ask of a tool call as the panel and the API show it; NotFound for
// any other ask.
func View(a Ask) (Waiting, error) {
	body, err := read(a)
	if err != nil {
		return Waiting{}, err
	}
	return Waiting{Request: *body.Request, Session: body.Session, Run: a.Run, Bot: a.Bot, User: body.User, Trust: body.Trust,
		Reason: body.Reason, Commands: body.Commands, At: a.CreatedAt}, nil
}

// Ask asks the sender what the model wants to know (the input of
// AskUserQuestion) and waits 300 s; it emits core.UserQuestion. Without an
// answer the answers are {}. Denied where nobody can answer, Busy when too many
// questions wait, ctx's cause when it ends.
func (g *Guard) Ask(ctx context.Context, p Profile, questions json.RawMessage, emit func(core.Event), waiting func(bool)) (json.RawMessage, error) {
	switch {
	case len(questions) > maxQuestions || !json.Valid(questions):
		return nil, core.Errorf(core.Invalid, "questions are JSON of at most %d bytes", maxQuestions)
	case !p.CanAsk || p.User <= 0:
		return nil, core.Errorf(core.Denied, "Nobody can answer here: go on without, and say what you assumed.")
	}
	body := payload{Questions: questions, Session: p.Session, User: p.User, Owner: p.Owner, Trust: p.Trust}
	ask, err := g.open(ctx, Ask{Kind: KindQuestion, Run: p.Run, Bot: p.Bot, Chat: p.Chat, User: p.User, Asker: p.User}, questionTime, &body, p)
	if err != nil {
		return nil, err
	}
	emit(core.UserQuestion{ID: ask.ID, Questions: questions, ExpiresAt: ask.ExpiresAt})
	if ask, err = g.wait(ctx, ask, waiting); err != nil {
		return nil, err
	}
	if ask.State != Decided {
		return json.RawMessage(`{}`), nil
	}
	return answers(questions, ask.Decision), nil
}

// answers are an object by question; a text typed in chat answers the first.
func answers(questions json.RawMessage, decision string) json.RawMessage {
	var object map[string]any
	if json.Unmarshal([]byte(decision), &object) == nil && object != nil {
		return json.RawMessage(decision)
	}
	var list []struct {
		Question string `json:"question"`
	}
	name := "answer"
	if json.Unmarshal(questions, &list) == nil && len(list) > 0 && list[0].Question != "" {
		name = list[0].Question
	}
	out, err := json.Marshal(map[string]string{name: decision})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

// Answer answers a question of Ask with an object by question, or a text. Only
// the person who was asked may: to anybody else there is no such question.
// Conflict when it was answered already or its time is over.
func (g *Guard) Answer(ctx context.Context, askID string, answers json.RawMessage, by core.Actor) error {
	text := string(answers)
	if s := ""; json.Unmarshal(answers, &s) == nil {
		text = s
	} else if !json.Valid(answers) {
		return core.Errorf(core.Invalid, "answers are a JSON object or a text")
	}
	return g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		a, err := g.o.Desk.ByID(ctx, tx, askID)
		if err != nil {
			return err
		}
		if a.Kind != KindQuestion || a.User == 0 || a.User != by.User {
			return texts.Error(core.NotFound, "question_gone")
		}
		if a, err = g.o.Desk.Decide(ctx, tx, askID, text, by); err != nil {
			return err
		}
		return g.closed(ctx, tx, []Ask{a})
	})
}
