// Package admin is the operator's panel: server-rendered pages that work
// without JavaScript and follow what happens with it. It decides nothing
// itself; every page is a view on interfaces that its callers fill.
package admin

import (
	"cmp"
	"context"
	"embed"
	"html/template"
	"slices"

	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	"gatehouse/admin/people"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/bus"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/usage"
)

// Options for New. A page whose source is nil is not there: neither in the
// menu nor at its address.
type Options struct {
	page.Options

	People      people.Options
	Operations  operations.Options
	Asks        Asks // the page Approvals; Grants are a section of it
	Grants      Grants
	Raises      Raises   // trust for a time: another section of it
	Settings    Settings // the page Settings; Keys are a section of it
	Keys        Keys
	Changes     Changes // what of it can be changed here
	Texts       Texts   // with Changes: what bots say to people by themselves
	Backups     Backups
	BackupJob   func() (page.Job, bool) // how the backup stands that is being made, or was; with Backups
	SearchChats SearchChats             // nil: Chats.List searches, and no excerpt is shown
	Chats       Chats                   // with ChatActs, Runs and Spent: the page Chats; Traces are "what happened to this message"
	ChatActs    ChatActs
	Runs        Runs
	Traces      Traces
	Active      func() []bus.Info // the runs in progress (bus.Bus.Active)
	Sources     []string          // where conversations begin: platforms and "api"
	// Spent is what each of these runs has used (usage.Ledger).
	Spent     func(ctx context.Context, runs ...string) (map[string]usage.Total, error)
	Agents    Agents // with SaveAgent: the page Agents; Servers are a section of it
	SaveAgent SaveAgent
	Servers   func() []mcp.Health // (mcp.Servers.Health)
	Say       Say                 // with the page Chats: the page Chat
	Files     Files               // nil: nothing can be attached there
	Questions Questions           // nil: what a model asks the operator is not answered there
}

// New returns the panel. Mount it at /admin and /admin/, behind a web.Site.
func New(door page.Door, accounts page.Accounts, o Options) *page.Frame {
	p := &Panel{frame: page.New(door, accounts, o.Options), o: o, drawing: make(chan struct{}, 1)}
	p.bots = states(o.Operations.Bots)
	p.people = people.New(p.frame, o.People, people.Links{Bots: p.bots, Chats: p.hasChats()})
	p.operations = operations.New(p.frame, o.Operations, operations.Links{Bots: p.bots, Names: p.people.Names})
	p.frame.Templates(files, p.funcs(), "asks", "raises", "settingsparts", "talkparts")
	p.frame.List(p.items()...)
	p.routes()
	return p.frame
}

// A Panel is the pages of the panel.
type Panel struct {
	frame      *page.Frame
	o          Options
	people     *people.Pages
	operations *operations.Pages
	bots       func() []core.BotState
	drawing    chan struct{} // one for the picture that is made small
}

// menu are the pages of the menu, in its order.
var menu = []string{"overview", "pairing", "approvals", "chats", "people", "agents", "bots", "queue", "models", "settings", "audit", "talk"}

// items returns the pages for the menu.
func (p *Panel) items() (items []page.Item) {
	items = slices.Concat(p.people.Items(), p.operations.Items())
	items = append(items, page.Item{Key: "overview", Path: "/admin", Label: "Overview"})
	if p.o.Asks != nil {
		items = append(items, page.Item{Key: "approvals", Path: "/admin/approvals", Label: "Approvals", Words: "waiting",
			Count: func(ctx context.Context) int { return len(p.waitingAsks(ctx).Value) + asking(p.raises(ctx).Value) }})
	}
	if p.hasChats() {
		items = append(items, page.Item{Key: "chats", Path: chatsPath, Label: "Chats"})
	}
	if p.hasAgents() {
		items = append(items, page.Item{Key: "agents", Path: agentsPath, Label: "Agents", Words: "not well", Urgent: true, Count: func(context.Context) int { return p.agentsUnwell() }})
	}

	if p.o.Settings != nil {
		items = append(items, page.Item{Key: "settings", Path: settingsPath, Label: "Settings"})
	}

	if p.hasTalk() {
		items = append(items, page.Item{Key: "talk", Path: talkPath, Label: "Chat"})
	}
	slices.SortFunc(items, func(a, b page.Item) int { return slices.Index(menu, a.Key) - slices.Index(menu, b.Key) })
	return items
}

// funcs returns what the templates call besides the frame's own functions.
func (p *Panel) funcs() template.FuncMap {
	return template.FuncMap{
		"edit":     editURL,
		"chat":     chatURL,
		"talks":    p.hasChats,
		"sources":  func() []string { return p.o.Sources },
		"searches": func() bool { return p.o.SearchChats != nil },
		"kind":     agent.KindOf,
		"pieces":   pieces,
	}
}

//go:embed templates/*.html
var files embed.FS

func (p *Panel) routes() {
	p.frame.Page("GET /admin/{$}", p.overviewPage)
	p.frame.Page("GET /admin", p.overviewPage)
	if p.o.Asks != nil {
		p.frame.Page("GET /admin/approvals", p.approvalsPage)
		p.frame.Post("POST /admin/approvals/{id}/{verb}", p.settleAsk)
		if p.o.Raises != nil {
			p.frame.Post("POST "+raisesPath+"/{id}/{verb}", p.decideRaise)
		}
		if p.o.Grants != nil {
			p.frame.Post("POST /admin/approvals/grants/{id}/revoke", p.revokeGrant)
		}
	}
	if p.hasChats() {
		p.frame.Page("GET "+chatsPath, p.chatsPage)
		p.frame.Page("GET "+chatsPath+"/{id}", p.chatPage)
		p.frame.Page("GET "+chatsPath+"/{id}/file", p.chatFile)
		p.frame.Post("POST "+chatsPath+"/{id}/{verb}", p.chatAction)
		if p.o.Questions != nil {
			p.frame.Post("POST "+chatsPath+"/{id}/questions/{ask}", p.answerQuestion)
		}
		if p.o.Traces != nil {
			p.frame.Page("GET "+tracePath, p.tracePage)
		}
	}
	p.settingsRoutes()
	if p.hasTalk() {
		p.frame.Page("GET "+talkPath, p.talkPage)
		p.frame.Upload("POST "+talkPath+"/{id}", p.say)
	}

	if p.hasAgents() {
		p.frame.Page("GET /admin/agents", p.agentsPage)
		p.frame.Page("GET "+editPath, p.editPage)
		p.frame.Form("POST "+editPath, maxEdit, p.edit)
	}

}

func (p *Panel) hasChats() bool {
	return p.o.Chats != nil && p.o.ChatActs != nil && p.o.Runs != nil && p.o.Spent != nil
}

func (p *Panel) hasAgents() bool { return p.o.Agents != nil && p.o.SaveAgent != nil }

// states returns the bots sorted by name; none where b is nil.
func states(b operations.Bots) func() []core.BotState {
	return func() []core.BotState {
		if b == nil {
			return nil
		}
		s := slices.Clone(b.States())
		slices.SortFunc(s, func(a, b core.BotState) int { return cmp.Compare(a.Bot, b.Bot) })
		return s
	}
}
