// Package runs owns the tables runs and run_events: one row for each run, and
// the events that a client may read again after a restart.
//
// The orchestrator calls Begin and End in the transactions of the claim and of
// the result; the dispatcher has the events of running runs stored (Store.Watch,
// Store.Run); the API, the panel and the chat read rows and events.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxUsers limits how many runs of a session Users returns.
const maxUsers = 2000

// A Start is what is known of a run when it is claimed.
type Start struct {
	ID, Session, Bot, Chat string
	User                   int64
}

// Begin stores that a run has started and returns the number of the attempt, 1
// for the first. The run counts its attempts itself: an attempt that a shutdown
// returned to the queue does not count against the message, but its events and
// transcript lines exist.
func Begin(ctx context.Context, tx *store.Tx, s Start) (attempt int, err error) {
	n, err := tx.Exec(ctx, `INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, started) VALUES ($1, $2, 1, 'running', $3, $4, $5, $6)
		ON CONFLICT (id) DO NOTHING`, s.ID, s.Session, s.Bot, s.Chat, s.User, core.Stamp(tx.Time()))
	if err != nil || n == 1 {
		return 1, err
	}
	err = tx.Get(ctx, &attempt, `UPDATE runs SET attempt = attempt + 1, state = 'running', ended = '', error = '', fault = '' WHERE id = $1 RETURNING attempt`, s.ID)
	return attempt, err
}

// An End is how a run ended.
type End struct {
	State string // done, aborted or error
	Error string // code of the error; "" without one
	Fault Fault  // of state error
	Model string // that answered
	At    time.Time
	// Waited is how much of its time the run waited for users: for approvals of its
	// tool calls and for answers to its questions.
	Waited time.Duration
	// Follow is what is to be done about the run after it, which Store.ToFollow returns
	// until Followed; "" for nothing.
	Follow string
}

// A Fault is why a run failed, for the operator. It holds no secrets.
type Fault struct {
	Reason  string `json:"reason"`            // the error as the user got it, without markup
	Setting string `json:"setting,omitempty"` // to check; "" for none
	Said    string `json:"said,omitempty"`    // what the provider, or the failing part, reported; "" for nothing
}

// maxFault limits each text of a stored Fault, in bytes.
const maxFault = 500

// encode returns the stored form of f.
func (f Fault) encode() string {
	if f == (Fault{}) {
		return ""
	}
	f.Reason, f.Said = oneLine(f.Reason), oneLine(f.Said)
	b, err := json.Marshal(f)
	if err != nil { // texts have none
		return ""
	}
	return string(b)
}

// oneLine returns text without control characters, cut to maxFault bytes.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return core.CutRunes(text, maxFault)
}

// Finish stores the end of a run.
func Finish(ctx context.Context, tx *store.Tx, run string, e End) error {
	_, err := tx.Exec(ctx, `UPDATE runs SET state = $1, ended = $2, error = $3, model = $4, fault = $5, waited_ms = $6, follow = $7 WHERE id = $8`,
		e.State, core.Stamp(e.At), e.Error, e.Model, e.Fault.encode(), e.Waited.Milliseconds(), e.Follow, run)
	return err
}

// Break stores that a run ended with an error of the gateway; its model stays
// as it was stored.
func Break(ctx context.Context, tx *store.Tx, run, code string) error {
	_, err := tx.Exec(ctx, `UPDATE runs SET state = 'error', ended = $1, error = $2, fault = '' WHERE id = $3`, core.Stamp(tx.Time()), code, run)
	return err
}

// Begun reports whether a run has a row.
func Begun(ctx context.Context, tx *store.Tx, run string) (begun bool, err error) {
	err = tx.Get(ctx, &begun, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = $1)`, run)
	return begun, err
}

// Newest returns the id of a session's newest run, "" without one.
func Newest(ctx context.Context, tx *store.Tx, session string) (run string, err error) {
	err = tx.Get(ctx, &run, `SELECT id FROM runs WHERE session_id = $1 ORDER BY started DESC LIMIT 1`, session)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	return run, err
}

// Users returns the user of each of a session's newest 2,000 runs, by run id.
func (s *Store) Users(ctx context.Context, session string) (map[string]int64, error) {
	var rows []struct {
		ID   string `db:"id"`
		User int64  `db:"user_id"`
	}
	err := s.db.Select(ctx, &rows, `SELECT id, user_id FROM runs WHERE session_id = $1 ORDER BY started DESC LIMIT $2`, session, maxUsers)
	if err != nil {
		return nil, fmt.Errorf("runs of a session: %w", err)
	}
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		out[r.ID] = r.User
	}
	return out, nil
}
