// Package raise gives trust full for a time: the owner asks for it in a direct
// chat, the operator confirms it in the panel. It owns the table raises.
package raise

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Terms of a raise: trust full for a time, in one conversation of the owner's.
const (
	Time = 15 * time.Minute // where no other time was asked for
	Min  = time.Minute
	Max  = 4 * time.Hour
	Wait = 15 * time.Minute // how long it waits for the operator's decision
)

// States of a raise. One that was denied, ended or not decided in time is gone:
// the audit log reports it.
const (
	Asked = "asked" // nothing is changed yet
	Held  = "held"  // it holds until Ends
)

// A Raise is trust full for a time: requested by the owner in a direct chat and
// approved by the operator in the panel. It applies to that chat's conversation and
// to that user's turns only, and is stored with its end, so that a restart changes
// nothing.
type Raise struct {
	ID      string
	State   string // Asked or Held
	Bot     string
	Chat    string
	User    int64
	Session string
	For     time.Duration // asked for, then confirmed
	At      time.Time     // when it was asked for, then confirmed
	Ends    time.Time     // when the asking, then the trust has ended
	By      string        // who confirmed
}

type raiseRow struct {
	ID      string `db:"id"`
	State   string `db:"state"`
	Bot     string `db:"bot"`
	Chat    string `db:"chat"`
	User    int64  `db:"user_id"`
	Session string `db:"session_id"`
	Seconds int64  `db:"seconds"`
	At      string `db:"at"`
	Ends    string `db:"ends"`
	By      string `db:"by"`
}

func (r raiseRow) raise() Raise {
	return Raise{ID: r.ID, State: r.State, Bot: r.Bot, Chat: r.Chat, User: r.User, Session: r.Session,
		For: time.Duration(r.Seconds) * time.Second, At: core.TimeOf(r.At), Ends: core.TimeOf(r.Ends), By: r.By}
}

// Notices posts texts in the transaction.
type Notices interface {
	Post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w texts.Words) error
}

// Zones returns the time zone of a user.
type Zones interface {
	Timezone(ctx context.Context, q store.Queryer, user int64) (*time.Location, error)
}

// Grants ends what was granted in a conversation at trust full since a time.
type Grants interface {
	Lapse(ctx context.Context, tx *store.Tx, session string, user int64, trust core.Trust, since time.Time) error
}

// A Store is the table of raises. It is safe for concurrent use and keeps
// nothing in memory.
type Store struct {
	db      *store.DB
	clock   core.Clock
	notices Notices
	zones   Zones
	grants  Grants
	changed func() // a raise was asked for, decided or ended
}

// New returns a Store over db. changed is called after commits; it must not block.
func New(db *store.DB, clock core.Clock, n Notices, z Zones, g Grants, changed func()) *Store {
	return &Store{db: db, clock: clock, notices: n, zones: z, grants: g, changed: changed}
}

const columns = `SELECT id, state, bot, chat, user_id, session_id, seconds, at, ends, "by" FROM raises`

// Ask notes that the owner asks for trust full in a conversation of a
// direct chat, for r.For; an older question there is replaced. It changes
// nothing until Confirm. Only the owner may ask: core.Denied for others.
func (s *Store) Ask(ctx context.Context, tx *store.Tx, r Raise, by core.Actor) error {
	switch {
	case r.User != core.Operator:
		return texts.Error(core.Denied, "trust_full_owner")
	case r.For < Min || r.For > Max:
		return core.Errorf(core.Invalid, "Trust full is given for a time from %s to %s.", Min, Max)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM raises WHERE session_id = $1 AND state = 'asked'`, r.Session); err != nil {
		return fmt.Errorf("ask for trust: %w", err)
	}
	id := strings.ToLower(rand.Text()[:16])
	_, err := tx.Exec(ctx, `INSERT INTO raises (id, state, bot, chat, user_id, session_id, seconds, at, ends) VALUES ($1, 'asked', $2, $3, $4, $5, $6, $7, $8)`,
		id, r.Bot, r.Chat, r.User, r.Session, int64(r.For/time.Second), core.Stamp(tx.Time()), core.Stamp(tx.Time().Add(Wait)))
	if err != nil {
		return fmt.Errorf("ask for trust: %w", err)
	}
	tx.OnCommit(s.changed)
	return store.Audit(ctx, tx, by, "raise.ask", r.Session, map[string]any{"bot": r.Bot, "for": r.For.String()})
}

// Confirm gives what was asked for, from now on for d (0: as long as was
// asked). It is the operator's alone to say. The second decision is a
// core.Conflict.
func (s *Store) Confirm(ctx context.Context, id string, d time.Duration, by core.Actor) (r Raise, err error) {
	err = s.decide(ctx, id, Asked, by, func(tx *store.Tx, row raiseRow) error {
		if d == 0 {
			d = time.Duration(row.Seconds) * time.Second
		}
		if d < Min || d > Max {
			return core.Errorf(core.Invalid, "trust full is given for a time from %s to %s", Min, Max)
		}
		r = row.raise()
		r.State, r.For, r.At, r.Ends, r.By = Held, d, tx.Time(), tx.Time().Add(d), by.String()
		if err := s.dropHeld(ctx, tx, row.Session); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO raises (id, state, bot, chat, user_id, session_id, seconds, at, ends, "by") VALUES ($1, 'held', $2, $3, $4, $5, $6, $7, $8, $9)`,
			r.ID, r.Bot, r.Chat, r.User, r.Session, int64(d/time.Second), core.Stamp(r.At), core.Stamp(r.Ends), r.By)
		if err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "raise.confirm", r.Session, map[string]any{"bot": r.Bot, "id": row.ID, "for": d.String(), "until": core.Stamp(r.Ends)}); err != nil {
			return err
		}
		zone, err := s.zones.Timezone(ctx, tx, row.User)
		if err != nil {
			return err
		}
		return s.notify(ctx, tx, row, "raised", texts.Words{Until: texts.Time(r.Ends, tx.Time(), zone)})
	})
	return r, err
}

// Deny refuses what was asked for.
func (s *Store) Deny(ctx context.Context, id string, by core.Actor) error {
	return s.decide(ctx, id, Asked, by, func(tx *store.Tx, row raiseRow) error {
		if err := store.Audit(ctx, tx, by, "raise.deny", row.Session, map[string]any{"bot": row.Bot, "id": row.ID}); err != nil {
			return err
		}
		return s.notify(ctx, tx, row, "raise_denied", texts.Words{})
	})
}

// End takes the trust back before its time: the next tool call, of a run
// that is under way too, is at the old level.
func (s *Store) End(ctx context.Context, id string, by core.Actor) error {
	return s.decide(ctx, id, Held, by, func(tx *store.Tx, row raiseRow) error {
		if err := store.Audit(ctx, tx, by, "raise.end", row.Session, map[string]any{"bot": row.Bot, "id": row.ID, "why": "taken back"}); err != nil {
			return err
		}
		return s.notify(ctx, tx, row, "raise_ended", texts.Words{})
	})
}

// outcomes returns the texts for how a raise in that state may end.
func outcomes(state string) map[string]string {
	if state == Held {
		return map[string]string{"raise.end": "ended"}
	}
	return map[string]string{"raise.confirm": "confirmed", "raise.deny": "refused", "raise.end": "taken back"}
}

// decide takes a raise that still counts out of the table, for anyone who is
// the first to decide about it.
func (s *Store) decide(ctx context.Context, id, state string, by core.Actor, do func(tx *store.Tx, row raiseRow) error) error {
	if by.User != core.Operator {
		return core.Errorf(core.Denied, "only the owner decides about trust full")
	}
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		var row raiseRow
		err := tx.Get(ctx, &row, columns+` WHERE id = $1 AND state = $2 AND ends > $3`, id, state, core.Stamp(tx.Time()))
		if errors.Is(err, store.ErrNoRows) {
			if err := store.Already(ctx, tx, "id", id, outcomes(state)); err != nil {
				return err
			}
			return core.Errorf(core.Conflict, "its time is over")
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM raises WHERE id = $1 AND state = $2`, id, state); err != nil {
			return err
		}
		tx.OnCommit(s.changed)
		if err := s.lapse(ctx, tx, row); err != nil {
			return err
		}
		return do(tx, row)
	})
	if err != nil {
		return fmt.Errorf("trust for a time: %w", err)
	}
	return nil
}

// dropHeld takes the raise of a conversation out of the table that another is to follow.
func (s *Store) dropHeld(ctx context.Context, tx *store.Tx, session string) error {
	var rows []raiseRow
	if err := tx.Select(ctx, &rows, columns+` WHERE session_id = $1 AND state = 'held'`, session); err != nil {
		return err
	}
	for _, r := range rows {
		if err := s.lapse(ctx, tx, r); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM raises WHERE session_id = $1 AND state = 'held'`, session)
	return err
}

// lapse ends with a raise what was granted while it held: the next one begins
// with every call being asked for.
func (s *Store) lapse(ctx context.Context, tx *store.Tx, r raiseRow) error {
	if r.State != Held {
		return nil
	}
	return s.grants.Lapse(ctx, tx, r.Session, r.User, core.Full, core.TimeOf(r.At))
}

// Drop ends the requested and active raises of a conversation at once, because its
// owner asked for that in chat. It reports whether one was active.
func (s *Store) Drop(ctx context.Context, tx *store.Tx, session string, by core.Actor) (held bool, err error) {
	var rows []raiseRow
	if err := tx.Select(ctx, &rows, columns+` WHERE session_id = $1`, session); err != nil {
		return false, fmt.Errorf("end trust: %w", err)
	}
	for _, r := range rows {
		held = held || r.State == Held && r.raise().Ends.After(tx.Time())
		if err := s.lapse(ctx, tx, r); err != nil {
			return false, err
		}
		if err := store.Audit(ctx, tx, by, "raise.end", session, map[string]any{"bot": r.Bot, "id": r.ID, "why": "taken back"}); err != nil {
			return false, err
		}
		tx.OnCommit(s.changed)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM raises WHERE session_id = $1`, session); err != nil {
		return false, fmt.Errorf("end trust: %w", err)
	}
	return held, nil
}

// Held returns the raise that holds now for a user's turns in a conversation of
// a direct chat; false when there is none.
func (s *Store) Held(ctx context.Context, q store.Queryer, at core.Address, session string, user int64) (Raise, bool, error) {
	if user != core.Operator || at.Group() {
		return Raise{}, false, nil
	}
	var row raiseRow
	err := q.Get(ctx, &row, columns+` WHERE session_id = $1 AND state = 'held' AND bot = $2 AND chat = $3 AND user_id = $4 AND ends > $5`,
		session, at.Bot, at.Chat, user, core.Stamp(s.clock.Now()))
	if errors.Is(err, store.ErrNoRows) {
		return Raise{}, false, nil
	}
	if err != nil {
		return Raise{}, false, fmt.Errorf("trust for a time: %w", err)
	}
	return row.raise(), true, nil
}

// Raises returns those that wait and those that hold, the oldest first, at most 50.
func (s *Store) Raises(ctx context.Context) ([]Raise, error) {
	var rows []raiseRow
	if err := s.db.Select(ctx, &rows, columns+` WHERE ends > $1 ORDER BY at, id LIMIT 50`, core.Stamp(s.clock.Now())); err != nil {
		return nil, fmt.Errorf("trust for a time: %w", err)
	}
	out := make([]Raise, len(rows))
	for i, r := range rows {
		out[i] = r.raise()
	}
	return out, nil
}

// Expire deletes the raises whose time has ended and notifies their chats; they have
// no effect from that time on in any case. Call it every minute or so.
func (s *Store) Expire(ctx context.Context) (int, error) {
	n := 0
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		var rows []raiseRow
		if err := tx.Select(ctx, &rows, columns+` WHERE ends <= $1 LIMIT 50`, core.Stamp(tx.Time())); err != nil {
			return err
		}
		for n = range rows {
			if err := s.over(ctx, tx, rows[n]); err != nil {
				return err
			}
		}
		n = len(rows)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("end trust: %w", err)
	}
	return n, nil
}

func (s *Store) over(ctx context.Context, tx *store.Tx, r raiseRow) error {
	action, text := "raise.end", "raise_ended"
	if r.State == Asked {
		action, text = "raise.lapse", "raise_lapsed"
	}
	if _, err := tx.Exec(ctx, `DELETE FROM raises WHERE id = $1 AND state = $2`, r.ID, r.State); err != nil {
		return err
	}
	if err := s.lapse(ctx, tx, r); err != nil {
		return err
	}
	if err := store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, action, r.Session, map[string]any{"bot": r.Bot, "why": "its time is over"}); err != nil {
		return err
	}
	tx.OnCommit(s.changed)
	return s.notify(ctx, tx, r, text, texts.Words{})
}

// notify posts the outcome of a raise in its chat.
func (s *Store) notify(ctx context.Context, tx *store.Tx, r raiseRow, text string, w texts.Words) error {
	return s.notices.Post(ctx, tx, core.Address{Bot: r.Bot, Chat: r.Chat}, "raise:"+r.ID+":"+text, text, w)
}
