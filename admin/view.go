package admin

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/agent"
)

//go:embed templates/*.html
var files embed.FS

// sourceTimeout bounds the wait for one source of a page, so that one that
// hangs costs its own section and not the page.
const sourceTimeout = 3 * time.Second

// A view is what every template gets.
type view struct {
	Title  string
	Page   string // the template
	In     string // the key of the current menu entry; "": Page
	Still  bool   // it stays as it is: somebody writes in it
	Bare   bool   // without menu: the sign-in pages
	Menu   []entry
	More   entry // on a phone it holds those that are Far; without a label there is none
	Flash  *flash
	CSRF   string
	Who    string
	Topics string // space separated; the page refetches itself on these
	Every  int    // and every so many seconds while it is looked at, for what nobody rings about; 0: 30
	Body   any
}

// An entry of the menu. Count is shown beside it when it is not 0; Words says
// what is counted, for those who don't see the number's place.
type entry struct {
	Key, Path, Label string
	Count            int
	Words            string
	Urgent           bool
	Current          bool
	Far              bool // on a phone it stands behind More
}

// A part is one section's data, or the plain sentence that stands in its place.
type part[T any] struct {
	Value  T
	Broken string
}

// load asks a source within sourceTimeout. What goes wrong is logged and told
// in the section; the page goes on.
func load[T any](ctx context.Context, p *Panel, what string, f func(context.Context) (T, error)) part[T] {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	v, err := f(ctx)
	if err == nil {
		return part[T]{Value: v}
	}
	p.log.ErrorContext(ctx, "panel section", "section", what, "err", err)
	text := what + " can’t be read right now."
	if core.KindOf(err) != core.Other {
		text += " " + sentence(core.TextOf(err))
	}
	return part[T]{Broken: text + " The log says more; the rest of the panel works."}
}

// pages are the templates under templates/ that are pages of their own.
var pages = [...]string{"login", "password", "error", "overview", "pairing", "approvals", "people", "person", "chats", "chat", "trace", "invites", "talk", "models", "audit", "settings", "texts", "text", "agents", "edit", "bots", "queue"}

// shared are the others, which every page may use.
var shared = []string{"templates/layout.html", "templates/parts.html", "templates/asks.html", "templates/raises.html", "templates/peopleparts.html", "templates/settingsparts.html"}

// A set makes a page's templates when the page is first shown: all of them take
// 4 MiB, and most gateways' panels are closed most of the time. They are part of
// the program and do not fail; the tests show each.
type set = func() (*template.Template, error)

// prepare gives each page its set: the layout and the page's "body".
func (p *Panel) prepare() {
	base := sync.OnceValues(p.layout)
	p.sets = map[string]set{}
	for _, page := range pages {
		p.sets[page] = sync.OnceValues(func() (*template.Template, error) {
			all, err := base()
			if err != nil {
				return nil, err
			}
			if all, err = all.Clone(); err != nil {
				return nil, err
			}
			return all.ParseFS(files, "templates/"+page+".html")
		})
	}
}

// layout is what all pages share.
func (p *Panel) layout() (*template.Template, error) {
	funcs := template.FuncMap{
		"rfc": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"utc": func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
		"utcfull": func(t time.Time) string {
			return t.UTC().Format("2006-01-02 15:04:05 UTC")
		},
		"ago":      func(t time.Time) string { return ago(p.clock.Now().Sub(t)) },
		"span":     span,
		"initial":  initial,
		"platform": platformName,
		"name":     displayName,
		"revoked":  revoked,
		"exact":    exact,
		"edit":     editURL,
		"chat":     chatURL,
		"brief":    brief,
		"invites":  func() bool { return p.o.Invites != nil },
		"talks":    p.hasChats,
		"usd":      dollars,
		"sources":  func() []string { return p.o.Sources },
		"searches": func() bool { return p.o.SearchChats != nil },
		"kind":     agent.KindOf,
		"asset":    p.o.Asset,
		"pieces":   pieces,
	}
	maps.Copy(funcs, p.peopleFuncs())
	return template.New("").Funcs(funcs).ParseFS(files, shared...)
}

// show writes a page, or with ?fragment=1 only what a live page swaps in.
func (p *Panel) show(w http.ResponseWriter, r *http.Request, status int, page string, v view) error {
	name := "page"
	if fragment(r) {
		name = "app"
	}
	v.Page, v.Flash = page, p.takeFlash(w, r)
	v.CSRF, v.Who = p.token(r), p.who(r)
	if v.Every == 0 {
		v.Every = 30
	}
	if !v.Bare {
		v.Menu = p.menu(r.Context(), cmp.Or(v.In, page))
		v.More = more(v.Menu)
	}
	set, err := p.sets[page]()
	if err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	var b bytes.Buffer
	if err := set.ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a reader who has left is no fault of ours
	return nil
}

// fragment reports whether a live page asks for its own inside.
func fragment(r *http.Request) bool { return r.URL.Query().Get("fragment") == "1" }

// sentence is s with a capital first letter and a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	rs := []rune(s)
	rs[0] = unicode.ToUpper(rs[0])
	if last := rs[len(rs)-1]; last != '.' && last != '!' && last != '?' {
		rs = append(rs, '.')
	}
	return string(rs)
}

// ago is how long ago something was; admin.js counts on in the same words.
func ago(d time.Duration) string {
	if d < 45*time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// span is a duration in its one largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// brief is a short duration as exactly as people want to know it.
func brief(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return "at once"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return span(d)
}

// initial is the letter in the circle beside a name.
func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "?"
}

func displayName(s string) string {
	if strings.TrimSpace(s) == "" {
		return "No name given"
	}
	return s
}

// platformName is a platform's name as people write it.
func platformName(s string) string {
	r := []rune(s)
	switch {
	case len(r) == 0:
		return "Unknown platform"
	case s == core.APIBot:
		return "API"
	}
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// count is "1 person" or "3 people".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
