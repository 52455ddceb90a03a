package discordtest

import (
	"context"
	"time"

	"gatehouse/core"
)

// A ChangeKind is what became visible.
type ChangeKind string

const (
	ChangeMessage     ChangeKind = "message"     // a new message
	ChangeEdit        ChangeKind = "edit"        // a message is other than before
	ChangeDelete      ChangeKind = "delete"      // MessageID is gone
	ChangeTyping      ChangeKind = "typing"      // somebody writes; a message of theirs ends it too
	ChangeReaction    ChangeKind = "reaction"    // Message has other reactions
	ChangeInteraction ChangeKind = "interaction" // a pressed button, command or dialog has another state
	ChangeUser        ChangeKind = "user"        // a person is new or renamed
	ChangeGuild       ChangeKind = "guild"       // a guild is new
	ChangeChannel     ChangeKind = "channel"     // a channel or thread is new
	ChangeBot         ChangeKind = "bot"         // User went online or offline, see Status
	ChangeCommands    ChangeKind = "commands"    // a bot has other commands
)

// A Change is one thing that people can see from At on.
type Change struct {
	Seq         uint64       `json:"seq"` // ascends from 1
	At          time.Time    `json:"at"`
	Kind        ChangeKind   `json:"kind"`
	Guild       ID           `json:"guild,omitzero"`
	Channel     ID           `json:"channel,omitzero"`
	Name        string       `json:"name,omitempty"`
	Message     *Message     `json:"message,omitempty"`
	MessageID   ID           `json:"message_id,omitzero"`
	Typing      *Typing      `json:"typing,omitempty"`
	Interaction *Interaction `json:"interaction,omitempty"`
	User        *Account     `json:"user,omitempty"`
	Status      string       `json:"status,omitempty"`
}

// emit tells every watcher. Called under the lock.
func (s *Server) emit(c Change) {
	s.changes++
	if len(s.watchers) == 0 {
		return
	}
	c.Seq = s.changes
	if c.At.IsZero() {
		c.At = s.clock.Now()
	}
	for _, f := range s.watchers {
		f(c)
	}
}

// emitMessage tells of a message, which is only copied where somebody watches.
func (s *Server) emitMessage(kind ChangeKind, c *channel, m *message, at time.Time) {
	if len(s.watchers) == 0 {
		s.changes++
		return
	}
	view := s.view(c, m)
	s.emit(Change{Kind: kind, Guild: c.guild, Channel: c.id, Message: &view, At: at})
}

// Watch calls f for every change, at once and in order, before the bot has its
// answer. f must return quickly and must not call the server. stop ends it.
func (s *Server) Watch(f func(Change)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchID++
	id := s.watchID
	s.watchers[id] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

// Subscribe is Watch as a channel with a buffer. The channel closes when ctx
// ends, the server closes, or the reader falls behind by more than the buffer:
// whoever reads on must look at the history again.
func (s *Server) Subscribe(ctx context.Context, buffer int) <-chan Change {
	c := make(chan Change, max(buffer, 1))
	s.mu.Lock()
	s.watchID++
	id := s.watchID
	leave := func() { // under the lock
		if s.watchers[id] != nil {
			delete(s.watchers, id)
			close(c)
		}
	}
	s.watchers[id] = func(v Change) {
		select {
		case c <- v:
		default:
			leave()
		}
	}
	s.mu.Unlock()
	s.loops.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.closing:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		leave()
	})
	return c
}

// AwaitMessage returns the newest message of a channel that match accepts: one
// that stands there, or one that comes or is edited into it before ctx ends.
func (s *Server) AwaitMessage(ctx context.Context, in ID, match func(Message) bool) (Message, error) {
	for {
		sub, cancel := context.WithCancel(ctx)
		changes := s.Subscribe(sub, 1024)
		history := s.History(in)
		for i := len(history) - 1; i >= 0; i-- {
			if match(history[i]) {
				cancel()
				return history[i], nil
			}
		}
		for c := range changes {
			if c.Message != nil && c.Channel == in && match(*c.Message) {
				cancel()
				return *c.Message, nil
			}
		}
		cancel()
		select {
		case <-ctx.Done():
			return Message{}, ctx.Err()
		case <-s.closing:
			return Message{}, core.Errorf(core.Busy, "the simulator was closed")
		default: // fell behind: look again
		}
	}
}
