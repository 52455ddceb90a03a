package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/sandbox"
	"gatehouse/core/store"
)

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine writes v as JSON on one line.
func printLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

type claimCmd struct {
	Replace bool `help:"Also if the bot has an owner already: the new claim replaces them."`
	JSON    bool `help:"As JSON."`
}

func (c *claimCmd) Run(p *process) error {
	var res control.ClaimCode
	if err := p.request(http.MethodPost, "/control/claim", control.ClaimRequest{Replace: c.Replace}, &res); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, res)
	}
	_, err := fmt.Fprintf(p.stdout, "Send this to the bot in a direct message, before %s:\n\n  /claim %s\n", res.ExpiresAt.Local().Format("15:04"), res.Code)
	return err
}

type pairingCmd struct {
	List    pairingListCmd    `cmd:"" help:"List requests."`
	Approve pairingApproveCmd `cmd:"" help:"Approve a request; the pending messages are answered."`
	Deny    pairingDenyCmd    `cmd:"" help:"Deny a request; the sender is notified once, then ignored for a week."`
	Block   pairingBlockCmd   `cmd:"" help:"Block a user permanently."`
	Revoke  pairingRevokeCmd  `cmd:"" help:"Revoke a user's access to a bot and stop their running turns."`
}

type pairingListCmd struct {
	Status string `default:"pending" enum:"pending,approved,denied,expired,all" help:"Which: pending, approved, denied, expired or all."`
	JSON   bool   `help:"As JSON."`
}

func (c *pairingListCmd) Run(p *process) error {
	query := url.Values{"limit": {"500"}}
	if c.Status != "all" {
		query.Set("status", c.Status)
	}
	var res control.Requests
	if err := p.get("/api/bots/pairing?"+query.Encode(), &res); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, res.Requests)
	}
	if len(res.Requests) == 0 {
		_, err := fmt.Fprintln(p.stdout, "No requests.")
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CODE\tSTATUS\tNAME\tBOT\tUSER ID\tWHERE\tAGE\tFIRST MESSAGE")
	for _, r := range res.Requests {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Code, r.Status, core.CleanName(r.Display), r.Bot, r.PlatformUserID, r.Scope,
			time.Since(r.CreatedAt).Round(time.Second), core.CleanName(r.FirstMessage))
	}
	return w.Flush()
}

type pairingApproveCmd struct {
	Ref   string        `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	Trust string        `enum:",sandboxed,vault" default:"" help:"sandboxed or vault; without it the bot's preset."`
	For   time.Duration `help:"How long, such as 24h; without it, without end."`
	JSON  bool          `help:"As JSON."`
}

func (c *pairingApproveCmd) Run(p *process) error {
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
func decide(p *process, asJSON bool, verb, ref, decision string, body any) error {
	var r core.PairingRequest
	if err := p.request(http.MethodPost, control.Path("api", "bots", "pairing", ref, decision), body, &r); err != nil {
		return err
	}
	if asJSON {
		return printJSON(p.stdout, r)
	}
	_, err := fmt.Fprintf(p.stdout, "%s %s (%s %s on %s).\n", verb, core.CleanName(r.Display), r.Platform, r.PlatformUserID, r.Bot)
	return err
}

type pairingDenyCmd struct {
	Ref  string `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingDenyCmd) Run(p *process) error {
	return decide(p, c.JSON, "Denied", c.Ref, "deny", nil)
}

type pairingBlockCmd struct {
	Ref  string `arg:"" name:"code-or-id" help:"The code that the user was shown, or the request's id."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingBlockCmd) Run(p *process) error {
	return decide(p, c.JSON, "Blocked", c.Ref, "block", nil)
}

type pairingRevokeCmd struct {
	Bot  string `arg:"" help:"The bot's name, or its platform's when it is the only one there."`
	User string `arg:"" name:"user-id" help:"The user's id on the platform ('gatehouse pairing list --status approved' shows it)."`
	JSON bool   `help:"As JSON."`
}

func (c *pairingRevokeCmd) Run(p *process) error {
	var res struct {
		Revoked int `json:"revoked"`
	}
	if err := p.request(http.MethodDelete, control.Path("api", "bots", "pairing", c.Bot, c.User), nil, &res); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, res)
	}
	_, err := fmt.Fprintf(p.stdout, "Took back %d access(es) of %s on %s.\n", res.Revoked, c.User, c.Bot)
	return err
}

type doctorCmd struct {
	JSON bool `xor:"form" help:"As JSON."`
	Live bool `xor:"form" help:"Only ask the running gateway whether it works, for health checks; quiet when it does."`
}

func (c *doctorCmd) Run(p *process) error {
	if c.Live {
		cfg, err := configs.Load()
		if err != nil {
			return err
		}
		return doctor.Alive(p.ctx, cfg)
	}
	patient := doctor.Subject{Clock: core.System{}, Newest: store.Newest()}
	patient.Veil = sandbox.ProbeVeil
	patient.Config, patient.Fault = configs.LoadAll()
	if self, err := os.Executable(); err == nil {
		patient.Sandbox = func() []sandbox.Backend { return probeIsolation(patient.Config, self) }
	}
	if patient.Fault == nil {
		if err := c.reach(p, &patient); err != nil {
			return err
		}
	}
	if !doctor.Run(p.ctx, p.stdout, patient, c.JSON) {
		if patient.Fault != nil {
			return errSilentUsage
		}
		return errSilent
	}
	return nil
}

// reach gives the doctor its ways to platform, provider and server.
func (c *doctorCmd) reach(p *process, patient *doctor.Subject) error {
	patient.Settled = settle(p.ctx, patient.Config)
	patient.Config = patient.Settled.Config
	cfg := patient.Config
	dir, err := control.Dir(cfg.VaultPath)
	if err != nil {
		return err
	}
	gateway, limits := control.Dial(dir), "/control/limits"
	patient.Serving = func(ctx context.Context) bool { return gateway.Get(ctx, limits, nil) == nil }
	patient.Limits = func(ctx context.Context) string {
		var r control.Limits
		if gateway.Get(ctx, limits, &r) != nil {
			return ""
		}
		return r.Text
	}
	patient.Test = fleet.Test
	patient.ModelFaults = func(agents *agent.Agents) (lines []string) {
		for _, f := range modelFaults(cfg, agents) {
			lines = append(lines, oneLine(f))
		}
		return lines
	}
	m, err := newModels(cfg, nil, core.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	patient.Model = m.Check
	return nil
}
