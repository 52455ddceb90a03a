package find

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/index/search"
)

const (
	hitsPerPage = 20 // of a page of results
	maxID       = 64 // bytes of a project's id
)

type searchBody struct {
	Lede  string
	Query string
	Type  string
	Types []tab
	// Projects are those to choose from, by id; Project is the chosen one.
	Projects []page.Choice
	Project  string
	Hits     page.Part[[]hit]
	Next     string // address of the next page
	First    string // address of the first page, on one behind it
	Index    *page.Part[Status]
	Has      bool // there is an Index, on the page without words
}

// A tab is one choice of types.
type tab struct {
	Label, URL string
	Current    bool
}

// A hit is a conversation, a document or an entry of a journal as it is listed. All texts are hostile.
type hit struct {
	Icon, Kind string
	Title, URL string
	Who        string // of a conversation: the person or the group
	In         string // of a conversation: what has the words, "" for a user's message
	Place      string // of a document or entry: path and line
	Excerpt    []part
	At         time.Time
}

// A part is text of an excerpt; Mark is true for what was searched for.
type part struct {
	Text string
	Mark bool
}

// A question is a search, as the address has it.
type question struct{ Query, Type, Project, Cursor string }

func questionOf(r *http.Request) question {
	v := r.URL.Query()
	q := question{Query: strings.TrimSpace(strings.ToValidUTF8(v.Get("q"), "�")), Type: v.Get("type"), Project: strings.ToValidUTF8(v.Get("project"), "�"), Cursor: v.Get("cursor")}
	if rs := []rune(q.Query); len(rs) > search.MaxText {
		q.Query = string(rs[:search.MaxText])
	}
	if len(q.Project) > maxID || strings.ContainsRune(q.Project, 0) {
		q.Project = ""
	}
	if q.Project != "" { // documents are of none
		q.Type = ""
	}
	if q.Type != search.Session && q.Type != search.Document && q.Type != search.Journal {
		q.Type = ""
	}
	return q
}

func (q question) address() string {
	return page.Address(findPath, map[string]string{"q": q.Query, "type": q.Type, "project": q.Project, "cursor": q.Cursor})
}

// search returns q as the finder takes it.
func (q question) search() search.Query {
	s := search.Query{Text: q.Query, Project: q.Project, Limit: hitsPerPage, Cursor: q.Cursor}
	if q.Type != "" {
		s.Types = []string{q.Type}
	}
	return s
}

// tabs returns the choices of types for the same words.
func (q question) tabs() (list []tab) {
	for _, t := range []struct{ label, of string }{{"All", ""}, {"Conversations", search.Session}, {"Documents", search.Document}, {"Journal", search.Journal}} {
		list = append(list, tab{Label: t.label, URL: question{Query: q.Query, Type: t.of, Project: q.Project}.address(), Current: q.Type == t.of})
	}
	return list
}

// searchPage shows what is found, or without words what can be written.
func (p *Pages) searchPage(w http.ResponseWriter, r *http.Request) error {
	q := questionOf(r)
	b := searchBody{Query: q.Query, Type: q.Type, Types: q.tabs(), Project: q.Project, Has: p.showsIndex(r), Lede: "Conversations, documents and journals of the vault, in one list."}
	if p.links.Projects != nil {
		b.Projects = p.links.Projects(r.Context(), q.Project)
	}
	v, status := page.View{Title: "Search", Query: q.Query, Every: statusEvery}, http.StatusOK
	if q.Query == "" {
		b.Index = p.status(r)
	} else {
		v.Title, v.Still = "Search: "+q.Query, true
		status = p.results(r, q, &b)
	}
	v.Body = b
	return p.frame.Show(w, r, status, "search", v)
}

// results fills b with a page of hits, or with the reason why there is none, and returns the
// status of the answer.
func (p *Pages) results(r *http.Request, q question, b *searchBody) (status int) {
	invalid := ""
	who, _ := page.Principal(r)
	b.Hits = page.Load(r.Context(), p.frame, "The search", func(ctx context.Context) ([]hit, error) {
		found, err := p.o.Finder.Search(ctx, q.search(), reader(who))
		if core.KindOf(err) == core.Invalid {
			invalid = page.Sentence(core.TextOf(err))
			return nil, nil // it is no fault of the source
		}
		if err != nil {
			return nil, err
		}
		if found.Next != "" {
			b.Next = question{Query: q.Query, Type: q.Type, Project: q.Project, Cursor: found.Next}.address()
		}
		return p.hits(ctx, q, found.Hits), nil
	})
	if q.Cursor != "" {
		b.First = question{Query: q.Query, Type: q.Type, Project: q.Project}.address()
	}
	switch {
	case invalid != "":
		b.Hits.Broken, b.Lede = invalid, "This search is not possible."
		return http.StatusUnprocessableEntity
	case b.Hits.Broken != "":
		b.Lede = "The search failed."
	case len(b.Hits.Value) == 0:
		b.Lede = "Nothing found."
	default:
		b.Lede = "What matches, the best first."
	}
	return http.StatusOK
}

// hits returns found as it is listed.
func (p *Pages) hits(ctx context.Context, q question, found []search.Hit) []hit {
	names, groups := p.links.Names(ctx), p.groups(ctx, found)
	list := make([]hit, 0, len(found))
	for _, f := range found {
		h := p.conversation(f, cmp.Or(groups[f.ID], names.Of(f.User)))
		if f.Type != search.Session {
			h = p.document(f, q)
		}
		h.Excerpt, h.At = marked(f.Shown()), f.At
		list = append(list, h)
	}
	return list
}

// groups returns the names of the groups that the conversations found are held in. They
// are a help to recognise one: a fault is logged, and the hits are shown.
func (p *Pages) groups(ctx context.Context, found []search.Hit) map[string]string {
	var ids []string
	for _, f := range found {
		if f.Type == search.Session {
			ids = append(ids, f.ID)
		}
	}
	if p.o.Groups == nil || len(ids) == 0 {
		return nil
	}
	names, err := p.o.Groups(ctx, ids...)
	if err != nil {
		p.frame.Log.WarnContext(ctx, "names of groups in search results", "err", err)
	}
	return names
}

func (p *Pages) document(f search.Hit, q question) hit {
	h := hit{Icon: "audit", Kind: "Document", Title: cmp.Or(strings.TrimSpace(f.Title), path.Base(f.Path)), Place: f.Path}
	if f.Type == search.Journal {
		h.Icon, h.Kind = "journal", "Journal entry"
	}
	if f.Line > 0 {
		h.Place += ":" + strconv.Itoa(f.Line)
	}
	if f.Type == search.Journal && p.links.Entry != nil {
		h.URL = p.links.Entry(f.Path, f.ID)
	}
	if h.URL == "" && p.o.shows() {
		h.URL = documentURL(f.Path, f.Line, q)
	}
	return h
}

func (p *Pages) conversation(f search.Hit, who string) hit {
	h := hit{Icon: "chats", Kind: "Conversation", Title: cmp.Or(strings.TrimSpace(f.Title), "Untitled"), Who: who}
	switch {
	case f.In == "title" || f.In == "tag":
		h.In = f.In
	case f.Role == "assistant":
		h.In = "answer"
	}
	switch {
	case p.links.Chat == nil:
	case f.Message != "" && p.o.Chats != nil:
		h.URL = page.Address(messagePath, map[string]string{"session": f.ID, "message": f.Message})
	default:
		h.URL = p.links.Chat(f.ID)
	}
	return h
}

// marked splits text at marks, which are ranges of characters. Ranges that overlap, are
// out of order or beyond the text mark what is left of them.
func marked(text string, marks [][2]int) (parts []part) {
	rs, at := []rune(text), 0
	add := func(to int, mark bool) {
		if to > at {
			parts = append(parts, part{string(rs[at:to]), mark})
			at = to
		}
	}
	for _, m := range marks {
		add(min(m[0], len(rs)), false)
		add(min(m[1], len(rs)), true)
	}
	add(len(rs), false)
	return parts
}
