// Package phones is a page on which one visitor plays several people on the
// simulated Telegram, each in a phone of their own. It is for the demo and for
// tests: it listens on loopback, and whoever reaches it may speak as anybody.
package phones

import (
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
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// Bounds of the page.
const (
	maxPhones = 12  // people shown at once
	maxShown  = 100 // messages sent for each chat when the page opens
	maxSend   = 64 << 10
)

// GroupTitle is the group that everybody is in.
const GroupTitle = "Reading circle"

// Options change the page; the zero value is the demo's.
type Options struct {
	// Claim is asked for the owner's claim code each time the page opens. ""
	// says that an owner exists: the page then offers no /claim.
	Claim func() string
	// Panel is the address of the admin panel to link to; "" shows no link.
	Panel string
	Clock core.Clock   // core.System when nil
	Log   *slog.Logger // discards when nil
}

//go:embed page.html static
var files embed.FS

// A page is the handler's state: none but what it was given.
type page struct {
	sim   *telegramtest.Server
	opt   Options
	group *telegramtest.Group
	html  *template.Template
}

// cast are the people a fresh world begins with, and what their phones say of them.
var cast = []struct{ name, username, note string }{
	{"Ada", "ada_reads", "a stranger at first"},
	{"Ben", "ben_b", "another one"},
	{"Olga", "olga_owns", "the owner, after her /claim"},
}

// Seed makes the default people (Ada, Ben and Olga, who is meant to be the
// owner) and the group they share, where they do not exist yet, and returns
// the group. A simulator that kept its state keeps its people.
func Seed(sim *telegramtest.Server) (*telegramtest.Group, error) {
	people := sim.Users()
	if len(people) == 0 {
		for _, p := range cast {
			u, err := sim.AddUser(telegramtest.Account{FirstName: p.name, Username: p.username, LanguageCode: "en"})
			if err != nil {
				return nil, fmt.Errorf("seed people: %w", err)
			}
			people = append(people, u)
		}
	}
	slices.SortFunc(people, func(a, b *telegramtest.User) int { return int(a.ID() - b.ID()) })
	for _, c := range sim.Chats() {
		if c.Title == GroupTitle && len(c.Members) > 0 {
			return sim.Group(c.Chat), nil
		}
	}
	g, err := sim.AddGroup(telegramtest.Supergroup, GroupTitle, people[len(people)-1], people[:len(people)-1]...)
	if err != nil {
		return nil, fmt.Errorf("seed group: %w", err)
	}
	return g, nil
}

// New serves the page for sim, after Seed. Mount it at the root of a
// loopback listener of its own: it refuses hosts that are not loopback and
// requests that come from another site's page.
func New(sim *telegramtest.Server, opt Options) (http.Handler, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Clock == nil {
		opt.Clock = core.System{}
	}
	group, err := Seed(sim)
	if err != nil {
		return nil, err
	}
	html, err := template.ParseFS(files, "page.html")
	if err != nil {
		return nil, fmt.Errorf("phones page: %w", err)
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, fmt.Errorf("phones page: %w", err)
	}
	p := &page{sim, opt, group, html}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.show)
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	mux.HandleFunc("GET /events", p.events)
	mux.Handle("POST /send", p.act((*page).send))
	mux.Handle("POST /press", p.act((*page).press))
	mux.Handle("POST /people", p.act((*page).addPerson))
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
	bot := p.sim.Bot().Account()
	data := struct {
		Bot   telegramtest.Account
		Panel string
	}{bot, p.opt.Panel}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := p.html.Execute(w, data); err != nil {
		p.opt.Log.ErrorContext(r.Context(), "phones page", "err", err)
	}
}

// A person is one phone.
type person struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Username string `json:"username,omitempty"`
	Note     string `json:"note,omitempty"`
}

func personOf(a telegramtest.Account) person {
	v := person{ID: a.ID, Name: a.Name(), Username: a.Username}
	for _, c := range cast {
		if c.username == a.Username {
			v.Note = c.note
		}
	}
	return v
}

// A state is all that the page needs to begin.
type state struct {
	Bot     telegramtest.Account `json:"bot"`
	Group   groupState           `json:"group"`
	People  []person             `json:"people"`
	Private map[int64]window     `json:"private"` // by person
	Claim   *string              `json:"claim"`   // null: not known; "": there is an owner
	Menu    []string             `json:"menu"`
}

type window = telegramtest.Screen

type groupState struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
	window
}

func (p *page) state() state {
	bot := p.sim.Bot()
	s := state{Bot: bot.Account(), Private: map[int64]window{}, People: []person{}, Menu: []string{}}
	s.Group = groupState{p.group.ID(), GroupTitle, shorten(p.sim.Screen(p.group.Conversation()))}
	users := p.sim.Users()
	slices.SortFunc(users, func(a, b *telegramtest.User) int { return int(a.ID() - b.ID()) })
	for _, u := range users[:min(len(users), maxPhones)] {
		s.People = append(s.People, personOf(u.Account()))
		s.Private[u.ID()] = shorten(p.sim.Screen(u.DM()))
	}
	if p.opt.Claim != nil {
		code := p.opt.Claim()
		s.Claim = &code
	}
	for _, c := range bot.Commands() {
		s.Menu = append(s.Menu, "/"+c.Command)
	}
	return s
}

func shorten(v window) window {
	v.Messages = v.Messages[max(len(v.Messages)-maxShown, 0):]
	return v
}

// events sends the state once, then every change. A reader that falls behind
// is cut off; its EventSource comes back and gets the state again.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	changes := p.sim.Subscribe(r.Context(), 4096) // before the state, so that nothing falls between
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
			if c.Kind == "message" && c.Message.From.IsBot && p.claimed(w, &claim) != nil {
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

// An action is what a visitor does as a person. Chat is the group's id, or 0
// for the private chat with the bot.
type action struct {
	From    int64  `json:"from"`
	Chat    int64  `json:"chat"`
	Text    string `json:"text"`
	ReplyTo int    `json:"reply_to"`
	Message int    `json:"message"`
	Data    string `json:"data"`
	Name    string `json:"name"`
}

// act reads a small JSON body; a form of another site can't send one.
func (p *page) act(do func(*page, action) (any, error)) http.Handler {
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
			result, err = do(p, a)
		}
		p.answer(w, r, result, err)
	})
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

func (p *page) who(a action) (*telegramtest.User, telegramtest.Conversation, error) {
	u := p.sim.User(a.From)
	if u == nil {
		return nil, telegramtest.Conversation{}, core.Errorf(core.NotFound, "there is no such person")
	}
	if a.Chat == 0 {
		return u, u.DM(), nil
	}
	return u, telegramtest.Conversation{Chat: a.Chat}, nil
}

func (p *page) send(a action) (any, error) {
	u, to, err := p.who(a)
	if err != nil {
		return nil, err
	}
	return u.Post(to, telegramtest.Outgoing{Text: a.Text, ReplyTo: a.ReplyTo})
}

func (p *page) press(a action) (any, error) {
	u, in, err := p.who(a)
	if err != nil {
		return nil, err
	}
	id, err := u.Press(in, a.Message, a.Data)
	return map[string]string{"query": id}, err
}

// addPerson makes somebody new and lets them into the group.
func (p *page) addPerson(a action) (any, error) {
	first, last, _ := strings.Cut(strings.TrimSpace(a.Name), " ")
	if len(p.sim.Users()) >= maxPhones {
		return nil, core.Errorf(core.Invalid, "%d phones are enough", maxPhones)
	}
	if len(a.Name) > 256 {
		return nil, core.Errorf(core.Invalid, "a name is shorter")
	}
	u, err := p.sim.AddUser(telegramtest.Account{FirstName: first, LastName: strings.TrimSpace(last), LanguageCode: "en"})
	if err != nil {
		return nil, err
	}
	p.group.Join(u)
	return personOf(u.Account()), nil
}
