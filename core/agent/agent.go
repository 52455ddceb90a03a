// Package agent decides which agent answers and with which system prompt: the built-in
// agent and those that the owner writes as Markdown, skills, workspaces, the working
// directory, and how text of other users is shown to a model.
package agent

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/core"
	"gatehouse/core/agent/frontmatter"
	"gatehouse/core/vault"
)

// A Fault is an error in a file of an agent, a skill or a workspace.
type Fault = frontmatter.Fault

// DefaultName is the name of the agent that every vault has. A session that
// names it has chosen no one.
const DefaultName = "vault-agent"

// An Agent is who answers.
type Agent struct {
	Name        string
	Description string
	File        string // its file in the vault; "" for the one that every vault has
	Model       string // "" is the setting's
	Prompt      string // its own prompt; a file's replaces the default one, "" keeps that
	// Tools are names of the tools it may use, "mcp__SERVER" for all of a
	// server. They only take away from what the turn's trust is offered: nil
	// takes nothing, an empty list all.
	Tools []string
	// Servers are the MCP servers it may use, nil as above.
	Servers []string
	// Permissions are what goes on unasked in turns of the owner; nil: as the session states.
	Permissions *Permissions
	Context     Context
	// Trust is a ceiling for its turns; Stranger sets none.
	Trust core.Trust
}

// Permissions are what an agent may do unasked. A nil part states nothing.
type Permissions struct {
	Read, Write []string // doublestar globs
	Bash        *Commands
}

// Commands are those that a shell runs unasked: all, or what a pattern matches.
type Commands struct {
	All      bool
	Patterns []string
}

// A Context is what of the vault is in an agent's prompt, as far as the
// sender may read it.
type Context struct {
	Include   []string // doublestar globs of text files
	Exclude   []string // globs of files that are never in its prompt
	MaxTokens int      // of all its files; 0 is 10,000, at most 40,000
}

// Offers reports whether the agent leaves itself a tool that its turn is offered.
func (a Agent) Offers(tool string) bool {
	server, mcp := "", false
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		server, _, mcp = strings.Cut(rest, "__")
	}
	if mcp && a.Servers != nil && !slices.Contains(a.Servers, server) {
		return false
	}
	if a.Tools == nil || slices.Contains(a.Tools, tool) {
		return true
	}
	return mcp && (a.Servers != nil || slices.Contains(a.Tools, "mcp__"+server) || slices.Contains(a.Tools, "mcp__"+server+"__*"))
}

// Default returns the agent of a vault without agents of its own. Names are cleaned;
// an empty botName is left out.
func Default(vaultName, botName string) Agent {
	var b strings.Builder
	b.WriteString("You are a helpful assistant")
	if name := SafeName(botName); botName != "" {
		b.WriteString(", reached as " + quoteName(name))
	}
	b.WriteString(". You work with a folder of plain files called the vault")
	if name := SafeName(vaultName); vaultName != "" {
		b.WriteString(" (" + name + ")")
	}
	b.WriteString(".\n" + defaultText)
	return Agent{Name: DefaultName, Description: "Answers from the files of the vault.", Prompt: b.String()}
}

const defaultText = `
Answer what was asked, briefly and in the language of the question. Your answers are read in a chat: use short paragraphs, lists where they help, and Markdown sparingly.
Rely on what you were given and on what the tools that are offered to you return. Name the file when you use one. When you do not know something, say so; invent no file, no quotation and no result.
You see only what the person you are talking to may see. Do not guess at the rest, and do not promise access to it.
`

// Options of New. The zero value is right for a vault without settings.
type Options struct {
	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Base    Agent        // the agent that every vault has; without a name Default("", "")
	Default string       // the agent of sessions that name none; "": Base (SetDefault)
}

// Agents knows the agents, skills and workspaces of one vault and builds
// prompts. It is safe for concurrent use.
type Agents struct {
	vault *vault.Vault
	files *files
	o     Options

	reading sync.Mutex // one Reload at a time
	now     atomic.Pointer[set]
	preset  atomic.Pointer[string] // the agent of sessions that name none
}

// New reads what there is in v; Watch keeps it as it is on the disk.
func New(v *vault.Vault, o Options) *Agents {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Base.Name == "" {
		o.Base = Default("", "")
	}
	a := &Agents{vault: v, files: newFiles(v), o: o}
	a.now.Store(&set{})
	a.SetDefault(o.Default)
	a.Reload()
	return a
}

// SetDefault has the agent of that name answer from the next turn on where a
// session names none; "" is the one that every vault has.
func (a *Agents) SetDefault(name string) { a.preset.Store(&name) }

// List returns the agents that can be chosen, the one that every vault has first,
// then by name. A file may replace that one.
func (a *Agents) List() []Agent {
	s := a.now.Load()
	if i, ok := s.agentKeys[key(DefaultName)]; ok {
		return slices.Concat([]Agent{s.agents[i]}, s.agents[:i], s.agents[i+1:])
	}
	return append([]Agent{a.o.Base}, s.agents...)
}

// Names returns those of List.
func (a *Agents) Names() (names []string) {
	for _, x := range a.List() {
		names = append(names, x.Name)
	}
	return names
}

// A Role is who answers in a session and within which limits, as it was when
// its turn began.
type Role struct {
	Agent            Agent
	Model            string     // the workspace's, else the agent's; "" is the setting's
	WorkingDirectory string     // the workspace's
	Trust            core.Trust // ceiling of the workspace and the agent; Full when neither sets one
	Warnings         []core.Warning
}

// Role returns who answers in a session that names agent and workspace; either may
// be "". What the workspace reports of an agent holds where the session names
// none. A file that cannot be used closes: the default agent answers, and not
// above trust sandboxed.
func (a *Agents) Role(agent, workspace string) Role {
	r := Role{Trust: core.Full}
	s := a.now.Load()
	if workspace != "" {
		w, ok := s.spaces[workspace]
		if !ok {
			w = Workspace{Trust: core.Sandboxed}
			r.warn("workspace", "the workspace "+shown(workspace)+" cannot be used ("+s.whySpace(workspace)+"): until it can, its sessions have trust sandboxed")
		}
		r.Trust, r.Model, r.WorkingDirectory = ceiling(w.Trust), w.Model, w.WorkingDirectory
		if agent == "" || agent == DefaultName {
			agent = w.Agent
		}
	}
	r.Agent = a.choose(s, agent, &r)
	r.Model = cmp.Or(r.Model, r.Agent.Model)
	r.Trust = core.Least(r.Trust, ceiling(r.Agent.Trust))
	return r
}

// Choose returns the agent of that name or file name: the one asked for, else the
// setting's, else the one that every vault has. An unknown or broken one is
// that last one too, with a warning.
func (a *Agents) Choose(name string) (Agent, []core.Warning) {
	r := a.Role(name, "")
	return r.Agent, r.Warnings
}

func (a *Agents) choose(s *set, name string, r *Role) Agent {
	if name == "" || name == DefaultName {
		name = cmp.Or(*a.preset.Load(), DefaultName)
	}
	if i, ok := s.agentKeys[key(name)]; ok {
		return s.agents[i]
	}
	base := a.o.Base
	if i, ok := s.agentKeys[key(DefaultName)]; ok {
		base = s.agents[i]
	}
	if f, ok := s.broken[key(name)]; ok {
		r.warn("agent", "the agent "+shown(name)+" cannot be used ("+f.String()+"): "+base.Name+" answers, with trust sandboxed, until its file is fixed")
		base.Trust = core.Sandboxed
	} else if key(name) != key(DefaultName) {
		r.warn("agent", "there is no agent "+shown(name)+"; "+base.Name+" answers")
	}
	return base
}

func (r *Role) warn(code, text string) {
	r.Warnings = append(r.Warnings, core.Warning{Code: code, Message: text})
}

// ceiling returns t, or Full where nothing is set.
func ceiling(t core.Trust) core.Trust {
	if t == core.Stranger {
		return core.Full
	}
	return t
}

// shown returns a name that someone else may have written, fit to be shown.
func shown(name string) string { return quoteName(core.CutRunes(core.CleanName(name), 200)) }

// key makes names that differ in case only alike.
func key(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
