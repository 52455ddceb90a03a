package main

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// toolAsks shows the owner in chat what tools ask for, the person whose call
// waits that it does, and the asked person what the model wants to know.
type toolAsks struct{ *approvals }

// Open posts the ask to the direct chats of the owner and the admins, and a
// word about it to the chat whose run waits.
func (s toolAsks) Open(ctx context.Context, tx *store.Tx, a permission.Ask, req core.PermissionRequest, p permission.Profile) error {
	if p.Bot == core.APIBot {
		return nil // the stream and the panel show it
	}
	here := core.Address{Bot: a.Bot, Chat: a.Chat}
	if a.Kind == permission.KindQuestion {
		return s.mail.Post(ctx, tx, core.Reply{Address: here, Key: askKey(a.ID, 0), Parts: []core.Part{questionPart(a, questionsOf(a))}})
	}
	chats, err := s.book.OwnerChats(ctx, tx, p.Bot)
	if err != nil {
		return err
	}
	name, err := s.book.Name(ctx, tx, p.User)
	if err != nil {
		return err
	}
	part, waits := permissionPart(a, req, p, name), true
	for i, to := range chats {
		waits = waits && to.Chat != here.Chat
		if err := s.mail.Post(ctx, tx, core.Reply{Address: to, Key: askKey(a.ID, i), Parts: []core.Part{part}}); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return s.mail.Post(ctx, tx, core.Reply{Address: here, Key: askPrefix(a.ID) + waitingKey, Parts: []core.Part{{Text: waitingText(req)}}})
}

// askPrefix begins the names of all messages that show an ask.
func askPrefix(id string) string { return "ask:" + id + ":" }

// askKey names the i-th message with an ask's buttons.
func askKey(id string, i int) string { return fmt.Sprintf("%s%d", askPrefix(id), i) }

// waitingKey ends the name of the message to the person whose call waits.
const waitingKey = "waits"

// Close takes the buttons away and says what was decided on what: in every
// message that showed the ask, whoever the owner and the admins are by now.
func (s toolAsks) Close(ctx context.Context, tx *store.Tx, a permission.Ask, outcome string) error {
	if a.Bot == core.APIBot {
		return nil
	}
	shown, err := s.mail.Posted(ctx, tx, askPrefix(a.ID))
	if err != nil {
		return err
	}
	for _, r := range shown {
		text := settledText(a, outcome)
		if r.Key == askPrefix(a.ID)+waitingKey {
			text = settledText(a, permission.Told(a))
		}
		err := s.mail.Post(ctx, tx, core.Reply{Address: r.Address, Key: r.Key, First: 1, Replaces: "@" + r.Key + "/0", Parts: []core.Part{{Text: text}}})
		if err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
	}
	return nil
}
