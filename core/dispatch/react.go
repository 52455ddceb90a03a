package dispatch

import (
	"context"
	"log/slog"
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

// A reaction is to be put under a message, or removed with ""; not before due.
type reaction struct {
	to    core.Address
	id    string
	emoji string
	due   time.Time
}

// Reactions shows under messages that they wait or are being answered. It is
// safe for concurrent use and never blocks.
type Reactions struct {
	screen Screen
	clock  core.Clock
	log    *slog.Logger

	mu      sync.Mutex
	pending []reaction      // in order; at most maxReactions
	setting bool            // a goroutine sets them
	behind  map[string]bool // messages that wait, and whether that was shown; at most maxBehind
}

func newReactions(screen Screen, clock core.Clock, log *slog.Logger) *Reactions {
	return &Reactions{screen: screen, clock: clock, log: log, behind: map[string]bool{}}
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

// react adds a reaction for the goroutine that sets them in order. That
// goroutine exists only while there are any.
func (s *Reactions) react(to core.Address, id, emoji string) {
	if id == "" || core.OfSession(to.Bot) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxReactions {
		return
	}
	r := reaction{to: to, id: id, emoji: emoji}
	if emoji == Waits {
		r.due = s.clock.Now().Add(waited)
	}
	s.pending = append(s.pending, r)
	if !s.setting {
		s.setting = true
		go s.set()
	}
}

func (s *Reactions) set() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.setting = false
			s.mu.Unlock()
			return
		}
		r := s.pending[0]
		s.pending = s.pending[1:]
		s.mu.Unlock()
		if r.emoji == Waits && !s.stillBehind(r) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), reactTime)
		if err := s.screen.React(ctx, r.to, r.id, r.emoji); err != nil {
			s.log.DebugContext(ctx, "set a reaction", "bot", r.to.Bot, "err", err)
		}
		cancel()
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
