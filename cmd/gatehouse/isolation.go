package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/core/tool/files"
	tooljournal "gatehouse/core/tool/journal"
	"gatehouse/core/toolset"
)

// tries begins the trials of the sandbox: see isolation.Begin.
type tries func(mode, self string) *isolation.Trials

// beginTrials begins to try the sandbox.
func (a *app) beginTrials(try tries) func(context.Context) error {
	return func(context.Context) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		a.trials = try(a.cfg.Sandbox, self)
		a.closing(a.trials.Close)
		return nil
	}
}

// openTools returns the tools of turns. It has the sandbox opened with the limits of isolated
// programs, and the gateway's own files hidden, and waits for neither: the first turn does.
func (a *app) openTools() (*toolset.Set, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a.sandbox = a.trials.Open(a.cfg, a.runtime, self, a.log)
	a.closing(a.sandbox.Close)
	scratch := filepath.Join(a.runtime, "scratch")
	if err := control.MakeDir(a.runtime); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	a.veil = a.own.OpenVeil(a.trials.Veil, a.log) // after the runtime directory exists, which it hides
	a.closing(func() error { a.veil(); return nil })
	return toolset.New(toolset.Options{
		Vault: a.vault, Agents: a.agents, Guard: a.guard, Box: a.sandbox.Box, Veil: a.veil, Stage: self, Files: append(files.New(), tooljournal.New(a.journal, a.nowOf)), More: a.daily.Tools, Search: a.library.Finder, Scratch: scratch,
		SearchURL: a.cfg.SearxngURL, MCPEnv: a.cfg.MCPEnv, Version: version, Chats: fleet.Addable(),
		GuestRead: func() []string { return a.settings.Now().GuestRead }, Meant: a.synced.Meant, Clock: a.clock, Log: a.log,
	})
}

// newPreviews returns what the panel asks about users before they have access.
func (a *app) newPreviews() *toolset.Previews {
	return &toolset.Previews{Set: a.tools, MayRead: a.readable.mayRead, Settings: func() any { return a.settings.Now() }, Model: func(own string, guest bool) string {
		m, err := a.models.Find(own, guest)
		if err != nil { // it is not there, or not for guests
			if m, err = a.models.Find("", guest); err != nil {
				return ""
			}
		}
		return m.About().Name
	}}
}

// isolated reports whether programs run isolated.
func (a *app) isolated() bool {
	box, _ := a.sandbox.Box()
	return box != nil
}
