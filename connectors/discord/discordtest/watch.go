package discordtest

import (
	"context"
	"time"

	"gatehouse/connectors/simulator"
)

// A ChangeKind is what became visible.
type ChangeKind string

const (
	ChangeMessage     ChangeKind = "message"     // a new message
	ChangeEdit        ChangeKind = "edit"        // a message is other than before
	ChangeDelete      ChangeKind = "delete"      // MessageID is gone
	ChangeTyping      ChangeKind = "typing"      // a user writes; their message ends it too
	ChangeReaction    ChangeKind = "reaction"    // Message has other reactions
	ChangeInteraction ChangeKind = "interaction" // a pressed button, command or dialog has another state
	ChangeUser        ChangeKind = "user"        // a user is new or renamed
	ChangeGuild       ChangeKind = "guild"       // a guild is new
	ChangeChannel     ChangeKind = "channel"     // a channel or thread is new
	ChangeBot         ChangeKind = "bot"         // User went online or offline, see Status
	ChangeCommands    ChangeKind = "commands"    // a bot has other commands
)

// A Change is one thing that users can see from At on.
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

func (c *Change) parts() (seq *uint64, at *time.Time, kind string) {
	return &c.Seq, &c.At, string(c.Kind)
}

func (s *Server) emit(c Change) { s.Emit(func() Change { return c }) }

// emitMessage reports a message, which is only copied where someone watches.
func (s *Server) emitMessage(kind ChangeKind, c *channel, m *message, at time.Time) {
	s.Emit(func() Change {
		view := s.view(c, m)
		return Change{Kind: kind, Guild: c.guild, Channel: c.id, Message: &view, At: at}
	})
}

// AwaitMessage returns the newest message of a channel that match accepts: one
// that is there, or one that comes or is edited into it before ctx ends.
func (s *Server) AwaitMessage(ctx context.Context, in ID, match func(Message) bool) (Message, error) {
	return simulator.Await(ctx, s.Watchers, func() []Message { return s.History(in) }, func(c Change) *Message {
		if c.Channel != in {
			return nil
		}
		return c.Message
	}, match)
}
