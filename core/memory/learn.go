package memory

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/memory/block"
	"gatehouse/core/memory/check"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Message is what a user wrote to a model.
type Message struct {
	User     int64  // 0: no one whose memory is kept
	Source   string // names the message: the same again is not learnt again
	Session  string
	Project  string // of the session; "" for none
	Text     string
	Question string // the person's message before it
	Answer   string // the model's answer to that; "" for none
	Model    string // of that answer
	// Untold is set where the person would not see what is learnt: only what they ask to
	// remember is.
	Untold bool
}

// An Outcome is what became of a message.
type Outcome string

// Outcomes.
const (
	Nothing Outcome = ""
	Stored  Outcome = "stored" // it is in force, and can be undone; a card may ask about a conflict
	Asked   Outcome = "asked"  // a card asks
	Secret  Outcome = "secret" // refused: it contains one
	Full    Outcome = "full"   // refused: the person has Max corrections, or MaxCards cards
)

// Learnt is what was learnt of a message.
type Learnt struct {
	Outcome    Outcome
	What       string      // of Secret: "a key", "a password"
	Correction Correction  // of Stored and Asked
	Old        *Correction // the one that it contradicts, or has replaced
}

// Hear learns from a message. It stores what is worth it, or a card, before it returns;
// called again for the same Source it returns the same.
func (s *Store) Hear(ctx context.Context, m Message) (l Learnt, err error) {
	if m.User <= 0 {
		return l, nil
	}
	found := detect.Detect(detect.Message{Text: m.Text, Answer: m.Answer, Threshold: s.o.Threshold})
	s.o.Metrics.heard(found.Layer)
	if found.Layer == detect.None || m.Untold && found.Layer != detect.Explicit {
		return l, nil
	}
	if what, ok := detect.Secret(m.Text); ok {
		s.o.Metrics.learnt(Secret)
		if found.Layer == detect.Implicit {
			return l, nil
		}
		return Learnt{Outcome: Secret, What: what}, nil
	}
	c := s.draft(&m, &found)
	if c.Text == "" || c.Status == "" {
		return l, nil
	}
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		l, err = s.learn(ctx, tx, c, m.Source)
		return err
	})
	if core.KindOf(err) == core.Busy {
		l, err = Learnt{Outcome: Full}, nil
	}
	s.o.Metrics.learnt(l.Outcome)
	return l, err
}

// An Opinion is a message's judgement of the answer before it.
type Opinion string

// Opinions. A message without a correction is a weak sign that the answer was right; an
// instruction or a preference is no sign of either.
const (
	NoOpinion  Opinion = ""
	FoundRight Opinion = "right"
	FoundWrong Opinion = "wrong"
)

// Opinion returns a message's judgement of the answer before it. It stores nothing.
func (s *Store) Opinion(m Message) Opinion {
	if m.Answer == "" || strings.TrimSpace(m.Text) == "" {
		return NoOpinion
	}
	found := detect.Detect(detect.Message{Text: m.Text, Answer: m.Answer, Threshold: s.o.Threshold})
	switch {
	case found.Layer == detect.None:
		return FoundRight
	case found.Layer != detect.Implicit && (found.Type == detect.Factual || found.Type == detect.Failure):
		return FoundWrong
	}
	return NoOpinion
}

// draft returns the correction that a message is; without a Status it is not worth a card.
func (s *Store) draft(m *Message, found *detect.Result) Correction {
	c := Correction{ID: uuid.NewString(), User: m.User, Type: found.Type, Scope: found.Scope, Text: block.Clean(found.Text, MaxText), Via: ViaRules,
		Confidence: sureRules, Session: m.Session, Model: m.Model}
	topic := len(detect.Words(c.Text))
	if found.Type == detect.Factual && m.Answer != "" { // it is about the question, whose domain it has too
		if _, secret := detect.Secret(m.Question); !secret { // of it, too, no secret is stored
			c.About = block.Clean(m.Question, maxAbout)
		}
		c.Canonical = detect.Canonical(c.About)
	}
	if c.Domain = s.o.Domain(c.Text); c.Domain == general && c.About != "" {
		c.Domain = s.o.Domain(c.About)
	}
	if c.Canonical == "" {
		c.Canonical = detect.Canonical(c.Text)
	}
	c.Class = score.ClassOf(c.Type, c.Domain)
	c.ScopeRef = ref(&c.Scope, m)
	switch utility := score.Store(score.WorthOf(*found, found.Type == detect.Factual || found.Type == detect.Failure, topic)); {
	case found.Layer == detect.Explicit:
		c.Status, c.Via, c.Confidence = Active, ViaExplicit, sureExplicit
	case found.Layer == detect.Implicit:
		c.Status, c.Card, c.Confidence = Pending, CardImplicit, sureAccepted
	case score.Decide(utility) == score.Save && !found.Mixed:
		c.Status = Active
	case score.Decide(utility) != score.Discard:
		c.Status, c.Card = Pending, CardReview
	}
	return c
}

// ref returns what a scope refers to. One that the message does not have becomes the next
// narrower one.
func ref(scope *detect.Scope, m *Message) string {
	if *scope == detect.Project && m.Project != "" {
		return m.Project
	}
	if *scope != detect.Global && m.Session != "" {
		*scope = detect.Conversation
		return m.Session
	}
	*scope = detect.Global
	return ""
}

// learn stores c, or what it leads to.
func (s *Store) learn(ctx context.Context, tx *store.Tx, c Correction, source string) (Learnt, error) {
	known, err := s.rows(ctx, tx, `WHERE source = $1 AND user_id = $2`, source, c.User)
	if err != nil {
		return Learnt{}, err
	}
	if len(known) > 0 {
		return s.again(ctx, tx, known[0])
	}
	same, old, err := s.compare(ctx, tx, &c, nil)
	if err != nil {
		return Learnt{}, err
	}
	if same != nil { // repeated: it is confirmed
		same.UpdatedAt, same.Confidence = tx.Time(), max(same.Confidence, c.Confidence)
		return Learnt{Outcome: Stored, Correction: *same}, s.save(ctx, tx, same, Event{Kind: EventAccepted, Session: c.Session})
	}
	if err := s.room(ctx, tx, c.User, c.Status == Pending); err != nil {
		return Learnt{}, err
	}
	if old != nil && c.Card != CardImplicit && s.room(ctx, tx, c.User, true) == nil { // what is asked for is stored in any case
		c.Card, c.Conflicts = CardConflict, old.ID
	}
	if c.Card != NoCard {
		c.ExpiresAt = tx.Time().Add(Answer)
	}
	created, err := s.insert(ctx, tx, &c, source)
	if err != nil {
		return Learnt{}, err
	}
	if !created { // what is stored under this source is another user's
		return Learnt{}, core.Errorf(core.Conflict, "a request with this name was made before")
	}
	out := Learnt{Outcome: Stored, Correction: c}
	if c.Status == Pending {
		out.Outcome = Asked
	}
	if c.Conflicts != "" {
		out.Old = old
	}
	return out, nil
}

// again returns what was learnt of a message before.
func (s *Store) again(ctx context.Context, tx *store.Tx, c Correction) (Learnt, error) {
	l := Learnt{Correction: c}
	switch c.Status {
	case Active:
		l.Outcome = Stored
	case Pending:
		l.Outcome = Asked
	default:
		return Learnt{}, nil
	}
	if c.Conflicts != "" {
		if old, err := s.find(ctx, tx, c.User, c.Conflicts); err == nil && old.Status == Active {
			l.Old = &old
		}
	}
	return l, nil
}

// room returns Busy where a user has reached the limit of corrections, or of cards.
func (s *Store) room(ctx context.Context, tx *store.Tx, user int64, card bool) error {
	var n struct {
		All   int `db:"rows_of"`
		Cards int `db:"cards"`
	}
	err := tx.Get(ctx, &n, `SELECT count(*) AS rows_of, coalesce(sum(CASE WHEN card <> '' AND expires_at > $1 THEN 1 ELSE 0 END), 0) AS cards FROM corrections WHERE user_id = $2`, core.Stamp(tx.Time()), user)
	if err != nil {
		return fmt.Errorf("count corrections: %w", err)
	}
	if n.All >= Max || card && n.Cards >= MaxCards {
		return texts.Error(core.Busy, "memory_full", texts.With{"Most": Max})
	}
	return nil
}

// compare returns the active correction of the same user and scope that is the same
// as c, or one that c contradicts, and that kept, if it is not nil, does not.
func (s *Store) compare(ctx context.Context, q store.Queryer, c, kept *Correction) (same, old *Correction, err error) {
	all, err := s.rows(ctx, q, `WHERE user_id = $1 AND status = 'active' AND scope = $2 AND scope_ref = $3 AND correction_id <> $4 ORDER BY number DESC LIMIT 2000`,
		c.User, string(c.Scope), c.ScopeRef, c.ID)
	if err != nil {
		return nil, nil, err
	}
	checks := c.Checks()
	for i := range all {
		x := &all[i]
		if strings.EqualFold(x.Text, c.Text) && x.Canonical == c.Canonical {
			return x, nil, nil
		}
		if old == nil && contradicts(c, x, checks) && (kept == nil || !contradicts(kept, x, kept.Checks())) {
			old = x
		}
	}
	return nil, old, nil
}

// contest opens a card of c's conflict with another correction in force, which it returns; without
// one, or with MaxCards others open, it closes that of an earlier conflict. No card asks about what kept, if
// it is not nil, contradicts: both were kept.
func (s *Store) contest(ctx context.Context, tx *store.Tx, c *Correction, card Card, kept *Correction) (*Correction, error) {
	_, old, err := s.compare(ctx, tx, c, kept)
	if err != nil {
		return nil, err
	}
	c.Card, c.Conflicts, c.ExpiresAt = NoCard, "", core.TimeOf("")
	if old == nil {
		return nil, nil
	}
	open := 0
	if err := tx.Get(ctx, &open, `SELECT count(*) FROM corrections WHERE user_id = $1 AND card <> '' AND expires_at > $2 AND correction_id <> $3`, c.User, core.Stamp(tx.Time()), c.ID); err != nil || open >= MaxCards {
		return nil, err
	}
	c.Card, c.Conflicts, c.ExpiresAt = card, old.ID, tx.Time().Add(Answer)
	return old, nil
}

// contradicts reports whether c and x are about the same: their topics are near and their
// domain is the same, or both decide the same thing of answers differently. checks are c's.
func contradicts(c, x *Correction, checks []check.Check) bool {
	return check.Differ(checks, x.Checks()) || c.Domain == x.Domain && score.Similarity(c.Canonical, x.Canonical) >= score.SameTopic
}
