// Package toolset decides which tools a turn may use: those that exist, less
// what the turn's trust, its agent and the machine do not allow.
package toolset

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/permission/guard"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/fetch"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/tool/search"
	"gatehouse/core/tool/shell"
	"gatehouse/core/vault"
)

// Options are what a Set is made of.
type Options struct {
	Vault     *vault.Vault
	Agents    *agent.Agents
	Guard     *guard.Guard
	Box       func() (box sandbox.Box, why string)                       // a nil box: nothing runs isolated, and why. Nil: likewise
	Veil      func() *sandbox.Veil                                       // nil, or returns nil: nothing is hidden
	Stage     string                                                     // this program
	Files     []tool.Tool                                                // tools that read and change files of the vault
	Search    search.Finder                                              // of documents and conversations; nil: they are not searched
	Scratch   string                                                     // directory for the shell's temporary files
	SearchURL string                                                     // of a SearXNG server; "": none
	MCPEnv    []string                                                   // names of variables that MCP servers receive
	Version   string                                                     // reported to MCP servers
	Chats     []string                                                   // sources of sessions that are chats: others may have written in them
	GuestRead func() []string                                            // globs that sandboxed users may read
	More      func(t *orchestrator.Turn) []tool.Tool                     // tools that depend on the turn; nil: none
	Meant     func(name string, since time.Time, content io.Reader) bool // shell.Options.Meant; may be nil
	Clock     core.Clock
	Log       *slog.Logger
}

// A Set has the tools of all turns. Methods may be called concurrently.
type Set struct {
	Options
	Servers *mcp.Servers
	Tools   []tool.Tool // those of this program

	shell    *shell.Shell
	settling sync.WaitGroup // until it is known whether programs run isolated
	found    sandbox.Box
	noBox    string
}

// New returns the tools and connects the MCP servers when they are first used.
func New(o Options) (*Set, error) {
	s := &Set{Options: o}
	s.settling.Go(s.settle)
	s.shell = shell.New(shell.Options{Box: s.box, Stage: o.Stage, Veil: o.Veil, Clock: o.Clock, Env: os.Environ(), Temp: o.Scratch, Meant: o.Meant})
	web, err := fetch.New(fetch.Options{Search: o.SearchURL})
	if err != nil {
		return nil, err
	}
	s.Servers = s.newServers()
	s.Tools = slices.Concat(o.Files, []tool.Tool{s.shell.Tool()}, web)
	return s, nil
}

// Close ends the MCP servers and the shell.
func (s *Set) Close() error {
	s.settling.Wait()
	return errors.Join(s.Servers.Close(), s.shell.Close())
}

// searchTime bounds a search by the model's provider, which reads what it finds.
const searchTime = 2 * time.Minute

// WebSearch returns a tool that searches the web by the model's provider.
func WebSearch(look tool.Look) tool.Tool { return fetch.WebSearch(look, searchTime) }

// Names are the names by which metrics count tools.
var Names = []string{"Read", "Write", "Edit", "Glob", "Grep", "Search", "Bash", "WebFetch", "WebSearch", "Skill", "JournalWrite",
	"ReadJournal", "ReadChatLog", "ReadRecentJournals", "ReadRecentSessions", "WriteOutput", "Remind", orchestrator.TaskName, orchestrator.AskName}

// Profile returns the permissions of a turn.
func (s *Set) Profile(t *orchestrator.Turn) permission.Profile {
	in := &t.Rows[0]
	p := permission.Profile{
		User: t.User, Trust: t.Trust, Session: t.Session.ID, Owner: t.Admin, CanAsk: in.Turn == nil || !in.Turn.Alone,
		GuestRead: s.GuestRead(), Bot: in.Bot, Chat: in.Chat, Run: t.Run,
	}
	if t.Raised() {
		p.Since = t.RaisedSince
	}
	p.Configured = configured(t, t.Role.Agent)
	// Trust mode: the owner's own API and panel sessions have it by default, chats
	// only if the owner set it, groups never. A chat's session remains one when it
	// is continued over the API: others may have written in it. A raised turn asks
	// for every call, and so does one that the schedule began.
	own := t.Session.User == t.User && !slices.Contains(s.Chats, t.Session.Source)
	p.Auto = t.Admin && !t.Raised() && !in.Group() && t.Session.TrustAuto(in.Turn != nil && own && in.Bot != core.ScheduleBot)
	return p
}

// Turn returns what tools know of a turn that works in dir with permissions p.
func (s *Set) Turn(t *orchestrator.Turn, p permission.Profile, dir vault.Dir) *tool.Turn {
	mayRead, mayWrite := s.Guard.Bounds(p)
	return &tool.Turn{User: t.User, Trust: t.Trust, Session: t.Session.ID, Run: t.Run, Vault: s.Vault, Dir: dir, MayRead: mayRead, MayWrite: mayWrite}
}

// Equip returns the tools of a turn, and which are missing and why.
func (s *Set) Equip(ctx context.Context, t *orchestrator.Turn, dir vault.Dir, who agent.Agent) (*orchestrator.Kit, error) {
	p := s.Profile(t)
	kit := &orchestrator.Kit{Profile: p, Turn: s.Turn(t, p, dir)}
	var more []tool.Tool
	if s.More != nil {
		more = s.More(t)
	}
	for _, x := range slices.Concat(s.with(t.Trust, t.Shared()), more, s.ofServers(ctx, kit, who)) {
		if !who.Offers(x.Name) {
			continue
		}
		offer := permission.Offered(p, x, s.Isolated())
		if offer.OK {
			kit.Tools = append(kit.Tools, x)
			continue
		}
		why := offer.Why
		if x.Isolated && !s.Isolated() && t.Trust < core.Full {
			why = s.noBox
		}
		kit.Missing = append(kit.Missing, x.Name+": "+why)
	}
	kit.Close = func() {
		s.Servers.End(t.Run)
		if err := s.shell.End(t.Run); err != nil {
			s.Log.Warn("scratch of a run is left", "run", t.Run, "err", err)
		}
	}
	return kit, nil
}

// with returns the program's tools, Search, which finds no conversations and journals for a
// shared turn, and Skill, if there are skills at this trust.
func (s *Set) with(trust core.Trust, shared bool) []tool.Tool {
	tools := slices.Clip(s.Tools)
	if s.Search != nil {
		tools = append(tools, search.New(s.Search, !shared))
	}
	if x, ok := s.skillTool(trust); ok {
		tools = append(tools, x)
	}
	return tools
}
