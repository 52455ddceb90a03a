package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/store"
)

// AwaitNext returns an outcome that has the sender's next message in the chat handed to a
// command, for as long as life. What follows the command's name is in front of the message.
func (b *Buttons) AwaitNext(r command.Request, name, text string, life time.Duration) (command.Outcome, error) {
	payload, err := json.Marshal(name)
	a := ask.Ask{ID: ask.NewID(), Kind: ask.KindNext, Bot: r.In.Bot, Chat: r.In.Chat, User: r.User, Asker: r.User, Payload: string(payload), ExpiresAt: b.o.Clock.Now().Add(life)}
	return command.Outcome{Text: text, Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := b.o.Asks.Open(ctx, tx, a)
		return err
	}}, err
}

// TakeAlbum has the further messages of the album of in handed to a command, as if the first had
// been awaited (AwaitNext).
func (b *Buttons) TakeAlbum(ctx context.Context, tx *store.Tx, in *core.Inbound, name string) error {
	user, _, err := b.o.Users.User(ctx, tx, in.From)
	if err != nil || user == 0 {
		return err
	}
	payload, err := json.Marshal(name)
	if err != nil {
		return err
	}
	a, err := b.o.Asks.Open(ctx, tx, ask.Ask{ID: ask.NewID(), Kind: ask.KindNext, Bot: in.Bot, Chat: in.Chat, User: user, Asker: user, Payload: string(payload), ExpiresAt: tx.Time().Add(time.Minute)})
	if err == nil {
		_, err = b.o.Asks.Decide(ctx, tx, a.ID, in.Album, core.Actor{User: user, Via: "chat"})
	}
	return err
}

// waiting returns the ask that waits for a message. The further messages of an album
// belong to what took the first.
func (b *Buttons) waiting(ctx context.Context, tx *store.Tx, in *core.Inbound, user int64) (ask.Ask, bool, error) {
	a, ok, err := b.o.Questions.Took(ctx, tx, in.Bot, in.Chat, user, in.Album, tx.Time().Add(-ask.AlbumsGoOn))
	if err != nil || ok {
		return a, ok, err
	}
	return b.o.Questions.Waiting(ctx, tx, in.Bot, in.Chat, user)
}

// taken is the decision of an ask that a message has taken; an album's are those of its
// first message.
func taken(in *core.Inbound) string { return cmp.Or(in.Album, "message:"+in.MessageID) }

// assign has the ask wait for no other message than in, whenever that is handled.
func (b *Buttons) assign(ctx context.Context, tx *store.Tx, in *core.Inbound, a ask.Ask, user int64) error {
	if a.State == ask.Decided {
		return nil // by an earlier message of the album
	}
	_, err := b.o.Asks.Decide(ctx, tx, a.ID, taken(in), core.Actor{User: user, Via: "chat"})
	return err
}

// Next returns the command that waited for the message of r, "" for none.
func (b *Buttons) Next(ctx context.Context, r command.Request) (name string, err error) {
	err = b.o.DB.Tx(ctx, func(tx *store.Tx) error {
		a, ok, err := b.o.Questions.Took(ctx, tx, r.In.Bot, r.In.Chat, r.User, taken(r.In), time.Time{})
		if err == nil && !ok {
			a, ok, err = b.late(ctx, tx, r)
		}
		if err != nil || !ok {
			return err
		}
		return json.Unmarshal([]byte(a.Payload), &name)
	})
	return name, err
}

// late returns the ask that waits for the message of r, which was stored by a gateway that assigned
// none, and assigns it. One that was opened after the message waits for a later one.
func (b *Buttons) late(ctx context.Context, tx *store.Tx, r command.Request) (ask.Ask, bool, error) {
	a, ok, err := b.o.Questions.Waiting(ctx, tx, r.In.Bot, r.In.Chat, r.User)
	if err != nil || !ok || a.Kind != ask.KindNext || r.In.Forwarded() || r.In.At.Before(a.CreatedAt.Truncate(time.Second)) { // a platform's time has whole seconds
		return ask.Ask{}, false, err
	}
	return a, true, b.assign(ctx, tx, r.In, a, r.User)
}

// Last returns the outcome of a command of r's sender, after which no earlier command waits
// for their next message.
func (b *Buttons) Last(r command.Request, out command.Outcome) command.Outcome {
	write := out.Write
	out.Write = func(ctx context.Context, tx *store.Tx) error {
		if r.User != 0 {
			if err := b.o.Questions.DropNext(ctx, tx, r.In.Bot, r.In.Chat, r.User); err != nil {
				return err
			}
		}
		if write == nil {
			return nil
		}
		return write(ctx, tx)
	}
	return out
}
