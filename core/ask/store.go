// Package ask stores the open questions to users: approvals of tool calls,
// questions of a model, pairing requests, and choices about a chat. It owns the
// table asks.
//
// An ask is decided in the database by compare-and-set: the first decision wins,
// and each later one is refused with the name of who decided. Only then is a
// button acknowledged and a message edited, so that no button shows a decision
// that was not made.
package ask

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Kinds of ask.
const (
	KindPermission = "permission" // may this tool call go on
	KindQuestion   = "question"   // the model asks the sender something
	KindPairing    = "pairing"    // may this stranger in; Run is the request's id
	KindChoice     = "choice"     // one of a few, about the chat itself
	KindNext       = "next"       // the sender's next message is what a command asked for; Payload is its name
)

// Decisions of a permission, as Ask.Decision and core.PermissionResolved have them.
const (
	Granted = "granted"
	Denied  = "denied"
	Timeout = "timeout"
)

// Options on the buttons of the choice after an interrupted run.
const (
	OptionGoOn = "go"
	OptionStop = "stop"
)

// A Said is the payload of a choice whose button, OptionGoOn, sends a text to the agent in its
// user's name.
type Said struct {
	Text  string `json:"said"`
	Key   string `json:"key"`   // of the reply that has the button
	Shown string `json:"shown"` // the Markdown of that reply, which stays without the button
}

// States of an ask.
const (
	Open    = "open"
	Decided = "decided" // by a user
	Expired = "expired" // by time
	Closed  = "closed"  // settled elsewhere, or irrelevant by now
)

const (
	maxOpen     = 100      // asks that wait, in all but choices and KindNext
	maxChoices  = 1000     // choices that wait: nothing is still for them
	maxPairings = 50       // of them pairings, so that strangers can't take every place
	maxOption   = 16 << 10 // bytes of a decision: an option's word, or a typed answer
	expireBatch = 100
)

// An Ask is one question to one or more users.
type Ask struct {
	ID        string // 16 letters and digits; made by Open when empty
	Kind      string
	Run       string // the run that waits, or the pairing request
	Bot, Chat string // where it is shown
	User      int64  // who may answer; 0: who the caller lets
	Asker     int64  // the user that a tool or the model asks; 0: no one
	Payload   string // JSON of the caller; "" is {}
	State     string
	Decision  string // the option chosen, or the text typed
	DecidedBy string
	DecidedAt time.Time
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never on its own
}

// Data returns what a button of this ask carries for an option: "<id>:<option>".
func (a Ask) Data(option string) string { return a.ID + ":" + option }

// SplitData returns the ask's id and the option in a button's data.
func SplitData(data string) (id, option string, ok bool) {
	id, option, ok = strings.Cut(data, ":")
	return id, option, ok && len(id) == idLength && option != ""
}

// idLength is of an ask's id, in letters and digits.
const idLength = 16

// A Store opens, decides and closes asks. They are in the database; in memory it
// has only the channels of those that wait in this process.
type Store struct {
	db    *store.DB
	clock core.Clock

	mu      sync.Mutex
	waiters map[string]chan struct{} // closed when the ask is settled; at most maxOpen, one for each open ask
	changed chan struct{}            // closed at the next change of any ask
}

// NewID returns an id for an ask.
func NewID() string { return strings.ToLower(rand.Text()[:idLength]) }

// IDOf returns the id for the ask of this name, the same each time.
func IDOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

// New returns a Store over db; a nil clock is the system's.
func New(db *store.DB, clock core.Clock) *Store {
	if clock == nil {
		clock = core.System{}
	}
	return &Store{db: db, clock: clock, waiters: map[string]chan struct{}{}, changed: make(chan struct{})}
}

// Open stores a with a new id and gives it back as stored. Busy when too many
// asks wait already. One of KindNext takes the place of another of this user in the chat:
// these never are too many.
func (s *Store) Open(ctx context.Context, tx *store.Tx, a Ask) (Ask, error) {
	switch a.Kind {
	case KindPermission, KindQuestion, KindPairing, KindChoice, KindNext:
	default:
		return Ask{}, core.Errorf(core.Invalid, "ask kind %q is not known", a.Kind)
	}
	now := tx.Time()
	var n struct {
		All      int `db:"all_open"`
		Pairings int `db:"pairings"`
		Choices  int `db:"choices"`
		Next     int `db:"next"`
	}
	err := tx.Get(ctx, &n, `SELECT count(*) AS all_open, coalesce(sum(CASE WHEN kind = 'pairing' THEN 1 ELSE 0 END), 0) AS pairings,
			coalesce(sum(CASE WHEN kind = 'choice' THEN 1 ELSE 0 END), 0) AS choices,
			coalesce(sum(CASE WHEN kind = 'next' THEN 1 ELSE 0 END), 0) AS next FROM asks
		WHERE state = 'open' AND (expires_at = '' OR expires_at > $1)`, core.Stamp(now))
	if err != nil {
		return Ask{}, fmt.Errorf("open ask: %w", err)
	}
	full := false
	switch a.Kind {
	case KindNext:
		err = s.DropNext(ctx, tx, a.Bot, a.Chat, a.User)
	case KindChoice:
		full = n.Choices >= maxChoices
	default:
		full = n.All-n.Choices-n.Next >= maxOpen || a.Kind == KindPairing && n.Pairings >= maxPairings
	}
	if full {
		err = texts.Error(core.Busy, "questions_full")
	}
	if err != nil {
		return Ask{}, err
	}
	if a.ID == "" {
		a.ID = NewID()
	}
	if a.Payload == "" {
		a.Payload = "{}"
	}
	a.State, a.CreatedAt, a.Decision, a.DecidedBy, a.DecidedAt = Open, now, "", "", time.Time{}
	_, err = tx.Exec(ctx, `INSERT INTO asks (id, kind, run, bot, chat, user_id, asker, payload, state, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9, $10)`,
		a.ID, a.Kind, a.Run, a.Bot, a.Chat, a.User, a.Asker, a.Payload, core.Stamp(now), core.Stamp(a.ExpiresAt))
	if err != nil {
		return Ask{}, fmt.Errorf("open ask: %w", err)
	}
	tx.OnCommit(s.ring)
	return a, nil
}

// Decide settles an open ask. A second decision, and one that comes too late,
// is a Conflict that reports who decided and when; an unknown id is NotFound. The
// caller has made sure that by may decide it. A permission
// and a question leave an audit row.
func (s *Store) Decide(ctx context.Context, tx *store.Tx, id, option string, by core.Actor) (Ask, error) {
	if option == "" || len(option) > maxOption {
		return Ask{}, texts.Error(core.Invalid, "question_long", texts.With{"Most": maxOption})
	}
	now := tx.Time()
	n, err := tx.Exec(ctx, `UPDATE asks SET state = 'decided', decision = $1, decided_by = $2, decided_at = $3
		WHERE id = $4 AND state = 'open' AND (expires_at = '' OR expires_at > $3)`, option, by.String(), core.Stamp(now), id)
	if err != nil {
		return Ask{}, fmt.Errorf("decide ask: %w", err)
	}
	a, err := s.ByID(ctx, tx, id)
	if err != nil {
		return Ask{}, err
	}
	if n == 0 {
		return a, late(a, tx.Time())
	}
	tx.OnCommit(func() { s.wake(id) })
	switch a.Kind {
	case KindQuestion: // that it was answered, not with what
		err = store.Audit(ctx, tx, by, "ask.answer", a.ID, map[string]any{"run": a.Run})
	case KindPermission:
		err = store.Audit(ctx, tx, by, "ask.decide", a.ID, map[string]any{"run": a.Run, "kind": a.Kind, "option": core.CutRunes(option, 40)})
	}
	return a, err
}

// Amend changes what an open ask is about, and reports whether it still was open.
func (s *Store) Amend(ctx context.Context, tx *store.Tx, id, payload string) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE asks SET payload = $1 WHERE id = $2 AND state = 'open'`, payload, id)
	if err != nil {
		return false, fmt.Errorf("amend ask: %w", err)
	}
	return n > 0, nil
}

// late explains why it is too late to decide a.
func late(a Ask, now time.Time) error {
	switch a.State {
	case Decided:
		return texts.Error(core.Conflict, "decided", texts.With{"By": a.DecidedBy, "At": texts.Time(a.DecidedAt, now, time.UTC)})
	case Closed:
		return texts.Error(core.Conflict, "closed", texts.With{"At": texts.Time(a.DecidedAt, now, time.UTC)})
	}
	return texts.Error(core.Conflict, "expired", texts.With{"At": texts.Time(a.ExpiresAt, now, time.UTC)})
}

// Opened returns the open asks of this kind and run, oldest first.
func (s *Store) Opened(ctx context.Context, tx *store.Tx, kind, run string) ([]Ask, error) {
	rows, err := opened(ctx, tx, kind, run)
	if err != nil {
		return nil, fmt.Errorf("open asks: %w", err)
	}
	out := make([]Ask, len(rows))
	for i := range rows {
		out[i] = rows[i].ask()
	}
	return out, nil
}

func opened(ctx context.Context, tx *store.Tx, kind, run string) (rows []row, err error) {
	err = tx.Select(ctx, &rows, askColumns+` WHERE run = $1 AND kind = $2 AND state = 'open' ORDER BY created_at, id`, run, kind)
	return rows, err
}

// Close settles every open ask of this kind and run, because it was decided
// elsewhere, and gives them back as they are now, so that their messages can
// be edited.
func (s *Store) Close(ctx context.Context, tx *store.Tx, kind, run, decision string) ([]Ask, error) {
	rows, err := opened(ctx, tx, kind, run)
	if err != nil {
		return nil, fmt.Errorf("close asks: %w", err)
	}
	return s.settle(ctx, tx, rows, Closed, decision)
}

// settle brings open rows to another end than a user's decision.
func (s *Store) settle(ctx context.Context, tx *store.Tx, rows []row, state, decision string) ([]Ask, error) {
	out := make([]Ask, 0, len(rows))
	for _, r := range rows {
		r.State, r.Decision, r.DecidedAt = state, core.CutRunes(decision, maxOption), core.Stamp(tx.Time())
		n, err := tx.Exec(ctx, `UPDATE asks SET state = $1, decision = $2, decided_at = $3 WHERE id = $4 AND state = 'open'`, r.State, r.Decision, r.DecidedAt, r.ID)
		if err != nil {
			return nil, fmt.Errorf("settle ask: %w", err)
		}
		if n == 0 {
			continue // someone was first
		}
		tx.OnCommit(func() { s.wake(r.ID) })
		out = append(out, r.ask())
	}
	return out, nil
}

// ByID returns one ask; NotFound without one. q is the DB or a transaction.
func (s *Store) ByID(ctx context.Context, q store.Queryer, id string) (Ask, error) {
	var r row
	err := q.Get(ctx, &r, askColumns+` WHERE id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return Ask{}, texts.Error(core.NotFound, "question_gone")
	}
	if err != nil {
		return Ask{}, fmt.Errorf("ask: %w", err)
	}
	return r.ask(), nil
}

// Waiting returns the oldest ask in this chat that waits for a message of this user, a
// question or the next of a command; false without one.
func (s *Store) Waiting(ctx context.Context, tx *store.Tx, bot, chat string, user int64) (Ask, bool, error) {
	if user == 0 {
		return Ask{}, false, nil
	}
	const open = ` WHERE bot = $1 AND chat = $2 AND state = 'open' AND kind IN ('question', 'next') AND user_id = $3`
	any, err := store.Recall[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM asks`+open+`)`, bot, chat, user)
	if err != nil || !any {
		return Ask{}, false, err
	}
	var r row
	err = tx.Get(ctx, &r, askColumns+open+`
		AND (expires_at = '' OR expires_at > $4) ORDER BY created_at, id LIMIT 1`, bot, chat, user, core.Stamp(tx.Time()))
	if errors.Is(err, store.ErrNoRows) {
		return Ask{}, false, nil
	}
	if err != nil {
		return Ask{}, false, fmt.Errorf("waiting ask: %w", err)
	}
	return r.ask(), true, nil
}

// DropNext closes the ask of KindNext that waits for a message of this user in the chat.
func (s *Store) DropNext(ctx context.Context, tx *store.Tx, bot, chat string, user int64) error {
	const open = ` WHERE bot = $1 AND chat = $2 AND state = 'open' AND kind = 'next' AND user_id = $3`
	any, err := store.Recall[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM asks`+open+`)`, bot, chat, user)
	if err != nil || !any {
		return err
	}
	var rows []row
	if err = tx.Select(ctx, &rows, askColumns+open, bot, chat, user); err == nil {
		_, err = s.settle(ctx, tx, rows, Closed, "")
	}
	if err != nil {
		return fmt.Errorf("drop ask: %w", err)
	}
	return nil
}

// AlbumsGoOn is how long after the first message of an album the others belong to it.
const AlbumsGoOn = 5 * time.Minute

// Took returns the ask of KindNext that an earlier message of this user in the chat decided
// with this decision, after since; false without one.
func (s *Store) Took(ctx context.Context, tx *store.Tx, bot, chat string, user int64, decision string, since time.Time) (Ask, bool, error) {
	if user == 0 || decision == "" {
		return Ask{}, false, nil
	}
	var r row
	err := tx.Get(ctx, &r, askColumns+` WHERE bot = $1 AND chat = $2 AND state = 'decided' AND kind = 'next' AND user_id = $3 AND decision = $4 AND decided_at > $5
		ORDER BY decided_at DESC LIMIT 1`, bot, chat, user, decision, core.Stamp(since))
	if errors.Is(err, store.ErrNoRows) {
		return Ask{}, false, nil
	}
	if err != nil {
		return Ask{}, false, fmt.Errorf("ask that was taken: %w", err)
	}
	return r.ask(), true, nil
}

// Expire ends the asks that timed out, at most 100, and returns them: call it
// again while it returns that many. Those about pairing requests are ended with these.
func (s *Store) Expire(ctx context.Context, tx *store.Tx) ([]Ask, error) {
	var rows []row
	err := tx.Select(ctx, &rows, askColumns+` WHERE state = 'open' AND expires_at <> '' AND expires_at <= $1 AND kind <> 'pairing' ORDER BY expires_at LIMIT $2`,
		core.Stamp(tx.Time()), expireBatch)
	if err != nil {
		return nil, fmt.Errorf("expire asks: %w", err)
	}
	return s.settle(ctx, tx, rows, Expired, Timeout)
}

// End settles an open ask without a decision, and returns it; none if it was
// settled before.
func (s *Store) End(ctx context.Context, tx *store.Tx, id, state, decision string) ([]Ask, error) {
	var rows []row
	if err := tx.Select(ctx, &rows, askColumns+` WHERE id = $1 AND state = 'open'`, id); err != nil {
		return nil, fmt.Errorf("end ask: %w", err)
	}
	return s.settle(ctx, tx, rows, state, decision)
}

// CloseRuns closes every open ask that a run waits for, and returns them.
func (s *Store) CloseRuns(ctx context.Context, tx *store.Tx, decision string) ([]Ask, error) {
	var rows []row
	err := tx.Select(ctx, &rows, askColumns+` WHERE state = 'open' AND kind IN ('permission', 'question') ORDER BY created_at, id`)
	if err != nil {
		return nil, fmt.Errorf("close asks: %w", err)
	}
	return s.settle(ctx, tx, rows, Closed, decision)
}
