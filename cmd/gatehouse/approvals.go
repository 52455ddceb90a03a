package main

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/core/texts"
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
	return core.Part{Text: texts.Text("request", texts.With{"Name": core.CleanName(r.Display), "Group": r.Scope == core.ScopeGroup,
		"ID": r.PlatformUserID, "Code": r.Code, "First": core.CutRunes(r.FirstMessage, 300)})}
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
			{{Label: texts.Text("button_approve_sandboxed"), Data: ask.Data(optSandboxed)}, {Label: texts.Text("button_approve_vault"), Data: ask.Data(optVault)}},
			{{Label: texts.Text("button_deny"), Data: ask.Data(optDeny)}, {Label: texts.Text("button_block"), Data: ask.Data(optBlock)}},
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
		return texts.Text("request_pressed_approve", texts.With{"Name": r.Display}), nil
	case optDeny:
		r, err := a.book.Deny(ctx, ask.Run, by)
		if err != nil {
			return "", err
		}
		return texts.Text("request_pressed_deny", texts.With{"Name": r.Display}), nil
	case optBlock:
		r, err := a.book.Block(ctx, ask.Run, by)
		if err != nil {
			return "", err
		}
		return texts.Text("request_pressed_block", texts.With{"Name": r.Display}), nil
	}
	return "", texts.Error(core.Invalid, "button_gone")
}
