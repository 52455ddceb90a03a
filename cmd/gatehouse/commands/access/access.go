// Package access has the commands for who may use the bots, the API and the panel.
package access

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
)

// A Claim prints a code with which the owner claims the bots.
type Claim struct {
	Replace bool `help:"Also if the bot has an owner already: the new claim replaces them."`
	JSON    bool `help:"As JSON."`
}

func (c *Claim) Run(p *console.Process) error {
	var res control.ClaimCode
	if err := p.Request(http.MethodPost, "/control/claim", control.ClaimRequest{Replace: c.Replace}, &res); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, res)
	}
	_, err := fmt.Fprintf(p.Stdout, "Send this to the bot in a direct message, before %s:\n\n  /claim %s\n", res.ExpiresAt.Local().Format(console.Minute), res.Code)
	return err
}

// A Pairing lists and decides requests for access.
type Pairing struct {
	List    pairingListCmd    `cmd:"" help:"List requests."`
	Approve pairingApproveCmd `cmd:"" help:"Approve a request; the pending messages are answered. Also for a user whose access was revoked."`
	Deny    pairingDenyCmd    `cmd:"" help:"Deny a request; the sender is notified once, then ignored for a week."`
	Block   pairingBlockCmd   `cmd:"" help:"Block a user permanently."`
	Revoke  pairingRevokeCmd  `cmd:"" help:"Revoke a user's access to a bot and stop their running turns."`
}

type pairingListCmd struct {
	Status string `default:"pending" enum:"pending,approved,denied,expired,all" help:"Which: pending, approved, denied (also revoked and blocked), expired or all."`
	JSON   bool   `help:"As JSON."`
}

func (c *pairingListCmd) Run(p *console.Process) error {
	query := url.Values{"limit": {"500"}}
	if c.Status != "all" {
		query.Set("status", c.Status)
	}
	var res control.Requests
	if err := p.Get("/api/bots/pairing?"+query.Encode(), &res); err != nil {
		return err
	}
	const header = "CODE OR ID\tSTATUS\tNAME\tBOT\tUSER ID\tWHERE\tAGE\tFIRST MESSAGE"
	return console.PrintList(p.Stdout, c.JSON, res.Requests, "No requests.", header, func(r core.PairingRequest) string {
		state := r.Status
		switch {
		case r.Revoked:
			state = "revoked"
		case r.Blocked:
			state = "blocked"
		}
		return console.Cells(r.Ref(time.Now()), state, core.CleanName(r.Display), r.Bot, r.PlatformUserID, r.Scope,
			time.Since(r.CreatedAt).Round(time.Second), core.CleanName(r.FirstMessage))
	})
}

type pairingApproveCmd struct {
	Ref   string        `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	Trust string        `enum:",sandboxed,vault" default:"" help:"sandboxed or vault; without it the bot's preset."`
	For   time.Duration `help:"How long, such as 24h or 7d; without it, without end."`
	JSON  bool          `help:"As JSON."`
}

func (c *pairingApproveCmd) Run(p *console.Process) error {
	approval := map[string]any{}
	if c.Trust != "" {
		approval["trust_level"] = c.Trust
	}
	if c.For > 0 {
		approval["expires_at"] = time.Now().Add(c.For)
	}
	return decide(p, c.JSON, "Approved", c.Ref, "approve", approval)
}

// decide decides the request that ref names and prints it.
func decide(p *console.Process, asJSON bool, verb, ref, decision string, body any) error {
	var r core.PairingRequest
	if err := p.Request(http.MethodPost, control.Path("api", "bots", "pairing", ref, decision), body, &r); err != nil {
		return err
	}
	if asJSON {
		return console.PrintJSON(p.Stdout, r)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s %s (%s %s on %s).\n", verb, core.CleanName(r.Display), r.Platform, r.PlatformUserID, r.Bot)
	return err
}

type pairingDenyCmd struct {
	Ref  string `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingDenyCmd) Run(p *console.Process) error {
	return decide(p, c.JSON, "Denied", c.Ref, "deny", nil)
}

type pairingBlockCmd struct {
	Ref  string `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingBlockCmd) Run(p *console.Process) error {
	return decide(p, c.JSON, "Blocked", c.Ref, "block", nil)
}

type pairingRevokeCmd struct {
	Bot  string `arg:"" help:"The bot's name, or its platform's when it is the only one there."`
	User string `arg:"" name:"user-id" help:"The user's id on the platform ('gatehouse pairing list --status approved' shows it)."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingRevokeCmd) Run(p *console.Process) error {
	var res struct {
		Revoked int `json:"revoked"`
	}
	if err := p.Request(http.MethodDelete, control.Path("api", "bots", "pairing", c.Bot, c.User), nil, &res); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, res)
	}
	_, err := fmt.Fprintf(p.Stdout, "Took back %d access(es) of %s on %s.\nTo approve them again: 'gatehouse pairing list --status denied' shows the id, 'gatehouse pairing approve ID' approves it.\n", res.Revoked, c.User, c.Bot)
	return err
}
