// Package chats is the panel's pages about conversations: the list, each
// conversation with what can be done there, writing in one, and what happened
// to a message.
package chats

import (
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"time"

	"gatehouse/admin/chats/thumb"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/web/auth"
)

// What the pages show and do. A nil one takes its page, or its section, out.
type (
	// Chats are all conversations (session.Store with its database).
	Chats interface {
		List(ctx context.Context, f session.Filter) (list []session.Session, next string, err error)
		Detail(ctx context.Context, id string) (session.Detail, error)
		Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error)
		CommonTags(ctx context.Context) ([]session.TagCount, error)
	}
	// Acts are what the operator can do with one.
	Acts interface {
		Update(ctx context.Context, id string, c session.Change, by core.Actor) error
		// Lower sets a lower ceiling of trust; it never goes up again.
		Lower(ctx context.Context, id string, level core.Trust, by core.Actor) error
		// Stop ends the running answer and those that wait; core.Conflict without one.
		Stop(ctx context.Context, id string, by core.Actor) error
		// Delete moves it to the trash.
		Delete(ctx context.Context, id string, by core.Actor) error
	}
	// Runs are the answers that were made (runs.Store).
	Runs interface {
		Line(ctx context.Context, run string) (runs.Line, error)
		LinesOf(ctx context.Context, session string, limit int) ([]runs.Line, error)
		// Failed returns those of these runs that ended with an error.
		Failed(ctx context.Context, runs ...string) ([]runs.Line, error)
		// LastFailed returns the sessions whose newest run failed.
		LastFailed(ctx context.Context, limit int) ([]string, error)
	}
	// Traces is what became of messages (inspect.Reader).
	Traces interface {
		Update(ctx context.Context, bot, id string) (inspect.Step, error)
		UpdatesOf(ctx context.Context, run string) ([]inspect.Step, error)
		RepliesOf(ctx context.Context, key string) ([]inspect.Sent, error)
	}
)

// A Search finds conversations by their text (session.Store.Search).
type Search func(ctx context.Context, f session.Filter) ([]session.Found, string, error)

type (
	// A Saying is a message of who is signed in, in Session, or in a new
	// conversation when that is "". Agent, Model and Context are for a new one; ""
	// is the default's, and no context.
	Saying struct {
		Session, Text string
		Agent, Model  string
		Context       string      // the saved context that a new one is to be about
		Contexts      []string    // its directories and files
		Files         []core.File // kept in the vault
	}
	// A Say has the account of by say something. It returns in which conversation
	// that is, once the message is stored; after an error nothing is, and the
	// files are the caller's to remove.
	Say func(ctx context.Context, s Saying, by core.Actor) (session string, err error)
)

// Questions are what a model asks a user in a conversation.
type Questions interface {
	// Questions are those that wait for this person's answer.
	Questions(ctx context.Context, session string, user int64) ([]ask.Question, error)
	// Answer answers one of this conversation, with an object by question or a
	// text; core.Conflict when it was answered already or has expired.
	Answer(ctx context.Context, session, ask string, answers json.RawMessage, by core.Actor) error
}

// Files keeps what comes with messages (*attach.Keeper).
type Files interface {
	Begin(ctx context.Context, user, most int64) (*attach.Incoming, error)
	Remove(files []core.File)
}

// Options for New.
type Options struct {
	Chats Chats // with Acts, Bound, Waits, Models, Runs and Spent: the page Chats
	Acts  Acts
	// Bound returns the chat that a conversation is held in, and whether there is one.
	Bound func(ctx context.Context, id string) (core.Address, bool, error)
	// Waits reports whether Acts.Stop would find a message that waits, or is being answered.
	Waits func(ctx context.Context, id string) (bool, error)
	// Groups returns the names of the groups that conversations are held in, by
	// conversation; nil: no group is named.
	Groups func(ctx context.Context, ids ...string) (map[string]string, error)
	// Next returns the model of a conversation's next turn, and who chose it:
	// "session", "chat", "agent" or "default" (orchestrator.Next). nil: not shown.
	Next func(ctx context.Context, s session.Session) (model, by string, err error)
	// Models returns the models that a conversation may be given.
	Models func(ctx context.Context, s session.Session) ([]string, error)
	Runs   Runs
	// Spent returns what each of these runs has used (usage.Ledger).
	Spent  func(ctx context.Context, runs ...string) (map[string]usage.Total, error)
	Search Search // nil: Chats.List searches, and no excerpt is shown
	Traces Traces // the page "What happened to a message"
	// Active returns the runs in progress (bus.Bus.Active).
	Active func() []bus.Info
	// Sources returns where conversations can begin now: platforms, "panel" and "api".
	Sources func() []string
	// Label returns what a tool call is about.
	Label func(tool string, input json.RawMessage) string
	Say   Say // the page Chat
	// Retry has the message of a run, the newest of its conversation, answered again,
	// once for each run: core.Conflict if that was asked already, or cannot be. nil:
	// not offered.
	Retry func(ctx context.Context, run string, by core.Actor) error
	Logs  bool // the owner's conversations are logged, unless that is switched off
	// Read returns the files of a conversation that were read for one of the runs
	// (attach.Ledger.ReadFor); nil: what was read of them is not shown.
	Read      func(ctx context.Context, session string, runs ...string) ([]attach.Read, error)
	Files     Files     // nil: nothing can be attached there
	Speech    bool      // speech is transcribed there (GET /api/voice)
	Questions Questions // nil: what a model asks the operator is not answered there
}

// A Group is a group, server or channel by its id and name.
type Group struct{ Bot, Place, Name string }

// Links are what other pages of the panel offer to these.
type Links struct {
	Bots  func() []core.BotState // sorted by name
	Names func(ctx context.Context) page.Names
	// Known are all names, also of those who have no access now; it is asked for a search.
	Known func(ctx context.Context) page.Names
	// Groups are the groups that bots have been seen in; it is asked for a search.
	Groups func(ctx context.Context) []Group
	// Waiting returns the conversations in which a tool call waits for approval.
	Waiting func(ctx context.Context) ([]string, error)
	Models  func() []string // that can be chosen for a new conversation
	Agents  func() []string // that can be chosen to answer
	// Projects returns projects to choose from, by id, the chosen one among them; nil: there
	// are none.
	Projects func(ctx context.Context, chosen string) []page.Choice
	// ProjectsOf is Projects of one user's.
	ProjectsOf func(ctx context.Context, user int64, chosen string) []page.Choice
	// Contexts returns the saved contexts that an account may choose.
	Contexts func(who auth.Principal) []string
	// ContextPaths returns the directories and files of one that a user at this trust may read, and
	// how many more it has.
	ContextPaths func(who auth.Principal, name string, trust core.Trust, user int64) (paths []string, left int, err error)
	// Cards returns the tool calls of a conversation that wait for approval, as
	// forms, or why they can't be read.
	Cards func(ctx context.Context, session, token string, names page.Names) (cards []template.HTML, broken string)
	// CouncilLinks returns links to how answers of councils came about, by run, of runs since a time.
	CouncilLinks func(ctx context.Context, session string, since time.Time) map[string]template.HTML
}

// Exist reports whether o has what the page Chats needs.
func (o *Options) Exist() bool {
	return o.Chats != nil && o.Acts != nil && o.Bound != nil && o.Waits != nil && o.Models != nil && o.Runs != nil && o.Spent != nil
}

// Pages are the pages of this package.
type Pages struct {
	frame  *page.Frame
	o      Options
	links  Links
	thumbs *thumb.Maker
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	p := &Pages{frame: f, o: o, links: l, thumbs: thumb.New()}
	f.Templates(files, template.FuncMap{
		"chat":     URL,
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04 UTC") },
		"trust":    trustWord,
		"sources":  o.Sources,
		"searches": func() bool { return o.Search != nil },
		"says":     func() bool { return o.Say != nil },
	}, "talkparts")
	if !o.Exist() {
		return p
	}
	f.Page("GET "+chatsPath, p.chatsPage)
	f.Page("GET "+chatsPath+"/{id}", p.chatPage)
	f.Page("GET "+chatsPath+"/{id}/file", p.chatFile)
	f.Post("POST "+chatsPath+"/{id}/{verb}", p.chatAction)
	if o.Questions != nil {
		f.Post("POST "+chatsPath+"/{id}/questions/{ask}", p.answerQuestion)
	}
	if o.Traces != nil {
		f.Page("GET "+tracePath, p.tracePage)
	}
	if o.Say != nil {
		f.Page("GET "+talkPath, p.talkPage)
		f.Below("chats", page.Item{Path: talkPath, Label: "New chat"})
		f.Upload("POST "+talkPath+"/{id}", p.say)
	}
	return p
}

// Items returns the pages for the menu.
func (p *Pages) Items() []page.Item {
	if !p.o.Exist() {
		return nil
	}
	return []page.Item{{Key: "chats", Path: chatsPath, Label: "Chats"}}
}
