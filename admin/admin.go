// Package admin is the operator's panel: server-rendered pages that work
// without JavaScript and follow what happens with it. It decides nothing
// itself; every page is a view on interfaces that its callers fill.
package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/usage"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// maxForm bounds a form, in bytes.
const maxForm = 64 << 10

type (
	// Door says who makes a request (auth.Door). It is asked for every
	// request, and again while an event stream is open.
	Door interface {
		Identify(r *http.Request) (*http.Request, error)
	}
	// Accounts is the operator's sign-in (auth.Admins).
	Accounts interface {
		SignIn(w http.ResponseWriter, r *http.Request, name, password string) error
		SignOut(w http.ResponseWriter, r *http.Request) error
		SignOutEverywhere(ctx context.Context, user int64, by core.Actor) (int, error)
		// ChangePassword ends all sessions and begins a new one for r.
		ChangePassword(w http.ResponseWriter, r *http.Request, old, password string) error
	}
)

// Options for New. A page whose source is nil is not there: neither in the
// menu nor at its address.
type Options struct {
	Log   *slog.Logger // nil: none
	Clock core.Clock   // nil: the system's

	Requests  Requests // with Decisions: the page Pairing
	Decisions Decisions
	People    People // the page People; Blocks and Places are sections of it
	Blocks    Blocks
	Places    Places
	Asks      Asks // the page Approvals; Grants are a section of it
	Grants    Grants
	Bots      Bots  // the page Bots
	Lanes     Lanes // any of these three: the page Queue
	Dead      Dead
	Sends     Sends
	Bell      Bell // nil: pages are not live

	// Usage sums what models took since a time, one row per model
	// (usage.Ledger); nil: the overview does not say.
	Usage func(ctx context.Context, since time.Time) ([]usage.Total, error)
	// Preset is the level chosen beforehand for a bot and scope; nil: sandboxed.
	// It is lowered to vault, the highest that can be given here.
	Preset func(bot string, scope core.Scope) core.Trust
	// GuestRead are the globs of files that sandboxed people may read.
	GuestRead []string
	// Audit notes what was done to a bot ("bot.start", "bot.stop"); the other
	// sources audit by themselves. nil: not noted.
	Audit func(ctx context.Context, by core.Actor, did, bot string) error
	// Metrics counts the open event streams; nil: not counted.
	Metrics *web.Metrics
}

// A Panel serves the operator's pages. Mount it at /admin and /admin/, behind a web.Site.
type Panel struct {
	door     Door
	accounts Accounts
	o        Options
	log      *slog.Logger
	clock    core.Clock
	key      [32]byte // signs flashes; a new one per process
	sets     map[string]*template.Template
	mux      *http.ServeMux
	streams  atomic.Int64
}

// New parses the templates and makes the routes.
func New(door Door, accounts Accounts, o Options) (*Panel, error) {
	p := &Panel{door: door, accounts: accounts, o: o, log: o.Log, clock: o.Clock, mux: http.NewServeMux()}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.clock == nil {
		p.clock = core.System{}
	}
	_, _ = rand.Read(p.key[:]) // never fails since Go 1.24
	if err := p.parse(); err != nil {
		return nil, err
	}
	p.routes()
	return p, nil
}

// ServeHTTP implements http.Handler. Nothing under /admin but the sign-in is
// answered without a session.
func (p *Panel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	p.mux.ServeHTTP(w, r)
}

func (p *Panel) routes() {
	p.open("GET /admin/login", p.loginPage)
	p.open("POST /admin/login", p.login)
	p.half("GET /admin/password", p.passwordPage)
	p.half("POST /admin/password", p.password)
	p.half("POST /admin/logout", p.logout)
	p.page("GET /admin/", p.missing)
	p.page("GET /admin/{$}", p.overviewPage)
	p.page("GET /admin", p.overviewPage)
	if p.o.Bell != nil {
		p.page("GET /admin/events", p.events)
	}
	if p.o.Requests != nil && p.o.Decisions != nil {
		p.page("GET /admin/pairing", p.pairingPage)
		p.post("POST /admin/pairing/{id}/{verb}", p.decide)
	}
	if p.o.Asks != nil {
		p.page("GET /admin/approvals", p.approvalsPage)
		p.post("POST /admin/approvals/{id}/{verb}", p.settleAsk)
		if p.o.Grants != nil {
			p.post("POST /admin/approvals/grants/{id}/revoke", p.revokeGrant)
		}
	}
	if p.o.People != nil {
		p.page("GET /admin/people", p.peoplePage)
		p.post("POST /admin/people/access/{id}/remove", p.removeAccess)
		p.post("POST /admin/people/revoke", p.revoke)
		p.peopleSections()
	}
	if p.o.Bots != nil {
		p.page("GET /admin/bots", p.botsPage)
		p.post("POST /admin/bots/{bot}/{verb}", p.botAction)
	}
	if p.hasQueue() {
		p.page("GET /admin/queue", p.queuePage)
	}
	if p.o.Dead != nil {
		p.post("POST /admin/queue/dead/{seq}/{verb}", p.deadAction)
	}
	if p.o.Sends != nil {
		p.post("POST /admin/queue/send/{seq}/{verb}", p.sendAction)
	}
}

func (p *Panel) peopleSections() {
	if p.o.Blocks != nil {
		p.post("POST /admin/people/block", p.block)
		p.post("POST /admin/people/unblock", p.unblock)
	}
	if p.o.Places != nil {
		p.post("POST /admin/people/places/enable", p.enablePlace)
		p.post("POST /admin/people/places/disable", p.disablePlace)
	}
}

func (p *Panel) hasQueue() bool { return p.o.Lanes != nil || p.o.Dead != nil || p.o.Sends != nil }

// ---- who may

// open is a route for everybody.
func (p *Panel) open(pattern string, h web.Handler) {
	p.mux.Handle(pattern, web.Serve(p.log, p.fail, web.Body(maxForm, func(w http.ResponseWriter, r *http.Request) error {
		r, _, err := p.identify(r)
		if err != nil {
			return err
		}
		return h(w, r)
	})))
}

// half is a route for sessions, also those that have to choose a password first.
func (p *Panel) half(pattern string, h web.Handler) {
	p.open(pattern, func(w http.ResponseWriter, r *http.Request) error {
		who, ok := principal(r)
		if !ok {
			return p.toLogin(w, r)
		}
		if err := who.CheckCSRF(r); err != nil {
			return err
		}
		return h(w, r)
	})
}

// page is a route for signed-in operators.
func (p *Panel) page(pattern string, h web.Handler) {
	p.half(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if who, _ := principal(r); who.MustChange {
			return p.away(w, r, "/admin/password")
		}
		return h(w, r)
	})
}

// An action does what a form asks and says so, or why not; back is the page to
// return to.
type action func(r *http.Request, by core.Actor) (said flash, back string, err error)

// post answers a form with a redirect. What can't be done is told on the next
// page: a second decision calmly, a fault of ours as one.
func (p *Panel) post(pattern string, do action) {
	p.page(pattern, func(w http.ResponseWriter, r *http.Request) error {
		who, _ := principal(r)
		said, back, err := do(r, who.Actor())
		switch core.KindOf(err) {
		case core.Conflict, core.NotFound:
			said = flash{Kind: "note", Text: sentence(core.TextOf(err))}
		case core.Other:
			if err != nil {
				p.log.ErrorContext(r.Context(), "panel action", "path", r.URL.Path, "err", err)
				said = flash{Kind: "bad", Text: "That did not work, and it is our fault. The log says why; nothing was decided."}
			}
		default:
			said = flash{Kind: "bad", Text: sentence(core.TextOf(err))}
		}
		p.setFlash(w, r, said)
		return p.away(w, r, back)
	})
}

// away redirects; a live page gets the inside of the page it is sent to.
func (p *Panel) away(w http.ResponseWriter, r *http.Request, to string) error {
	if fragment(r) {
		to, _, _ = strings.Cut(to, "#")
		to += "?fragment=1"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// toLogin sends people to the sign-in and tells programs 401.
func (p *Panel) toLogin(w http.ResponseWriter, r *http.Request) error {
	if fragment(r) || r.URL.Path == "/admin/events" {
		return web.Refuse(web.Unauthorized, "sign in first")
	}
	to := "/admin/login"
	if r.Method == http.MethodGet && r.URL.Path != "/admin" {
		to += "?next=" + url.QueryEscape(r.URL.Path)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func (p *Panel) identify(r *http.Request) (*http.Request, auth.Principal, error) {
	r, err := p.door.Identify(r)
	if err != nil {
		return r, auth.Principal{}, err
	}
	who, _ := principal(r)
	return r, who, nil
}

// principal is the operator of r. Keys don't open the panel, whatever their scopes.
func principal(r *http.Request) (auth.Principal, bool) {
	who, ok := auth.From(r.Context())
	return who, ok && who.Session
}

func (p *Panel) token(r *http.Request) string {
	who, _ := principal(r)
	return who.CSRF()
}

func (p *Panel) who(r *http.Request) string {
	who, ok := principal(r)
	switch {
	case !ok:
		return ""
	case who.User == core.Operator:
		return auth.AdminName
	}
	return fmt.Sprintf("user %d", who.User)
}

// fail shows a refused request as a page.
func (p *Panel) fail(w http.ResponseWriter, r *http.Request, pr *web.Problem) {
	if fragment(r) || r.URL.Path == "/admin/events" {
		web.WriteText(w, r, pr)
		return
	}
	text := sentence(pr.Detail)
	if text == "" || pr.Fault.Status >= http.StatusInternalServerError {
		text = sentence(pr.Fault.Title) + " The log says more."
	}
	_, in := principal(r)
	v := view{Title: pr.Fault.Title, Bare: !in, Body: text}
	if err := p.show(w, r, pr.Fault.Status, "error", v); err != nil {
		p.log.ErrorContext(r.Context(), "error page", "err", err)
		web.WriteText(w, r, pr)
	}
}

func (p *Panel) missing(http.ResponseWriter, *http.Request) error {
	return core.Errorf(core.NotFound, "there is no such page in the panel")
}
