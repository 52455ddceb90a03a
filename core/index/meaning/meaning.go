// Package meaning compares short texts by what they mean, with the model that embeds the
// index: names of domains, and what is remembered of a user with a message. Vectors are kept
// in memory alone.
package meaning

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/vector"
	"gatehouse/core/llm/embed"
)

// Limits.
const (
	MaxOthers  = 512                    // texts that one is compared with; more are not
	maxText    = 1000                   // characters of a text that the model gets
	maxFloats  = 4 << 20                // that are kept in all: 16 MiB
	maxOwners  = 1000                   // of them
	batch      = 64                     // new texts of a call, where the model is fast
	askFor     = 2 * time.Second        // for a call
	slow       = 500 * time.Millisecond // of a call: the next has half as many new texts
	fast       = 150 * time.Millisecond // of a call: the next has twice as many
	firstQuiet = 30 * time.Second       // after a failure; each further one doubles it
	lastQuiet  = 10 * time.Minute
)

// anchors are texts about different things. Models differ in how near texts are that have
// nothing in common: the middle of a text's nearness to these is taken for that.
var anchors = []string{
	"The ferry leaves at noon when the wind is weak.",
	"Bread dough rises slowly in a cold kitchen.",
	"The committee postponed its vote on the new bridge.",
	"Penguins keep their eggs warm between their feet.",
	"The guitar needs new strings before the concert.",
	"A falling price does not always mean a bargain.",
	"The goalkeeper was injured in the second half.",
}

// Options for New. All are required.
type Options struct {
	// Vectors has the model embed texts for a user, within the user's budget.
	Vectors func(ctx context.Context, user int64, texts []string) ([][]float32, error)
	// Search and Passage are what the model expects in front of a text that is compared, and
	// of those that it is compared with; may be "".
	Search, Passage string
	Clock           core.Clock
	Log             *slog.Logger
}

// A Comparer compares texts. It is safe for concurrent use.
type Comparer struct {
	o Options

	mu     sync.Mutex
	kept   map[int64]*textCache // by owner
	floats int                  // in kept
	uses   uint64               // counts calls, for textCache.used
	size   int                  // of a batch
	failed bool                 // the last call
	pause                       // after the model has failed for all
}

// A textCache is the vectors of one owner's texts.
type textCache struct {
	vectors map[key][]float32 // of length 1; empty: the model refuses the text
	used    uint64
	most    int // new texts of a call, as the model has refused one of more; 0: as for all
	pause       // after the model has failed with the owner's texts alone
}

// A pause is a time in which the model is not asked.
type pause struct {
	quiet time.Duration
	until time.Time
}

// extend begins a pause, twice as long as the one before it.
func (p *pause) extend(now time.Time) {
	p.quiet = min(max(firstQuiet, 2*p.quiet), lastQuiet)
	p.until = now.Add(p.quiet)
}

type key [16]byte

func keyOf(text string) (k key) {
	sum := sha256.Sum256([]byte(text))
	copy(k[:], sum[:])
	return k
}

// New returns a Comparer.
func New(o Options) *Comparer {
	return &Comparer{o: o, kept: map[int64]*textCache{}, size: batch}
}

// Common is the owner of texts that are of no user.
const Common = 0

// Near returns how near a user's text is in meaning to each of others, from 0, as texts that
// have nothing in common, to 1. It is nil, and words alone are to be compared, where the model
// does not answer within two seconds, refuses the text, has failed recently, or the user's
// budget is used up. The vectors of others are kept for their owner, the user or Common; as long
// as the model has not read all of them, those that it has not are at 0, as are those that it
// refuses.
func (c *Comparer) Near(ctx context.Context, owner, user int64, text string, others []string) []float64 {
	text = core.CutRunes(text, maxText)
	if text == "" || len(others) == 0 {
		return nil
	}
	others = others[:min(len(others), MaxOthers)]
	s, fresh, ok := c.missing(owner, others)
	if !ok {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	all, err := c.ask(short, user, text, fresh)
	if ofTexts(err) && len(fresh) > 0 { // of the text, or of what is fresh?
		own, alone := c.ask(short, user, text, nil)
		if alone == nil {
			c.refuse(owner, s, fresh)
			return c.compare(owner, s, own[0], others, nil, nil)
		}
		err = alone
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		c.fail(err, s)
		return nil
	}
	c.mu.Lock()
	c.failed, c.pause, s.pause = false, pause{}, pause{}
	if s.most *= min(2, 1+len(fresh)); s.most > batch {
		s.most = 0
	}
	c.mu.Unlock()
	return c.compare(owner, s, all[0], others, fresh, all[1:])
}

// missing returns the owner's vectors and the texts that a call is to embed, the anchors before
// the owner's; not ok while the model is not asked.
func (c *Comparer) missing(owner int64, others []string) (s *textCache, fresh []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s = c.cacheOf(owner)
	if now := c.o.Clock.Now(); now.Before(c.until) || now.Before(s.until) {
		return nil, nil, false
	}
	add := func(s *textCache, texts []string, most int) {
		for _, t := range texts {
			if s.vectors[keyOf(t)] == nil && len(fresh) < most && !slices.Contains(fresh, t) {
				fresh = append(fresh, t)
			}
		}
	}
	add(c.cacheOf(Common), anchors, len(anchors))
	add(s, others, len(fresh)+c.size)
	if s.most > 0 {
		fresh = fresh[:min(len(fresh), s.most)]
	}
	return s, fresh, true
}

// ask has the model embed a text and what is fresh. It returns vectors of length 1.
func (c *Comparer) ask(ctx context.Context, user int64, text string, fresh []string) (all [][]float32, err error) {
	texts := make([]string, 0, len(fresh)+1)
	texts = append(texts, c.o.Search+text)
	for _, t := range fresh {
		texts = append(texts, c.o.Passage+core.CutRunes(t, maxText))
	}
	began := c.o.Clock.Now()
	all, err = c.o.Vectors(ctx, user, texts)
	if err == nil && len(all) != len(texts) {
		err = wrong("the model returns too few vectors")
	}
	for i := range all {
		v, ok := vector.Normal(all[i])
		if all[i] = v; err == nil && (!ok || len(v) != len(all[0])) {
			err = wrong("a vector has no length, or another one than the others")
		}
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch took := c.o.Clock.Now().Sub(began); {
	case took > slow:
		c.size = max(1, c.size/2)
	case took < fast && len(fresh) > 0:
		c.size = min(batch, 2*c.size)
	}
	return all, nil
}

// wrong returns the error of an answer without a vector for each text.
func wrong(text string) error { return &embed.Fault{Text: text, Status: http.StatusOK} }

// ofTexts reports whether one of the texts of a call may be why it failed.
func ofTexts(err error) bool {
	f, ok := errors.AsType[*embed.Fault](err)
	return ok && f.OfTexts()
}

// refuse notes that the model does not embed what is fresh: the owner's next call has half of
// it, and one text alone is not asked about again. Without the anchors there is nothing to ask.
func (c *Comparer) refuse(owner int64, s *textCache, fresh []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.most = max(1, len(fresh)/2)
	switch {
	case len(fresh) > 1 || c.kept[owner] != s:
	case slices.Contains(anchors, fresh[0]):
		s.extend(c.o.Clock.Now())
	default:
		c.keep(owner, fresh[0], []float32{})
	}
}

// ownerOf returns whose a text of an owner is: anchors are common.
func ownerOf(text string, owner int64) int64 {
	if slices.Contains(anchors, text) {
		return Common
	}
	return owner
}

// fail notes why the model did not answer. What is about a user's budget or a text alone
// keeps no one else from asking.
func (c *Comparer) fail(err error, s *textCache) {
	f, ok := errors.AsType[*embed.Fault](err)
	if core.KindOf(err) == core.Busy || ok && f.Refused() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := !ofTexts(err); all && !c.failed || !all && s.quiet == 0 {
		c.o.Log.Warn("the memory and names of domains are compared by words alone", "err", err)
	}
	if ofTexts(err) {
		s.extend(c.o.Clock.Now())
		return
	}
	c.failed, c.size = true, max(1, c.size/2)
	c.extend(c.o.Clock.Now())
}

// compare keeps the vectors of what is fresh, and returns the nearness of own to others. It does
// neither if what was kept of the owner, from, was dropped since the model was asked.
func (c *Comparer) compare(owner int64, from *textCache, own []float32, others, fresh []string, vectors [][]float32) []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[owner] != from {
		return nil
	}
	for i, t := range fresh {
		c.keep(ownerOf(t, owner), t, vectors[i])
	}
	common, s := c.cacheOf(Common), c.cacheOf(owner)
	var apart []float64
	for _, t := range anchors {
		if v := common.vectors[keyOf(t)]; len(v) == len(own) {
			apart = append(apart, cosine(own, v))
		}
	}
	if len(apart) == 0 {
		return nil
	}
	slices.Sort(apart)
	base := min(max(0, apart[len(apart)/2]), .99)
	out := make([]float64, len(others))
	for i, t := range others {
		if v := s.vectors[keyOf(t)]; len(v) == len(own) {
			out[i] = min(1, max(0, (cosine(own, v)-base)/(1-base)))
		}
	}
	return out
}

// cacheOf returns an owner's vectors; c.mu is held.
func (c *Comparer) cacheOf(owner int64) *textCache {
	s := c.kept[owner]
	if s == nil {
		if oldest, found := c.oldest(owner); found && len(c.kept) >= maxOwners {
			c.drop(oldest) // one without vectors has a place, too
		}
		s = &textCache{vectors: map[key][]float32{}}
		c.kept[owner] = s
	}
	c.uses++
	s.used = c.uses
	return s
}

// keep keeps a vector; c.mu is held. Where there are too many, those of the owner whose were
// used the longest ago are dropped.
func (c *Comparer) keep(owner int64, text string, v []float32) {
	s, k := c.cacheOf(owner), keyOf(text)
	if len(s.vectors) >= 2*MaxOthers { // most are of texts that were changed
		c.drop(owner)
		s = c.cacheOf(owner)
	}
	c.floats += len(v) - len(s.vectors[k])
	s.vectors[k] = v
	for c.floats > maxFloats {
		oldest, found := c.oldest(owner)
		if !found {
			oldest = cmp.Or(owner, Common)
		}
		c.drop(oldest)
		if !found {
			return
		}
	}
}

// oldest returns who but this owner has used theirs the longest ago; c.mu is held.
func (c *Comparer) oldest(but int64) (owner int64, found bool) {
	for id, x := range c.kept {
		if id != but && id != Common && (!found || x.used < c.kept[owner].used) {
			owner, found = id, true
		}
	}
	return owner, found
}

func (c *Comparer) drop(owner int64) {
	if s := c.kept[owner]; s != nil {
		for _, v := range s.vectors {
			c.floats -= len(v)
		}
		delete(c.kept, owner)
	}
}

// Forget drops what is kept of a user.
func (c *Comparer) Forget(user int64) {
	if user == Common {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(user)
}

// cosine returns the cosine of the angle between two vectors of length 1.
func cosine(a, b []float32) float64 {
	sum := float32(0)
	for i, x := range a {
		sum += x * b[i]
	}
	return float64(sum)
}
