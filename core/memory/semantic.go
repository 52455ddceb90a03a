package memory

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/memory/block"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/store"
)

// A Finding is what a model found in a message: one of its sentences, as the person wrote
// it, and what that is.
type Finding struct {
	Sentence string
	Type     detect.Type
	Scope    detect.Scope
}

// Readable returns the sentences of a message that a model may read for corrections: what
// the rules ask about, first, and what they leave undecided. It returns none of a message with a secret,
// and none where the person asked for what to remember.
func Readable(m *Message, l *Learnt) (sentences []string) {
	if m.User <= 0 || m.Answer == "" || l.Correction.Via == ViaExplicit || l.Outcome == Secret || l.Outcome == Full {
		return nil
	}
	if _, secret := detect.Secret(m.Text); secret {
		return nil
	}
	if l.Outcome == Asked && l.Correction.Via == ViaRules {
		sentences = append(sentences, l.Correction.Text)
	}
	for _, s := range detect.Undecided(m.Text) {
		if s = block.Clean(s, MaxText); s != "" && !overlaps(s, l.Correction.Text) {
			sentences = append(sentences, s)
		}
	}
	return sentences
}

// overlaps reports whether one of the texts is in the other.
func overlaps(a, b string) bool {
	return b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}

// Refine sets the type of a correction as a model found it, in tx, while a card asks the
// person about it. The text stays as the person was shown it, and so does what is in force.
func (s *Store) Refine(ctx context.Context, tx *store.Tx, user int64, id string, kind detect.Type) error {
	c, err := s.find(ctx, tx, user, id)
	if core.KindOf(err) == core.NotFound {
		return nil
	}
	if err != nil || c.Via != ViaRules || c.Status != Pending || c.Type == kind {
		return err
	}
	c.Type, c.Class, c.Via = kind, score.ClassOf(kind, c.Domain), ViaSemantic
	return s.save(ctx, tx, &c, Event{Kind: EventRead, Session: c.Session, Model: c.Model})
}

// Propose stores a card that asks whether to keep what a model found, in tx. What is stored is
// the sentence of m. It returns Nothing for what is stored already, and for a secret.
func (s *Store) Propose(ctx context.Context, tx *store.Tx, m *Message, f Finding) (Learnt, error) {
	if _, secret := detect.Secret(f.Sentence); secret {
		return Learnt{}, nil
	}
	read := detect.Read(f.Sentence, f.Type, f.Scope)
	c := s.draft(m, &read)
	if c.Text == "" {
		return Learnt{}, nil
	}
	c.Text = block.Clean(f.Sentence, MaxText)
	c.Status, c.Card, c.Via, c.Confidence = Pending, CardReview, ViaSemantic, sureAccepted
	if same, _, err := s.compare(ctx, tx, &c, nil); err != nil || same != nil {
		return Learnt{}, err
	}
	l, err := s.learn(ctx, tx, c, m.Source)
	if core.KindOf(err) == core.Busy {
		return Learnt{}, nil
	}
	if err == nil {
		tx.OnCommit(func() { s.o.Metrics.learnt(l.Outcome) })
	}
	return l, err
}
