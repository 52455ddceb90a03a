// Package people is the panel's pages about access: requests, invitations, and who may talk to a bot.
package people

import (
	"context"
	"embed"
	"html/template"
	"io"
	"maps"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/usage"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
	"gatehouse/web/auth"
)

// What the pages show and do. A nil one takes its page, or its section, out.
type (
	// Requests reads the pairing requests.
	Requests interface {
		// Requests lists at most limit requests with this status; "" is all.
		Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error)
		// HasOwner reports whether a user has claimed the bots in chat.
		HasOwner(ctx context.Context) (bool, error)
	}
	// Decisions decide requests. The second
	// decision on one request is a core.Conflict whose text names who was first.
	Decisions interface {
		Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
		Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
		Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
		Undo(ctx context.Context, id string, by core.Actor) (core.PairingRequest, error)
	}
	// Access is who may talk to which bot.
	Access interface {
		Access(ctx context.Context, limit int) ([]core.AccessRow, error)
		RemoveAccess(ctx context.Context, id int64, by core.Actor) error
		// Revoke removes every access of a user on a bot and returns how many there were.
		Revoke(ctx context.Context, bot, platformUserID string, by core.Actor) (int, error)
	}
	// Blocks are the users whose messages are dropped. Bot "*" is every bot.
	Blocks interface {
		Blocks(ctx context.Context) ([]people.Blocked, error)
		BlockUser(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error
		Unblock(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error
		// UndoBlock undoes a block within some seconds, and restores the access it removed.
		UndoBlock(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error
	}
	// Places are the groups a bot has been seen in.
	Places interface {
		Places(ctx context.Context) ([]places.Row, error)
		Enable(ctx context.Context, bot, place, name string, level core.Trust, by core.Actor) error
		Disable(ctx context.Context, bot, place string, by core.Actor) error
	}
	// Persons are users with all their accounts.
	Persons interface {
		Persons(ctx context.Context, limit int) ([]people.Person, error)
		PersonOf(ctx context.Context, user int64) (people.Person, error)
		AccessOf(ctx context.Context, user int64) ([]core.AccessRow, error)
		// PersonsWithAccess lists what Persons lists, with what each may do.
		PersonsWithAccess(ctx context.Context, limit int) ([]people.PersonWithAccess, error)
	}
	// Terms change what a user may do, and which accounts are theirs.
	Terms interface {
		ChangeAccess(ctx context.Context, id int64, a core.Approval, by core.Actor) error
		// GiveAccess opens a bot's direct messages, or with a place a group.
		GiveAccess(ctx context.Context, user int64, bot, place string, a core.Approval, by core.Actor) error
		Unlink(ctx context.Context, user int64, platform string, by core.Actor) error
	}
	// Spending is what users use, and may use in a day and in a month.
	Spending interface {
		Standing(ctx context.Context, user int64) (usage.Standing, error)
		// SetBudget takes amounts as settings do: "200k", "$2", "off" for no
		// bound; "" is the general budget, which has no bound for a month.
		SetBudget(ctx context.Context, user int64, day, month string, by core.Actor) error
	}
	// PersonalData runs the operations on a user's data that go on after the request.
	// Starting one that is running does nothing.
	PersonalData interface {
		Forget(ctx context.Context, user int64, by core.Actor) error
		Export(ctx context.Context, user int64, by core.Actor) error
		// Job returns the state of an operation of this kind ("forget", "export").
		Job(kind string, user int64) (page.Job, bool)
		// OpenExport is the file that an export has made; core.NotFound without one.
		OpenExport(ctx context.Context, user int64, by core.Actor) (io.ReadSeekCloser, time.Time, error)
	}
)

// Invites are the invitations.
type Invites interface {
	Invites(ctx context.Context) ([]codes.Invitation, error)
	Invite(ctx context.Context, inv codes.Invitation, by core.Actor) (code string, made codes.Invitation, err error)
	RevokeInvite(ctx context.Context, id string, by core.Actor) error
}

// Options for New.
type Options struct {
	Requests     Requests // with Decisions: the page Pairing
	Decisions    Decisions
	Invites      Invites                       // with the page Pairing: its invitations
	InviteLink   func(bot, code string) string // "" where a platform has no such links; nil: none has
	Access       Access                        // with Persons: the page People; the following are sections of it
	Persons      Persons
	Keys         func(ctx context.Context, user int64) ([]auth.KeyRow, error) // a user's API keys that open something
	Terms        Terms
	Blocks       Blocks
	Places       Places
	Spending     Spending
	PersonalData PersonalData
	// Preset returns the level chosen beforehand for a bot and scope; nil:
	// sandboxed. It is lowered to vault, the highest that can be given here.
	Preset func(bot string, scope core.Scope) core.Trust
	// Preview returns what a user would see and do at a level; nil: the page
	// Pairing does not show it.
	Preview func(ctx context.Context, level core.Trust) (core.AccessPreview, error)
	// LastSeen returns when users last wrote, or were last answered;
	// nil: the pages don't show it.
	LastSeen func(ctx context.Context, people []people.Person) (map[int64]time.Time, error)
	// SetPlace changes an enabled group: its level, and what the bot takes in
	// there; the rest stays. nil: it cannot be changed here.
	SetPlace func(ctx context.Context, bot, place string, level core.Trust, mention string, by core.Actor) error
}

// Links are what other pages of the panel offer to these.
type Links struct {
	Bots  func() []core.BotState // nil: none is known
	Chats bool                   // there is the page Chats
}

// Pages are the pages of this package.
type Pages struct {
	frame   *page.Frame
	gate    gatePages
	persons personPages
}

// gatePages are the requests and the invitations.
type gatePages struct {
	frame *page.Frame
	o     Options
	bots  func() []core.BotState
}

// personPages are the list of users and the page of each.
type personPages struct {
	frame  *page.Frame
	o      Options
	bots   func() []core.BotState
	lately lately
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	if l.Bots == nil {
		l.Bots = func() []core.BotState { return nil }
	}
	f.Templates(files, template.FuncMap{
		"invites":  func() bool { return o.Invites != nil },
		"talks":    func() bool { return l.Chats },
		"budget":   budgetText,
		"tokens":   usedText,
		"setplace": func() bool { return o.SetPlace != nil },
	}, "peopleparts")
	p := &Pages{frame: f, gate: gatePages{frame: f, o: o, bots: l.Bots}, persons: personPages{frame: f, o: o, bots: l.Bots}}
	p.gate.routes()
	p.persons.routes()
	return p
}

// Items returns the pages for the menu.
func (p *Pages) Items() (items []page.Item) {
	if p.gate.there() {
		items = append(items, page.Item{Key: "pairing", Path: pairingPath, Label: "Pairing", Words: "waiting",
			Count: func(ctx context.Context) int { return len(p.gate.pending(ctx).Value) }})
	}
	if p.persons.there() {
		items = append(items, page.Item{Key: "people", Path: peoplePath, Label: "People"})
	}
	return items
}

// Answer returns the overview's answer on who waits for a decision; false without requests.
// token is that of its forms.
func (p *Pages) Answer(ctx context.Context, token string) (page.Answer, bool) {
	if p.gate.o.Requests == nil {
		return page.Answer{}, false
	}
	return p.gate.answer(ctx, token), true
}

// HasOwner reports whether a user has claimed the bots in chat. It is true
// where that is not known.
func (p *Pages) HasOwner(ctx context.Context) bool {
	if p.gate.o.Requests == nil {
		return true
	}
	owned := page.Load(ctx, p.frame, "Whether the bots have an owner", p.gate.o.Requests.HasOwner)
	return owned.Broken != "" || owned.Value
}

// AllNames returns the names of those who have or had access, of at most 1,000.
func (p *Pages) AllNames(ctx context.Context) page.Names {
	out := page.Names{}
	if p.persons.o.Persons != nil {
		rows := page.Load(ctx, p.frame, "The list of people", func(ctx context.Context) ([]people.Person, error) {
			return p.persons.o.Persons.Persons(ctx, maxPersons)
		})
		for _, row := range rows.Value {
			if name := row.Name(); row.User != core.Operator && name != "" {
				out[row.User] = name
			}
		}
	}
	maps.Copy(out, p.Names(ctx))
	return out
}

// Subjects returns names: of pairing requests by id, of groups by "bot:place".
func (p *Pages) Subjects(ctx context.Context) map[string]string {
	out := map[string]string{} // bounded by maxRecent, and by the groups
	if p.gate.o.Requests != nil {
		for _, q := range p.gate.recent(ctx).Value {
			out[q.ID] = q.Display
		}
	}
	for _, g := range p.Groups(ctx) {
		out[g.Bot+":"+g.Place] = g.Name
	}
	return out
}

// Groups returns the groups that bots have been seen in.
func (p *Pages) Groups(ctx context.Context) []places.Row {
	if p.persons.o.Places == nil {
		return nil
	}
	return page.Load(ctx, p.frame, "The list of groups", p.persons.o.Places.Places).Value
}

// Names returns the names of those who may talk to bots, of the newest 1,000 accesses.
func (p *Pages) Names(ctx context.Context) page.Names {
	out := page.Names{}
	if p.persons.o.Access == nil {
		return out
	}
	rows := page.Once(ctx, p.frame, "access", "The list of people", func(ctx context.Context) ([]core.AccessRow, error) {
		return p.persons.o.Access.Access(ctx, maxPersons)
	})
	for _, a := range rows.Value {
		if strings.TrimSpace(a.Display) != "" {
			out[a.User] = a.Display
		}
	}
	return out
}
