package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// Reactions under a message that had to wait: while it waits, and while it is
// answered.
const (
	Waits  = "👀"
	Begins = "✍"
)

const (
	maxReactions = 256             // waiting to be set; further ones are left out
	reactTime    = 5 * time.Second // for one
	maxBehind    = 1024            // messages that are kept as waiting
	waited       = time.Second     // before a message is shown to wait
	forgotten    = time.Hour       // a longer wait had another reason
)

// removePause is how long a removal that the platform's rate limit left no room for waits
// until it is tried again, and twice as long after each further try, up to removeTries.
const (
	removePause = 5 * time.Second
	removeTries = 5
)

// A reaction is to be put under a message, or removed with ""; not before due. The
// acknowledgement of a button, which has no id, takes its turn among them.
type reaction struct {
	to    core.Address
	id    string
	emoji string
	due   time.Time
	tries int // of a removal, that failed
	show  func(context.Context) error
}

// Reactions shows under messages that they wait or are being answered, and ends the progress that
// a button shows whose press was refused. It is safe for concurrent use and never blocks.
type Reactions struct {
	screen Screen
	clock  core.Clock
	log    *slog.Logger

	mu      sync.Mutex
	pending []reaction      // in order; at most maxReactions
	later   []reaction      // removals to be tried again; at most maxReactions
	bell    chan struct{}   // pending has grown
	setting bool            // a goroutine sets them
	behind  map[string]bool // messages that wait, and whether that was shown; at most maxBehind
}

func newReactions(screen Screen, clock core.Clock, log *slog.Logger) *Reactions {
	return &Reactions{screen: screen, clock: clock, log: log, behind: map[string]bool{}, bell: make(chan struct{}, 1)}
}

// Behind shows under a message that it waits, if it still does after a moment.
func (s *Reactions) Behind(in *core.Inbound) {
	s.mu.Lock()
	if len(s.behind) >= maxBehind { // mark knows those that waited long
		clear(s.behind)
	}
	s.behind[messageKey(in.Address, in.MessageID)] = false
	s.mu.Unlock()
	s.react(in.Address, in.MessageID, Waits)
}

func messageKey(to core.Address, id string) string { return to.Bot + "|" + to.Chat + "|" + id }

// mark adds emoji under the messages of a turn that had to wait.
func (s *Reactions) mark(t *queue.Turn, emoji string) {
	for i := range t.Rows {
		in := &t.Rows[i]
		key := messageKey(in.Address, in.MessageID)
		s.mu.Lock()
		shown, known := s.behind[key]
		shown = shown || !known && t.Waited >= waited && t.Waited < forgotten
		if emoji == "" || !shown {
			delete(s.behind, key)
		}
		s.mu.Unlock()
		if shown {
			s.react(in.Address, in.MessageID, emoji)
		}
	}
}

// Refused acknowledges a pressed button that was refused, without a text: the chat got a notice.
func (s *Reactions) Refused(press *core.Inbound) {
	if press.Callback != nil {
		s.add(reaction{to: press.Address, show: func(ctx context.Context) error {
			return s.screen.Acknowledge(ctx, press.Address, press.Callback.ID, "")
		}})
	}
}

// react adds a reaction for the goroutine that sets them in order.
func (s *Reactions) react(to core.Address, id, emoji string) {
	if id == "" || core.OfSession(to.Bot) {
		return
	}
	r := reaction{to: to, id: id, emoji: emoji, show: func(ctx context.Context) error { return s.screen.React(ctx, to, id, emoji) }}
	if emoji == Waits {
		r.due = s.clock.Now().Add(waited)
	}
	s.add(r)
}

// add has the goroutine set r. That goroutine exists only while there are any.
func (s *Reactions) add(r reaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxReactions {
		return
	}
	s.pending = append(s.pending, r)
	s.later = slices.DeleteFunc(s.later, func(old reaction) bool { return old.to == r.to && old.id == r.id })
	select {
	case s.bell <- struct{}{}:
	default:
	}
	if !s.setting {
		s.setting = true
		go s.set()
	}
}

func (s *Reactions) set() {
	for {
		r, wait, ok := s.next()
		switch {
		case !ok && wait == 0:
			return
		case !ok:
			select {
			case <-s.clock.After(wait):
			case <-s.bell:
			}
			continue
		case r.emoji == Waits && !s.stillBehind(r):
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), reactTime)
		if err := r.show(ctx); err != nil {
			s.log.DebugContext(ctx, "set a reaction", "bot", r.to.Bot, "button", r.id == "", "err", err)
			s.removeLater(r, err)
		}
		cancel()
	}
}

// next returns the next reaction to set. Without one it returns how long until a removal
// is tried again, or 0 where none waits: then the goroutine ends.
func (s *Reactions) next() (r reaction, wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		r, s.pending = s.pending[0], s.pending[1:]
		return r, 0, true
	}
	if len(s.later) == 0 {
		s.setting = false
		return r, 0, false
	}
	first := 0
	for i := range s.later {
		if s.later[i].due.Before(s.later[first].due) {
			first = i
		}
	}
	r = s.later[first]
	if wait = r.due.Sub(s.clock.Now()); wait > 0 {
		return r, wait, false
	}
	s.later = slices.Delete(s.later, first, first+1)
	return r, 0, true
}

// removeLater keeps a removal for which there was no room now: the emoji would stay under
// an answered message. A later reaction of the message replaces it.
func (s *Reactions) removeLater(r reaction, err error) {
	r.tries++
	if r.id == "" || r.emoji != "" || core.KindOf(err) != core.Busy || r.tries >= removeTries {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := slices.ContainsFunc(s.pending, func(p reaction) bool { return p.to == r.to && p.id == r.id })
	if !newer && len(s.later) < maxReactions {
		r.due = s.clock.Now().Add(removePause << (r.tries - 1))
		s.later = append(s.later, r)
	}
}

// stillBehind waits until r is due, and reports whether its message still waits.
func (s *Reactions) stillBehind(r reaction) bool {
	key := messageKey(r.to, r.id)
	waits := func(shown bool) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, ok := s.behind[key]
		if ok && shown {
			s.behind[key] = true
		}
		return ok
	}
	for waits(false) {
		wait := r.due.Sub(s.clock.Now())
		if wait <= 0 {
			return waits(true)
		}
		<-s.clock.After(min(wait, waited))
	}
	return false
}
