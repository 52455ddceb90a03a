package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/store"
)

// Reasons why a pick is refused, as the field Reason of PickError.
const (
	NotDisputed = "not_disputed"
	NoOption    = "no_option"
	TooLate     = "too_late"
	Taken       = "taken"
)

// A PickError reports why a pick is refused.
type PickError struct {
	Reason string
	Picked string // what was picked before, of Taken
	err    error
}

func (e *PickError) Error() string { return e.err.Error() }
func (e *PickError) Unwrap() error { return e.err }

// Pick stores the option of a dispute that the user takes: exactly one is the
// winner, the second caller reads which. The same pick again changes nothing and is
// no error. A query that is not the user's is core.NotFound. Picks are open for
// PickOpen after the answer.
func (s *Store) Pick(ctx context.Context, user int64, query, model string) (p Picked, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		p, err = s.PickIn(ctx, tx, user, query, model)
		return err
	})
	return p, err
}

// PickIn is Pick in a transaction of the caller's.
func (s *Store) PickIn(ctx context.Context, tx *store.Tx, user int64, query, model string) (Picked, error) {
	q, err := s.owner(ctx, tx, query)
	if err == nil && q.User != user {
		err = core.Errorf(core.NotFound, "no such query")
	}
	if err != nil {
		return Picked{}, err
	}
	if q.Callout != choice.CalloutDisagreement {
		return Picked{}, &PickError{Reason: NotDisputed, err: core.Errorf(core.Conflict, "the answers to this query are not disputed")}
	}
	rows, err := s.answers(ctx, tx, query)
	if err != nil {
		return Picked{}, err
	}
	i := slices.IndexFunc(rows, func(r judged) bool { return r.Model == model })
	if i < 0 {
		return Picked{}, &PickError{Reason: NoOption, err: core.Errorf(core.Invalid, "model: none of the options of this query is of %q", model)}
	}
	p := Picked{User: user, Query: query, Conversation: q.Conversation, Domain: q.Domain, Model: model, Preview: q.Preview}
	for _, r := range same(rows, i) {
		p.Same = append(p.Same, r.Model)
	}
	n, err := tx.Exec(ctx, `UPDATE council_queries SET picked = $3, picked_at = $4, winner = $3, settled = 1
		WHERE query_id = $1 AND user_id = $2 AND picked = '' AND ended_at > $5`,
		query, user, model, core.Stamp(tx.Time()), core.Stamp(tx.Time().Add(-PickOpen)))
	if err != nil {
		return Picked{}, fmt.Errorf("store a pick: %w", err)
	}
	if n == 0 {
		return p, s.late(ctx, tx, query, model)
	}
	if _, err := tx.Exec(ctx, `UPDATE model_runs SET vcg_winner = CASE WHEN run_id = $2 THEN 1 ELSE 0 END WHERE query_id = $1`, query, rows[i].ID); err != nil {
		return Picked{}, fmt.Errorf("store a pick: %w", err)
	}
	if err := s.spread(ctx, tx, q, model, Correct, ByPick); err != nil {
		return Picked{}, fmt.Errorf("store a pick: %w", err)
	}
	return p, nil
}

// late returns why a pick changed nothing; nil if it is the same again.
func (s *Store) late(ctx context.Context, tx *store.Tx, query, model string) error {
	var was string
	if err := tx.Get(ctx, &was, `SELECT picked FROM council_queries WHERE query_id = $1`, query); err != nil {
		return err
	}
	switch was {
	case model:
		return nil
	case "":
		return &PickError{Reason: TooLate, err: core.Errorf(core.Conflict, "the options of this query were open for 24 hours")}
	}
	return &PickError{Reason: Taken, Picked: was, err: core.Errorf(core.Conflict, "the answer of %s was picked already", was)}
}

// An Option is one of the answers to pick from.
type Option struct {
	Model string `json:"model"`
	Text  string `json:"text"`
}

// Options returns the answers of a dispute; none once they were deleted. A query that is
// not the user's is core.NotFound.
func (s *Store) Options(ctx context.Context, user int64, query string) ([]Option, error) {
	var q struct {
		Callout string `db:"callout_type"`
		Ended   string `db:"ended_at"`
	}
	err := s.o.DB.Get(ctx, &q, `SELECT callout_type, ended_at FROM council_queries WHERE query_id = $1 AND user_id = $2`, query, user)
	if errors.Is(err, store.ErrNoRows) {
		return nil, core.Errorf(core.NotFound, "no such query")
	}
	if err != nil {
		return nil, fmt.Errorf("read the options: %w", err)
	}
	out := []Option{}
	if q.Callout != choice.CalloutDisagreement {
		return out, nil
	}
	stages, err := s.Stages(ctx, query)
	for _, st := range stages {
		text, _, _ := choice.SplitReport(st.Content)
		if i := slices.IndexFunc(out, func(o Option) bool { return o.Model == st.Model }); st.Stage == StageRegenerate && i >= 0 {
			out[i].Text = text // revised after a review
		} else if st.Stage == StageAnswer && st.Error == "" {
			out = append(out, Option{st.Model, text})
		}
	}
	return out, err
}
