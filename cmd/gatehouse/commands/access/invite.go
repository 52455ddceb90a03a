package access

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/connectors/chat/access"
	"gatehouse/core"
	"gatehouse/pairing/codes"
)

// An Invite creates, lists and revokes invitations.
type Invite struct {
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
	For     time.Duration `help:"How long access lasts, such as 30d; without it, for ever."`
	JSON    bool          `help:"As JSON."`
}

func (c *inviteCreateCmd) Run(p *console.Process) error {
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
	var res control.NewInvitation
	if err := p.Request(http.MethodPost, "/control/invitations", inv, &res); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, map[string]any{"code": res.Code, "link": res.Link, "invitation": res.Invitation})
	}
	_, err = fmt.Fprintln(p.Stdout, strings.ReplaceAll(access.InvitationText(res.Link, res.Code, res.Invitation.ExpiresAt.Local().Format(console.Minute), res.Invitation), "`", ""))
	return err
}

type inviteListCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *inviteListCmd) Run(p *console.Process) error {
	var res control.Invitations
	if err := p.Get("/control/invitations", &res); err != nil {
		return err
	}
	const header = "ID\tBOT\tTRUST\tWHERE\tUSES LEFT\tUNTIL"
	return console.PrintList(p.Stdout, c.JSON, res.Invitations, "No invitations.", header, func(i codes.Invitation) string {
		return console.Cells(i.ID, i.Bot, i.Trust, strings.TrimSpace(string(i.Scope)+" "+i.Place), i.UsesLeft, i.ExpiresAt.Local().Format(console.Minute))
	})
}

type inviteRevokeCmd struct {
	ID string `arg:"" help:"The invitation's id ('gatehouse invite list' shows it)."`
}

func (c *inviteRevokeCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodDelete, control.Path("control", "invitations", c.ID), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Stdout, "Taken back.")
	return err
}
