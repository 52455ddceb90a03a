// Package approvals is the panel's page about what waits for the operator's
// approval: tool calls, and trust full for a time.
package approvals

import (
	"context"
	"embed"
	"html/template"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/permission/raise"
)

const approvalsPath = "/admin/approvals"

type (
	// Asks are the tool calls that wait for the operator's approval and those just
	// decided (guard.Guard). The second decision on one is a core.Conflict
	// whose text names who was first.
	Asks interface {
		Pending(ctx context.Context, limit int) ([]ask.Waiting, error)
		Recent(ctx context.Context, limit int) ([]ask.Ask, error)
		// Grant allows the call once, or with a suggested pattern also what it covers.
		Grant(ctx context.Context, id, pattern string, by core.Actor) error
		Deny(ctx context.Context, id string, by core.Actor) error
	}
	// Grants are the patterns that are allowed (guard.Guard).
	Grants interface {
		Grants(ctx context.Context, session string, user int64) ([]permission.GrantRow, error)
		Revoke(ctx context.Context, id string, by core.Actor) error
	}
)

// Raises are trust full for a time, as the owner asks for it in chat
// (raise.Store). The second decision on one is a core.Conflict.
type Raises interface {
	Raises(ctx context.Context) ([]raise.Raise, error)
	// Confirm gives what was asked for, for d; 0 is as long as was asked.
	Confirm(ctx context.Context, id string, d time.Duration, by core.Actor) (raise.Raise, error)
	Deny(ctx context.Context, id string, by core.Actor) error
	End(ctx context.Context, id string, by core.Actor) error
}

// Options for New. A nil source takes its section out of the page.
type Options struct {
	Asks   Asks // the page; without it there is none
	Grants Grants
	Raises Raises
}

// Links are what other pages of the panel offer to these.
type Links struct {
	Names func(ctx context.Context) page.Names // of users
	Chat  func(session string) string          // the address of a conversation; nil: they have none
}

// Pages are the pages of this package.
type Pages struct {
	frame *page.Frame
	o     Options
	links Links
}

//go:embed templates/*.html
var files embed.FS

// New registers the page with f.
func New(f *page.Frame, o Options, l Links) *Pages {
	p := &Pages{frame: f, o: o, links: l}
	f.Templates(files, template.FuncMap{
		"talks": func() bool { return l.Chat != nil },
		"chat":  func(session string) string { return l.Chat(session) },
	}, "asks", "raises")
	if o.Asks == nil {
		return p
	}
	f.Page("GET "+approvalsPath, p.approvalsPage)
	f.Post("POST "+approvalsPath+"/{id}/{verb}", p.settleAsk)
	if o.Raises != nil {
		f.Post("POST "+raisesPath+"/{id}/{verb}", p.decideRaise)
	}
	if o.Grants != nil {
		f.Post("POST "+approvalsPath+"/grants/{id}/revoke", p.revokeGrant)
	}
	return p
}

// Items returns the page for the menu.
func (p *Pages) Items() []page.Item {
	if p.o.Asks == nil {
		return nil
	}
	return []page.Item{{Key: "approvals", Path: approvalsPath, Label: "Approvals", Words: "waiting",
		Count: func(ctx context.Context) int { return len(p.waitingAsks(ctx).Value) + asking(p.raises(ctx).Value) }}}
}

// Sessions returns the conversations in which a tool call waits for approval.
func (p *Pages) Sessions(ctx context.Context) (ids []string, err error) {
	if p.o.Asks == nil {
		return nil, nil
	}
	rows := p.waitingAsks(ctx)
	for _, q := range rows.Value {
		ids = append(ids, q.Session)
	}
	if rows.Broken != "" {
		err = core.Errorf(core.Busy, "%s", rows.Broken)
	}
	return ids, err
}

// Cards returns the tool calls of one conversation that wait for approval, as
// forms that lead back to it, or why they can't be read.
func (p *Pages) Cards(ctx context.Context, session, token string, names page.Names) (cards []template.HTML, broken string) {
	if p.o.Asks == nil {
		return nil, ""
	}
	waiting := p.waitingAsks(ctx)
	for _, q := range waiting.Value {
		if q.Session != session || len(cards) >= maxCards {
			continue
		}
		card, err := p.frame.Fragment("approvals", "ask", askCard{Waiting: q, CSRF: token, Display: names.Of(q.User),
			Left: page.Seconds(q.Request.ExpiresAt.Sub(p.frame.Clock.Now())), Inline: true})
		if err != nil {
			p.frame.Log.ErrorContext(ctx, "panel section", "section", "tool calls", "err", err)
			return cards, "Tool calls can’t be shown right now. See the log."
		}
		cards = append(cards, card)
	}
	return cards, waiting.Broken
}
