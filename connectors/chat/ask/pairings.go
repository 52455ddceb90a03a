package ask

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Requests opens and closes the asks about pairing requests.
type Requests interface {
	Open(ctx context.Context, tx *store.Tx, a ask.Ask) (ask.Ask, error)
	Opened(ctx context.Context, tx *store.Tx, kind, run string) ([]ask.Ask, error)
	Close(ctx context.Context, tx *store.Tx, kind, run, outcome string) ([]ask.Ask, error)
	CloseOf(ctx context.Context, tx *store.Tx, kind, outcome string, gone func(ask.Ask) (bool, error)) ([]ask.Ask, error)
}

// Pairings shows pairing requests to the owner and the admins in chat, with
// buttons, and replaces them with the outcome after the decision.
type Pairings struct {
	Asks   Requests
	Mail   Mail
	People People
}

// Options of the buttons of a pairing request. A level is its own option.
const (
	OptionDeny  = "deny"
	OptionBlock = "block"
)

// Open posts r to the direct chats of the owner and the admins that do not show it yet. It
// returns false where too many questions wait: then the panel alone shows r to some of them.
func (p *Pairings) Open(ctx context.Context, tx *store.Tx, r core.PairingRequest) (everywhere bool, err error) {
	chats, err := p.People.OwnerChats(ctx, tx, r.Bot)
	if err != nil {
		return false, err
	}
	shown, err := p.Asks.Opened(ctx, tx, ask.KindPairing, r.ID)
	if err != nil {
		return false, err
	}
	for _, to := range chats {
		if slices.ContainsFunc(shown, func(a ask.Ask) bool { return a.Bot == to.Bot && a.Chat == to.Chat }) {
			continue
		}
		a, err := p.Asks.Open(ctx, tx, ask.Ask{Kind: ask.KindPairing, Run: r.ID, Bot: to.Bot, Chat: to.Chat, ExpiresAt: r.ExpiresAt})
		if core.KindOf(err) == core.Busy {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := p.Mail.Post(ctx, tx, core.Reply{Address: to, Key: "ask:" + a.ID, Parts: []core.Part{requestPart(a, r)}}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Withdraw replaces the messages that show requests in chats that are no longer the direct
// chats of the owner or an admin.
func (p *Pairings) Withdraw(ctx context.Context, tx *store.Tx) error {
	chats, text := map[string][]core.Address{}, texts.Text("request_withdrawn") // by bot
	asks, err := p.Asks.CloseOf(ctx, tx, ask.KindPairing, text, func(a ask.Ask) (gone bool, err error) {
		if _, known := chats[a.Bot]; !known {
			chats[a.Bot], err = p.People.OwnerChats(ctx, tx, a.Bot)
		}
		return !slices.Contains(chats[a.Bot], core.Address{Bot: a.Bot, Chat: a.Chat}), err
	})
	if err != nil {
		return err
	}
	for _, a := range asks {
		if err := replace(ctx, tx, p.Mail, core.Address{Bot: a.Bot, Chat: a.Chat}, "ask:"+a.ID, text); err != nil {
			return err
		}
	}
	return nil
}

// Update edits the messages that show a request, after its sender edited the n-th time or
// has another code. An edit that was posted before stays.
func (p *Pairings) Update(ctx context.Context, tx *store.Tx, r core.PairingRequest, n int) error {
	asks, err := p.Asks.Opened(ctx, tx, ask.KindPairing, r.ID)
	if err != nil {
		return err
	}
	for _, a := range asks {
		key := "ask:" + a.ID // its first part is the message, the second what Close makes of it
		err := postOnce(ctx, tx, p.Mail, core.Reply{Address: core.Address{Bot: a.Bot, Chat: a.Chat}, Key: key + ":" + r.Code, First: 1 + n, Replaces: "@" + key + "/0", Parts: []core.Part{requestPart(a, r)}})
		if err != nil {
			return err
		}
	}
	return nil
}

// requestPart returns the message that shows a pairing request.
func requestPart(a ask.Ask, r core.PairingRequest) core.Part {
	return core.Part{
		Text: texts.Text("request", texts.With{"Name": core.CleanName(r.Display), "Group": r.Scope == core.ScopeGroup,
			"ID": r.PlatformUserID, "Code": r.Code, "First": core.CutRunes(r.FirstMessage, 300)}),
		Buttons: [][]core.Button{
			{{Label: texts.Text("button_approve_sandboxed"), Data: a.Data(core.Sandboxed.String())}, {Label: texts.Text("button_approve_vault"), Data: a.Data(core.Vault.String())}},
			{{Label: texts.Text("button_deny"), Data: a.Data(OptionDeny)}, {Label: texts.Text("button_block"), Data: a.Data(OptionBlock)}},
		},
	}
}

// Close replaces the messages that show a request with its outcome.
func (p *Pairings) Close(ctx context.Context, tx *store.Tx, requestID, outcome string) error {
	asks, err := p.Asks.Close(ctx, tx, ask.KindPairing, requestID, outcome)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if err := replace(ctx, tx, p.Mail, core.Address{Bot: a.Bot, Chat: a.Chat}, "ask:"+a.ID, outcome); err != nil {
			return err
		}
	}
	return nil
}
