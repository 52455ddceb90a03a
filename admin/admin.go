// Package admin is the operator's panel: server-rendered pages that work
// without JavaScript and follow what happens with it. It decides nothing
// itself; every page is a view on interfaces that its callers fill.
package admin

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/queue"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/usage"
	"gatehouse/pairing"
	"gatehouse/web"
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

	Requests    Requests // with Decisions: the page Pairing
	Decisions   Decisions
	People      People // with Persons: the page People; the following are sections of it
	Persons     Persons
	Terms       Terms
	Blocks      Blocks
	Places      Places
	Spending    Spending
	Care        Care
	Asks        Asks // the page Approvals; Grants are a section of it
	Grants      Grants
	Raises      Raises   // trust for a time: another section of it
	AuditLog    AuditLog // the page Audit
	Settings    Settings // the page Settings; Keys are a section of it
	Keys        Keys
	Changes     Changes // what of it can be changed here
	Texts       Texts   // with Changes: what bots say to people by themselves
	Backups     Backups
	BackupJob   func() (Job, bool) // how the backup stands that is being made, or was; with Backups
	SearchChats SearchChats        // nil: Chats.List searches, and no excerpt is shown
	Chats       Chats              // with ChatActs, Runs and Spent: the page Chats; Traces are "what happened to this message"
	ChatActs    ChatActs
	Runs        Runs
	Traces      Traces
	Active      func() []bus.Info // the runs in progress (bus.Bus.Active)
	Sources     []string          // where conversations begin: platforms and "api"
	ModelsPage  Models            // the page Models and usage
	// Spent is what each of these runs has used (usage.Ledger).
	Spent     func(ctx context.Context, runs ...string) (map[string]usage.Total, error)
	Agents    Agents // with SaveAgent: the page Agents; Servers are a section of it
	SaveAgent SaveAgent
	Servers   func() []mcp.Health // (mcp.Servers.Health)
	Bots      Bots                // the page Bots
	Lanes     Lanes               // any of these three: the page Queue
	Dead      Dead
	Sends     Sends
	Bell      Bell // nil: pages are not live

	// Usage sums what models took since a time, one row per model
	// (usage.Ledger); nil: the overview does not say.
	Usage func(ctx context.Context, since time.Time) ([]usage.Total, error)
	// Preset is the level chosen beforehand for a bot and scope; nil: sandboxed.
	// It is lowered to vault, the highest that can be given here.
	Preset func(bot string, scope core.Scope) core.Trust
	// Preview says what somebody would see and do at a level; nil: the page
	// Pairing does not.
	Preview func(ctx context.Context, level core.Trust) (Preview, error)
	// Stalled are updates that are held or rate-limited (queue.Queue); nil: the page Queue does not list them.
	Stalled    func(ctx context.Context, limit int) ([]queue.Step, error)
	Invites    Invites                       // with the page Pairing: its invitations
	InviteLink func(bot, code string) string // "" where a platform has no such links; nil: nowhere
	Say        Say                           // with the page Chats: the page Chat
	Files      Files                         // nil: nothing can be attached there
	Questions  Questions                     // nil: what a model asks the operator is not answered there
	// Audit notes what was done to a bot ("bot.start", "bot.stop"); the other
	// sources audit by themselves. nil: not noted.
	Audit func(ctx context.Context, by core.Actor, did, bot string) error
	// LastSeen is when people last wrote, or were last answered, by user; nil: nobody says.
	LastSeen func(ctx context.Context, people []pairing.PersonRow) (map[int64]time.Time, error)
	// SetPlace changes an enabled group: its level, and what the bot takes in
	// there; the rest stays. nil: it can't be changed here.
	SetPlace func(ctx context.Context, bot, place string, level core.Trust, mention string, by core.Actor) error
	// Asset is where pages find a style sheet, a script or the icon; nil: below
	// /static/. An address that changes with the file spares browsers a question.
	Asset func(name string) string
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
	pulse    *web.Pulse
	key      [32]byte       // signs flashes; a new one per process
	sets     map[string]set // by page
	mux      *http.ServeMux
	patterns []string // of all routes, as mux has them
	streams  atomic.Int64
	uploads  chan struct{} // one place for each upload at a time
	drawing  chan struct{} // one for the picture that is made small
	lately   lately
}

// New makes the routes.
func New(door Door, accounts Accounts, o Options) *Panel {
	p := &Panel{door: door, accounts: accounts, o: o, log: o.Log, clock: o.Clock, mux: http.NewServeMux(),
		uploads: make(chan struct{}, maxUploads), drawing: make(chan struct{}, 1)}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.clock == nil {
		p.clock = core.System{}
	}
	if p.o.Asset == nil {
		p.o.Asset = func(name string) string { return "/static/" + name }
	}
	p.pulse = web.NewPulse(p.clock)
	_, _ = rand.Read(p.key[:]) // never fails since Go 1.24
	p.prepare()
	p.routes()
	return p
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
		if p.o.Invites != nil {
			p.page("GET "+invitesPath, p.invitesPage)
			p.page("POST "+invitesPath, p.invite)
			p.post("POST "+invitesPath+"/{id}/revoke", p.revokeInvite)
		}
	}
	if p.o.Asks != nil {
		p.page("GET /admin/approvals", p.approvalsPage)
		p.post("POST /admin/approvals/{id}/{verb}", p.settleAsk)
		if p.o.Raises != nil {
			p.post("POST "+raisesPath+"/{id}/{verb}", p.decideRaise)
		}
		if p.o.Grants != nil {
			p.post("POST /admin/approvals/grants/{id}/revoke", p.revokeGrant)
		}
	}
	p.peopleRoutes()
	if p.hasChats() {
		p.page("GET "+chatsPath, p.chatsPage)
		p.page("GET "+chatsPath+"/{id}", p.chatPage)
		p.page("GET "+chatsPath+"/{id}/file", p.chatFile)
		p.post("POST "+chatsPath+"/{id}/{verb}", p.chatAction)
		if p.o.Questions != nil {
			p.post("POST "+chatsPath+"/{id}/questions/{ask}", p.answerQuestion)
		}
		if p.o.Traces != nil {
			p.page("GET "+tracePath, p.tracePage)
		}
	}
	p.settingsRoutes()
	if p.hasTalk() {
		p.page("GET "+talkPath, p.talkPage)
		p.upload("POST "+talkPath+"/{id}", p.say)
	}
	if p.o.ModelsPage != nil {
		p.page("GET "+modelsPath, p.modelsPage)
		p.post("POST "+modelsPath+"/test", p.testModel)
	}
	if p.o.AuditLog != nil {
		p.page("GET "+auditPath, p.auditPage)
		p.page("GET "+auditPath+"/export", p.auditExport)
	}
	if p.hasAgents() {
		p.page("GET /admin/agents", p.agentsPage)
		p.page("GET "+editPath, p.editPage)
		p.page("POST "+editPath, p.edit)
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

func (p *Panel) hasChats() bool {
	return p.o.Chats != nil && p.o.ChatActs != nil && p.o.Runs != nil && p.o.Spent != nil
}

func (p *Panel) hasAgents() bool { return p.o.Agents != nil && p.o.SaveAgent != nil }

func (p *Panel) hasQueue() bool { return p.o.Lanes != nil || p.o.Dead != nil || p.o.Sends != nil }

// ---- who may

// open is a route for everybody.
func (p *Panel) open(pattern string, h web.Handler) {
	limit := int64(maxForm)
	if pattern == "POST "+editPath {
		limit = maxEdit
	}
	p.serve(pattern, web.Body(limit, h))
}

// serve is open for a handler that bounds the body itself.
func (p *Panel) serve(pattern string, h web.Handler) {
	p.patterns = append(p.patterns, pattern)
	p.mux.Handle(pattern, web.Serve(p.log, p.fail, func(w http.ResponseWriter, r *http.Request) error {
		r, _, err := p.identify(r)
		if err != nil {
			return err
		}
		return h(w, r)
	}))
}

// half is a route for sessions, also those that have to choose a password first.
func (p *Panel) half(pattern string, h web.Handler) { p.open(pattern, p.signedIn(h)) }

// page is a route for signed-in operators.
func (p *Panel) page(pattern string, h web.Handler) { p.open(pattern, p.signedIn(p.chosen(h))) }

func (p *Panel) signedIn(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		who, ok := principal(r)
		if !ok {
			return p.toLogin(w, r)
		}
		if err := who.CheckCSRF(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// chosen lets through who has a password of their own.
func (p *Panel) chosen(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if who, _ := principal(r); who.MustChange {
			return p.away(w, r, "/admin/password")
		}
		return h(w, r)
	}
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
