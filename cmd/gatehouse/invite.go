package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"gatehouse/connectors/chat"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/pairing/codes"
)

type inviteCmd struct {
	Create inviteCreateCmd `cmd:"" default:"withargs" help:"Create an invitation; its code is shown once."`
	List   inviteListCmd   `cmd:"" help:"List the invitations that still work."`
	Revoke inviteRevokeCmd `cmd:"" help:"Revoke an invitation; users who used it keep their access."`
}

type inviteCreateCmd struct {
	Bot     string        `help:"The bot's name, or its platform's when it is the only one there; without it the only bot."`
	Trust   string        `enum:",sandboxed,vault" default:"" help:"sandboxed or vault; without it the bot's preset."`
	Group   string        `placeholder:"ID" help:"Invite to this group instead of direct messages: the group's id, as the panel shows it."`
	Uses    int           `default:"1" help:"For how many people."`
	Expires time.Duration `default:"168h" help:"How long the invitation works."`
	For     time.Duration `help:"How long access lasts, such as 720h; without it, for ever."`
	JSON    bool          `help:"As JSON."`
}

func (c *inviteCreateCmd) Run(p *process) error {
	if c.Uses < 1 {
		return core.Errorf(core.Invalid, "--uses: an invitation is for one person at least")
	}
	inv := codes.Invitation{Bot: c.Bot, Scope: core.ScopeDM, Place: c.Group, Lasts: c.For, UsesLeft: c.Uses, ExpiresAt: time.Now().Add(c.Expires)}
	if c.Group != "" {
		inv.Scope = core.ScopeGroup
	}
	var err error
	if c.Trust != "" {
		if inv.Trust, err = core.ParseTrust(c.Trust); err != nil {
			return err
		}
	}
	res, err := ask(p, "invite/create", order{Invite: &inv})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, map[string]any{"code": res.Code, "link": res.Text, "invitation": res.Invites[0]})
	}
	_, err = fmt.Fprintln(p.stdout, strings.ReplaceAll(chat.InvitationText(res.Text, res.Code, res.Invites[0]), "`", ""))
	return err
}

type inviteListCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *inviteListCmd) Run(p *process) error {
	res, err := ask(p, "invite/list", order{})
	if err != nil {
		return err
	}
	if c.JSON {
		if res.Invites == nil {
			res.Invites = []codes.Invitation{}
		}
		return printJSON(p.stdout, res.Invites)
	}
	if len(res.Invites) == 0 {
		_, err := fmt.Fprintln(p.stdout, "No invitations.")
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tBOT\tTRUST\tWHERE\tUSES LEFT\tUNTIL")
	for _, i := range res.Invites {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", i.ID, i.Bot, i.Trust, strings.TrimSpace(string(i.Scope)+" "+i.Place), i.UsesLeft, i.ExpiresAt.Local().Format("2006-01-02 15:04"))
	}
	return w.Flush()
}

type inviteRevokeCmd struct {
	ID string `arg:"" help:"The invitation's id ('gatehouse invite list' shows it)."`
}

func (c *inviteRevokeCmd) Run(p *process) error {
	if _, err := ask(p, "invite/revoke", order{Ref: c.ID}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.stdout, "Taken back.")
	return err
}

// inviteOrders are the command line's requests about invitations.
func (a *app) inviteOrders(orders map[string]func(context.Context, order) (result, error)) {
	orders["invite/create"] = func(ctx context.Context, o order) (result, error) {
		if o.Invite == nil {
			return result{}, core.Errorf(core.Invalid, "the order could not be read")
		}
		code, inv, err := a.pairing.Codes.Invite(ctx, *o.Invite, cli)
		return result{Code: code, Text: a.inviteLink(inv.Bot, code), Invites: []codes.Invitation{inv}}, err
	}
	orders["invite/list"] = func(ctx context.Context, _ order) (result, error) {
		list, err := a.pairing.Codes.Invites(ctx)
		return result{Invites: list}, err
	}
	orders["invite/revoke"] = func(ctx context.Context, o order) (result, error) {
		return result{}, a.pairing.Codes.RevokeInvite(ctx, o.Ref, cli)
	}
}

// inviteLink is the address that opens a chat with the bot and uses the code;
// "" where the platform has none, or the bot's name there is not known yet.
func (a *app) inviteLink(bot, code string) string {
	if a.bots.Platform(bot) != telegram.Platform || a.hub == nil {
		return ""
	}
	for _, s := range a.hub.States() {
		if s.Bot == bot && s.Username != "" {
			return "https://t.me/" + strings.TrimPrefix(s.Username, "@") + "?start=" + url.QueryEscape(code)
		}
	}
	return ""
}
