package responses

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// A call is one response on its way to its answer.
type call struct {
	*answer.Call
	a   *API
	q   request
	row response.Row
}

// asked is a request whose model the caller may use.
type asked struct {
	p     auth.Principal
	model answer.Model
	q     request
	once  *once // nil: it has no Idempotency-Key
}

// once is the name that an Idempotency-Key gives a request.
type once struct {
	run  string // of its only run
	body string // the hash of its body
}

// create serves POST /v1/responses.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	release, err := a.Desk.Wait(p)
	if err != nil {
		return err
	}
	defer release()
	asked, ignored, err := a.read(w, r, p)
	if err != nil {
		return err
	}
	web.WarnIgnored(w, ignored)
	if asked.once != nil {
		row, found, err := a.repeated(r.Context(), p.User, asked.once)
		if err != nil {
			return err
		}
		if found {
			return a.repeat(w, r, asked, row)
		}
	}
	t, err := a.prepare(r.Context(), p.User, &asked.q)
	if err != nil {
		return err
	}
	row, err := a.store(r.Context(), asked, &t)
	if errors.Is(err, response.ErrTaken) && asked.once != nil { // the same request, at the same time
		if row, _, err = a.repeated(r.Context(), p.User, asked.once); err == nil {
			return a.repeat(w, r, asked, row)
		}
	}
	if err != nil {
		return err
	}
	w.Header().Set("X-Run-Id", row.Run)
	c := &call{&answer.Call{Desk: a.Desk, R: r, Run: row.Run, Session: row.Session, Param: "input", Detached: asked.q.lasting()}, a, asked.q, row}
	return c.answer(w, a.inbound(asked, &t, row))
}

// read reads a request.
func (a *API) read(w http.ResponseWriter, r *http.Request, p auth.Principal) (*asked, []string, error) {
	key, given, err := web.IdempotencyKey(r)
	if err != nil {
		return nil, nil, err
	}
	raw, err := web.ReadJSON(w, r, answer.MaxBody)
	if err != nil {
		return nil, nil, err
	}
	q, ignored, err := parse(raw)
	if err != nil {
		return nil, nil, err
	}
	m, err := a.Desk.Model(p, q.Model)
	if err != nil {
		return nil, nil, err
	}
	out := &asked{p: p, model: m, q: q}
	if out.q.Once = given; given {
		sum := sha256.Sum256(raw)
		out.once = &once{answer.RunOf(p, key), hex.EncodeToString(sum[:])}
	}
	return out, ignored, nil
}

// inbound returns the turn of a stored response.
func (a *API) inbound(asked *asked, t *turn, row response.Row) core.Inbound {
	q := &asked.q
	return a.Desk.Inbound(asked.p, asked.model, t.last.Text, core.Options{
		Session: row.Session, Run: row.Run, Trust: t.trust, SystemPrompt: t.prompt, Before: t.before, Media: t.last.Media,
		Temperature: q.Temperature, MaxTokens: q.MaxTokens, Respond: q.lasting(),
	})
}

// store inserts the open response: as the next one of its session where that is
// possible, else as the first of a new one. ErrTaken is of a request with an
// Idempotency-Key that another one has used.
func (a *API) store(ctx context.Context, asked *asked, t *turn) (response.Row, error) {
	q, user := &asked.q, asked.p.User
	row := response.Row{Run: uuid.NewString(), User: user, Session: t.session, Number: t.number, Previous: q.Previous, Hidden: !q.Store}
	if asked.once != nil {
		row.Run, row.Body = asked.once.run, asked.once.body
	}
	row.ID = responseID(row.Run)
	for i := range q.Input {
		q.Input[i].ID = inputID(row.ID, i)
	}
	kept := *q
	if row.Hidden {
		kept = request{}
	}
	var err error
	if row.Request, err = json.Marshal(kept); err != nil {
		return row, err
	}
	stored, err := a.Rows.Add(ctx, row)
	if errors.Is(err, response.ErrTaken) && t.number > 1 { // the session has gone on without this one
		if err := a.branch(ctx, user, q, t); err != nil {
			return row, err
		}
		row.Session, row.Number = t.session, t.number
		stored, err = a.Rows.Add(ctx, row)
	}
	if core.KindOf(err) == core.Busy {
		p := refusal.New(web.TooManyRequests, "rate_limit_exceeded", "", fmt.Sprintf("At most %d responses may be open at once per user: wait for one, or cancel it.", response.MaxOpen))
		p.RetryAfter = web.RetrySoon
		return row, p
	}
	return stored, err
}

// answer stores the turn and gives its answer, or the open response where that is to
// be fetched later.
func (c *call) answer(w http.ResponseWriter, in core.Inbound) error {
	if c.q.Background && !c.q.Stream {
		if err := c.Desk.Inbox.Put(c.R.Context(), []core.Inbound{in}, nil); err != nil {
			c.drop()
			return fmt.Errorf("put turn: %w", err)
		}
		return web.WriteJSON(w, http.StatusOK, object(c.row, &c.q, outcome{Status: queued}))
	}
	opened := false
	err := c.Answer(in, func(ctx context.Context) (answer.Writer, error) {
		opened = true
		if c.q.Stream {
			return newEvents(ctx, c, w, -1), nil
		}
		if err := answer.Patient(w); err != nil {
			return nil, err
		}
		return &whole{keeper{c: c, ctx: ctx}, w}, nil
	})
	if !opened {
		c.drop()
	}
	return err
}

// drop deletes the response whose turn was not taken.
func (c *call) drop() {
	if queued, err := c.a.Runs.Queued(context.WithoutCancel(c.R.Context()), answer.UpdateID(c.Run)); err == nil && queued {
		return // a request with the same Idempotency-Key has stored it
	}
	if err := c.a.Rows.Drop(context.WithoutCancel(c.R.Context()), c.row.ID); err != nil {
		c.Desk.Log.Error("a response without a turn is still stored", "response", c.row.ID, "err", err)
	}
}
