// Package memory keeps what persons say about answers, and chooses what of it belongs into
// a prompt. A correction belongs to one person and reaches no one else's prompt. The pure
// parts are below: detect reads messages, score weighs, check compiles what a program can
// check.
package memory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/memory/check"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// Limits.
const (
	Max      = 10_000         // corrections of one person, of any status
	MaxCards = 50             // of them with an open card
	MaxText  = 500            // runes of a correction
	maxAbout = 160            // runes of the question that a correction is about
	Answer   = 24 * time.Hour // for which a card is open
	Undo     = 24 * time.Hour // for which a deletion can be undone
	maxUses  = 200            // events of one correction that are kept
)

// A Status is whether a correction applies.
type Status string

// Statuses.
const (
	Active     Status = "active"
	Superseded Status = "superseded" // another took its place
	Pending    Status = "pending"    // a card asks whether to keep it
	Deleted    Status = "deleted"    // for Undo; then it is gone
)

// A Card is what an open question is about.
type Card string

// Cards.
const (
	NoCard       Card = ""
	CardImplicit Card = "implicit" // is it a correction
	CardReview   Card = "review"   // is it worth keeping
	CardConflict Card = "conflict" // it contradicts another one
	CardEdited   Card = "edited"   // it was in force, and contradicts another one since it was changed
	CardRestored Card = "restored" // it was superseded, was brought back, and contradicts another one
)

// How a correction was extracted.
const (
	ViaRules    = "rules"
	ViaExplicit = "explicit"
	ViaSemantic = "semantic" // by a model
)

// general is the domain of what is about none.
const general = "general"

// Confidences.
const (
	sureExplicit = .85
	sureRules    = .80
	sureAccepted = .75 // by the button of an implicit one
)

// A Correction is one thing that a user wants of answers. Text and About are the user's own
// text: hostile text for anyone else.
type Correction struct {
	ID         string
	User       int64
	Number     int // of the person, from 1
	Type       detect.Type
	Scope      detect.Scope
	ScopeRef   string // the project or conversation; "" for Global
	Text       string
	Canonical  string
	About      string // the question before it; "" for none
	Domain     string
	Confidence float64
	Class      score.Class
	Pinned     bool
	ScoreDelta int
	Via        string
	Status     Status
	Superseded string // by which
	Conflicts  string // with which other one, while the card is open
	Card       Card
	ExpiresAt  time.Time // of the card, or of the undo
	Session    string
	Model      string // the one that was corrected
	Uses       int
	Emphasis   int // 0–3
	Followed   int // answers in a row that followed it; below 0 those that did not
	UsedAt     time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Broken returns how many answers in a row did not follow c.
func (c *Correction) Broken() int { return max(0, -c.Followed) }

// Checks returns what a program can check of answers.
func (c *Correction) Checks() []check.Check {
	if c.Wish() {
		return check.Compile(c.Text)
	}
	return nil
}

// Editable reports whether c is in force, or a card asks at this time whether it is to be.
func (c *Correction) Editable(now time.Time) bool {
	return c.Status == Active || c.Status == Pending && c.Card != NoCard && !c.expired(now)
}

// Wish reports whether c says how answers are to be.
func (c *Correction) Wish() bool {
	switch c.Type {
	case detect.Instruction, detect.Preference, detect.Failure:
		return true
	}
	return false
}

// everywhere reports whether c is about every answer, whatever it is about.
func (c *Correction) everywhere() bool {
	switch c.Type {
	case detect.Instruction, detect.Preference:
		return !check.Conditional(c.Text)
	case detect.Failure:
		return len(c.Checks()) > 0
	}
	return false
}

// A Box encrypts texts (sealed.Box).
type Box interface {
	Seal(at sealed.Place, text string) (string, error)
	Open(at sealed.Place, value string) (string, error)
}

// Options of New. All but Box, Log and Threshold are required.
type Options struct {
	DB    *store.DB
	Clock core.Clock
	Log   *slog.Logger
	Box   Box // nil: texts are stored as they are
	// Threshold is the implicit score from which a user is asked; 0 is detect.Threshold.
	Threshold float64
	Metrics   *Metrics // nil: none are counted
	// Domain returns the domain of a text, "general" for none; nil is detect.Domain.
	Domain func(text string) string
	// Near returns how near a user's text is in meaning to each of others, what is remembered
	// of the same user, from 0 to 1; nil where that is not known. Nil: words are compared alone.
	Near func(ctx context.Context, user int64, text string, others []string) []float64
}

// A Store keeps corrections. It is safe for concurrent use.
type Store struct {
	o Options

	mu      sync.Mutex
	persons map[int64]*person // what is loaded; at most maxPersons
	none    map[int64]bool    // who has no corrections; at most maxNone
	changes uint64            // of any row: what was read before one is not kept
}

// New returns a Store.
func New(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Box == nil {
		o.Box = plain{}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Domain == nil {
		o.Domain = detect.Domain
	}
	return &Store{o: o, persons: map[int64]*person{}, none: map[int64]bool{}}
}

// plain stores texts as they are.
type plain struct{}

func (plain) Seal(_ sealed.Place, text string) (string, error) { return text, nil }
func (plain) Open(_ sealed.Place, text string) (string, error) { return text, nil }

// Kinds of events.
const (
	EventCreated    = "created"
	EventAccepted   = "accepted"
	EventEdited     = "edited"
	EventPinned     = "pinned"
	EventUnpinned   = "unpinned"
	EventSuperseded = "superseded"
	EventRestored   = "restored"
	EventDeleted    = "deleted"
	EventUsed       = "used"
	EventViolated   = "violated"
	EventFollowed   = "followed"
	EventRead       = "read" // a model read what the rules had found
	// EventRewritten: an answer that did not follow it was written again before it was shown.
	EventRewritten = "rewritten"
)

// An Event is what happened to a correction.
type Event struct {
	Kind    string
	Run     string
	Session string
	Model   string
	At      time.Time
}

// note stores an event, in the transaction of what happened.
func (s *Store) note(ctx context.Context, tx *store.Tx, c *Correction, e Event) error {
	_, err := tx.Exec(ctx, `INSERT INTO correction_events (correction_id, user_id, kind, run, session_id, model_id, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		c.ID, c.User, e.Kind, e.Run, e.Session, e.Model, core.Stamp(tx.Time()))
	return err
}
