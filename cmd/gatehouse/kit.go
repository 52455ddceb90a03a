package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/fetch"
	"gatehouse/core/tool/files"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/shell"
	"gatehouse/core/vault"
)

// kits gives turns their tools: what there is, less what the turn's trust, its
// agent and the machine do not offer.
type kits struct {
	a     *app
	box   sandbox.Box // nil: nothing runs isolated, and noBox says why
	noBox string
	shell *shell.Shell
	tools []tool.Tool

	servers *mcp.Servers
}

func newKits(a *app) (*kits, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	k := &kits{a: a, box: a.box, noBox: a.noBox}
	switch {
	case k.box == nil:
	case k.box.Name() == sandbox.Container:
		a.limits = "the kernel holds memory, processes, processor time of each container (control groups that the container engine makes)"
		a.log.Info("limits of commands below full trust", "how", a.limits)
	default:
		var groups *sandbox.Groups
		groups, a.limits = sandbox.OpenGroups(a.cfg.SandboxCgroup, a.log)
		k.box = sandbox.Limited(k.box, groups)
		a.log.Info("limits of commands below full trust", "how", a.limits)
	}
	scratch := filepath.Join(a.runtime, "scratch")
	if err := makeRuntimeDir(a.runtime); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	a.joinVeil() // after the runtime folder, which it hides
	k.shell = shell.New(shell.Options{Box: k.box, Stage: self, Veil: a.veil, Clock: a.clock, Env: os.Environ(), Temp: scratch})
	web, err := fetch.New(fetch.Options{Search: a.cfg.SearxngURL})
	if err != nil {
		return nil, err
	}
	k.servers = k.newServers(self)
	k.tools = slices.Concat(files.New(), []tool.Tool{k.shell.Tool()}, web)
	if k.box == nil {
		a.log.Warn("below full trust there is no shell", "why", k.noBox)
	}
	return k, nil
}

// searchTime bounds a search by the model's provider, which reads what it finds.
const searchTime = 2 * time.Minute

func webSearch(look tool.Look) tool.Tool { return fetch.WebSearch(look, searchTime) }

// toolNames are what metrics call tools by.
var toolNames = []string{"Read", "Write", "Edit", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "Skill", orchestrator.TaskName, orchestrator.AskName}

// profile is what permissions a turn has.
func (k *kits) profile(t *orchestrator.Turn) permission.Profile {
	in := &t.Rows[0]
	p := permission.Profile{
		User: t.User, Trust: t.Trust, Session: t.Session.ID, Owner: t.Admin, CanAsk: in.Turn == nil || !in.Turn.Alone,
		GuestRead: k.a.settings.Now().GuestRead, Bot: in.Bot, Chat: in.Chat, Run: t.Run,
	}
	if t.Raised() {
		p.Since = t.RaisedSince
	}
	p.Configured = configured(t, t.Role.Agent)
	// Trust mode: the owner's own API and panel sessions unless they say
	// otherwise; in chats only where the owner has said so, and in no group. A
	// chat's conversation stays one when it is gone on with over the API: others
	// may have spoken in it. At trust full for a time every call is asked for.
	own := t.Session.User == t.User && t.Session.Source != telegram.Platform && t.Session.Source != discord.Platform
	p.Auto = t.Admin && !t.Raised() && !in.Group() && t.Session.TrustAuto(in.Turn != nil && own)
	return p
}

// equip is a turn's kit.
func (k *kits) equip(ctx context.Context, t *orchestrator.Turn, dir vault.Dir, who agent.Agent) (*orchestrator.Kit, error) {
	p := k.profile(t)
	mayRead, mayWrite := k.a.guard.Bounds(p)
	kit := &orchestrator.Kit{Profile: p, Turn: &tool.Turn{
		User: t.User, Trust: t.Trust, Session: t.Session.ID, Run: t.Run, Vault: k.a.vault, Dir: dir, MayRead: mayRead, MayWrite: mayWrite,
	}}
	tools := k.tools
	if x, ok := k.skillTool(t.Trust); ok {
		tools = append(slices.Clip(tools), x)
	}
	for _, x := range slices.Concat(tools, k.offered(ctx, kit, who)) {
		if !who.Offers(x.Name) {
			continue
		}
		offer := permission.Offered(p, x, k.box != nil)
		if offer.OK {
			kit.Tools = append(kit.Tools, x)
			continue
		}
		why := offer.Why
		if x.Isolated && k.box == nil && t.Trust < core.Full {
			why = k.noBox
		}
		kit.Missing = append(kit.Missing, x.Name+": "+why)
	}
	kit.Close = func() {
		k.servers.End(t.Run)
		if err := k.shell.End(t.Run); err != nil {
			k.a.log.Warn("scratch of a run is left", "run", t.Run, "err", err)
		}
	}
	return kit, nil
}
