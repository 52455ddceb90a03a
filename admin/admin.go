// Package admin is the operator's panel: server-rendered pages that work
// without JavaScript and update themselves with it. It decides nothing itself;
// every page is a view on interfaces that its callers fill. The frame is
// admin/page; groups of pages are packages of their own, joined here.
package admin

import (
	"cmp"
	"context"
	"embed"
	"slices"

	"gatehouse/admin/accounts"
	"gatehouse/admin/approvals"
	"gatehouse/admin/chats"
	"gatehouse/admin/contexts"
	"gatehouse/admin/council"
	"gatehouse/admin/daily"
	"gatehouse/admin/find"
	"gatehouse/admin/imports"
	"gatehouse/admin/journal"
	"gatehouse/admin/logged"
	"gatehouse/admin/memory"
	"gatehouse/admin/nodes"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	"gatehouse/admin/people"
	"gatehouse/admin/projects"
	"gatehouse/admin/reports"
	"gatehouse/admin/settings"
	"gatehouse/core"
)

// Options for New. A page whose source is nil is neither in the menu nor at its
// address.
type Options struct {
	page.Options
	People     people.Options
	Approvals  approvals.Options
	Chats      chats.Options
	Log        logged.Log // of the owner's conversations; nil: not shown
	Operations operations.Options
	Settings   settings.Options
	Accounts   accounts.Options
	Find       find.Options
	Imports    imports.Options
	Daily      daily.Options
	Journal    journal.Options
	Memory     memory.Options
	Projects   projects.Options
	Contexts   contexts.Options
	Council    council.Options
	Reports    reports.Options
	Nodes      nodes.Options
	// Unlisted returns the names of users who are not on the page People, such as those of accounts
	// of the panel; nil: there are none.
	Unlisted func(ctx context.Context) (map[int64]string, error)
}

//go:embed templates/*.html
var files embed.FS

// menu are the pages of the menu, in its order.
var menu = []string{"overview", "pairing", "approvals", "chats", "journal", "memory", "people", "agents", "bots", "queue", "models", "settings", "audit"}

// New returns the panel. Mount it at /admin and /admin/, behind a web.Site.
func New(authn page.Authenticator, in page.Accounts, o Options) *page.Frame {
	f := page.New(authn, in, o.Options)
	bots := states(o.Operations.Bots)
	over := overview{frame: f, logged: logged.New(f, o.Log), reports: reports.New(f, o.Reports), nodes: nodes.New(f, o.Nodes)}
	over.people = people.New(f, o.People, people.Links{Bots: bots, Chats: o.Chats.Exist()})
	names := namesOf(f, over.people.Names, o.Unlisted)
	known := namesOf(f, over.people.AllNames, o.Unlisted)
	var corrections *memory.Pages
	over.operations = operations.New(f, o.Operations, operations.Links{Bots: bots, Names: names, EventNames: func(ctx context.Context) operations.EventNames {
		return operations.EventNames{Names: known(ctx), Subjects: over.people.Subjects(ctx),
			Title:      func(id string) string { return titleOf(ctx, o.Chats.Chats, id) },
			Remembered: func(id string) string { return corrections.Text(ctx, id) }}
	}})
	groups := projects.New(f, o.Projects, projects.Links{Names: known, Chats: o.Chats.Exist()})
	calls, seen := approvals.Links{Names: names}, find.Links{Names: known, Projects: groups.Choices}
	if o.Chats.Exist() {
		calls.Chat, seen.Chat = chats.URL, chats.URL
	}
	diary := journal.New(f, o.Journal)
	seen.Entry = diary.EntryURL
	find.New(f, o.Find, seen)
	imports.New(f, o.Imports)
	councils := council.New(f, o.Council)
	corrections = memory.New(f, o.Memory, memory.Links{Project: groups.Name, Projects: groups.Of, Chats: o.Chats.Exist()})
	over.approvals = approvals.New(f, o.Approvals, calls)
	links := settings.Links{Bots: bots, Names: names, Models: over.operations.Models}
	if o.Operations.Bots != nil {
		links.Switch = over.operations.Switch
	}
	setup := settings.New(f, o.Settings, links)
	over.settings = setup
	accounts.New(f, o.Accounts)
	daily.New(f, o.Daily, daily.Links{Chat: calls.Chat})
	saved := contexts.New(f, o.Contexts)
	talks := chats.New(f, o.Chats, chats.Links{Projects: groups.Choices, ProjectsOf: groups.Of, Contexts: saved.Names, ContextPaths: saved.Paths, Bots: bots, Names: names, Known: known, Models: over.operations.Models, Agents: setup.Agents, Cards: over.approvals.Cards, CouncilLinks: councils.Links, Waiting: over.approvals.Sessions,
		Groups: func(ctx context.Context) (list []chats.Group) {
			for _, g := range over.people.Groups(ctx) {
				list = append(list, chats.Group{Bot: g.Bot, Place: g.Place, Name: g.Name})
			}
			return list
		}})
	f.Templates(files, nil)
	f.Page("GET /admin/{$}", over.page)
	f.Page("GET /admin", over.page)
	items := slices.Concat([]page.Item{{Key: "overview", Path: "/admin", Label: "Overview"}},
		over.people.Items(), over.approvals.Items(), talks.Items(), diary.Items(), corrections.Items(), setup.Items(), over.operations.Items())
	core.Sort(items, func(a, b page.Item) int { return slices.Index(menu, a.Key) - slices.Index(menu, b.Key) })
	f.List(items...)
	return f
}

// namesOf adds the unlisted users to the names of those who are listed.
func namesOf(f *page.Frame, listed func(context.Context) page.Names, unlisted func(context.Context) (map[int64]string, error)) func(context.Context) page.Names {
	if unlisted == nil {
		return listed
	}
	return func(ctx context.Context) page.Names {
		names := listed(ctx)
		for user, name := range page.Once(ctx, f, "accounts", "The names of accounts", unlisted).Value {
			if names[user] == "" {
				names[user] = name
			}
		}
		return names
	}
}

// titleOf returns the title of a conversation; "" where there is none.
func titleOf(ctx context.Context, c chats.Chats, id string) string {
	if c == nil {
		return ""
	}
	d, err := c.Detail(ctx, id)
	if err != nil {
		return ""
	}
	return d.Title
}

// states returns the bots sorted by name; none where b is nil.
func states(b operations.Bots) func() []core.BotState {
	return func() []core.BotState {
		if b == nil {
			return nil
		}
		s := slices.Clone(b.States())
		core.Sort(s, func(a, b core.BotState) int { return cmp.Compare(a.Bot, b.Bot) })
		return s
	}
}
