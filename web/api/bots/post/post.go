// Package post has the messages that programs send to chats, for the API and its clients.
package post

import (
	"time"

	"gatehouse/core"
)

// An Unasked is a message that a program sends.
type Unasked struct {
	ID   string `json:"id"` // "<user>-<uuid>", so that its owner is known
	Bot  string `json:"bot"`
	Chat string `json:"chat"` // as the connector names it, or OwnerChat
	Text string `json:"text"` // Markdown
	// Attachments are files of the vault, each sent after the text as a message
	// of its own; what Trust may not read is core.Invalid.
	Attachments []string   `json:"attachments,omitempty"`
	Trust       core.Trust `json:"trust_level,omitempty"`
	// Files are stored already, and sent after Attachments. Send removes them
	// when it does not store the message, also when it was stored before.
	Files []core.File `json:"files,omitempty"`
	// User: only direct chats of this person are reached; nil: every chat that the bot
	// may write to.
	User *int64 `json:"user_id,omitempty"`
}

// A Posted is such a message as it is now.
type Posted struct {
	ID        string    `json:"id"`
	Bot       string    `json:"bot"`
	Chat      string    `json:"chat"`
	Status    string    `json:"status"`    // queued, sending, sent, unknown, failed
	Parts     int       `json:"parts"`     // messages on the platform that it makes
	Delivered int       `json:"delivered"` // of them
	Error     string    `json:"error,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	SentAt    time.Time `json:"sent_at,omitzero"` // when the last part arrived
}
