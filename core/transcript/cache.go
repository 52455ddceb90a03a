package transcript

import (
	"container/list"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
)

// Bounds of what is kept in memory.
const (
	cacheBytes = 32 << 20         // all tails together: 500 chats with 40 turns of two short messages each
	tailBytes  = 4 << 20          // one tail: 50,000 tokens even of very short messages; older ones are read from the file
	cacheIdle  = 30 * time.Minute // since a tail was last used
	cacheRest  = 2 * time.Minute  // the same when memory is given back
)

// A tail is the newest part of a conversation. Messages are appended and never changed,
// so a copy of the struct is a snapshot. One conversation at a time appends into the
// slice's spare capacity (cache.lend); the others' slices have none and are copied.
type tail struct {
	lines.Part

	listed bool  // the search index has what is in front of upTo, as far as is known here
	upTo   int64 // a place in the file
}

func (t *tail) add(m Message) {
	t.Messages = append(t.Messages, m)
	t.Size += m.Size()
	t.Memory += m.Memory()
}

// trim drops the oldest turns when they take more than limit bytes of memory,
// down to three quarters of it so that this is not done in every turn. A last
// turn that is larger is not kept.
func (t *tail) trim(limit int) {
	if t.Memory <= limit {
		return
	}
	drop := 0
	limit -= limit / 4
	for i := range t.Messages {
		if t.Memory <= limit && t.Messages[i].Begins() {
			break
		}
		t.Memory -= t.Messages[i].Memory()
		t.Size -= t.Messages[i].Size()
		drop = i + 1
	}
	if drop > 0 {
		t.Messages, t.Whole = append([]Message(nil), t.Messages[drop:]...), false
	}
}

// matches reports whether the file is still as the tail knows it.
func (t *tail) matches(st fs.FileInfo) bool {
	return t.Info != nil && os.SameFile(t.Info, st) && t.Info.Size() == st.Size() && t.Info.ModTime().Equal(st.ModTime())
}

// cache keeps tails of recent conversations, least recently used out first.
type cache struct {
	clock core.Clock

	mu     sync.Mutex
	order  *list.List // of *entry, most recent first
	byID   map[string]*list.Element
	memory int
}

type entry struct {
	id   string
	name string // the transcript
	tail tail
	lent bool // the room behind the messages is in use
	used time.Time
}

func newCache(clock core.Clock) *cache {
	return &cache{clock: clock, order: list.New(), byID: map[string]*list.Element{}}
}

func (c *cache) find(id string) (name string, t tail, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return "", tail{}, false
	}
	en := e.Value.(*entry)
	en.used = c.clock.Now()
	c.order.MoveToFront(e)
	t = en.tail
	t.Messages = t.Messages[:len(t.Messages):len(t.Messages)]
	return en.name, t, true
}

// lend gives have, which find has returned, with the room behind it, unless
// someone else has that; then have stays what it is.
func (c *cache) lend(id string, have []Message) []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil || len(have) == 0 {
		return have
	}
	en := e.Value.(*entry)
	if en.lent || len(en.tail.Messages) != len(have) || &en.tail.Messages[0] != &have[0] {
		return have
	}
	en.lent = true
	return en.tail.Messages
}

func (c *cache) put(id, name string, t tail) {
	t.trim(tailBytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
	c.byID[id] = c.order.PushFront(&entry{id: id, name: name, tail: t, used: c.clock.Now()})
	c.memory += t.Memory + len(id) + len(name) + 512
	c.evict()
}

func (c *cache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.remove(e)
	}
}

func (c *cache) remove(e *list.Element) {
	en := c.order.Remove(e).(*entry)
	delete(c.byID, en.id)
	c.memory -= en.tail.Memory + len(en.id) + len(en.name) + 512
}

// evict holds mu.
func (c *cache) evict() { c.evictIdle(cacheIdle) }

// evictIdle drops the tails that were not used for idle, and the oldest beyond
// cacheBytes. It holds mu.
func (c *cache) evictIdle(idle time.Duration) {
	now := c.clock.Now()
	for e := c.order.Back(); e != nil && (c.memory > cacheBytes || now.Sub(e.Value.(*entry).used) >= idle); e = c.order.Back() {
		c.remove(e)
	}
}

// Evict drops from memory the conversations that no one used for 30 minutes
// and returns how many stay. A conversation that is being used does it too; call
// this from upkeep for the quiet hours.
func (s *Files) Evict() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.evict()
	return s.cache.order.Len()
}

// Rest drops from memory the conversations that no one used for two minutes; the next
// turn reads its conversation's end from the file. Call it when there is little to do.
func (s *Files) Rest() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.evictIdle(cacheRest)
	kept := make(map[string]*list.Element, len(s.cache.byID)) // a map never shrinks
	maps.Copy(kept, s.cache.byID)
	s.cache.byID = kept
}
