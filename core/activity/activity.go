// Package activity keeps a log of the owner's conversations in the vault: after each
// answered message it writes a line into Daily/.activity/DAY.jsonl and the conversation's
// entry into Daily/chat-log/DAY.md, and it has a model name conversations.
//
// The runs to follow are rows of the database from the commit that ends them, so a crash
// loses none, and what a file has already is not added again. Conversations of others
// and of groups never enter the files, because the owner's agents read them.
package activity

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/activity/summary"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Options of New. All but Zone and Registry are required.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Sessions *session.Store
	Runs     *runs.Store
	Writer   *summary.Writer
	Clock    core.Clock
	Log      *slog.Logger
	On       func() bool // the files are written
	// NewID registers and returns the para-ID of a new entry in the file path.
	NewID    func(ctx context.Context, tx *store.Tx, path string, user int64) (string, error)
	Zone     func(ctx context.Context) *time.Location // the owner's; nil: the machine's
	Link     func(session string) string              // to a conversation, for users
	Registry prometheus.Registerer
}

// A Worker follows finished runs, one at a time. It meets orchestrator.Follower.
type Worker struct {
	o       Options
	bell    chan struct{} // one ring at most
	metrics metrics

	mu     sync.Mutex
	faults map[string]Fault // by file; at most maxFaults

	// between is called between reading a file and replacing it, in tests.
	between func(name string)
}

// New returns a Worker; Run does its work.
func New(o Options) *Worker {
	if o.Zone == nil {
		o.Zone = func(context.Context) *time.Location { return time.Local }
	}
	w := &Worker{o: o, bell: make(chan struct{}, 1), faults: map[string]Fault{}, between: func(string) {}}
	w.metrics = newMetrics(o.Registry, w)
	return w
}

// Timing and limits.
const (
	again       = time.Minute // between tries after a failure
	page        = 20          // runs that are followed before their files are written
	titledUntil = 6           // messages; a conversation without a title by then keeps its first words
	maxFaults   = 100
)

// What is to be done about a run, in runs.End.Follow behind its trust.
const (
	doTitle = "title"
	doLine  = "line"
)

// Follow returns what is to be done about an answered turn; "" for nothing.
func (w *Worker) Follow(s *session.Session, at core.Address, user int64, trust core.Trust) string {
	todo := trust.String()
	if s.TitleSource == session.TitleDefault && (s.MessageCount < titledUntil || s.Title == "") && w.o.Writer.On() {
		todo += " " + doTitle
	}
	if w.o.On() && Logged(s) && user == core.Operator && !at.Group() {
		todo += " " + doLine
	}
	if todo == trust.String() {
		return ""
	}
	return todo
}

// Logged reports whether a session may enter the files: it is the owner's, of users who
// talk, was not begun by the schedule, and is not switched off. Those of groups are the
// owner's too; they are found by their chat.
func Logged(s *session.Session) bool {
	return s.User == core.Operator && s.Source != core.ScheduleBot && s.Module != session.SingleModule && !s.ActivityOff()
}

// todo reads what Follow has returned.
func todo(follow string) (trust core.Trust, title, line bool) {
	words := strings.Fields(follow)
	for i, word := range words {
		switch {
		case i == 0:
			trust, _ = core.ParseTrust(word) // unknown: a stranger's, for the guests' model
		case word == doTitle:
			title = true
		case word == doLine:
			line = true
		}
	}
	return trust, title, line
}

// Ring has the worker look for work. It does not block.
func (w *Worker) Ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	w.sweep()
	for {
		left, err := w.Pass(ctx)
		if err != nil && ctx.Err() == nil {
			w.o.Log.Error("the log of activity is behind", "err", err)
		}
		var retry <-chan time.Time
		if left || err != nil {
			retry = w.o.Clock.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.bell:
		case <-retry:
		}
	}
}

// Pass does what there is to do. left reports whether files could not be written; they
// are written by a later pass. An error is one of the database, or that of ctx.
func (w *Worker) Pass(ctx context.Context) (left bool, err error) {
	if err := w.removeGone(ctx); err != nil {
		return false, err
	}
	last := runs.Finished{}
	for {
		batch, err := w.o.Runs.ToFollow(ctx, last, page)
		if err != nil {
			return false, err
		}
		for _, f := range batch {
			if err := w.follow(ctx, f); err != nil {
				return false, fmt.Errorf("follow run %s: %w", f.ID, err)
			}
			last = f
		}
		if err := w.write(ctx); err != nil {
			return false, err
		}
		if len(batch) < page {
			return len(w.Faults()) > 0, nil
		}
	}
}
