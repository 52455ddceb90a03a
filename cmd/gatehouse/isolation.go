package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
	"gatehouse/core/tool/files"
	tooljournal "gatehouse/core/tool/journal"
	"gatehouse/core/toolset"
)

// openBox opens the sandbox that SANDBOX selects. There is no fallback: auto is
// bubblewrap only, because a container engine
// has more rights than the gateway, and the operator decides whether to use one.
func (a *app) openBox(self string) {
	if a.cfg.Sandbox != sandbox.Container {
		a.box, a.noBox = a.trials.Box()
		return
	}
	o, err := isolation.Container(a.cfg, a.runtime, self)
	if err != nil {
		a.noBox = err.Error()
		return
	}
	o.Log = a.log
	if a.box, a.noBox = container.Open(o); a.box != nil {
		a.closing(func() error {
			container.Close(a.box)
			return nil
		})
	}
}

// beginTrials begins to try the sandbox.
func (a *app) beginTrials(context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	a.trials = isolation.Begin(a.cfg.Sandbox, self)
	a.closing(a.trials.Close)
	return nil
}

// openTools returns the tools of turns. It opens the sandbox, the limits of isolated programs
// and the scratch directory, and hides the gateway's own files.
func (a *app) openTools() (*toolset.Set, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a.openBox(self)
	box := a.box
	switch {
	case box == nil:
	case box.Name() == sandbox.Container:
		a.limits = "the kernel holds memory, processes, processor time of each container (control groups that the container engine makes)"
		a.log.Info("limits of commands below full trust", "how", a.limits)
	default:
		var groups *sandbox.Groups
		groups, a.limits = sandbox.OpenGroups(a.cfg.SandboxCgroup, a.log)
		box = sandbox.Limited(box, groups)
		a.box = box
		a.log.Info("limits of commands below full trust", "how", a.limits)
	}
	scratch := filepath.Join(a.runtime, "scratch")
	if err := control.MakeDir(a.runtime); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	a.veil = a.own.OpenVeil(a.trials.Veil(), a.log) // after the runtime directory exists, which it hides
	return toolset.New(toolset.Options{
		Vault: a.vault, Agents: a.agents, Guard: a.guard, Box: box, NoBox: a.noBox, Veil: a.veil, Stage: self, Files: append(files.New(), tooljournal.New(a.journal, a.nowOf)), More: a.daily.Tools, Search: a.library.Finder, Scratch: scratch,
		SearchURL: a.cfg.SearxngURL, MCPEnv: a.cfg.MCPEnv, Version: version, Chats: []string{telegram.Platform, discord.Platform},
		GuestRead: func() []string { return a.settings.Now().GuestRead }, Meant: a.synced.Meant, Clock: a.clock, Log: a.log,
	})
}

// newPreviews returns what the panel asks about users before they have access.
func (a *app) newPreviews() *toolset.Previews {
	return &toolset.Previews{Set: a.tools, MayRead: a.readable.mayRead, Settings: func() any { return a.settings.Now() }, Model: func(own string) string {
		if m := a.models.Now(); m.Guest != nil || own == "" {
			return m.ForGuests()
		}
		return own
	}}
}
