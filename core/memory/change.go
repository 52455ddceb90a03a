package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/memory/block"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Draft is a correction that a user adds outside of a conversation.
type Draft struct {
	Text  string
	Type  detect.Type  // "" is found by rules
	Scope detect.Scope // "" is Global
	Ref   string       // of the scope
	// Source names the request: the same again adds none. "" is none.
	Source string
	// Session and Project are where it is written: text that is for “this conversation” or “this
	// project” is for them.
	Session string
	Project string
}

// Add stores a correction as if its writer had sent "correction: …". A contradiction to an
// older one opens a card.
func (s *Store) Add(ctx context.Context, user int64, d Draft, by core.Actor) (l Learnt, err error) {
	text, fault := cleaned(d.Text)
	switch {
	case user <= 0:
		return l, texts.Error(core.Denied, "group_member")
	case text == "":
		return l, core.Errorf(core.Invalid, "text is missing: write what is to be remembered")
	case d.Type != "" && !d.Type.Valid():
		return l, core.Errorf(core.Invalid, "type must be factual_correction, persistent_instruction, preference, project_decision or failure_pattern")
	case d.Scope != "" && !d.Scope.Valid():
		return l, core.Errorf(core.Invalid, "scope must be global, project or conversation")
	case d.Scope != "" && d.Scope != detect.Global && d.Ref == "":
		return l, core.Errorf(core.Invalid, "scope_ref is missing: name the project or the conversation")
	}
	if fault != nil {
		return l, fault
	}
	found := detect.Detect(detect.Message{Text: "correction: " + text})
	if d.Type != "" {
		found.Type = d.Type
	}
	m := Message{User: user, Text: text, Session: d.Session, Project: d.Project}
	if d.Scope == "" && found.Scope != detect.Global && d.Session == "" {
		return l, texts.Error(core.Invalid, "memory_nowhere")
	}
	c := s.draft(&m, &found)
	if d.Scope != "" {
		c.Scope, c.ScopeRef = d.Scope, d.Ref
	}
	if d.Scope == detect.Global {
		c.ScopeRef = ""
	}
	source := d.Source
	if source == "" {
		source = "add:" + uuid.NewString()
	}
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		if l, err = s.learn(ctx, tx, c, source); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "memory.add", l.Correction.ID, nil)
	})
	if err == nil {
		s.o.Metrics.learnt(l.Outcome)
	}
	return l, err
}

// cleaned returns a text as it is stored, and why it is not.
func cleaned(text string) (string, error) {
	text = block.Clean(text, MaxText+1)
	if len([]rune(text)) > MaxText {
		return text, core.Errorf(core.TooLarge, "text is over %d characters: shorten it", MaxText)
	}
	if what, ok := detect.Secret(text); ok {
		return text, texts.Error(core.Invalid, "memory_secret", texts.With{"What": what})
	}
	return text, nil
}

// A Change is what is changed of a correction; nil leaves it.
type Change struct {
	Text   *string
	Type   *detect.Type
	Pinned *bool
	Scope  *detect.Scope // only to Global
}

// Update changes an active or superseded correction. A contradiction that the change makes opens a card.
func (s *Store) Update(ctx context.Context, user int64, ref string, ch Change, by core.Actor) (c Correction, err error) {
	if ch.Text != nil {
		text, fault := cleaned(*ch.Text)
		if text == "" {
			return c, core.Errorf(core.Invalid, "text is empty: delete the correction instead")
		}
		if ch.Text = &text; fault != nil {
			return c, fault
		}
	}
	if ch.Type != nil && !ch.Type.Valid() {
		return c, core.Errorf(core.Invalid, "type must be factual_correction, persistent_instruction, preference, project_decision or failure_pattern")
	}
	if ch.Scope != nil && *ch.Scope != detect.Global {
		return c, core.Errorf(core.Invalid, "scope can only be changed to global")
	}
	return s.change(ctx, user, ref, "memory.change", by, func(tx *store.Tx, c *Correction) (e Event, err error) {
		if c.Status == Deleted {
			return Event{}, core.Errorf(core.Conflict, "the correction is deleted: undo that first")
		}
		e.Kind = EventEdited
		was := *c
		if ch.Text != nil && *ch.Text != c.Text {
			if c.Scope == detect.Global && detect.Detect(detect.Message{Text: "correction: " + *ch.Text}).Scope != detect.Global {
				return e, texts.Error(core.Invalid, "memory_nowhere")
			}
			c.Text, c.UpdatedAt, c.Emphasis, c.Followed = *ch.Text, tx.Time(), 0, 0
			if c.About == "" {
				c.Canonical = detect.Canonical(c.Text)
			}
		}
		if ch.Type != nil {
			c.Type = *ch.Type
		}
		if ch.Scope != nil {
			c.Scope, c.ScopeRef = detect.Global, ""
		}
		c.Class = score.ClassOf(c.Type, c.Domain)
		if ch.Pinned != nil && *ch.Pinned != c.Pinned {
			if c.Pinned = *ch.Pinned; c.Pinned {
				e.Kind = EventPinned
			} else {
				e.Kind = EventUnpinned
			}
		}
		if c.Status == Active && (c.Text != was.Text || c.Type != was.Type || c.Scope != was.Scope) {
			card, kept := CardEdited, &was
			if was.Card != NoCard && !was.expired(tx.Time()) {
				card, kept = was.Card, nil // it was not answered yet
			} else if c.Scope != was.Scope {
				kept = nil
			}
			_, err = s.contest(ctx, tx, c, card, kept)
		}
		return e, err
	})
}

// change changes a correction of a user in one transaction, with an event.
func (s *Store) change(ctx context.Context, user int64, ref, action string, by core.Actor, f func(*store.Tx, *Correction) (Event, error)) (c Correction, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		if c, err = s.find(ctx, tx, user, ref); err != nil {
			return err
		}
		e, err := f(tx, &c)
		if err != nil {
			return err
		}
		if err := s.save(ctx, tx, &c, e); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, action, c.ID, nil)
	})
	return c, err
}

// Delete takes a correction out of force. For Undo, Restore brings it back; then it is
// deleted for good.
func (s *Store) Delete(ctx context.Context, user int64, ref string, by core.Actor) (Correction, error) {
	return s.change(ctx, user, ref, "memory.delete", by, func(tx *store.Tx, c *Correction) (Event, error) {
		if c.Status == Deleted {
			return Event{}, core.Errorf(core.NotFound, "there is no correction %s", core.CutRunes(core.Visible(ref), 40))
		}
		c.Status, c.Card, c.Conflicts, c.ExpiresAt = Deleted, NoCard, "", tx.Time().Add(Undo)
		return Event{Kind: EventDeleted}, nil
	})
}

// Restore brings a deleted or superseded correction back into force. A contradiction to another
// opens a card.
func (s *Store) Restore(ctx context.Context, user int64, ref string, by core.Actor) (Correction, error) {
	return s.change(ctx, user, ref, "memory.restore", by, func(tx *store.Tx, c *Correction) (Event, error) {
		switch {
		case c.Status == Deleted && c.expired(tx.Time()):
			return Event{}, core.Errorf(core.NotFound, "there is no correction %s", core.CutRunes(core.Visible(ref), 40))
		case c.Status != Deleted && c.Status != Superseded:
			return Event{}, core.Errorf(core.Conflict, "the correction is not deleted")
		}
		card := CardConflict
		if c.Status == Superseded {
			card = CardRestored
		}
		c.Status, c.Superseded, c.UpdatedAt = Active, "", tx.Time()
		_, err := s.contest(ctx, tx, c, card, nil)
		return Event{Kind: EventRestored}, err
	})
}

// Choices of an open card.
const (
	ChoiceSave    = "save"    // keep it
	ChoiceReplace = "replace" // keep it, and supersede the one that it contradicts
	ChoiceBoth    = "both"    // keep both
	ChoiceSkip    = "skip"    // do not keep it; one that was in force before it was edited stays, one that was brought back is superseded again
)

// Decide settles the open card of a correction, and returns as Old the one that it replaced. A card
// that is kept and contradicts a correction which was not asked about yet opens the card of that conflict.
func (s *Store) Decide(ctx context.Context, user int64, ref, choice string, by core.Actor) (l Learnt, err error) {
	switch choice {
	case ChoiceSave, ChoiceReplace, ChoiceBoth, ChoiceSkip:
	default:
		return l, core.Errorf(core.Invalid, "choice must be save, replace, both or skip")
	}
	c, err := s.change(ctx, user, ref, "memory.decide", by, func(tx *store.Tx, c *Correction) (Event, error) {
		if c.Card == NoCard {
			return Event{}, core.Errorf(core.Conflict, "the question about this correction was answered before")
		}
		if c.expired(tx.Time()) {
			return Event{}, core.Errorf(core.Conflict, "the question about this correction has expired")
		}
		var e Event
		var err error
		l.Old = nil
		e, l.Old, err = s.decide(ctx, tx, c, choice, by)
		return e, err
	})
	l.Correction, l.Outcome = c, Stored
	if c.Status != Active {
		l.Outcome = Nothing
	}
	return l, err
}

// decide changes c as chosen; old is the one that it replaced, or that a new card asks about.
func (s *Store) decide(ctx context.Context, tx *store.Tx, c *Correction, choice string, by core.Actor) (e Event, old *Correction, err error) {
	card, conflicts := c.Card, c.Conflicts
	c.Card, c.Conflicts, c.ExpiresAt = NoCard, "", core.TimeOf("")
	switch {
	case choice == ChoiceSkip && card == CardEdited:
		return Event{Kind: EventAccepted}, nil, nil
	case choice == ChoiceSkip && card == CardRestored:
		c.Status, c.Superseded = Superseded, conflicts
		return Event{Kind: EventSuperseded}, nil, nil
	case choice == ChoiceSkip:
		c.Status, c.ExpiresAt = Deleted, tx.Time().Add(Undo)
		return Event{Kind: EventDeleted}, nil, nil
	}
	c.Status, c.UpdatedAt = Active, tx.Time()
	switch {
	case choice == ChoiceReplace && conflicts != "":
		old, err = s.supersede(ctx, tx, c, conflicts)
	case conflicts == "":
		old, err = s.contest(ctx, tx, c, CardConflict, nil)
	}
	return Event{Kind: EventAccepted}, old, err
}

// supersede has c take the place of another one, which it returns; nil if that is no longer in force.
func (s *Store) supersede(ctx context.Context, tx *store.Tx, c *Correction, id string) (*Correction, error) {
	old, err := s.find(ctx, tx, c.User, id)
	if core.KindOf(err) == core.NotFound || err == nil && old.Status != Active {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	old.Status, old.Superseded = Superseded, c.ID
	return &old, s.save(ctx, tx, &old, Event{Kind: EventSuperseded})
}

// A Filter selects corrections of a user.
type Filter struct {
	Text   string // words that all occur in the text, what it is about, or its type; "" is all
	Status Status // "" is Active
	Cards  bool   // only those with an open card, of any status
	Pinned bool
	// Project chooses those that are for the project of this id alone; "" is any.
	Project string
	After   int // only numbers below, for the next page; 0 is the first
	Limit   int // 50 at 0, at most 200
}

// List returns corrections, the newest first, and the number to go on After; 0 at the end.
func (s *Store) List(ctx context.Context, user int64, f Filter) (out []Correction, next int, err error) {
	if user <= 0 {
		return nil, 0, nil
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 200)
	where, args := `WHERE user_id = $1`, []any{user}
	add := func(cond string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(cond, len(args))
	}
	now := core.Stamp(s.o.Clock.Now())
	switch {
	case f.Cards:
		add(` AND card <> '' AND status <> 'deleted' AND expires_at > $%d`, now)
	case f.Status == "" || f.Status == Active:
		where += ` AND status = 'active'`
	case f.Status == Superseded:
		where += ` AND status = 'superseded'`
	default:
		add(` AND status = $%d`, string(f.Status))
		add(` AND expires_at > $%d`, now)
	}
	if f.Pinned {
		where += ` AND pinned = 1`
	}
	if f.Project != "" {
		add(` AND scope = 'project' AND scope_ref = $%d`, f.Project)
	}
	words := strings.Fields(detect.Fold(f.Text))
	after := f.After
	for range Max/200 + 1 { // texts are encrypted: words are looked for here
		w, a := where, args
		if after > 0 {
			w, a = w+fmt.Sprintf(` AND number < $%d`, len(a)+1), append(a[:len(a):len(a)], after)
		}
		page, err := s.rows(ctx, s.o.DB, w+` ORDER BY number DESC LIMIT 200`, a...)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range page {
			after = c.Number
			if !detect.Has(words, c.Text+" "+c.About+" "+string(c.Type)+" "+c.Domain) {
				continue
			}
			if out = append(out, c); len(out) > limit {
				return out[:limit], out[limit-1].Number, nil
			}
		}
		if len(page) < 200 {
			break
		}
	}
	return out, 0, nil
}

// Get returns a correction of a user by its id or number.
func (s *Store) Get(ctx context.Context, user int64, ref string) (Correction, error) {
	return s.find(ctx, s.o.DB, user, ref)
}

// Count returns how many corrections of a user are in force, and how many cards are open.
func (s *Store) Count(ctx context.Context, user int64) (active, cards int, err error) {
	var n struct {
		Active int `db:"in_force"`
		Cards  int `db:"cards"`
	}
	err = s.o.DB.Get(ctx, &n, `SELECT coalesce(sum(CASE WHEN status = 'active' THEN 1 ELSE 0 END), 0) AS in_force,
		coalesce(sum(CASE WHEN card <> '' AND status <> 'deleted' AND expires_at > $1 THEN 1 ELSE 0 END), 0) AS cards FROM corrections WHERE user_id = $2`, core.Stamp(s.o.Clock.Now()), user)
	return n.Active, n.Cards, err
}

// Events returns what happened to a correction of a user, the newest first, at most 200.
func (s *Store) Events(ctx context.Context, user int64, ref string) ([]Event, error) {
	c, err := s.find(ctx, s.o.DB, user, ref)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Kind    string `db:"kind"`
		Run     string `db:"run"`
		Session string `db:"session_id"`
		Model   string `db:"model_id"`
		At      string `db:"at"`
	}
	if err := s.o.DB.Select(ctx, &rows, `SELECT kind, run, session_id, model_id, at FROM correction_events WHERE correction_id = $1 ORDER BY id DESC LIMIT 200`, c.ID); err != nil {
		return nil, fmt.Errorf("events of a correction: %w", err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		out[i] = Event{Kind: r.Kind, Run: r.Run, Session: r.Session, Model: r.Model, At: core.TimeOf(r.At)}
	}
	return out, nil
}
