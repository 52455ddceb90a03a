// Package remind delivers messages at a time, in the chat where they were asked for. A
// delivery and the end of its reminder are one transaction: it arrives once, whatever
// crashes. What was due while the gateway was down is delivered at the start and reports it.
package remind

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/schedule/when"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Limits of reminders.
const (
	MaxOpen = 50  // of one person
	MaxText = 500 // characters of one
	late    = 5 * time.Minute
	every   = 30 * time.Second
)

// A Reminder is a message that a user gets at a time.
type Reminder struct {
	ID   int64 // a later reminder may have it again, once this one has ended
	User int64
	Made string // names what asked for it: the same again makes no second one
	To   core.Address
	From core.Peer // the account that asked
	Text string
	Time
}

// Mark names r for a button: no other reminder ever has it, unlike its id.
func (r *Reminder) Mark() string {
	return fmt.Sprintf("%d-%08x", r.ID, crc32.ChecksumIEEE([]byte(r.Made)))
}

type row struct {
	ID       int64  `db:"id"`
	User     int64  `db:"user_id"`
	Made     string `db:"made"`
	Bot      string `db:"bot"`
	Chat     string `db:"chat"`
	Thread   string `db:"thread"`
	Place    string `db:"place"`
	Platform string `db:"platform"`
	Sender   string `db:"sender"`
	Text     string `db:"text"`
	Rule     string `db:"rule"`
	Zone     string `db:"zone"`
	Due      string `db:"due"`
	N        int    `db:"n"`
}

const columns = `SELECT id, user_id, made, bot, chat, thread, place, platform, sender, text, rule, zone, due, n FROM reminders `

func (r row) reminder() Reminder {
	return Reminder{ID: r.ID, User: r.User, Made: r.Made, To: core.Address{Bot: r.Bot, Chat: r.Chat, Thread: r.Thread, Place: r.Place},
		From: core.Peer{Platform: r.Platform, ID: r.Sender}, Text: r.Text, Time: Time{Due: core.TimeOf(r.Due), Rule: r.Rule, Zone: r.Zone}}
}

// Options of New; all are required.
type Options struct {
	DB    *store.DB
	Clock core.Clock
	Log   *slog.Logger
	// May reports whether the account may still talk to the bot there.
	May func(ctx context.Context, tx *store.Tx, to core.Address, from core.Peer) (bool, error)
	// Post stores a message to a chat; core.Conflict if its key was used.
	Post func(ctx context.Context, tx *store.Tx, r core.Reply) error
	// Name returns what a user is called, for groups.
	Name func(ctx context.Context, q store.Queryer, user int64) (string, error)
}

// A Store keeps reminders and delivers them. Its methods may be called concurrently.
type Store struct {
	o    Options
	wake chan struct{}
}

// New returns a Store; Run delivers.
func New(o Options) *Store { return &Store{o: o, wake: make(chan struct{}, 1)} }

// Check returns an error for the user where r cannot be added now.
func (s *Store) Check(ctx context.Context, q store.Queryer, r Reminder) error {
	_, err := s.check(ctx, q, r)
	return err
}

// check reports whether r was added before, and returns an error for the user where it
// cannot be added.
func (s *Store) check(ctx context.Context, q store.Queryer, r Reminder) (known bool, err error) {
	switch {
	case r.User <= 0:
		return false, texts.Error(core.Denied, "group_member")
	case clean(r.Text) == "":
		return false, texts.Error(core.Invalid, "remind_what")
	case utf8.RuneCountInString(r.Text) > MaxText:
		return false, texts.Error(core.Invalid, "remind_long", texts.With{"Most": MaxText})
	}
	var stored struct {
		Known bool `db:"known"`
		Open  int  `db:"open"`
	}
	err = q.Get(ctx, &stored, `SELECT EXISTS (SELECT 1 FROM reminders WHERE made = $1) AS known, (SELECT count(*) FROM reminders WHERE user_id = $2) AS open`, r.Made, r.User)
	if err != nil {
		return false, fmt.Errorf("count reminders: %w", err)
	}
	if !stored.Known && stored.Open >= MaxOpen {
		return false, texts.Error(core.Busy, "remind_full", texts.With{"Most": MaxOpen})
	}
	return stored.Known, nil
}

// Add stores a reminder, or returns an error for the user as Check does, which may have
// been asked before others were added. One that was added before, by Made, is not stored
// again.
func (s *Store) Add(ctx context.Context, tx *store.Tx, r Reminder) error {
	if lock := tx.ForUpdate(); lock != "" { // the one before MaxOpen is added by one at a time
		var ids []int64
		if err := tx.Select(ctx, &ids, `SELECT id FROM reminders WHERE user_id = $1 ORDER BY id`+lock, r.User); err != nil {
			return fmt.Errorf("lock reminders: %w", err)
		}
	}
	if known, err := s.check(ctx, tx, r); known || err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO reminders (user_id, made, bot, chat, thread, place, platform, sender, text, rule, zone, due, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (made) DO NOTHING`,
		r.User, r.Made, r.To.Bot, r.To.Chat, r.To.Thread, r.To.Place, r.From.Platform, r.From.ID, clean(r.Text), r.Rule, r.Zone, core.Stamp(r.Due), core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("store a reminder: %w", err)
	}
	tx.OnCommit(s.ring)
	return nil
}

// clean returns text without control characters other than line ends.
func clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}

func (s *Store) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// List returns the open reminders of a user, the next first.
func (s *Store) List(ctx context.Context, q store.Queryer, user int64) ([]Reminder, error) {
	var rows []row
	if err := q.Select(ctx, &rows, columns+`WHERE user_id = $1 ORDER BY due, id LIMIT 50`, user); err != nil {
		return nil, fmt.Errorf("reminders of a user: %w", err)
	}
	out := make([]Reminder, len(rows))
	for i, r := range rows {
		out[i] = r.reminder()
	}
	return out, nil
}

// Cancel deletes a reminder of a user, and reports whether there was one.
func (s *Store) Cancel(ctx context.Context, tx *store.Tx, user, id int64) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM reminders WHERE id = $1 AND user_id = $2`, id, user)
	return n > 0, err
}

// Run delivers reminders when they are due, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := every
		next, err := s.Deliver(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Log.Error("reminders could not be delivered", "err", err)
		} else if left := next.Sub(s.o.Clock.Now()); !next.IsZero() && left < wait {
			wait = max(left, 0)
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-s.o.Clock.After(wait):
		}
	}
}

// Deliver delivers what is due, at most 50, and returns when the next one is
// due, the zero time for none.
func (s *Store) Deliver(ctx context.Context) (next time.Time, err error) {
	var due []row
	if err := s.o.DB.Select(ctx, &due, columns+`WHERE due <= $1 ORDER BY due, id LIMIT 50`, core.Stamp(s.o.Clock.Now())); err != nil {
		return next, fmt.Errorf("reminders that are due: %w", err)
	}
	var errs []error
	for _, r := range due {
		if err := s.o.DB.Tx(ctx, func(tx *store.Tx) error { return s.deliver(ctx, tx, r) }); err != nil {
			errs = append(errs, fmt.Errorf("reminder %d: %w", r.ID, err))
		}
	}
	var stamp string
	if err := s.o.DB.Get(ctx, &stamp, `SELECT coalesce(min(due), '') FROM reminders`); err != nil {
		errs = append(errs, err)
	}
	return core.TimeOf(stamp), errors.Join(errs...)
}

func (s *Store) deliver(ctx context.Context, tx *store.Tx, was row) error {
	var r row
	err := tx.Get(ctx, &r, columns+`WHERE id = $1 AND n = $2`, was.ID, was.N)
	if errors.Is(err, store.ErrNoRows) { // cancelled, or delivered
		return nil
	}
	if err != nil {
		return err
	}
	one := r.reminder()
	may, err := s.o.May(ctx, tx, one.To, one.From)
	if err != nil {
		return err
	}
	if may {
		if err := s.post(ctx, tx, one, r.N); err != nil {
			return err
		}
	}
	if !may {
		_, err = tx.Exec(ctx, `DELETE FROM reminders WHERE id = $1`, r.ID)
		return err
	}
	return s.goOn(ctx, tx, r)
}

func (s *Store) post(ctx context.Context, tx *store.Tx, r Reminder, n int) error {
	since, name := "", ""
	if tx.Time().Sub(r.Due) > late {
		zone := time.UTC
		if z, err := time.LoadLocation(r.Zone); err == nil {
			zone = z
		}
		since = texts.Time(r.Due, tx.Time(), zone)
	}
	if r.To.Group() {
		var err error
		if name, err = s.o.Name(ctx, tx, r.User); err != nil {
			return err
		}
	}
	text := texts.Text("reminder", texts.With{"Text": r.Text, "Name": name, "Since": since})
	err := s.o.Post(ctx, tx, core.Reply{Address: r.To, Key: fmt.Sprintf("remind:%s:%d", r.Made, n), Parts: []core.Part{{Text: text}}})
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// AfterRestore ends what a restored database would deliver a second time: a reminder that is
// due by now was most likely delivered since the backup. Its message is posted, for the
// caller to leave to the operator, and one that is repeated goes on with its next time. Of
// the options it needs DB, Post and Name.
func (s *Store) AfterRestore(ctx context.Context, tx *store.Tx) error {
	var due []row
	if err := tx.Select(ctx, &due, columns+`WHERE due <= $1 ORDER BY due, id`, core.Stamp(tx.Time())); err != nil {
		return fmt.Errorf("reminders after a restore: %w", err)
	}
	for _, r := range due {
		if err := s.post(ctx, tx, r.reminder(), r.N); err != nil {
			return fmt.Errorf("reminder %d: %w", r.ID, err)
		}
		if err := s.goOn(ctx, tx, r); err != nil {
			return fmt.Errorf("reminder %d: %w", r.ID, err)
		}
	}
	return nil
}

// goOn ends a reminder that was delivered, or has it wait for its next time.
func (s *Store) goOn(ctx context.Context, tx *store.Tx, r row) error {
	next, ok := nextOf(r.reminder(), tx.Time())
	if !ok {
		_, err := tx.Exec(ctx, `DELETE FROM reminders WHERE id = $1`, r.ID)
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE reminders SET n = n + 1, due = $1 WHERE id = $2`, core.Stamp(next), r.ID)
	return err
}

// nextOf returns when a reminder is due again: once for all times that have passed.
func nextOf(r Reminder, now time.Time) (time.Time, bool) {
	if r.Rule == "" {
		return time.Time{}, false
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		return time.Time{}, false
	}
	rule, err := when.Parse(r.Rule, zone)
	if err != nil {
		return time.Time{}, false
	}
	next := rule.Next(now)
	return next, !next.IsZero()
}
