package ask

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// Tools shows the asks of tool calls: to the owner and the admins what a tool
// wants to do, to the user of the waiting call that it waits, and to the user of the turn
// the questions of the model.
type Tools struct {
	Mail    Mail
	People  People
	Bots    func() []string // names of the bots
	Changed func()          // called after the commit that opens or settles an ask
}

// Open posts an ask to the direct chats of the owner and the admins, and a
// notice to the chat of the run that waits. A question goes to its own chat.
func (t *Tools) Open(ctx context.Context, tx *store.Tx, a ask.Ask, req core.PermissionRequest, p permission.Profile) error {
	tx.OnCommit(t.Changed)
	if p.Bot == core.APIBot {
		return nil // the stream and the panel show it
	}
	here := core.Address{Bot: a.Bot, Chat: a.Chat}
	if a.Kind == ask.KindQuestion {
		if p.Bot == core.ScheduleBot { // its session is in no chat: the panel shows it
			return nil
		}
		return t.Mail.Post(ctx, tx, core.Reply{Address: here, Key: Key(a.ID, 0), Parts: []core.Part{questionsPart(a, Questions(a))}})
	}
	chats, err := t.owners(ctx, tx, p.Bot)
	if err != nil {
		return err
	}
	name, err := t.People.Name(ctx, tx, p.User)
	if err != nil {
		return err
	}
	waits, left := p.Bot != core.ScheduleBot, req.ExpiresAt.Sub(tx.Time())
	for i, to := range chats {
		waits = waits && to.Chat != here.Chat
		part := permissionPart(a, req, p, name, to.Chat == here.Chat, left)
		if err := t.Mail.Post(ctx, tx, core.Reply{Address: to, Key: Key(a.ID, i), Parts: []core.Part{part}}); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return t.Mail.Post(ctx, tx, core.Reply{Address: here, Key: waitingKey(a.ID), Parts: []core.Part{{Text: waitingText(req, left)}}})
}

// owners returns where an ask of a bot's run is shown; of the schedule's, with every bot.
func (t *Tools) owners(ctx context.Context, tx *store.Tx, bot string) (chats []core.Address, err error) {
	if bot != core.ScheduleBot {
		return t.People.OwnerChats(ctx, tx, bot)
	}
	for _, bot := range t.Bots() {
		more, err := t.People.OwnerChats(ctx, tx, bot)
		if err != nil {
			return nil, err
		}
		chats = append(chats, more...)
	}
	return chats, nil
}

// keyPrefix returns the beginning of the keys of all messages that show an ask.
func keyPrefix(id string) string { return "ask:" + id + ":" }

// Key returns the key of the i-th message with the buttons of an ask.
func Key(id string, i int) string { return fmt.Sprintf("%s%d", keyPrefix(id), i) }

// waitingKey returns the key of the notice that a call waits.
func waitingKey(id string) string { return keyPrefix(id) + "waits" }

// Close replaces every message that shows the ask with its outcome. It reads the
// outbox for them: the admins may have changed since Open.
func (t *Tools) Close(ctx context.Context, tx *store.Tx, a ask.Ask, outcome string) error {
	tx.OnCommit(t.Changed)
	if a.Bot == core.APIBot {
		return nil
	}
	shown, err := t.Mail.Posted(ctx, tx, keyPrefix(a.ID))
	if err != nil {
		return err
	}
	for _, r := range shown {
		text := settledText(a, outcome)
		if r.Key == waitingKey(a.ID) {
			text = settledText(a, ask.Told(a))
		}
		if err := replace(ctx, tx, t.Mail, r.Address, r.Key, text); err != nil {
			return err
		}
	}
	return nil
}
