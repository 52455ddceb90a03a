package responses

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/refusal"
)

// A turn is what a request becomes: a message in a session.
type turn struct {
	session string
	number  int    // of the response in its session
	prompt  string // "" is the agent's
	before  []core.Said
	last    core.Said
	trust   core.Trust // its ceiling, that of what it repeats of sessions; Stranger: it repeats nothing
}

// lower lets t have no more trust than a session of which it repeats something.
func (a *API) lower(ctx context.Context, t *turn, session string) error {
	trust, err := a.Sessions.Trust(ctx, session)
	if trust = max(trust, core.Sandboxed); err == nil && (t.trust == core.Stranger || trust < t.trust) {
		t.trust = trust
	}
	return err
}

// prepare makes a turn of q: the next one of the previous response's session where it
// can be, else the first of a new one.
func (a *API) prepare(ctx context.Context, user int64, q *request) (t turn, err error) {
	if err := a.resolve(ctx, user, q, &t); err != nil {
		return t, err
	}
	own := conversation.Conversation{Param: "input"}
	if err := add(&own, q.Input, inputAt); err != nil {
		return t, err
	}
	if q.System, err = own.System(); err != nil {
		return t, err
	}
	if t.before, t.last, err = own.Said(); err != nil {
		return t, err
	}
	t.session, t.number = uuid.NewString(), 1
	if q.Previous == "" {
		t.prompt = join(q.Instructions, q.System)
		return t, nil
	}
	row, past, err := a.find(ctx, user, q.Previous, "previous_response_id")
	if err != nil {
		return t, err
	}
	if row, err = a.answered(ctx, row); err != nil {
		return t, err
	}
	if !q.Store || len(t.before) > 0 || past.Model != q.Model {
		return t, a.branch(ctx, user, q, &t)
	}
	if q.System = join(past.System, q.System); len(q.System) > conversation.MaxText {
		return t, refusal.New(web.Invalid, "string_above_max_length", "input", fmt.Sprintf("Invalid 'input': over %d bytes in system messages, with those of earlier responses.", conversation.MaxText))
	}
	t.session, t.number, t.prompt = row.Session, row.Number+1, join(q.Instructions, q.System)
	return t, nil
}

// answered returns the previous response, which has an answer to go on from.
func (a *API) answered(ctx context.Context, row response.Row) (response.Row, error) {
	row, err := a.settle(ctx, row)
	if err != nil {
		return row, err
	}
	o, ok, err := outcomeOf(row)
	if err != nil {
		return row, err
	}
	if !ok {
		o.Status = inProgress
	}
	if o.Status != completed && o.Status != incomplete {
		return row, refusal.New(web.Invalid, "invalid_value", "previous_response_id",
			fmt.Sprintf("Invalid 'previous_response_id': the response %s is %s, so there is no answer to go on from.", row.ID, o.Status))
	}
	return row, nil
}

// branch makes t the first turn of a new session, which begins with everything that
// was written up to the previous response.
func (a *API) branch(ctx context.Context, user int64, q *request, t *turn) error {
	chain, err := a.chain(ctx, user, q.Previous, t)
	if err != nil {
		return err
	}
	all := conversation.Conversation{Param: "input"}
	for _, items := range append(chain, q.Input) {
		if err := add(&all, items, inputAt); err != nil {
			return err
		}
	}
	if q.System, err = all.System(); err != nil {
		return err
	}
	t.session, t.number, t.prompt = uuid.NewString(), 1, join(q.Instructions, q.System)
	t.before, t.last, err = all.Said()
	return err
}

// chain returns the items of a response and of those before it, the oldest first, and
// lowers t to their sessions.
func (a *API) chain(ctx context.Context, user int64, id string, t *turn) (chain [][]item, err error) {
	n, session := 0, ""
	for at := id; at != ""; {
		row, q, err := a.find(ctx, user, at, "previous_response_id")
		if core.KindOf(err) == core.NotFound || err == nil && row.Answer == nil {
			return nil, refusal.New(web.NotFound, "previous_response_not_found", "previous_response_id",
				fmt.Sprintf("The response %s, which the conversation goes on from, is no longer stored.", core.CutRunes(core.CleanName(at), 100)))
		}
		if err != nil {
			return nil, err
		}
		o, _, err := outcomeOf(row)
		if err == nil && row.Session != session {
			session = row.Session
			err = a.lower(ctx, t, session)
		}
		if err != nil {
			return nil, err
		}
		items := slices.Clone(q.Input)
		if o.Text != "" {
			items = append(items, message(row.ID, o))
		}
		if n += len(items); n > conversation.MaxMessages {
			return nil, refusal.New(web.Invalid, "array_above_max_length", "previous_response_id", fmt.Sprintf("Invalid 'previous_response_id': the conversation has over %d messages.", conversation.MaxMessages))
		}
		chain, at = append(chain, items), row.Previous
	}
	slices.Reverse(chain)
	return chain, nil
}

// resolve replaces references to items of stored responses by these items, and lowers t
// to their sessions. Each response is read once.
func (a *API) resolve(ctx context.Context, user int64, q *request, t *turn) error {
	var ids []string
	at := map[string][]int{} // the references to a response
	for i, it := range q.Input {
		if it.Type == "item_reference" {
			id, _ := ofItem(it.ID)
			if at[id] == nil {
				ids = append(ids, id)
			}
			at[id] = append(at[id], i)
		}
	}
	for _, id := range ids {
		row, past, err := a.find(ctx, user, id, "")
		if err != nil && web.ProblemOf(err).Fault.Status == web.NotFound.Status {
			return missing(q, at[id][0])
		}
		if err == nil {
			err = a.lower(ctx, t, row.Session)
		}
		if err != nil {
			return err
		}
		o, ok, err := outcomeOf(row)
		if err != nil {
			return err
		}
		for _, i := range at[id] {
			switch _, n := ofItem(q.Input[i].ID); {
			case n >= 0 && n < len(past.Input):
				q.Input[i] = past.Input[n]
			case n == -1 && ok && o.Text != "":
				q.Input[i] = message(row.ID, o)
			default:
				return missing(q, i)
			}
		}
	}
	return nil
}

// missing refuses a reference to an item that there is not.
func missing(q *request, i int) error {
	return refusal.New(web.NotFound, "", inputAt(i)+".id", fmt.Sprintf("Item with id '%s' not found.", core.CutRunes(core.CleanName(q.Input[i].ID), 100)))
}

// join returns two texts as one.
func join(a, b string) string { return strings.Trim(a+"\n\n"+b, "\n") }
