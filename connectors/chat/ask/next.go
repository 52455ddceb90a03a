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
	a, ok, err := b.o.Questions.TookAlbum(ctx, tx, in.Bot, in.Chat, user, in.Album)
	if err != nil || ok {
		return a, ok, err
	}
	return b.o.Questions.Waiting(ctx, tx, in.Bot, in.Chat, user)
}

// Next returns the command that waits for the message of r, "" for none, and what is to be
// written with its outcome, so that it stops waiting.
func (b *Buttons) Next(ctx context.Context, r command.Request) (name string, settle func(context.Context, *store.Tx) error, err error) {
	var a ask.Ask
	var open bool
	err = b.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		a, open, err = b.waiting(ctx, tx, r.In, r.User)
		return err
	})
	if err != nil || !open || a.Kind != ask.KindNext || json.Unmarshal([]byte(a.Payload), &name) != nil {
		return "", nil, err
	}
	return name, func(ctx context.Context, tx *store.Tx) error {
		if a.State == ask.Decided {
			return nil // by an earlier message of the album
		}
		_, err := b.o.Asks.Decide(ctx, tx, a.ID, cmp.Or(r.In.Album, "message"), r.By())
		if core.KindOf(err) == core.Conflict {
			return nil // it has just expired; the message counts
		}
		return err
	}, nil
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

// Settled returns the outcome of a command that Next has named, with settle in its write:
// the command stops waiting, also after an error with a kind, whose text is the answer.
func Settled(out command.Outcome, err error, settle func(context.Context, *store.Tx) error) (command.Outcome, error) {
	if core.KindOf(err) != core.Other {
		out, err = command.Outcome{Text: core.TextOf(err)}, nil
	}
	inner := out.Write
	out.Write = func(ctx context.Context, tx *store.Tx) error {
		if err := settle(ctx, tx); err != nil || inner == nil {
			return err
		}
		return inner(ctx, tx)
	}
	return out, err
}
