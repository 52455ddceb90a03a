package runs

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// An Ended run was ended without an answer. Its last events have an attempt of their
// own: not all events of the earlier attempt are stored, so the next number might
// be one that a client has already received.
type Ended struct {
	Run, Session, Bot, Chat string
	User                    int64
	Attempt                 int
	Events                  []core.Event
}

type endedRow struct {
	Session string `db:"session_id"`
	Bot     string `db:"bot"`
	Chat    string `db:"chat"`
	User    int64  `db:"user_id"`
	Attempt int    `db:"attempt"`
}

const endedColumns = ` RETURNING session_id, bot, chat, user_id, attempt`

// Refused stores the end of a run that may not begin, or not again, behind the event that
// names its session. Publish the
// result after the commit.
func (s *Store) Refused(ctx context.Context, tx *store.Tx, r Row, failed core.Failed) (Ended, error) {
	var row endedRow
	err := tx.Get(ctx, &row, `INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, started, ended, error) VALUES ($1, $2, 1, 'error', $3, $2, $4, $5, $5, $6)
		ON CONFLICT (id) DO UPDATE SET attempt = runs.attempt + 1, state = 'error', ended = excluded.ended, error = excluded.error`+endedColumns,
		r.ID, r.Session, core.APIBot, r.User, core.Stamp(tx.Time()), failed.Code)
	if err != nil {
		return Ended{}, err
	}
	begun := core.Session{ID: row.Session, RunID: r.ID, CreatedAt: tx.Time(), TrustLevel: core.Sandboxed, ResumeInfo: core.ResumeInfo{Method: "new", IsNewSession: true}}
	return s.over(ctx, tx, r.ID, row, begun, failed)
}

// Abandon ends a run that will have no result, so that clients stop waiting and its
// events are pruned; ok is false for one that has not begun or has ended. Publish
// the result after the commit.
func (s *Store) Abandon(ctx context.Context, tx *store.Tx, run string) (end Ended, ok bool, err error) {
	var row endedRow
	err = tx.Get(ctx, &row, `UPDATE runs SET attempt = attempt + 1, state = 'error', ended = $1, error = 'given_up' WHERE id = $2 AND state = 'running'`+endedColumns,
		core.Stamp(tx.Time()), run)
	if errors.Is(err, store.ErrNoRows) {
		return Ended{}, false, nil
	}
	if err != nil {
		return Ended{}, false, err
	}
	end, err = s.over(ctx, tx, run, row, core.Failed{Code: "internal", Message: texts.Text("fault_given_up"), SessionID: row.Session})
	return end, err == nil, err
}

// over stores the last events of a run that will have no result.
func (s *Store) over(ctx context.Context, tx *store.Tx, run string, r endedRow, events ...core.Event) (Ended, error) {
	end := Ended{Run: run, Session: r.Session, Bot: r.Bot, Chat: r.Chat, User: r.User, Attempt: r.Attempt, Events: append(events, core.MessageStop{})}
	pieces := make([]Piece, len(end.Events))
	for i, ev := range end.Events {
		data, err := core.EncodeEvent(ev)
		if err != nil {
			return Ended{}, err
		}
		pieces[i] = Piece{N: i + 1, Data: data}
	}
	return end, s.Append(ctx, tx, run, r.Attempt, pieces)
}

// AbandonAll ends every run that is stored as running, in a database restored from
// a backup, where none can be. It returns how many.
func (s *Store) AbandonAll(ctx context.Context, tx *store.Tx) (int, error) {
	var runs []string
	if err := tx.Select(ctx, &runs, `SELECT id FROM runs WHERE state = 'running' ORDER BY id`); err != nil {
		return 0, fmt.Errorf("abandon runs: %w", err)
	}
	for _, run := range runs {
		if _, _, err := s.Abandon(ctx, tx, run); err != nil {
			return 0, fmt.Errorf("abandon runs: %w", err)
		}
	}
	return len(runs), nil
}
