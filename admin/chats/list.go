package chats

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/session"
)

const (
	chatsPath    = "/admin/chats"
	chatsPerPage = 25
	maxTagsShown = 30
	maxQuery     = 200 // characters of a search
)

type chatsBody struct {
	Lede   string
	Chats  page.Part[[]chatRow]
	Filter chatFilter
	Tags   []session.TagCount
	Next   string // address of the older ones
	First  string // address of the newest, on a page behind it
	Bots   []string
	Traces bool
	People []page.Choice // to choose from
	// Projects are those to choose from, by id.
	Projects []page.Choice
	States   []page.Choice
	Hits     []hit  // users and groups that the search found
	Where    string // the group that the list is of; "" for none
}

// Many returns the count that is shown as "or more".
func (chatsBody) Many() int { return session.CountTo }

type chatRow struct {
	session.Session
	Display string
	Group   string // the group's name, "" of any other conversation
	Running bool
	Waiting bool   // a tool call waits for approval
	Excerpt string // of the text that matched
}

// A chatFilter is the filter of the list, as the address has it.
type chatFilter struct {
	Query, Source, State, Tag string
	Project                   string // its id
	Bot, Place                string // Place is a group of the bot
	User                      int64
	Cursor                    string
}

func (f chatFilter) any() bool {
	f.Cursor = ""
	return f != chatFilter{}
}

// Any reports whether the list is narrowed.
func (f chatFilter) Any() bool { return f.any() }

// Who returns the person that the list is of, as the form has it.
func (f chatFilter) Who() string {
	if f.User == 0 {
		return ""
	}
	return strconv.FormatInt(f.User, 10)
}

func (f chatFilter) address(cursor string) string {
	return page.Address(chatsPath, map[string]string{"q": f.Query, "source": f.Source, "state": f.State, "tag": f.Tag, "bot": f.Bot, "place": f.Place, "project": f.Project, "user": f.Who(), "cursor": cursor})
}

func filterOf(q url.Values) (f chatFilter) {
	f = chatFilter{Query: strings.TrimSpace(q.Get("q")), Source: q.Get("source"), State: q.Get("state"), Tag: q.Get("tag"),
		Bot: q.Get("bot"), Place: q.Get("place"), Project: q.Get("project"), Cursor: q.Get("cursor")}
	if rs := []rune(f.Query); len(rs) > maxQuery {
		f.Query = string(rs[:maxQuery])
	}
	f.User, _ = strconv.ParseInt(q.Get("user"), 10, 64) // what is no number filters nothing
	return f
}

// sessions returns what the list is asked for; only are those of the filter's state, nil
// for any.
func (f chatFilter) sessions(only []string) session.Filter {
	q := session.Filter{All: f.User == 0, User: f.User, Source: f.Source, Tag: f.Tag, Bot: f.Bot, Place: f.Place, Project: f.Project, Only: only, Search: f.Query, Limit: chatsPerPage, Cursor: f.Cursor}
	if f.Bot == core.APIBot { // in no chat of a bot
		q.Bot, q.Source = "", core.APIBot
	}
	if archived := f.State == "archived"; f.State != "all" {
		q.Archived = &archived
	}
	return q
}

func (p *Pages) chatsPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := chatsBody{Filter: filterOf(r.URL.Query()), Traces: p.o.Traces != nil}
	b.Chats = page.Load(ctx, p.frame, "The list of conversations", func(ctx context.Context) ([]chatRow, error) {
		rows, next, err := p.chatRows(ctx, b.Filter)
		if next != "" {
			b.Next = b.Filter.address(next)
		}
		return rows, err
	})
	if b.Filter.Cursor != "" {
		b.First = b.Filter.address("")
	}
	tags := page.Load(ctx, p.frame, "The list of tags", p.o.Chats.CommonTags)
	b.Tags = page.Head(tags.Value, maxTagsShown)
	for _, s := range p.links.Bots() {
		b.Bots = append(b.Bots, s.Bot)
	}
	b.States = states
	b.People = p.links.Names(ctx).Choices(b.Filter.User)
	if p.links.Projects != nil {
		b.Projects = p.links.Projects(ctx, b.Filter.Project)
	}
	p.found(ctx, &b)
	b.Lede = chatsLede(b, len(p.running()))
	return p.frame.Show(w, r, http.StatusOK, "chats", page.View{Title: "Chats", Topics: []core.Topic{core.TopicChats}, Every: 10, Body: b})
}

func (p *Pages) chatRows(ctx context.Context, f chatFilter) (rows []chatRow, next string, err error) {
	only, err := p.only(ctx, f.State)
	if err != nil {
		return nil, "", err
	}
	names, running := p.links.Names(ctx), p.running()
	waiting, _ := p.waiting(ctx) // its failure is logged, and shown on the page Approvals
	row := func(s session.Session) chatRow {
		return chatRow{Session: s, Display: names.Of(s.User), Running: running[s.ID], Waiting: slices.Contains(waiting, s.ID)}
	}
	if f.Query != "" && p.o.Search != nil {
		var found []session.Found
		found, next, err = p.o.Search(ctx, f.sessions(only))
		for _, x := range found {
			rows = append(rows, row(x.Session))
			if x.Hit.In == "text" {
				rows[len(rows)-1].Excerpt = x.Hit.Excerpt
			}
		}
	} else {
		var list []session.Session
		list, next, err = p.o.Chats.List(ctx, f.sessions(only))
		for _, s := range list {
			rows = append(rows, row(s))
		}
	}
	if err != nil {
		return rows, next, err
	}
	list := make([]session.Session, len(rows))
	for i := range rows {
		list[i] = rows[i].Session
	}
	groups, err := p.groupsOf(ctx, list...)
	for i := range rows {
		rows[i].Group = groups[rows[i].ID]
	}
	return rows, next, err
}

// running returns the sessions that are being answered now.
func (p *Pages) running() map[string]bool {
	out := map[string]bool{} // bounded by the slots for runs
	if p.o.Active != nil {
		for _, run := range p.o.Active() {
			out[run.Session] = true
		}
	}
	return out
}

func chatsLede(b chatsBody, running int) string {
	n := len(b.Chats.Value)
	switch {
	case b.Chats.Broken != "":
		return "The list can’t be shown right now."
	case n == 0 && b.Filter.any():
		return "No conversation matches."
	case n == 0:
		return "No one has talked to a bot yet."
	case b.Filter.any():
		return "What matches, newest first."
	case running > 0:
		return page.Count(running, "conversation is", "conversations are") + " being answered right now."
	}
	return "Every conversation, newest first."
}
