package pairing

import (
	"context"
	"fmt"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// notices posts texts of the catalogue, each as it is worded for its bot.
type notices struct {
	mail Mail
	text func(bot, name string) string
	log  *slog.Logger
}

// Post posts the named text to an address.
func (n notices) Post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w texts.Words) error {
	w.Bot = to.Bot
	return n.send(ctx, tx, core.Reply{Address: to, Key: key}, name, "", w)
}

// Reply answers in with the named text: it replaces the message in.Slot, and is
// shown to the sender alone where in.Aside asks for that.
func (n notices) Reply(ctx context.Context, tx *store.Tx, in *core.Inbound, key, name string, w texts.Words) error {
	w.Bot = in.Bot
	return n.send(ctx, tx, core.Reply{Address: in.Address, Key: key, Replaces: in.Slot}, name, in.Aside, w)
}

func (n notices) send(ctx context.Context, tx *store.Tx, r core.Reply, name, aside string, w texts.Words) error {
	part, err := n.part(r.Bot, name, w)
	if err != nil {
		return err
	}
	part.Aside, r.Parts = aside, []core.Part{part}
	if err := n.mail.Post(ctx, tx, r); err != nil {
		return fmt.Errorf("post %s: %w", name, err)
	}
	return nil
}

// part returns the bot's own text of that name, or the catalogue's where the bot
// has none or its own can't be rendered, so that everyone gets an answer.
func (n notices) part(bot, name string, w texts.Words) (core.Part, error) {
	o, editable := texts.Find(name)
	if body := n.text(bot, name); editable && body != "" {
		part, err := texts.SayOwn(o, body, w)
		if err == nil {
			return part, nil
		}
		n.log.Error("a text that was set in the panel is invalid; the default is used", "bot", bot, "text", name, "err", err)
	}
	return texts.Say(name, w)
}
