// Package find is the panel's search over conversations and documents of the vault: the
// results, the text of a document, the way to a message, and the state of the index.
package find

import (
	"context"
	"embed"
	"io/fs"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web/auth"
)

const (
	findPath     = "/admin/search" // the frame's layout has it, too
	messagePath  = findPath + "/message"
	documentPath = findPath + "/document"
)

type (
	// A Finder searches (search.Finder).
	Finder interface {
		// Search returns a page of what r may read, the best first. A cursor that it did
		// not return is core.Invalid.
		Search(ctx context.Context, q search.Query, r search.Reader) (search.Page, error)
	}
	// Chats are the conversations, to find the page that has a message.
	Chats interface {
		Detail(ctx context.Context, id string) (session.Detail, error)
		Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error)
	}
	// An Index reports its state.
	Index interface {
		Status(ctx context.Context) (Status, error)
	}
)

// Options for New. Without Finder there is no search.
type Options struct {
	Finder Finder
	Chats  Chats // nil: a conversation's hit leads to its newest messages
	Files  fs.FS // of the vault, following no link (vault.FS); nil: a document's text is not shown
	// MayRead reports whether the user may read a file of Files at this trust.
	MayRead func(trust core.Trust, user int64, name string) bool
	Index   Index // nil: the state of the index is not shown
	// Groups returns the names of the groups that conversations are held in, by
	// conversation; nil: no group is named.
	Groups func(ctx context.Context, ids ...string) (map[string]string, error)
}

// shows reports whether the text of a document is shown.
func (o *Options) shows() bool { return o.Files != nil && o.MayRead != nil }

// Links are what other pages of the panel offer to these.
type Links struct {
	Names func(ctx context.Context) page.Names
	Chat  func(id string) string       // address of a conversation; nil: there are no such pages
	Entry func(file, id string) string // address of an entry of a journal; "" where it is on no page
	// Projects returns projects to choose from, by id, the chosen one among them; nil: there
	// are none.
	Projects func(ctx context.Context, chosen string) []page.Choice
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
	links Links
}

//go:embed templates/*.html
var files embed.FS

// New registers the pages with f. The search field of the frame appears with them.
func New(f *page.Frame, o Options, l Links) *Pages {
	p := &Pages{frame: f, o: o, links: l}
	if o.Finder == nil {
		return p
	}
	f.Templates(files, nil)
	f.Page("GET "+findPath, p.searchPage)
	f.Below("overview", page.Item{Path: findPath, Label: "Search"})
	if o.Chats != nil && l.Chat != nil {
		f.Page("GET "+messagePath, p.message)
	}
	if o.shows() {
		f.Page("GET "+documentPath, p.documentPage)
	}
	return p
}

// reader returns the account of a request as the search has it. Every account of the panel
// reads all conversations, as on the page Chats; files are those of its trust, which a
// viewer's is the lowest of.
func reader(who auth.Principal) search.Reader {
	return search.Reader{User: who.User, Trust: who.Trust, Everyone: true}
}
