package telegram

import (
	"context"
	"encoding/json"

	"gatehouse/core"
)

// An Identity is what the platform knows about a bot (getMe).
type Identity struct {
	Username string
	// ReadsGroups: privacy mode is off, so that the bot sees all messages of a
	// group (User.can_read_all_group_messages); else mentions, commands and
	// replies to it alone.
	ReadsGroups bool
}

// Identity asks the platform who the token is; errors are those of Test.
func (b *Bot) Identity(ctx context.Context) (Identity, error) {
	raw, f := b.call(ctx, b.sends, b.o.SendTimeout, "getMe", nil)
	var me struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
		ReadAll  bool   `json:"can_read_all_group_messages"`
	}
	switch {
	case f != nil && f.refusesToken():
		return Identity{}, b.denied(f)
	case f != nil:
		return Identity{}, core.Errorf(core.Busy, "Telegram cannot be asked about bot %s: %s", b.o.Name, f.Error())
	case json.Unmarshal(raw, &me) != nil || me.ID == 0:
		return Identity{}, core.Errorf(core.Busy, "the answer to getMe names no bot")
	}
	return Identity{me.Username, me.ReadAll}, nil
}
