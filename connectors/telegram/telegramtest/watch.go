package telegramtest

import (
	"context"
	"time"

	"gatehouse/core"
)

// A ChangeKind is what became visible.
type ChangeKind string

const (
	ChangeMessage  ChangeKind = "message"  // a new message
	ChangeEdit     ChangeKind = "edit"     // a message has other text or buttons
	ChangeDelete   ChangeKind = "delete"   // MessageID is gone
	ChangeDraft    ChangeKind = "draft"    // Draft is new or longer; nil: the thread's drafts are gone
	ChangeTyping   ChangeKind = "typing"   // Typing began, or ended when it has no Action
	ChangeReaction ChangeKind = "reaction" // Message has other reactions
	ChangeAnswer   ChangeKind = "answer"   // a pressed button was answered
	ChangeUser     ChangeKind = "user"     // a person is new or renamed
	ChangeChat     ChangeKind = "chat"     // a group is new
	ChangeMember   ChangeKind = "member"   // a bot's Status in a chat
)

// A Change is one thing that people can see from At on.
type Change struct {
	Seq  uint64     `json:"seq"` // ascends from 1
	At   time.Time  `json:"at"`
	Kind ChangeKind `json:"kind"`
	Conversation
	Thread    int      `json:"thread,omitempty"`
	Message   *Message `json:"message,omitempty"`
	MessageID int      `json:"message_id,omitempty"`
	Draft     *Draft   `json:"draft,omitempty"`
	Typing    *Typing  `json:"typing,omitempty"`
	Answer    *Answer  `json:"answer,omitempty"`
	User      *Account `json:"user,omitempty"`
	Status    string   `json:"status,omitempty"`
}

// An Answer is what a pressed button brought.
type Answer struct {
	Query string `json:"query"`
	User  int64  `json:"user"`
	Text  string `json:"text,omitempty"`
	Alert bool   `json:"alert,omitempty"`
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
func (s *Server) emitMessage(kind ChangeKind, c *chat, m *message, at time.Time) {
	if len(s.watchers) == 0 {
		s.changes++
		return
	}
	view := s.view(c, m)
	s.emit(Change{Kind: kind, Conversation: c.at, Thread: m.wire.ThreadID, Message: &view, At: at})
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

// AwaitMessage returns the newest message of a chat that match accepts: one
// that stands there, or one that comes or is edited into it before ctx ends.
func (s *Server) AwaitMessage(ctx context.Context, in Conversation, match func(Message) bool) (Message, error) {
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
			if c.Message != nil && c.Conversation == in && match(*c.Message) {
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
