package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/core/memory/block"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/store"
)

const (
	maxPersons = 32   // whose corrections are kept in memory
	maxNone    = 4096 // of whom is kept that they have none
	maxMeant   = 256  // corrections of one person that are compared by their meaning, the newest
)

// A person is what applies for one user, as it was read. It is not changed.
type person struct {
	all    map[string]*Correction
	meant  []*Correction // those that are chosen by what they are about, the newest first
	index  *score.Index
	loaded time.Time
}

// nobody is who has no corrections, as most have.
var nobody = &person{index: score.New(nil)}

// changed drops what is loaded of a user, once the transaction commits.
func (s *Store) changed(tx *store.Tx, user int64) {
	tx.OnCommit(func() {
		s.mu.Lock()
		s.changes++
		delete(s.persons, user)
		delete(s.none, user)
		s.mu.Unlock()
	})
}

// load returns what is in force of a user.
func (s *Store) load(ctx context.Context, user int64) (*person, error) {
	s.mu.Lock()
	p, changes := s.persons[user], s.changes
	if s.none[user] {
		p = nobody
	}
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	rows, err := s.rows(ctx, s.o.DB, `WHERE user_id = $1 AND status = 'active' AND corrective_instruction <> '' ORDER BY number`, user)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.none) >= maxNone {
			clear(s.none)
		}
		if s.changes == changes && !store.OnServer(s.o.DB.Path()) { // there another gateway may learn something
			s.none[user] = true
		}
		return nobody, nil
	}
	p = &person{all: make(map[string]*Correction, len(rows)), loaded: s.o.Clock.Now()}
	entries := make([]score.Entry, 0, len(rows))
	for i := range rows {
		c := &rows[i]
		p.all[c.ID] = c
		entries = append(entries, score.Entry{Key: c.ID, Text: c.line() + "\n", Words: c.Canonical + " " + c.Text, Type: c.Type, Class: c.Class, Confidence: c.Confidence,
			Importance: c.importance(), Pinned: c.Pinned, Everywhere: c.everywhere(), At: c.UpdatedAt})
	}
	for i := range rows {
		if e := &entries[i]; !e.Pinned && !e.Everywhere {
			p.meant = append(p.meant, &rows[i])
		}
	}
	slices.SortStableFunc(p.meant, func(a, b *Correction) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	p.index = score.New(entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == changes {
		if len(s.persons) >= maxPersons {
			s.evict()
		}
		s.persons[user] = p
	}
	return p, nil
}

// evict drops the person who was loaded first. s.mu is held.
func (s *Store) evict() {
	oldest := int64(0)
	for user, p := range s.persons {
		if oldest == 0 || p.loaded.Before(s.persons[oldest].loaded) {
			oldest = user
		}
	}
	delete(s.persons, oldest)
}

var importance = map[detect.Type]float64{detect.Instruction: .8, detect.Failure: .8, detect.Preference: .6, detect.Decision: .6, detect.Factual: .5}

// importance grows with use, and with being ignored.
func (c *Correction) importance() float64 {
	return min(1, importance[c.Type]+.02*float64(min(c.Uses, 5))+.05*float64(c.Emphasis))
}

// A Place is where an answer is given.
type Place struct {
	Session string
	Project string // "" for none
}

// in reports whether c applies in a place.
func (p Place) in(c *Correction) bool {
	switch c.Scope {
	case detect.Conversation:
		return c.ScopeRef == p.Session
	case detect.Project:
		return p.Project != "" && c.ScopeRef == p.Project
	}
	return true
}

// Recalled is what belongs into a prompt.
type Recalled struct {
	Standing []Correction // for every answer: they change seldom, so that prompts can be cached
	Relevant []Correction // for this message
}

// IDs returns the ids, in the order of the prompt.
func (r *Recalled) IDs() []string {
	out := make([]string, 0, len(r.Standing)+len(r.Relevant))
	for _, c := range slices.Concat(r.Standing, r.Relevant) {
		out = append(out, c.ID)
	}
	return out
}

// Recall chooses what of a user's memory belongs into the prompt for a message, within a
// model's window in tokens (0 is unknown).
func (s *Store) Recall(ctx context.Context, user int64, at Place, text string, window int) (Recalled, error) {
	var out Recalled
	if user <= 0 {
		return out, nil
	}
	p, err := s.load(ctx, user)
	if err != nil || p.index.Len() == 0 {
		return out, err
	}
	var taken []*Correction
	budget := score.Budget(window)
	near := s.near(ctx, user, at, p, text)
	for _, t := range p.index.SelectFrom(func(id string) bool { return at.in(p.all[id]) }, near, text, s.o.Clock.Now(), budget-score.Tokens(block.Frame)) {
		taken = append(taken, p.all[t.Key])
	}
	for {
		out = divided(taken)
		if standing, relevant := out.Blocks(); len(taken) == 0 || score.Tokens(standing+relevant) <= budget {
			return out, nil
		}
		taken = taken[:len(taken)-1] // the least useful makes room for the heading of a second block
	}
}

// divided returns corrections by the blocks that they are in.
func divided(taken []*Correction) (out Recalled) {
	for _, c := range narrowest(taken) {
		if c.Pinned || c.everywhere() {
			out.Standing = append(out.Standing, *c)
		} else {
			out.Relevant = append(out.Relevant, *c)
		}
	}
	return out
}

// near returns by id how near corrections are to a message in meaning; nil where that is not
// known, and for a message with a secret, which no server gets.
func (s *Store) near(ctx context.Context, user int64, at Place, p *person, text string) map[string]float64 {
	if _, secret := detect.Secret(text); s.o.Near == nil || secret || strings.TrimSpace(text) == "" {
		return nil
	}
	var ids, texts []string
	for _, c := range p.meant {
		if at.in(c) && len(ids) < maxMeant {
			ids, texts = append(ids, c.ID), append(texts, strings.TrimSpace(c.About+"\n"+c.Text))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	near := s.o.Near(ctx, user, text, texts)
	out := make(map[string]float64, len(near)) // at most maxMeant
	for i := range near {
		out[ids[i]] = near[i]
	}
	return out
}

// narrowest returns corrections by number, without those that one of a narrower scope
// contradicts.
func narrowest(all []*Correction) []*Correction {
	rank := map[detect.Scope]int{detect.Global: 0, detect.Project: 1, detect.Conversation: 2}
	out := slices.DeleteFunc(slices.Clone(all), func(c *Correction) bool {
		return slices.ContainsFunc(all, func(x *Correction) bool {
			return rank[x.Scope] > rank[c.Scope] && contradicts(x, c, x.Checks())
		})
	})
	slices.SortFunc(out, func(a, b *Correction) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// line returns c as one line of a prompt.
func (c *Correction) line() string {
	return block.Line{Number: c.Number, Type: c.Type, Scope: c.Scope, Text: c.Text, About: c.About, At: c.CreatedAt, Emphasis: c.Emphasis, Broken: c.Broken()}.String()
}

// Blocks returns r as delimited blocks for a prompt, "" for none: relevant is behind standing.
func (r *Recalled) Blocks() (standing, relevant string) {
	return block.Of(linesOf(r.Standing), false), block.Of(linesOf(r.Relevant), len(r.Standing) > 0)
}

func linesOf(all []Correction) []string {
	lines := make([]string, len(all))
	for i := range all {
		lines[i] = all[i].line()
	}
	return lines
}
