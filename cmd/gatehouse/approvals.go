package main

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/pairing"
)

// approvals shows pairing requests to the owner in chat, with buttons, and
// replaces them by the outcome once somebody anywhere has decided.
type approvals struct {
	desk *permission.Desk
	mail *queue.Queue
	book *pairing.Book
}

// Options on the buttons of a request.
const (
	optSandboxed = "sandboxed"
	optVault     = "vault"
	optDeny      = "deny"
	optBlock     = "block"
)

func askText(r core.PairingRequest) core.Part {
	where := "a direct message"
	if r.Scope == core.ScopeGroup {
		where = "a group"
	}
	name := core.CleanName(r.Display)
	if name == "" {
		name = "Somebody without a name"
	}
	text := fmt.Sprintf("%s wants to talk to this bot in %s.\nid %s, code %s", name, where, r.PlatformUserID, r.Code)
	if r.FirstMessage != "" {
		quote := core.CutRunes(r.FirstMessage, 300)
		text += "\nThey wrote:\n" + quote
	}
	text += "\n\nApproving answers what they wrote."
	return core.Part{Text: text}
}

// Open posts the request to the direct chats of the owner and the admins.
func (a *approvals) Open(ctx context.Context, tx *store.Tx, r core.PairingRequest) error {
	chats, err := a.book.OwnerChats(ctx, tx, r.Bot)
	if err != nil {
		return err
	}
	for _, to := range chats {
		ask, err := a.desk.Open(ctx, tx, permission.Ask{Kind: permission.KindPairing, Run: r.ID, Bot: to.Bot, Chat: to.Chat, ExpiresAt: r.ExpiresAt})
		if core.KindOf(err) == core.Busy {
			return nil // the panel shows it
		}
		if err != nil {
			return err
		}
		part := askText(r)
		part.Buttons = [][]core.Button{
			{{Label: "Approve (sandboxed)", Data: ask.Data(optSandboxed)}, {Label: "Approve (vault)", Data: ask.Data(optVault)}},
			{{Label: "Deny", Data: ask.Data(optDeny)}, {Label: "Block", Data: ask.Data(optBlock)}},
		}
		if err := a.mail.Post(ctx, tx, core.Reply{Address: to, Key: "ask:" + ask.ID, Parts: []core.Part{part}}); err != nil {
			return err
		}
	}
	return nil
}

// Close takes the buttons away and says what was decided.
func (a *approvals) Close(ctx context.Context, tx *store.Tx, requestID, outcome string) error {
	asks, err := a.desk.Close(ctx, tx, permission.KindPairing, requestID, outcome)
	if err != nil {
		return err
	}
	for _, ask := range asks {
		if err := a.replace(ctx, tx, ask, outcome); err != nil {
			return err
		}
	}
	return nil
}

func (a *approvals) replace(ctx context.Context, tx *store.Tx, ask permission.Ask, outcome string) error {
	key := "ask:" + ask.ID
	err := a.mail.Post(ctx, tx, core.Reply{
		Address: core.Address{Bot: ask.Bot, Chat: ask.Chat}, Key: key, First: 1, Replaces: "@" + key + "/0",
		Parts: []core.Part{{Text: outcome}},
	})
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// press decides a request by a button of an owner or admin.
func (a *approvals) press(ctx context.Context, ask permission.Ask, option string, by core.Actor) (string, error) {
	switch option {
	case optSandboxed, optVault:
		trust, err := core.ParseTrust(option)
		if err != nil {
			return "", err
		}
		r, err := a.book.Approve(ctx, ask.Run, core.Approval{Trust: trust}, by)
		if err != nil {
			return "", err
		}
		return "Approved " + r.Display, nil
	case optDeny:
		r, err := a.book.Deny(ctx, ask.Run, by)
		if err != nil {
			return "", err
		}
		return "Denied " + r.Display, nil
	case optBlock:
		r, err := a.book.Block(ctx, ask.Run, by)
		if err != nil {
			return "", err
		}
		return "Blocked " + r.Display, nil
	}
	return "", core.Errorf(core.Invalid, "this button is not known any more")
}
