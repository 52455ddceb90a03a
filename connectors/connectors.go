// Package connectors has what all chat platforms share: the Connector interface,
// optional abilities, and the Hub, which keeps connectors running.
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
	// Run receives until ctx ends, and then returns soon. It calls report with
	// its phase (Running, Degraded or Reconnecting, with a reason), its last
	// success, its last error and its user name on the platform. Zero fields of
	// a report leave the earlier value. An error of kind core.Denied means that
	// the platform rejects the credentials: a retry cannot help, and the text
	// reports what to do. No error contains a token.
	Run(ctx context.Context, in Inbox, report func(core.BotState)) error
	// Send delivers one part and returns the outcome. It never blocks for pacing:
	// call Wait first. ctx bounds the exchange. It works while Run does not, and
	// is safe for concurrent use.
	Send(ctx context.Context, out core.Outgoing) core.Delivery
}

// An Inbox stores a page of updates and the cursor after them in one transaction.
// A nil error means that they are durable and may be confirmed to the platform.
type Inbox interface {
	Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
}

// Memory stores small values of a connector (resume state, hashes).
type Memory interface {
	Load(ctx context.Context, key string) (string, error) // "" when never saved
	Save(ctx context.Context, key, value string) error
}

// Cursors reads the cursors that Put has stored.
type Cursors interface {
	// Cursor returns the value last stored under name and its time, or "".
	Cursor(ctx context.Context, name string) (value string, updated time.Time, err error)
}

// NoCursors are the cursors of a bot that does not poll.
type NoCursors struct{}

// Cursor returns none.
func (NoCursors) Cursor(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

// A Command is one line of a bot's command menu.
type Command struct {
	Name        string // without slash: 1-32 of a-z, 0-9 and _
	Description string // 1-256 characters
	Args        string // hint for what may follow the name; "" for nothing
	Completes   bool   // the arguments can be completed as they are typed
	Private     bool   // in a group only the sender sees the answer, where the platform can do that
}

// A Form is opened by a button of kind Form. It has at most 5 fields. The platform
// cuts texts that are too long for it.
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

// Abilities of some platforms; the Hub checks by type assertion.
type (
	// A Platformer names its platform: "telegram", "discord".
	Platformer interface {
		Platform() string
	}
	// A Typer shows that an answer is coming, for some seconds. It returns
	// ErrNotNow if it was left out.
	Typer interface {
		Typing(ctx context.Context, to core.Address) error
	}
	// A Previewer shows an answer that is not final. With id "" it makes a new
	// preview and returns its message id ("" where the platform has drafts
	// without one); with an id it edits that message, and with an id and no text
	// it deletes the message. It never waits: it returns ErrNotNow if the chat's
	// pace leaves no room. The caller may leave that preview out.
	Previewer interface {
		Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error)
	}
	// An Acknowledger answers a pressed button, once. Text may be "".
	Acknowledger interface {
		Acknowledge(ctx context.Context, to core.Address, callbackID, text string) error
	}
	// A Reactor sets the bot's one emoji under a message, or removes it with "".
	// It returns ErrNotNow if it was left out.
	Reactor interface {
		React(ctx context.Context, to core.Address, messageID, emoji string) error
	}
	// A Pacer returns how long to wait before the next Send to a chat. Send,
	// Preview and Typing share one pace.
	Pacer interface {
		Wait(to core.Address) time.Duration
	}
	// A Repeater's platform recognizes a part by its Seq: a part that is sent
	// again within Repeats of an uncertain attempt is shown once.
	Repeater interface {
		Repeats() time.Duration
	}
	// A Follower's Send notifies the Flight of what it sends: see Progress. For any
	// other connector the Hub does so before Send, as if it had left.
	Follower interface {
		NotifiesFlight()
	}
	// A Fetcher writes the bytes of a message's file to w. The error has a kind,
	// and a text for the user, if the file cannot be fetched (too large,
	// deleted). After any other error the caller may retry.
	Fetcher interface {
		Fetch(ctx context.Context, f core.File, w io.Writer) error
	}
	// A Tester checks the credentials with one cheap call. Its error can be
	// shown to the operator.
	Tester interface {
		Test(ctx context.Context) (username string, err error)
	}
	// A Renderer converts a reply in Markdown to parts within the platform's
	// limits. It is pure and fast: previews call it, too.
	Renderer interface {
		Render(markdown string) []core.Part
	}
)

// ErrNotNow is returned for a preview, typing or a reaction that was left out to
// keep the platform's pace. It is of kind core.Busy.
var ErrNotNow = core.Errorf(core.Busy, "not now: the chat's pace leaves no room for a preview")
