package agent

import (
	"container/list"
	"sync"

	"gatehouse/core"
)

// Bounds of Overheard: with maxContext they say what a model is notified of a
// group's talk.
const (
	maxOverheard      = 50  // lines of a chat
	maxOverheardChats = 500 // the ones that were used last
	maxOverheardLine  = 500 // characters of a line
)

// Overheard holds messages in groups that were not addressed to the bot, in memory only.
// The zero value is ready to use. It is safe for concurrent use.
type Overheard struct {
	mu    sync.Mutex
	chats map[string]*list.Element // of *talkOf, at most maxOverheardChats
	used  list.List                // the last used in front
}

// talkOf is one chat's.
type talkOf struct {
	key, place string
	lines      []Quoted // at most maxOverheard
}

// Add stores a message of an address, cut to its limit.
func (o *Overheard) Add(at core.Address, q Quoted) {
	if n := 0; len(q.Text) > maxOverheardLine {
		for i := range q.Text {
			if n++; n > maxOverheardLine {
				q.Text = q.Text[:i] + "…"
				break
			}
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.chats == nil {
		o.chats = map[string]*list.Element{}
	}
	key := core.LaneOf(at)
	e := o.chats[key]
	if e == nil {
		if o.used.Len() >= maxOverheardChats {
			last := o.used.Back()
			delete(o.chats, last.Value.(*talkOf).key)
			o.used.Remove(last)
		}
		e = o.used.PushFront(&talkOf{key: key})
		o.chats[key] = e
	}
	o.used.MoveToFront(e)
	t := e.Value.(*talkOf)
	t.place = at.Bot + "|" + at.Place
	if t.lines = append(t.lines, q); len(t.lines) > maxOverheard {
		t.lines = append(t.lines[:0], t.lines[len(t.lines)-maxOverheard:]...)
	}
}

// Last returns the newest lines of a chat that a prompt holds, oldest first.
func (o *Overheard) Last(at core.Address) []Quoted {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.chats[core.LaneOf(at)]
	if e == nil {
		return nil
	}
	lines := e.Value.(*talkOf).lines
	return append([]Quoted(nil), lines[max(0, len(lines)-maxContext):]...)
}

// Clear drops everything, in every chat, because lines identify their authors by name
// only.
func (o *Overheard) Clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.chats)
	o.used.Init()
}

// Forget drops what was written in a chat, and with all in every chat of its group.
func (o *Overheard) Forget(at core.Address, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, e := range o.chats {
		if key == core.LaneOf(at) || all && e.Value.(*talkOf).place == at.Bot+"|"+at.Place {
			o.used.Remove(e)
			delete(o.chats, key)
		}
	}
}
