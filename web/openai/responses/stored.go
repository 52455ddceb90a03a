package responses

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"gatehouse/core"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// stored returns the response that the address of a request names, as it is now.
func (a *API) stored(r *http.Request) (row response.Row, q request, err error) {
	p, _ := auth.From(r.Context())
	if row, q, err = a.find(r.Context(), p.User, r.PathValue("id"), ""); err != nil {
		return row, q, err
	}
	row, err = a.settle(r.Context(), row)
	return row, q, err
}

// shown returns the response as clients read it.
func (a *API) shown(ctx context.Context, row response.Row, q *request) (*wireResponse, error) {
	o, ok, err := outcomeOf(row)
	if err != nil {
		return nil, err
	}
	if !ok {
		begun, _, err := a.Runs.Run(ctx, row.Run)
		if err != nil {
			return nil, err
		}
		if o.Status = inProgress; !begun && q.Background {
			o.Status = queued
		}
	}
	return object(row, q, o), nil
}

// again returns the call of a response that another request began.
func (a *API) again(r *http.Request, row response.Row, q request) *call {
	return &call{&answer.Call{Desk: a.Desk, R: r, Run: row.Run, Session: row.Session, Param: "input", Detached: true}, a, q, row}
}

// get serves GET /v1/responses/{id}.
func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	live, after, err := streamOf(r)
	if err != nil {
		return err
	}
	row, q, err := a.stored(r)
	if err != nil {
		return err
	}
	if live {
		p, _ := auth.From(r.Context())
		release, err := a.Desk.Wait(p)
		if err != nil {
			return err
		}
		defer release()
		return a.replay(w, a.again(r, row, q), after, nil)
	}
	return a.show(r.Context(), w, row, &q)
}

// show answers with the response as it is now.
func (a *API) show(ctx context.Context, w http.ResponseWriter, row response.Row, q *request) error {
	o, err := a.shown(ctx, row, q)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, o)
}

// streamOf reads what a request states about a stream; after is -1 for all events.
func streamOf(r *http.Request) (live bool, after int, err error) {
	query := r.URL.Query()
	if text := query.Get("stream"); text != "" {
		if live, err = strconv.ParseBool(text); err != nil {
			return false, 0, refusal.BadType("stream", "a boolean")
		}
	}
	after = -1
	if text := query.Get("starting_after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return false, 0, refusal.BadType("starting_after", "the sequence number of an event")
		}
		if !live {
			return false, 0, refusal.New(web.Invalid, "invalid_parameter_combination", "starting_after", "The 'starting_after' parameter is only allowed when 'stream' is enabled.")
		}
	}
	return live, after, nil
}

// remove serves DELETE /v1/responses/{id}: the response is stopped and not shown any
// more, and the session is deleted with the last of its responses.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	row, _, err := a.stored(r)
	if err != nil {
		return err
	}
	found, err := a.Rows.Hide(r.Context(), row.User, row.ID)
	if err != nil {
		return err
	}
	if found && row.State != response.Ended {
		if err := a.halt(r.Context(), row); err != nil {
			return err
		}
	}
	a.tidyNow(r.Context(), row.ID)
	return web.WriteJSON(w, http.StatusOK, map[string]any{"id": row.ID, "object": "response", "deleted": true})
}

// cancel serves POST /v1/responses/{id}/cancel. A response that has ended stays as it is.
func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	row, q, err := a.stored(r)
	if err != nil {
		return err
	}
	if !q.lasting() {
		return refusal.New(web.Invalid, "invalid_value", "", "Only responses with 'background' set to true, or with an Idempotency-Key, can be cancelled. To stop another one, close its connection.")
	}
	if row.State == response.Open {
		o := outcome{Status: cancelled, At: a.Desk.Clock.Now().Unix()}
		if err := a.stop(r.Context(), row, o); err != nil {
			return err
		}
		if row, q, err = a.find(r.Context(), row.User, row.ID, ""); err != nil {
			return err
		}
	}
	return a.show(r.Context(), w, row, &q)
}

type wireList struct {
	Object string `json:"object"`
	Data   []item `json:"data"`
	First  string `json:"first_id"`
	Last   string `json:"last_id"`
	More   bool   `json:"has_more"`
}

// items serves GET /v1/responses/{id}/input_items: the items of this response alone.
func (a *API) items(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return refusal.New(web.Invalid, "invalid_value", "limit", "Invalid 'limit': expected a number from 1 to 100.")
		}
		limit = n
	}
	order := query.Get("order")
	if order != "" && order != "asc" && order != "desc" {
		return refusal.New(web.Invalid, "invalid_value", "order", "Invalid value for 'order': supported are 'asc' and 'desc'.")
	}
	_, q, err := a.stored(r)
	if err != nil {
		return err
	}
	all := slices.Clone(q.Input)
	for i := range all {
		if !slices.Contains(query["include[]"], imageURLs) && !slices.Contains(query["include"], imageURLs) {
			all[i].Content = withoutPictures(all[i].Content)
		}
	}
	if order != "asc" {
		slices.Reverse(all)
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(all, func(it item) bool { return it.ID == after })
		if i < 0 {
			return refusal.New(web.Invalid, "invalid_value", "after", fmt.Sprintf("Invalid 'after': there is no item '%s'.", core.CutRunes(core.CleanName(after), 100)))
		}
		all = all[i+1:]
	}
	list := wireList{Object: "list", Data: all[:min(limit, len(all))], More: len(all) > limit}
	if n := len(list.Data); n > 0 {
		list.First, list.Last = list.Data[0].ID, list.Data[n-1].ID
	}
	return web.WriteJSON(w, http.StatusOK, list)
}

// imageURLs is the value of include that asks for pictures.
const imageURLs = "message.input_image.image_url"

func withoutPictures(parts []part) []part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].ImageURL = ""
	}
	return parts
}
