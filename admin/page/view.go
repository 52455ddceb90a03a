package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
)

//go:embed templates/*.html
var files embed.FS

// sourceTimeout bounds the read of one source, so that a slow one costs its own
// section and not the page.
const sourceTimeout = 3 * time.Second

// A View is what every template gets.
type View struct {
	Title   string
	Page    string // the template
	In      string // the key of the current menu entry; "": Page
	Still   bool   // it does not refresh itself: the operator writes in it
	Bare    bool   // without menu: the sign-in pages
	Menu    []entry
	Own     []Item // the menu behind the account's name
	More    entry  // on a phone it holds those that are Far; without a label there is none
	Flash   *Flash
	CSRF    string // of forms (form)
	OwnCSRF string // of the forms of the own account
	Who     string
	Theme   string       // "light", "dark" or "" for the system’s
	Mute    bool         // keys of one letter are switched off
	At      string       // the address of the page
	Viewer  bool         // the account changes nothing: its forms are disabled
	Topics  []core.Topic // the page refetches itself when one of them rings
	Query   string       // what the search field has in it
	Every   int          // it also refetches itself each Every seconds while visible; 0: 30
	Body    any
}

// A Part is one section's data, or the sentence that replaces it.
type Part[T any] struct {
	Value  T
	Broken string
}

// Load reads a source within sourceTimeout. An error is logged and shown in the
// section; the rest of the page is not affected.
func Load[T any](ctx context.Context, f *Frame, what string, read func(context.Context) (T, error)) Part[T] {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	v, err := read(ctx)
	if err == nil {
		return Part[T]{Value: v}
	}
	return Part[T]{Broken: f.broken(ctx, what, err)}
}

// broken logs err and returns what is shown in place of a section that it broke.
func (f *Frame) broken(ctx context.Context, what string, err error) string {
	f.Log.ErrorContext(ctx, "panel section", "section", what, "err", err)
	text := what + " can’t be read right now."
	if core.KindOf(err) != core.Other {
		text += " " + Sentence(core.TextOf(err))
	}
	return text + " See the log; the rest of the panel works."
}

// A set makes a page's templates when the page is first shown: all of them take
// 4 MiB, and most gateways' panels are closed most of the time. They are part of
// the program and do not fail; the tests show each.
type set = func() (*template.Template, error)

// Templates adds the pages of a group: each templates/NAME.html defines the
// "body" of the page NAME, except the shared ones, whose templates all of the
// group's pages may use. funcs are added to the frame's own.
func (f *Frame) Templates(files embed.FS, funcs template.FuncMap, shared ...string) {
	names, err := files.ReadDir("templates")
	if err != nil {
		panic(err) // they are part of the program
	}
	base := sync.OnceValues(func() (*template.Template, error) { return f.layout(files, funcs, shared) })
	for _, entry := range names {
		name := strings.TrimSuffix(entry.Name(), ".html")
		if slices.Contains(shared, name) || slices.Contains(layout, name) {
			continue
		}
		f.sets[name] = sync.OnceValues(func() (*template.Template, error) {
			all, err := base()
			if err != nil {
				return nil, err
			}
			if all, err = all.Clone(); err != nil {
				return nil, err
			}
			return all.ParseFS(files, "templates/"+name+".html")
		})
	}
}

// layout are the frame's templates that every page may use.
var layout = []string{"layout", "parts"}

// layout returns what all pages of a group share.
func (f *Frame) layout(own embed.FS, funcs template.FuncMap, shared []string) (*template.Template, error) {
	t := template.New("").Funcs(template.FuncMap{
		"rfc":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"utc":      func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") },
		"utcfull":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"exactly":  core.Stamp,
		"ago":      func(t time.Time) string { return Ago(f.Clock.Now().Sub(t)) },
		"span":     Span,
		"brief":    Brief,
		"initial":  initial,
		"platform": Platform,
		"name":     DisplayName,
		"exact":    Exact,
		"usd":      core.Dollars,
		"size":     Size,
		"asset":    f.o.Asset,
		"form":     beginForm,
		"endform":  endForm,
		"there":    func(path string) bool { return slices.Contains(f.patterns, "GET "+path) },
	}).Funcs(funcs)
	for _, name := range layout {
		if _, err := t.ParseFS(files, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	for _, name := range shared {
		if _, err := t.ParseFS(own, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Check parses the templates of all pages and returns what is wrong with them.
// Show parses a page's when it is first shown.
func (f *Frame) Check() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.sets)) {
		set, err := f.sets[name]()
		if err == nil && (set.Lookup("body") == nil || set.Lookup("page") == nil) {
			err = errors.New("it has no body or no frame")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("page %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Fragment returns the template called name of a page, filled with data.
func (f *Frame) Fragment(page, name string, data any) (template.HTML, error) {
	set, err := f.sets[page]()
	if err != nil {
		return "", fmt.Errorf("page %s: %w", page, err)
	}
	var b strings.Builder
	if err := set.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("page %s: %w", page, err)
	}
	return template.HTML(b.String()), nil // html/template has escaped it
}

// Show writes a page, or with ?fragment=1 only what a live page swaps in.
func (f *Frame) Show(w http.ResponseWriter, r *http.Request, status int, page string, v View) error {
	name := "page"
	if fragment(r) {
		name = "app"
		if status == http.StatusUnprocessableEntity { // a live page shows the reason; a browser would also log an error
			status = http.StatusOK
		}
	}
	v.Page, v.Flash = page, f.takeFlash(w, r)
	who, _ := Principal(r)
	v.CSRF, v.OwnCSRF, v.Who, v.Viewer = Token(r), OwnToken(r), account(r), who.Viewer
	v.Theme, v.Mute, v.At = themeOf(r), lettersOff(r), r.URL.Path
	if v.Every == 0 {
		v.Every = 30
	}
	if !v.Bare {
		v.Menu = f.menu(r.Context(), cmp.Or(v.In, page))
		v.More, v.Own = more(v.Menu), f.personal
	}
	set, err := f.sets[page]()
	if err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	var b bytes.Buffer
	if err := set.ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
	return nil
}

// fragment reports whether a live page asks for its own inside.
func fragment(r *http.Request) bool { return r.URL.Query().Get("fragment") == "1" }
