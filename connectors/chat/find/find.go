// Package find is the chat command /search: it searches the vault's documents and the
// sender's conversations.
package find

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	shown     = 5   // hits of an answer
	maxPage   = 20  // answers of one search
	batch     = 25  // hits of one query
	maxRounds = 8   // queries for one answer
	shortID   = 8   // characters of an id that users type
	maxQuoted = 100 // bytes of the search that an answer repeats
)

// Finder searches conversations and documents.
type Finder interface {
	Search(ctx context.Context, q search.Query, r search.Reader) (search.Page, error)
}

// Sessions knows where conversations are.
type Sessions interface {
	// Bound returns the chat that has a conversation.
	Bound(ctx context.Context, q store.Queryer, id string) (core.Address, bool, error)
}

// A Search handles /search.
type Search struct {
	db       *store.DB
	finder   Finder
	sessions Sessions
	zone     func(ctx context.Context, user int64) (*time.Location, error)
	asks     *ask.Buttons
}

// New returns a Search over these parts. zone returns the time zone of a user.
func New(db *store.DB, f Finder, s Sessions, zone func(ctx context.Context, user int64) (*time.Location, error), asks *ask.Buttons) *Search {
	return &Search{db, f, s, zone, asks}
}

// A hit is one that is shown, and whether the sender can continue it here.
type hit struct {
	search.Hit
	canContinue bool
}

// Run answers with up to five hits: documents that may be read in the chat and, in a
// direct chat, the sender's own conversations up to the chat's trust.
func (s *Search) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	words, page := parse(r.Args())
	if words == "" {
		return command.Respond("search_how", texts.With{"Group": r.In.Group()})
	}
	skip := shown * (page - 1)
	hits, more, err := s.find(ctx, r, words, skip+shown)
	if err != nil {
		return command.Outcome{}, err
	}
	zone, err := s.zone(ctx, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	quoted := texts.Escape(core.CutRunes(core.CleanName(words), maxQuoted))
	if len(hits) <= skip {
		return command.Respond("search_none", texts.With{"Words": quoted, "Group": r.In.Group(), "More": page > 1})
	}
	var b strings.Builder
	b.WriteString(texts.Text("search", texts.With{"Words": quoted}) + "\n\n")
	o := ask.Offer{Command: "search"}
	for i, h := range hits[skip:] {
		b.WriteString(lineOf(skip+i+1, h, zone) + "\n\n")
		if h.canContinue {
			o.AddOf("resume", texts.Text("search_continue", texts.With{"N": skip + i + 1, "Title": core.CleanName(h.Title)}), h.ID)
		}
	}
	if more && page < maxPage {
		o.Add(texts.Text("search_more"), fmt.Sprintf("page:%d %s", page+1, words))
	}
	return s.asks.Offer(r, strings.TrimSpace(b.String()), o)
}

var pageOf = regexp.MustCompile(`^page:([0-9]{1,2})\s+`)

// parse returns what is searched for, and the page that the button More asks for.
func parse(args string) (words string, page int) {
	m := pageOf.FindStringSubmatch(args)
	if m == nil {
		return args, 1
	}
	page, _ = strconv.Atoi(m[1]) // two digits
	return strings.TrimSpace(args[len(m[0]):]), min(max(page, 1), maxPage)
}

// find returns at most n hits that may be shown in the chat of r, and whether there are
// further ones.
func (s *Search) find(ctx context.Context, r command.Request, words string, n int) (hits []hit, more bool, err error) {
	q := search.Query{Text: words, Limit: batch}
	reader := search.Reader{User: r.User, Trust: r.Trust}
	if r.In.Group() { // all members may read the answer: no one's conversations, journal or own directory
		reader.User, reader.NoSessions = 0, true
		q.Types = []string{search.Document}
	}
	for range maxRounds {
		page, err := s.finder.Search(ctx, q, reader)
		if err != nil {
			return nil, false, err
		}
		for _, h := range page.Hits {
			one, may, err := s.show(ctx, r, h)
			if err != nil {
				return nil, false, err
			}
			if may && len(hits) == n {
				return hits, true, nil
			}
			if may {
				hits = append(hits, one)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	return hits, false, nil
}

// show returns h as it is shown in the chat of r, or false.
func (s *Search) show(ctx context.Context, r command.Request, h search.Hit) (hit, bool, error) {
	if h.Type != search.Session {
		return hit{Hit: h}, true, nil
	}
	if r.In.Group() || r.User <= 0 || h.User != r.User {
		return hit{}, false, nil
	}
	at, isBound, err := s.sessions.Bound(ctx, s.db, h.ID)
	here := isBound && at.Bot == r.In.Bot && at.Chat == r.In.Chat && at.Thread == r.In.Thread
	if h.Title == "" {
		h.Title = texts.Text("untitled")
	}
	return hit{h, !here && !(isBound && at.Group())}, err == nil, err
}

// lineOf returns the text of the hit with number n, its date in zone.
func lineOf(n int, h hit, zone *time.Location) string {
	date := ""
	if !h.At.IsZero() {
		date = h.At.In(zone).Format("2 January 2006")
	}
	file, id := "", ""
	if h.Type != search.Session {
		file = texts.Escape(core.Visible(h.Path))
	} else {
		id = h.ID[:min(shortID, len(h.ID))]
	}
	return texts.Text("search_line", texts.With{"N": n, "Title": texts.Escape(core.CleanName(h.Title)), "Date": date, "Path": file, "ID": id, "Excerpt": marked(h.Shown())})
}

// marked returns an excerpt as Markdown, what was searched for in bold.
func marked(text string, marks [][2]int) string {
	runes := []rune(text)
	var b strings.Builder
	at := 0
	for _, m := range marks {
		if m[0] < at || m[1] <= m[0] || m[1] > len(runes) {
			continue
		}
		b.WriteString(texts.Escape(core.Visible(string(runes[at:m[0]]))) + "**" + texts.Escape(core.Visible(string(runes[m[0]:m[1]]))) + "**")
		at = m[1]
	}
	b.WriteString(texts.Escape(core.Visible(string(runes[at:]))))
	return b.String()
}
