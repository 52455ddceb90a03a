package telegram

import (
	"context"
	"encoding/json"

	"gatehouse/connectors"
	"gatehouse/core"
)

var _ connectors.Reactor = (*Bot)(nil)

// React sets an emoji under a message (setMessageReaction), or removes the bot's. It
// does nothing if the chat's rate limit leaves no room.
func (b *Bot) React(ctx context.Context, to core.Address, messageID, emoji string) error {
	t, err := parseTarget(to)
	if err != nil {
		return err
	}
	if !b.pace.Try(t.chat, typingShare) {
		return connectors.ErrNotNow
	}
	type reaction struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	list := []reaction{}
	if emoji != "" {
		list = append(list, reaction{"emoji", emoji})
	}
	wanted, err := json.Marshal(list)
	if err != nil {
		return err
	}
	p := t.params()
	delete(p, "message_thread_id") // a message is known by its chat
	p["message_id"], p["reaction"] = messageID, string(wanted)
	_, f := b.call(ctx, b.sends, b.o.SendTimeout, "setMessageReaction", p)
	return b.dropped(t, f)
}
