package ask

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Asks stores questions with buttons.
type Asks interface {
	ByID(ctx context.Context, q store.Queryer, id string) (ask.Ask, error)
	Open(ctx context.Context, tx *store.Tx, a ask.Ask) (ask.Ask, error)
	// Decide returns a Conflict for an ask that is not open.
	Decide(ctx context.Context, tx *store.Tx, id, option string, by core.Actor) (ask.Ask, error)
}

// OpenQuestions finds and changes the questions that wait for an answer.
type OpenQuestions interface {
	// Waiting returns the question that waits for a user's answer in a chat.
	Waiting(ctx context.Context, tx *store.Tx, bot, chat string, user int64) (ask.Ask, bool, error)
	// DropNext closes what waits for a user's next message in a chat.
	DropNext(ctx context.Context, tx *store.Tx, bot, chat string, user int64) error
	// Took returns what took an earlier message of a user in a chat as the next, by the decision.
	Took(ctx context.Context, tx *store.Tx, bot, chat string, user int64, decision string, since time.Time) (ask.Ask, bool, error)
	// Amend replaces the payload of an ask, and reports whether the ask is open.
	Amend(ctx context.Context, tx *store.Tx, id, payload string) (bool, error)
}

// Decisions settles the asks of tool calls and models.
type Decisions interface {
	// Press settles the ask of a tool call by a button.
	Press(ctx context.Context, ask, option string, by core.Actor) error
	// Answer settles the questions of a model with answers by question.
	Answer(ctx context.Context, ask string, answers json.RawMessage, by core.Actor) error
}

// Decider decides pairing requests.
type Decider interface {
	Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
	Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
	Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
}

// Users knows the users behind accounts.
type Users interface {
	// User returns the id and the role of a user, or 0 for an unknown one.
	User(ctx context.Context, q store.Queryer, p core.Peer) (id int64, role core.Role, err error)
}

// Access knows the users of the bots.
type Access interface {
	// Trust returns the trust of a message's sender, core.Stranger without access.
	Trust(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Trust, error)
}

// Inbox stores messages that the gateway makes in a user's name.
type Inbox interface {
	Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
}

// ButtonOptions are the parts that Buttons works on.
type ButtonOptions struct {
	DB        *store.DB
	Clock     core.Clock
	Users     Users
	Access    Access
	Asks      Asks
	Questions OpenQuestions
	Decisions Decisions
	Pairings  Decider
	Inbox     Inbox
	Mail      Mail
	// Pick takes the answer of a model, by its mark, in the dispute of a council; nil: none is
	// offered.
	Pick func(ctx context.Context, r command.Request, query, mark string) (command.Outcome, error)
}

// Buttons handles the buttons and answers of asks.
type Buttons struct{ o ButtonOptions }

// NewButtons returns a Buttons over these parts.
func NewButtons(o ButtonOptions) *Buttons { return &Buttons{o} }

// Press handles a button of an ask. Buttons other than those of a tool call
// work only in the chat that shows them.
func (b *Buttons) Press(ctx context.Context, r command.Request) (command.Outcome, error) {
	gone := texts.Error(core.Invalid, "button_gone")
	if query, mark, ok := command.PickOf(r.In.Callback.Data); ok && b.o.Pick != nil {
		return b.o.Pick(ctx, r, query, mark)
	}
	id, option, ok := ask.SplitData(r.In.Callback.Data)
	if !ok {
		return command.Outcome{}, gone
	}
	a, err := b.o.Asks.ByID(ctx, b.o.DB, id)
	if core.KindOf(err) == core.NotFound || err == nil && !shownIn(a, r.In) {
		return command.Outcome{}, gone
	}
	if err != nil {
		return command.Outcome{}, err
	}
	switch a.Kind {
	case ask.KindChoice:
		return b.choice(ctx, r, a, option)
	case ask.KindQuestion:
		return b.question(ctx, r, a, option)
	case ask.KindPermission:
		return b.tool(ctx, r, a, option)
	case ask.KindPairing:
		return b.pairing(ctx, r, a, option)
	}
	return command.Outcome{}, gone
}

// shownIn reports whether an ask may be shown in the chat of in: that of a tool call is in
// all chats of the owner and the admins with its bot, and where the schedule has made the
// call, with any bot.
func shownIn(a ask.Ask, in *core.Inbound) bool {
	if a.Kind == ask.KindPermission {
		return a.Bot == in.Bot || a.Bot == core.ScheduleBot
	}
	return a.Bot == in.Bot && a.Chat == in.Chat
}

// maxNotice bounds the text that a platform shows on a pressed button, in runes.
const maxNotice = 150

// tool allows or denies a tool call.
func (b *Buttons) tool(ctx context.Context, r command.Request, a ask.Ask, option string) (command.Outcome, error) {
	if !r.Manages() {
		return command.Outcome{}, texts.Error(core.Denied, "owner_only")
	}
	if err := b.o.Decisions.Press(ctx, a.ID, option, r.By()); err != nil {
		return command.Outcome{}, err
	}
	if option == ask.OptionDeny {
		return command.Respond("permission_pressed_deny")
	}
	return command.Respond("permission_pressed_allow")
}

// pairing decides a pairing request.
func (b *Buttons) pairing(ctx context.Context, r command.Request, a ask.Ask, option string) (command.Outcome, error) {
	if !r.Manages() {
		return command.Outcome{}, texts.Error(core.Denied, "owner_only")
	}
	var req core.PairingRequest
	var err error
	text := ""
	switch option {
	case core.Sandboxed.String(), core.Vault.String():
		var level core.Trust
		if level, err = core.ParseTrust(option); err == nil {
			req, err = b.o.Pairings.Approve(ctx, a.Run, core.Approval{Trust: level}, r.By())
		}
		text = texts.Text("request_pressed_approve", texts.With{"Name": req.Display})
	case OptionDeny:
		req, err = b.o.Pairings.Deny(ctx, a.Run, r.By())
		text = texts.Text("request_pressed_deny", texts.With{"Name": req.Display})
	case OptionBlock:
		req, err = b.o.Pairings.Block(ctx, a.Run, r.By())
		text = texts.Text("request_pressed_block", texts.With{"Name": req.Display})
	default:
		err = texts.Error(core.Invalid, "button_gone")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Text: core.CutRunes(text, maxNotice)}, nil
}
