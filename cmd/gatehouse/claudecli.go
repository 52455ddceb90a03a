package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/claudecli"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/tool/files"
	"gatehouse/core/toolset"
)

// claudeCode is the Claude Code CLI as the orchestrator's second runtime.
type claudeCode struct {
	*claudecli.Runner
	tools *toolset.Set
}

// joinClaude makes the runtime where CLAUDE_CLI names a program; without, it is nil.
func (a *app) joinClaude() (*claudeCode, error) {
	if a.cfg.ClaudeCLI == "" {
		return nil, nil
	}
	if st, err := os.Stat(a.cfg.ClaudeCLI); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return nil, core.Errorf(core.Invalid, "GATEHOUSE_CLAUDE_CLI: %s is not a program", a.cfg.ClaudeCLI)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &claudeCode{tools: a.tools, Runner: claudecli.New(claudecli.Options{
		Program: a.cfg.ClaudeCLI, Stage: self, Veil: a.veil, Home: a.vault.Path(), Path: filepath.Dir(a.cfg.ClaudeCLI) + ":/usr/local/bin:/usr/bin:/bin",
		Key: a.cfg.AnthropicAPIKey.Reveal(), BaseURL: a.cfg.AnthropicBaseURL, MCPConfig: filepath.Join(a.vault.Path(), ".mcp.json"),
		Guard: a.guard, Files: files.New(), Clock: a.clock, Log: a.log,
	})}
	a.claude = c
	a.closing(c.Close)
	return c, nil
}

// evict ends processes that no one has used for a while. A nil c has none.
func (c *claudeCode) evict() int {
	if c == nil {
		return 0
	}
	return c.Evict()
}

// claudeName is a model's name as the CLI takes it.
var claudeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@\[\]-]{0,99}$`)

// Answers reports whether the model is named claudecli/NAME.
func (c *claudeCode) Answers(model string) bool {
	name, ok := strings.CutPrefix(model, claudecli.Prefix)
	return ok && claudeName.MatchString(name)
}

// Refuses explains why the CLI does not answer the turn.
func (c *claudeCode) Refuses(t *orchestrator.Turn) string {
	return claudecli.Refusal(permission.Profile{Owner: t.Admin, Trust: t.Trust})
}

// Answer has the CLI answer.
func (c *claudeCode) Answer(ctx context.Context, w *orchestrator.Work) (orchestrator.Answer, error) {
	p, t := c.tools.Profile(w.Turn), w.Turn
	p.Named = w.Named
	got, err := c.Runner.Answer(ctx, &claudecli.Turn{
		Session: t.Session.ID, Resume: w.Resume, Dir: w.Dir.Path, Model: strings.TrimPrefix(w.Model, claudecli.Prefix),
		System: w.System, Replace: w.Replace, Line: w.Line, Said: w.Said, Profile: p, Offers: w.Agent.Offers,
		Tools: c.tools.Turn(t, p, w.Dir),
		Still: w.Still, Emit: w.Emit, Waiting: w.Waiting, Heard: w.Heard, Busy: w.Busy,
	})
	a := orchestrator.Answer{Text: got.Text, Said: got.Said, Calls: got.Calls, MicroUSD: got.MicroUSD}
	if got.Counted {
		a.Usage = &core.Tokens{Input: got.Usage.Input, Output: got.Usage.Output, CacheRead: got.Usage.CacheRead, CacheWrite: got.Usage.CacheWrite}
	}
	if f := got.Fault; f != nil {
		a.Fault = &llm.Fault{Code: f.Code, Text: f.Text, CanRetry: f.CanRetry, Err: f.Err}
	}
	if err != nil {
		return a, fmt.Errorf("claude code: %w", err)
	}
	return a, nil
}

// pricesOf returns the prices that the operator sets.
func pricesOf(set values.Prices) map[string]llm.Price {
	prices := make(map[string]llm.Price, len(set)) // one per model in the setting
	for name, p := range set {
		prices[name] = llm.Price{Input: p.Input, Output: p.Output}
	}
	return prices
}

// claudePrices returns prices where the CLI's models cost what Anthropic's do.
func claudePrices(cost func(string, core.Tokens) (int64, bool)) func(string, core.Tokens) (int64, bool) {
	return func(model string, u core.Tokens) (int64, bool) {
		if name, ok := strings.CutPrefix(model, claudecli.Prefix); ok {
			model = "anthropic/" + name
		}
		return cost(model, u)
	}
}
