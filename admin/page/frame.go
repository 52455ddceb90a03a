// Package page is the frame of the operator's panel: who may see a page, its
// layout and menu, the forms with their tokens, the sentence after a form, the
// sign-in, and how the panel writes times, amounts and states. The pages
// themselves come from packages of their own, which register their routes,
// templates and menu entries with a Frame.
package page

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"gatehouse/core"
	"gatehouse/web"
)

// maxForm bounds a form, in bytes.
const maxForm = 64 << 10

type (
	// An Authenticator identifies who makes a request (auth.Authenticator). It is asked for every
	// request, and again while an event stream is open.
	Authenticator interface {
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
	// Codes take the second step of signing in (auth.Admins).
	Codes interface {
		Confirm(w http.ResponseWriter, r *http.Request, ticket, code string) error
	}
	// Links sign in once (auth.Admins).
	Links interface {
		FollowLink(w http.ResponseWriter, r *http.Request, token string) error
	}
	// A Bell rings when something changed (bus.Bus). It closes the channel when
	// the context ends.
	Bell interface {
		Listen(ctx context.Context, topics ...core.Topic) <-chan core.Topic
	}
)

// Options for New.
type Options struct {
	Log   *slog.Logger // nil: none
	Clock core.Clock   // nil: the system's
	Bell  Bell         // nil: pages are not live
	Codes Codes        // nil: no account asks for a code
	Links Links        // of the demo; nil: there is no link that signs in
	// Asset returns the address of a style sheet, a script or the icon; nil:
	// below /static/. With an address that changes with the file, a browser
	// fetches it once.
	Asset func(name string) string
	// Metrics counts the open event streams; nil: not counted.
	Metrics *web.Metrics
}

// A Frame serves the pages that are registered with it, and the sign-in. Mount
// it at /admin and /admin/, behind a web.Site. Routes, Templates, List and Below are
// called before it serves; all else may be called concurrently.
type Frame struct {
	Log   *slog.Logger
	Clock core.Clock

	authenticator Authenticator
	accounts      Accounts
	o             Options
	pulse         *web.Pulse
	key           [32]byte       // signs flashes; a new one per process
	sets          map[string]set // by page
	items         []Item
	below         map[string][]Item // by key of an item; one for each page that is below another
	personal      []Item            // of the menu behind the account's name
	mux           *http.ServeMux
	patterns      []string // of all routes, as mux has them
	streams       atomic.Int64
	uploads       chan struct{} // one place for each upload at a time
}

// New returns a frame that serves the sign-in and the event stream.
func New(authn Authenticator, accounts Accounts, o Options) *Frame {
	f := &Frame{Log: o.Log, Clock: o.Clock, authenticator: authn, accounts: accounts, o: o,
		sets: map[string]set{}, below: map[string][]Item{}, mux: http.NewServeMux(), uploads: make(chan struct{}, maxUploads)}
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	if f.Clock == nil {
		f.Clock = core.System{}
	}
	if f.o.Asset == nil {
		f.o.Asset = func(name string) string { return "/static/" + name }
	}
	f.pulse = web.NewPulse(f.Clock)
	_, _ = rand.Read(f.key[:]) // never fails since Go 1.24
	f.Templates(files, nil)
	f.open("GET /admin/login", f.loginPage)
	f.open("POST /admin/login", f.login)
	if o.Codes != nil {
		f.open("POST /admin/login/code", f.code)
	}
	if o.Links != nil {
		f.open("GET "+LinkPath, f.follow)
	}
	f.half("GET /admin/password", f.passwordPage)
	f.half("POST /admin/password", f.password)
	f.half("POST /admin/logout", f.logout)
	f.half("POST /admin/theme", f.theme)
	f.half("POST /admin/letters", f.letters)
	f.Page("GET /admin/", missing)
	if f.o.Bell != nil {
		f.Page("GET /admin/events", f.events)
	}
	return f
}

// ServeHTTP implements http.Handler. Without a session it answers nothing but
// the sign-in.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	f.mux.ServeHTTP(w, r)
}

// Routes returns the patterns of all routes, as http.ServeMux has them.
func (f *Frame) Routes() []string { return slices.Clone(f.patterns) }

// ---- routes

// Page adds a route for signed-in operators. A form has at most 64 KiB.
func (f *Frame) Page(pattern string, h web.Handler) { f.Form(pattern, maxForm, h) }

// Form is Page for a form of at most limit bytes.
func (f *Frame) Form(pattern string, limit int64, h web.Handler) {
	f.serve(pattern, web.Body(limit, signedIn(f.chosen(h))))
}

// Own is Page for what concerns the account that is signed in and nothing else, such as its
// password: a viewer may do it, too.
func (f *Frame) Own(pattern string, h web.Handler) {
	f.serve(pattern, web.Body(maxForm, signedIn(f.settled(h))))
}

// Secret is Page for a file that has more in it than a viewer may see, such as a backup with the
// secrets of all accounts, or a person's export with what is remembered of them.
func (f *Frame) Secret(pattern string, h web.Handler) {
	f.Page(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if who, _ := Principal(r); who.Viewer {
			return core.Errorf(core.Denied, "your account is a viewer: only an admin may have this file")
		}
		return h(w, r)
	})
}

// An Action does what a form asks. It returns what to say on the next page, or
// why not, and the page to return to.
type Action func(r *http.Request, by core.Actor) (said Flash, back string, err error)

// Post adds a route that answers a form with a redirect. The next page shows
// why it failed: a second decision as a note, anything else as an error.
func (f *Frame) Post(pattern string, do Action) { f.Page(pattern, f.action(do)) }

// OwnPost is Post for what concerns the account that is signed in and nothing else (Own).
func (f *Frame) OwnPost(pattern string, do Action) { f.Own(pattern, f.action(do)) }

func (f *Frame) action(do Action) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		who, _ := Principal(r)
		said, back, err := do(r, who.Actor())
		switch core.KindOf(err) {
		case core.Conflict, core.NotFound:
			said = Flash{Kind: "note", Text: Sentence(core.TextOf(err))}
		case core.Other:
			if err != nil {
				f.Log.ErrorContext(r.Context(), "panel action", "path", r.URL.Path, "err", err)
				said = Flash{Kind: "bad", Text: "The gateway failed to do this. See the log for the reason."}
			}
		default:
			said = Flash{Kind: "bad", Text: Sentence(core.TextOf(err))}
		}
		f.SetFlash(w, r, said)
		if r.PostFormValue("to") == "overview" { // a form that was on the overview leads back there
			back = "/admin"
		}
		return f.Away(w, r, back)
	}
}

// open adds a route that needs no session.
func (f *Frame) open(pattern string, h web.Handler) { f.serve(pattern, web.Body(maxForm, h)) }

// half adds a route for sessions, also those that have to choose a password first.
func (f *Frame) half(pattern string, h web.Handler) { f.open(pattern, signedIn(h)) }

// serve adds a route whose handler bounds the body itself.
func (f *Frame) serve(pattern string, h web.Handler) {
	f.patterns = append(f.patterns, pattern)
	f.mux.Handle(pattern, web.Serve(f.Log, f.fail, func(w http.ResponseWriter, r *http.Request) error {
		r, err := f.authenticator.Identify(r)
		if err != nil {
			return err
		}
		return h(w, r.WithContext(context.WithValue(r.Context(), onceKey{}, memo{})))
	}))
}

// signedIn passes on requests of a session; a form needs its token.
func signedIn(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		who, ok := Principal(r)
		if !ok {
			return toLogin(w, r)
		}
		if err := who.CheckCSRF(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// chosen passes on requests of operators who have a password of their own. A viewer's change
// nothing: this is the one place that refuses the others, for all routes but those of Own.
func (f *Frame) chosen(h web.Handler) web.Handler {
	return f.settled(func(w http.ResponseWriter, r *http.Request) error {
		who, _ := Principal(r)
		if err := who.MayChange(r); err != nil {
			return err
		}
		return h(w, r)
	})
}

// settled passes on requests of accounts that have a password of their own.
func (f *Frame) settled(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if who, _ := Principal(r); who.MustChange {
			return f.Away(w, r, "/admin/password")
		}
		return h(w, r)
	}
}

// Away redirects; a live page gets the inside of the page it is sent to.
func (f *Frame) Away(w http.ResponseWriter, r *http.Request, to string) error {
	if fragment(r) {
		to, _, _ = strings.Cut(to, "#")
		if strings.Contains(to, "?") {
			to += "&fragment=1"
		} else {
			to += "?fragment=1"
		}
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// toLogin redirects a browser to the sign-in and answers a program with 401.
func toLogin(w http.ResponseWriter, r *http.Request) error {
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
