// Package backup has models write handoff notes on conversations (context backups), apart
// from the answers: when much was written since the last one, after a day, on request, and
// for conversations that lack one. A note begins where the last one of its model ends. Rows
// are only added. Compaction uses the newest note; a note that compaction wrote is one.
package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// Triggers of a backup.
const (
	Threshold = "token_threshold"
	Count     = "message_count"
	Gap       = "time_gap"
	Manual    = "manual"
	Stale     = "coverage_job_stale"
)

// When a backup is due.
const (
	partOfWindow = 70 // percent
	manyMessages = 30
	fewMessages  = 5 // enough for Gap and Stale
	gap          = 24 * time.Hour
)

// table and column of the text.
const (
	table  = handoff.Table
	column = handoff.Column
)

// Options of New. All are required.
type Options struct {
	DB       *store.DB
	Box      *sealed.Box
	Sessions *session.Store
	Usage    *usage.Ledger
	Clock    core.Clock
	Log      *slog.Logger
	// Writes reports whether a model can write a note.
	Writes func(model string) bool
	// Model returns a model by its name, for a guest or not.
	Model func(name string, guest bool) (llm.Model, error)
	// Cost is a call's price in millionths of a dollar, and whether it is known.
	Cost func(model string, u core.Tokens) (int64, bool)
	// Budget returns the tokens of a day for Stale; 0: the job is off.
	Budget   func() int64
	Registry prometheus.Registerer
}

// A Store has the backups and writes them. It is safe for concurrent use.
type Store struct {
	o       Options
	bell    chan struct{} // one ring at most
	written *prometheus.CounterVec

	mu     sync.Mutex
	flight map[string]bool // conversations and models whose backup is being written; at most maxFlight
}

// maxFlight limits the backups that are written at a time.
const maxFlight = 16

// New returns a Store. Run does its work.
func New(o Options) *Store {
	s := &Store{o: o, bell: make(chan struct{}, 1), flight: map[string]bool{}, written: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_context_backups_total", Help: "Context backups by trigger and outcome.",
	}, []string{"trigger", "outcome"})}
	o.Registry.MustRegister(s.written)
	for _, trigger := range []string{Threshold, Count, Gap, Manual, Stale} { // so that they are there from the start
		for _, outcome := range []string{"written", "failed"} {
			s.written.WithLabelValues(trigger, outcome)
		}
	}
	return s
}

type (
	// A Backup is one stored note.
	Backup = handoff.Backup
	// A Coverage is how far the notes of one model cover a conversation.
	Coverage = handoff.Coverage
)

type row struct {
	ID      string `db:"backup_id"`
	Model   string `db:"model_id"`
	Session string `db:"conversation_id"`
	Text    string `db:"backup_text"`
	Tokens  int    `db:"token_estimate"`
	Thread  int    `db:"thread_number"`
	Trigger string `db:"trigger"`
	Covers  string `db:"covers_message_id"`
	At      string `db:"created_at"`
}

const fields = `backup_id, model_id, conversation_id, backup_text, token_estimate, thread_number, "trigger", covers_message_id, created_at`

// Newest returns the newest backup of a conversation, of one model or, with "", of any;
// false without one.
func (s *Store) Newest(ctx context.Context, q store.Queryer, session, model string) (Backup, bool, error) {
	var r row
	err := q.Get(ctx, &r, `SELECT `+fields+` FROM context_backups WHERE conversation_id = $1 AND ($2 = '' OR model_id = $2)
		ORDER BY created_at DESC, thread_number DESC LIMIT 1`, session, model)
	if errors.Is(err, store.ErrNoRows) {
		return Backup{}, false, nil
	}
	if err != nil {
		return Backup{}, false, fmt.Errorf("newest backup: %w", err)
	}
	b := Backup{ID: r.ID, Model: r.Model, Session: r.Session, Tokens: r.Tokens, Thread: r.Thread, Trigger: r.Trigger, Covers: r.Covers, At: core.TimeOf(r.At)}
	if b.Text, err = s.o.Box.Open(place(r.ID), r.Text); err != nil {
		return Backup{}, false, fmt.Errorf("open backup %s: %w", r.ID, err)
	}
	return b, true, nil
}

func place(id string) sealed.Place { return sealed.Place{Table: table, Column: column, Row: id} }

// Add stores a checked note of a model on the conversation up to covers, and begins the
// next thread of its counter. seen are the messages and tokens of the counter when the
// writing began: what was written since counts for the next one.
func (s *Store) Add(ctx context.Context, tx *store.Tx, sess *session.Session, b Backup, seen Seen) (Backup, error) {
	c, found, err := s.counter(ctx, tx, sess.ID, b.Model)
	if err != nil {
		return Backup{}, err
	}
	b.ID, b.Session, b.Tokens, b.Thread, b.At = uuid.NewString(), sess.ID, handoff.Tokens(b.Text), 1, tx.Time()
	if found {
		b.Thread = c.Thread
	}
	text, err := s.o.Box.Seal(place(b.ID), b.Text)
	if err != nil {
		return Backup{}, err
	}
	if _, err = tx.Exec(ctx, `INSERT INTO context_backups (`+fields+`, user_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		b.ID, b.Model, b.Session, text, b.Tokens, b.Thread, b.Trigger, b.Covers, core.Stamp(b.At), sess.User); err != nil {
		return Backup{}, fmt.Errorf("store backup: %w", err)
	}
	if !found {
		return b, nil
	}
	rest, tokens := max(0, c.Messages-seen.Messages), max(0, c.Tokens-seen.Tokens)
	began := ""
	if rest > 0 {
		began = core.Stamp(tx.Time())
	}
	_, err = tx.Exec(ctx, `UPDATE token_counters SET token_estimate = $1, message_count = $2, thread_number = thread_number + 1, began_at = $3,
			last_backup_at = $4, due = '', failures = 0, retry_at = '' WHERE counter_id = $5`, tokens, rest, began, core.Stamp(b.At), c.ID)
	if err != nil {
		return Backup{}, fmt.Errorf("reset counter: %w", err)
	}
	return b, nil
}

// Seen is what a counter has counted.
type Seen struct {
	Messages int
	Tokens   int64
}

// Note returns the newest note of a model on a conversation; false without one.
func (s *Store) Note(ctx context.Context, session, model string) (handoff.Note, bool, error) {
	b, ok, err := s.Newest(ctx, s.o.DB, session, model)
	return handoff.Note{Text: b.Text, Covers: b.Covers}, ok, err
}

// Keep stores a note that a run has made of its conversation. One that is not valid is
// left out.
func (s *Store) Keep(ctx context.Context, sess *session.Session, model string, n handoff.Note) error {
	text, faults := handoff.Check(n.Text)
	if len(faults) > 0 || n.Covers == "" || !s.o.Writes(model) {
		return nil
	}
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		c, _, err := s.counter(ctx, tx, sess.ID, model)
		if err != nil {
			return err
		}
		_, err = s.Add(ctx, tx, sess, Backup{Model: model, Text: text, Trigger: Threshold, Covers: n.Covers}, Seen{c.Messages, c.Tokens})
		return err
	})
}

// Ring has Run look for what is due. It does not block.
func (s *Store) Ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}
