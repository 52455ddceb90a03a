// Package connectors is what every chat platform has in common: the Connector
// interface, the abilities some have, and the Hub that keeps connectors running.
package connectors

import (
	"context"
	"time"

	"gatehouse/core"
)

// A Connector carries messages between one bot on one platform and an Inbox.
type Connector interface {
	Name() string // the bot's configured name
	// Run receives until ctx ends. It reports through report what it alone
	// knows (Running, Degraded, the last success); the Hub reports the rest.
	// An error of kind core.Denied means that the platform refuses our
	// credentials: trying again can't help.
	Run(ctx context.Context, in Inbox, report func(core.BotState)) error
	// Send delivers one part and says how that ended. It never blocks for
	// pacing: ask Wait first. ctx bounds the exchange.
	Send(ctx context.Context, out core.Outgoing) core.Delivery
}

// An Inbox takes a page of updates and the cursor behind them in one
// transaction. A nil error means that they are safe with us and may be
// confirmed to the platform.
type Inbox interface {
	Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
}

// Memory keeps a connector's small facts (cursors, resume state, hashes).
type Memory interface {
	Load(ctx context.Context, key string) (string, error) // "" when never saved
	Save(ctx context.Context, key, value string) error
}

// Abilities only some platforms have; the Hub asks with a type assertion.
type (
	// A Typer shows that an answer is coming. The sign fades by itself.
	Typer interface {
		Typing(ctx context.Context, to core.Address) error
	}
	// A Previewer shows an answer that is not final. With id "" it makes a new
	// preview and returns its message id ("" where the platform keeps drafts
	// without one); with an id it edits that message.
	Previewer interface {
		Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error)
	}
	// An Acknowledger answers a pressed button, once.
	Acknowledger interface {
		Acknowledge(ctx context.Context, to core.Address, callbackID, text string) error
	}
	// A Pacer says how long to wait before the next call that shows something
	// in to; 0 is now. Send, Preview and Typing count against the same pace.
	Pacer interface {
		Wait(to core.Address) time.Duration
	}
	// A Tester checks the credentials with one cheap call.
	Tester interface {
		Test(ctx context.Context) (username string, err error)
	}
	// A Renderer turns a reply in Markdown into parts within the platform's limits.
	Renderer interface {
		Render(markdown string) []core.Part
	}
)
