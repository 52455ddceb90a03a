package dispatch

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// What stands under a message that has to wait, and while it is answered then.
const (
	Waits  = "👀"
	Begins = "✍"
)

const (
	maxReactions = 256             // waiting to be set; further ones are left out
	reactTime    = 5 * time.Second // for one
	maxBehind    = 1024            // messages remembered as having to wait
	waited       = time.Second     // that a message has to wait before it is shown
	forgotten    = time.Hour       // who waited this long did so for another reason
)

// A reaction is to be put under a message, or with "" taken away; not before due.
type reaction struct {
	to    core.Address
	id    string
	emoji string
	due   time.Time
}

// Behind shows under a message that it is here and has to wait, if after a
// moment it still does. It never blocks.
func (d *Dispatcher) Behind(in *core.Inbound) {
	d.mu.Lock()
	if len(d.behind) >= maxBehind { // the long ones are known by how long they waited
		clear(d.behind)
	}
	d.behind[messageKey(in)] = false
	d.mu.Unlock()
	d.react(in.Address, in.MessageID, Waits)
}

func messageKey(in *core.Inbound) string { return in.Bot + "|" + in.Chat + "|" + in.MessageID }

// mark shows what becomes of a turn's messages, as far as they had to wait.
func (d *Dispatcher) mark(t *queue.Turn, emoji string) {
	for i := range t.Rows {
		in := &t.Rows[i]
		d.mu.Lock()
		shown, known := d.behind[messageKey(in)]
		shown = shown || !known && t.Waited >= waited && t.Waited < forgotten
		if emoji == "" || !shown {
			delete(d.behind, messageKey(in))
		}
		d.mu.Unlock()
		if shown {
			d.react(in.Address, in.MessageID, emoji)
		}
	}
}

// react hands one on to the worker, which sets them in order and is there only
// while there is something to do.
func (d *Dispatcher) react(to core.Address, id, emoji string) {
	if id == "" || to.Bot == core.APIBot {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reactions) >= maxReactions {
		return
	}
	r := reaction{to: to, id: id, emoji: emoji}
	if emoji == Waits {
		r.due = d.o.Clock.Now().Add(waited)
	}
	d.reactions = append(d.reactions, r)
	if !d.reacting {
		d.reacting = true
		go d.setReactions()
	}
}

func (d *Dispatcher) setReactions() {
	for {
		d.mu.Lock()
		if len(d.reactions) == 0 {
			d.reacting = false
			d.mu.Unlock()
			return
		}
		r := d.reactions[0]
		d.reactions = d.reactions[1:]
		d.mu.Unlock()
		if r.emoji == Waits && !d.stillBehind(r) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), reactTime)
		if err := d.o.Screen.React(ctx, r.to, r.id, r.emoji); err != nil {
			d.o.Log.DebugContext(ctx, "a reaction", "bot", r.to.Bot, "err", err)
		}
		cancel()
	}
}

// stillBehind waits until r is due and reports whether its message still waits.
func (d *Dispatcher) stillBehind(r reaction) bool {
	key := r.to.Bot + "|" + r.to.Chat + "|" + r.id
	there := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, ok := d.behind[key]
		return ok
	}
	for there() {
		wait := r.due.Sub(d.o.Clock.Now())
		if wait <= 0 {
			d.mu.Lock()
			defer d.mu.Unlock()
			_, ok := d.behind[key]
			if ok {
				d.behind[key] = true
			}
			return ok
		}
		<-d.o.Clock.After(min(wait, waited))
	}
	return false
}
