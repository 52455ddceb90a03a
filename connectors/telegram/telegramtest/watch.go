package telegramtest

import (
	"context"
	"time"

	"gatehouse/connectors/simulator"
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
	ChangeUser     ChangeKind = "user"     // a user is new or renamed
	ChangeChat     ChangeKind = "chat"     // a group is new
	ChangeMember   ChangeKind = "member"   // a bot's Status in a chat
)

// A Change is one thing that users can see from At on.
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

func (c *Change) parts() (seq *uint64, at *time.Time, kind string) {
	return &c.Seq, &c.At, string(c.Kind)
}

func (s *Server) emit(c Change) { s.Emit(func() Change { return c }) }

// emitMessage reports a message, which is only copied where someone watches.
func (s *Server) emitMessage(kind ChangeKind, c *chat, m *message, at time.Time) {
	s.Emit(func() Change {
		view := s.view(c, m)
		return Change{Kind: kind, Conversation: c.at, Thread: m.wire.ThreadID, Message: &view, At: at}
	})
}

// AwaitMessage returns the newest message of a chat that match accepts: one
// that is there, or one that comes or is edited into it before ctx ends.
func (s *Server) AwaitMessage(ctx context.Context, in Conversation, match func(Message) bool) (Message, error) {
	return simulator.Await(ctx, s.Watchers, func() []Message { return s.History(in) }, func(c Change) *Message {
		if c.Conversation != in {
			return nil
		}
		return c.Message
	}, match)
}
