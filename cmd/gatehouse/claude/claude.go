// Package claude is the Claude Code CLI as the orchestrator's second runtime.
package claude

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/claudecli"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/permission/guard"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool/files"
	"gatehouse/core/toolset"
)

// A Runtime answers turns with the Claude Code CLI. A nil one has no processes.
type Runtime struct {
	*claudecli.Runner
	tools *toolset.Set
}

// Options are what a Runtime needs.
type Options struct {
	Config *configs.Config
	Vault  string // its path
	Veil   func() *sandbox.Veil
	Tools  *toolset.Set
	Guard  *guard.Guard
	Clock  core.Clock
	Log    *slog.Logger
}

// New returns the runtime of the program that CLAUDE_CLI names; nil where it names none.
// An error is one of the setting.
func New(o Options) (*Runtime, error) {
	if o.Config.ClaudeCLI == "" {
		return nil, nil
	}
	if st, err := os.Stat(o.Config.ClaudeCLI); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return nil, core.Errorf(core.Invalid, "GATEHOUSE_CLAUDE_CLI: %s is not a program", o.Config.ClaudeCLI)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &Runtime{tools: o.Tools, Runner: claudecli.New(claudecli.Options{
		Program: o.Config.ClaudeCLI, Stage: self, Veil: o.Veil, Home: o.Vault, Path: filepath.Dir(o.Config.ClaudeCLI) + ":/usr/local/bin:/usr/bin:/bin",
		Key: o.Config.AnthropicAPIKey.Reveal(), BaseURL: o.Config.AnthropicBaseURL, MCPConfig: filepath.Join(o.Vault, ".mcp.json"),
		Guard: o.Guard, Files: files.New(), Clock: o.Clock, Log: o.Log,
	})}, nil
}

// EvictIdle ends processes that no one has used for a while. A nil c has none.
func (c *Runtime) EvictIdle() int {
	if c == nil {
		return 0
	}
	return c.Evict()
}

// modelName is a model's name as the CLI takes it.
var modelName = core.Pattern(`^[A-Za-z0-9][A-Za-z0-9._:@\[\]-]{0,99}$`)

// Answers reports whether the model is named claudecli/NAME.
func (c *Runtime) Answers(model string) bool {
	name, ok := strings.CutPrefix(model, claudecli.Prefix)
	return ok && modelName().MatchString(name)
}

// Refuses explains why the CLI does not answer the turn.
func (c *Runtime) Refuses(t *orchestrator.Turn) string {
	return claudecli.Refusal(permission.Profile{Owner: t.Admin, Trust: t.Trust})
}

// Answer has the CLI answer.
func (c *Runtime) Answer(ctx context.Context, w *orchestrator.Work) (orchestrator.Answer, error) {
	c.tools.Isolated() // waits: by then there is a list of MCP servers, which the program is started with
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

// Prices returns prices where the CLI's models cost what Anthropic's do.
func Prices(cost func(string, core.Tokens) (int64, bool)) func(string, core.Tokens) (int64, bool) {
	return func(model string, u core.Tokens) (int64, bool) {
		if name, ok := strings.CutPrefix(model, claudecli.Prefix); ok {
			model = "anthropic/" + name
		}
		return cost(model, u)
	}
}
