// Package phones is a page on which one visitor plays several users on the
// simulated platforms, each in a chat window of their own. It is for the demo
// and for tests: it listens on loopback, and anyone who reaches it may speak as
// anyone.
package phones

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
)

// Bounds of the page.
const (
	maxSend   = 64 << 10 // bytes of a request
	maxBehind = 4096     // changes a reader may be behind
)

// Options change the page; the zero value is the demo's.
type Options struct {
	// Claim is asked for the owner's claim code each time the page opens. ""
	// means that an owner exists: the page then offers no /claim. It offers one only to
	// who is meant to be the owner.
	Claim func() string
	// Prepared are messages that the owner is offered once there is one.
	Prepared []string
	// Panel is the address of the admin panel to link to; "" shows no link.
	Panel string
	Clock core.Clock   // core.System when nil
	Log   *slog.Logger // discards when nil
}

//go:embed page.html static
var files embed.FS

// A page is the handler's state: none but what it was given.
type page struct {
	sims []Platform // in the order in which they are shown
	name []string   // of each, as its World states
	opt  Options
	html *template.Template
}

// New serves the page for these platforms, side by side in their order. Mount
// it at the root of a loopback listener of its own: it refuses hosts that are
// not loopback and requests that come from another site's page.
func New(opt Options, sims ...Platform) (http.Handler, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Clock == nil {
		opt.Clock = core.System{}
	}
	html, err := template.ParseFS(files, "page.html")
	if err != nil {
		return nil, fmt.Errorf("phones page: %w", err)
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, fmt.Errorf("phones page: %w", err)
	}
	p := &page{sims: sims, opt: opt, html: html}
	for _, w := range p.worlds() {
		p.name = append(p.name, w.Platform)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.show)
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /events", p.events)
	mux.Handle("POST /send", p.act(func(sim Platform, a action) (any, error) {
		a.Message = ""
		return struct{}{}, sim.Act(a.Action)
	}))
	mux.Handle("POST /fill", p.act(func(sim Platform, a action) (any, error) {
		if a.Form == "" {
			return nil, core.Errorf(core.NotFound, "there is no such form")
		}
		a.Text, a.Message = "", ""
		return struct{}{}, sim.Act(a.Action)
	}))
	mux.Handle("POST /press", p.act(func(sim Platform, a action) (any, error) {
		if a.Message == "" {
			return nil, core.Errorf(core.NotFound, "there is no such message")
		}
		return struct{}{}, sim.Act(a.Action)
	}))
	mux.Handle("POST /people", p.act(func(sim Platform, a action) (any, error) { return sim.Add(a.Name) }))
	return p.guard(mux), nil
}

// guard lets only pages of this very server in, and sets what browsers enforce.
func (p *page) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !local(r) {
			http.Error(w, "This page is for this machine only.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

func (p *page) show(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Worlds []World
		Panel  string
	}{p.worlds(), p.opt.Panel}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := p.html.Execute(w, data); err != nil {
		p.opt.Log.ErrorContext(r.Context(), "phones page", "err", err)
	}
}

func (p *page) worlds() (out []World) {
	for _, sim := range p.sims {
		out = append(out, sim.World())
	}
	return out
}

// A state is all that the page needs to begin.
type state struct {
	Worlds []World `json:"worlds"`
	Claim  *string `json:"claim"` // null: not known; "": there is an owner
	// Prepared are messages that the owner is offered.
	Prepared []string `json:"prepared,omitempty"`
}

func (p *page) state() state {
	s := state{Worlds: p.worlds(), Prepared: p.opt.Prepared}
	if p.opt.Claim != nil {
		code := p.opt.Claim()
		s.Claim = &code
	}
	return s
}

// follow joins what becomes visible on all platforms from now on. The channel
// closes with ctx, and when one of them ends: a reader that fell behind.
func (p *page) follow(ctx context.Context) <-chan Change {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan Change)
	var each sync.WaitGroup
	for _, sim := range p.sims {
		changes := sim.Changes(ctx) // from here on, before the state is read
		each.Go(func() {
			defer cancel()
			for c := range changes {
				select {
				case out <- c:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() { each.Wait(); cancel(); close(out) }()
	return out
}

// events sends the state once, then every change. A reader that falls behind
// is cut off; its EventSource comes back and gets the state again.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	changes := p.follow(r.Context())
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	first := p.state()
	claim := first.Claim
	if write(w, "state", first) != nil || rc.Flush() != nil {
		return
	}
	beat := p.opt.Clock.After(15 * time.Second)
	for {
		select {
		case c, ok := <-changes:
			if !ok || write(w, "change", c) != nil {
				return
			}
			if c.Kind == ChangeMessage && c.Message.From.Bot && p.claimed(w, &claim) != nil {
				return
			}
		case <-beat:
			beat = p.opt.Clock.After(15 * time.Second)
			fmt.Fprint(w, ": still here\n\n")
			if p.claimed(w, &claim) != nil {
				return
			}
		}
		if rc.Flush() != nil {
			return
		}
	}
}

// claimed sends the owner's claim code when it is another one than the page
// has: the old one ran out, or there is an owner now.
func (p *page) claimed(w http.ResponseWriter, last **string) error {
	if p.opt.Claim == nil {
		return nil
	}
	code := p.opt.Claim()
	if **last == code {
		return nil
	}
	*last = &code
	return write(w, "claim", code)
}

func write(w http.ResponseWriter, event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, b)
	return err
}

// An action is what is asked for: Name is of a new person.
type action struct {
	Action
	Name string `json:"name"`
}

// act reads a small JSON body; a form of another site can't send one.
func (p *page) act(do func(Platform, action) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a action
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		err := core.Errorf(core.Invalid, "the body must be JSON")
		if kind == "application/json" {
			err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSend)).Decode(&a)
		}
		var result any
		var big *http.MaxBytesError
		switch {
		case errors.As(err, &big):
			err = core.Errorf(core.TooLarge, "that is too long")
		case err != nil:
			err = core.Errorf(core.Invalid, "the body must be JSON")
		default:
			result, err = p.perform(a, do)
		}
		p.answer(w, r, result, err)
	})
}

func (p *page) perform(a action, do func(Platform, action) (any, error)) (any, error) {
	i := slices.Index(p.name, a.Platform)
	if i < 0 {
		return nil, core.Errorf(core.NotFound, "there is no such platform")
	}
	return do(p.sims[i], a)
}

func (p *page) answer(w http.ResponseWriter, r *http.Request, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	if err != nil {
		known := map[core.Kind]int{core.Invalid: 400, core.Denied: 403, core.NotFound: 404, core.TooLarge: 413}
		text := err.Error()
		if status = known[core.KindOf(err)]; status == 0 {
			status, text = http.StatusInternalServerError, "internal error"
			p.opt.Log.ErrorContext(r.Context(), "phones", "err", err)
		}
		result = map[string]string{"error": text}
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(result)
}
