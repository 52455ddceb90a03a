// Package connectors is what every chat platform has in common: the Connector
// interface, the abilities some have, and the Hub that keeps connectors running.
package connectors

import (
	"context"
	"io"
	"time"

	"gatehouse/core"
)

// A Connector carries messages between one bot on one platform and an Inbox.
type Connector interface {
	Name() string // the bot's configured name
	// Run receives until ctx ends, and then returns soon. It reports through
	// report what it alone knows: Running, Degraded or Reconnecting with a
	// reason, the last success, the last error, its user name on the platform.
	// Zero fields of a report leave what was known. An error of kind
	// core.Denied means that the platform refuses our credentials: trying again
	// can't help, and its text says what to do. No error holds a token.
	Run(ctx context.Context, in Inbox, report func(core.BotState)) error
	// Send delivers one part and says how that ended. It never blocks for
	// pacing: ask Wait first. ctx bounds the exchange. It works whether or not
	// Run runs, and from several goroutines at once.
	Send(ctx context.Context, out core.Outgoing) core.Delivery
}

// An Inbox takes a page of updates and the cursor behind them in one
// transaction. A nil error means that they are safe with us and may be
// confirmed to the platform.
type Inbox interface {
	Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
}

// Memory keeps a connector's small facts (resume state, hashes).
type Memory interface {
	Load(ctx context.Context, key string) (string, error) // "" when never saved
	Save(ctx context.Context, key, value string) error
}

// Cursors reads back what Put stored with a page.
type Cursors interface {
	// Cursor is the value last stored under name and when that was; "" when never.
	Cursor(ctx context.Context, name string) (value string, updated time.Time, err error)
}

// A Command is one line of a bot's command menu.
type Command struct {
	Name        string // without slash: 1-32 of a-z, 0-9 and _
	Description string // 1-256 characters
	Args        string // what may stand behind the name, for people; "" for nothing
	Completes   bool   // the words behind the name can be completed as they are typed
	Private     bool   // its answer in a group is for who asked alone, where the platform can
}

// A Form is what a button of kind Form opens: at most 5 fields. A platform
// cuts what is longer than it shows.
type Form struct {
	Title  string
	Fields []Field
}

// A Field of a Form is required and takes several lines.
type Field struct {
	Label string // over it
	About string // more about it; "" for nothing
	Hint  string // in it while it is empty
}

// Abilities only some platforms have; the Hub asks with a type assertion.
type (
	// A Platformer names its platform: "telegram", "discord".
	Platformer interface {
		Platform() string
	}
	// A Typer shows that an answer is coming. The sign fades by itself after
	// some seconds. ErrNotNow means that it was left out.
	Typer interface {
		Typing(ctx context.Context, to core.Address) error
	}
	// A Previewer shows an answer that is not final. With id "" it makes a new
	// preview and returns its message id ("" where the platform keeps drafts
	// without one); with an id it edits that message, and with an id and no text
	// it takes that message away. It never waits: when the
	// pace of the chat leaves no room it returns ErrNotNow, and nothing is lost
	// by leaving this preview out.
	Previewer interface {
		Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error)
	}
	// An Acknowledger answers a pressed button, once. Text may be "".
	Acknowledger interface {
		Acknowledge(ctx context.Context, to core.Address, callbackID, text string) error
	}
	// A Reactor puts one emoji of the bot's under a message, in place of an
	// earlier one; "" takes it away. ErrNotNow means that it was left out.
	Reactor interface {
		React(ctx context.Context, to core.Address, messageID, emoji string) error
	}
	// A Pacer says how long to wait before the next Send to that chat; 0 is
	// now. Send, Preview and Typing count against the same pace.
	Pacer interface {
		Wait(to core.Address) time.Duration
	}
	// A Repeater's platform knows a part again by its Seq: within Repeats of a try
	// that may have arrived, sent again it is shown once.
	Repeater interface {
		Repeats() time.Duration
	}
	// A Fetcher writes the bytes of a file that came with a message to w. The
	// error of one that can't be had (too large, gone) is of a kind, and its text
	// fit to be shown to the person; any other may be tried again.
	Fetcher interface {
		Fetch(ctx context.Context, f core.File, w io.Writer) error
	}
	// A Tester checks the credentials with one cheap call. The error's text is
	// fit to be shown to an operator.
	Tester interface {
		Test(ctx context.Context) (username string, err error)
	}
	// A Renderer turns a reply in Markdown into parts within the platform's
	// limits. It is pure and fast: it is called for previews too.
	Renderer interface {
		Render(markdown string) []core.Part
	}
)

// ErrNotNow says that something droppable (a preview, the typing sign) was
// left out to keep the platform's pace. It is of kind core.Busy.
var ErrNotNow = core.Errorf(core.Busy, "not now: the chat's pace leaves no room for a preview")
