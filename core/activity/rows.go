package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/runs"
	"gatehouse/core/store"
)

// States of a row.
const (
	stateNew     = "new"
	stateWritten = "written"
	stateFault   = "fault"
)

const dayForm = "2006-01-02"

// A row is one exchange, as the table activity has it.
type row struct {
	Run     string `db:"run"`
	Session string `db:"session_id"`
	User    int64  `db:"user_id"`
	At      string `db:"at"`
	Number  int    `db:"number"`
	Title   string `db:"title"`
	Agent   string `db:"agent"`
	Summary string `db:"summary"`
	Day     string `db:"day"`
	LogDay  string `db:"log_day"`
	State   string `db:"state"`
	Fault   string `db:"fault"`
}

const columns = `run, session_id, user_id, at, number, title, agent, summary, day, log_day, state, fault`

// number returns the number of the run's exchange in its session: those before it are
// counted, also while nothing was logged.
func (w *Worker) number(ctx context.Context, tx *store.Tx, f runs.Finished) (int, error) {
	n, err := w.o.Runs.Answered(ctx, tx, f.Session, f.Ended)
	if err != nil {
		return 0, err
	}
	var last int
	if err := tx.Get(ctx, &last, `SELECT coalesce(max(number), 0) FROM activity WHERE session_id = $1`, f.Session); err != nil {
		return 0, fmt.Errorf("last exchange: %w", err)
	}
	return max(n, last+1), nil
}

// insert stores a row, and an entry of its chat log where it is the first of the day.
func (w *Worker) insert(ctx context.Context, tx *store.Tx, r row, clock, known string) error {
	n, err := tx.Exec(ctx, `INSERT INTO activity (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (run) DO NOTHING`,
		r.Run, r.Session, r.User, r.At, r.Number, r.Title, r.Agent, r.Summary, r.Day, r.LogDay, r.State, r.Fault)
	if err != nil {
		return fmt.Errorf("store activity: %w", err)
	}
	if n == 0 || r.State == stateFault {
		return nil
	}
	var id string
	err = tx.Get(ctx, &id, `SELECT para_id FROM activity_entries WHERE session_id = $1 AND log_day = $2`, r.Session, r.LogDay)
	if !errors.Is(err, store.ErrNoRows) {
		return err
	}
	if id = known; id == "" {
		if id, err = w.o.NewID(ctx, tx, logFile(r.LogDay), r.User); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO activity_entries (session_id, log_day, user_id, para_id, time) VALUES ($1, $2, $3, $4, $5)`,
		r.Session, r.LogDay, r.User, id, clock)
	if err != nil {
		return fmt.Errorf("store entry of the chat log: %w", err)
	}
	return nil
}

// An entry is a row of activity_entries.
type entry struct {
	Session string `db:"session_id"`
	LogDay  string `db:"log_day"`
	ID      string `db:"para_id"`
	Time    string `db:"time"`
	Title   string `db:"title"`
}

// entries returns those of a day's chat log, by session.
func (w *Worker) entries(ctx context.Context, day string) (map[string]entry, error) {
	var list []entry
	if err := w.o.DB.Select(ctx, &list, `SELECT session_id, log_day, para_id, time, title FROM activity_entries WHERE log_day = $1`, day); err != nil {
		return nil, fmt.Errorf("entries of the chat log: %w", err)
	}
	out := make(map[string]entry, len(list))
	for _, e := range list {
		out[e.Session] = e
	}
	return out, nil
}

// An Item is one exchange as the panel shows it.
type Item struct {
	Session, Title, Summary string
	Number                  int
	At                      time.Time
	Fault                   string // why it is in no file; "" if it is, or will be
}

// Recent returns the newest exchanges, newest first, at most limit.
func (w *Worker) Recent(ctx context.Context, limit int) ([]Item, error) {
	return w.items(ctx, `SELECT `+columns+` FROM activity ORDER BY at DESC LIMIT $1`, limit)
}

// Unread returns exchanges that cannot be read, newest first, at most limit.
func (w *Worker) Unread(ctx context.Context, limit int) ([]Item, error) {
	return w.items(ctx, `SELECT `+columns+` FROM activity WHERE state = 'fault' ORDER BY at DESC LIMIT $1`, limit)
}

func (w *Worker) items(ctx context.Context, query string, limit int) ([]Item, error) {
	var rows []row
	if err := w.o.DB.Select(ctx, &rows, query, limit); err != nil {
		return nil, fmt.Errorf("activity: %w", err)
	}
	out := make([]Item, len(rows))
	for i, r := range rows {
		out[i] = Item{Session: r.Session, Title: r.Title, Summary: r.Summary, Number: r.Number, At: core.TimeOf(r.At), Fault: r.Fault}
	}
	return out, nil
}
