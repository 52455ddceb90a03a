package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Line is one run as the panel and the chat show it.
type Line struct {
	ID, Session, State string
	Bot, Chat, Model   string
	Error              string // its code; "" without one
	Reason             string // of the error, as Fault has it
	Setting            string
	Said               string
	Attempt            int
	User               int64
	Started, Ended     time.Time     // Ended is zero while it runs
	Waited             time.Duration // of it, for users (End.Waited); 0 while it runs
}

// Took returns how long the run took, until now if it is running.
func (l Line) Took(now time.Time) time.Duration {
	if l.Ended.IsZero() {
		return now.Sub(l.Started)
	}
	return l.Ended.Sub(l.Started)
}

type lineRow struct {
	ID      string `db:"id"`
	Session string `db:"session_id"`
	State   string `db:"state"`
	Bot     string `db:"bot"`
	Chat    string `db:"chat"`
	Model   string `db:"model"`
	Error   string `db:"error"`
	Fault   string `db:"fault"`
	Attempt int    `db:"attempt"`
	User    int64  `db:"user_id"`
	Started string `db:"started"`
	Ended   string `db:"ended"`
	Waited  int64  `db:"waited_ms"`
}

const lineColumns = `SELECT id, session_id, state, bot, chat, model, error, fault, attempt, user_id, started, ended, waited_ms FROM runs `

func (r lineRow) line() (Line, error) {
	l := Line{ID: r.ID, Session: r.Session, State: r.State, Bot: r.Bot, Chat: r.Chat, Model: r.Model, Error: r.Error, Attempt: r.Attempt, User: r.User, Waited: time.Duration(r.Waited) * time.Millisecond}
	var f Fault
	if r.Fault != "" && json.Unmarshal([]byte(r.Fault), &f) == nil {
		l.Reason, l.Setting, l.Said = f.Reason, f.Setting, f.Said
	}
	var err, more error
	if r.Error == "given_up" {
		l.Attempt-- // its last events have an attempt of their own
	}
	l.Started, err = core.ParseStamp(r.Started)
	l.Ended, more = core.ParseStamp(r.Ended)
	return l, errors.Join(err, more)
}

// Line returns one run, or core.NotFound. Rows are kept for 90 days.
func (s *Store) Line(ctx context.Context, run string) (Line, error) {
	var r lineRow
	err := s.db.Get(ctx, &r, lineColumns+`WHERE id = $1`, run)
	if errors.Is(err, store.ErrNoRows) {
		return Line{}, core.Errorf(core.NotFound, "no such run")
	}
	if err != nil {
		return Line{}, fmt.Errorf("run: %w", err)
	}
	return r.line()
}

// Failed returns those of these runs that ended with an error.
func (s *Store) Failed(ctx context.Context, runs ...string) ([]Line, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	args := make([]any, len(runs))
	marks := make([]string, len(runs))
	for i, run := range runs {
		args[i], marks[i] = run, "$"+strconv.Itoa(i+1)
	}
	return s.lines(ctx, `WHERE state = 'error' AND id IN (`+strings.Join(marks, ", ")+`)`, args...)
}

// lately is among how many failed runs, the newest, LastFailed looks.
const lately = 1000

const lastFailed = `SELECT f.session_id FROM (SELECT session_id, started, ended FROM runs WHERE state = 'error' AND session_id <> '' ORDER BY ended DESC LIMIT $1) f
	WHERE NOT EXISTS (SELECT 1 FROM runs n WHERE n.session_id = f.session_id AND n.started > f.started) ORDER BY f.ended DESC LIMIT $2`

// LastFailed returns the sessions whose newest run failed, the last first, at most limit.
func (s *Store) LastFailed(ctx context.Context, limit int) (sessions []string, err error) {
	if err = s.db.Select(ctx, &sessions, lastFailed, lately, limit); err != nil {
		return nil, fmt.Errorf("sessions that failed: %w", err)
	}
	return sessions, nil
}

// LinesOf returns a session's newest runs, newest first, at most limit.
func (s *Store) LinesOf(ctx context.Context, session string, limit int) ([]Line, error) {
	return s.lines(ctx, `WHERE session_id = $1 ORDER BY started DESC LIMIT $2`, session, limit)
}

func (s *Store) lines(ctx context.Context, where string, args ...any) ([]Line, error) {
	var rows []lineRow
	if err := s.db.Select(ctx, &rows, lineColumns+where, args...); err != nil {
		return nil, fmt.Errorf("runs of session: %w", err)
	}
	out := make([]Line, 0, len(rows))
	for _, r := range rows {
		l, err := r.line()
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}
