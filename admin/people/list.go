package people

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
)

const (
	peoplePath  = "/admin/people"
	maxPersons  = 1000 // users, or accesses, that are read at once; the filter looks through these
	rowsPerPage = 15   // of people, of groups and of blocks
	maxRows     = 5    // of one user's access in the list
	maxOwnRows  = 20   // on their own page
	maxPlaces   = 20   // groups to choose from
	maxListed   = 1000 // blocks; older ones of strangers are not listed
)

type peopleBody struct {
	Lede       string
	People     page.Part[[]person]
	Total      int // users that match the filter
	Cut        bool
	Filter     peopleFilter
	Bots       []string // to choose from
	Platform   []string
	Levels     []core.Trust
	Pick       bool // several can be blocked or lose access at once
	Pages      page.Pager
	Blocks     page.Part[[]blockView]
	BlockPages page.Pager
	Older      bool // blocks may not be listed
	Places     page.Part[[]places.Row]
	PlacePages page.Pager
	New        int    // groups that no one has decided about
	NewAt      string // the page with the first
	Mentions   []page.Choice
	AllBots    []string
	CSRF       string
	HasBlock   bool
	HasPlace   bool
}

// A person is a user with all accounts, and what they may do.
type person struct {
	people.Person
	Access  []core.AccessRow
	Groups  map[string]string // names of groups, by bot and place
	More    int               // accesses that are not shown
	Revokes []revocation
	Blocked []blockView // their accounts that are blocked
	Undo    int         // seconds in which the last block or unblock can be undone
	Undoes  string      // "blocked" or "unblocked": what that was
	Seen    time.Time
	Unseen  bool // Seen is not known
	CSRF    string
	Name    string // their Name(), which the list is sorted by
	Alone   bool   // shown on a page of their own
}

// A revocation removes all access of an account on a bot.
type revocation struct{ Bot, Account string }

// A blockView is a block, or with Over one that was ended just now.
type blockView struct {
	people.Blocked
	Left int // seconds in which it can be undone
	Over bool
}

func (x person) CanBlock() bool { return x.Role != core.RoleOwner && len(x.Accounts) > 0 }

func (p *personPages) peoplePage(w http.ResponseWriter, r *http.Request) error {
	ctx, token := r.Context(), page.Token(r)
	who, _ := page.Principal(r)
	b := peopleBody{CSRF: token, Filter: peopleFilterOf(r.URL.Query()), Levels: []core.Trust{core.Sandboxed, core.Vault}, Pick: !who.Viewer, HasBlock: p.o.Blocks != nil, HasPlace: p.o.Places != nil}
	if b.HasBlock {
		b.Blocks = page.Load(ctx, p.frame, "The list of blocked people", p.blocks)
	}
	blocks := b.Blocks.Value
	groups := map[string]string{}
	if b.HasPlace {
		b.Places = page.Load(ctx, p.frame, "The list of groups", p.o.Places.Places)
		for _, g := range b.Places.Value {
			groups[g.Bot+":"+g.Place] = g.Name
		}
		first := slices.IndexFunc(b.Places.Value, undecided)
		for _, g := range b.Places.Value {
			if undecided(g) {
				b.New++
			}
		}
		b.Places.Value, b.PlacePages = page.Paginate(r, b.Places.Value, rowsPerPage, "groups", "groups-h", "Pages of groups")
		b.NewAt = b.PlacePages.At(1 + max(0, first)/rowsPerPage)
		b.Mentions = mentions()
	}
	all := page.Load(ctx, p.frame, "The list of people", p.persons)
	b.Cut = len(all.Value) == maxPersons
	people := b.Filter.of(all.Value, blocks)
	b.Total = len(people)
	b.Bots, b.Platform = choicesIn(all.Value)
	people, b.Pages = page.Paginate(r, people, rowsPerPage, "page", "", "Pages of people")
	seen := p.seen(ctx, people...)
	for i := range people {
		people[i].More, people[i].Groups = page.Cut(&people[i].Access, maxRows), groups
		people[i].Revokes = page.Head(people[i].Revokes, maxRows)
		people[i].complete(token, blocks, seen)
	}
	b.People = page.Part[[]person]{Value: people, Broken: all.Broken}
	b.Lede = peopleLede(b, all.Value)
	b.Older = len(blocks) >= maxListed
	b.Blocks.Value, b.BlockPages = page.Paginate(r, blocks, rowsPerPage, "blocks", "blocked-h", "Pages of blocks")
	for _, s := range p.bots() {
		b.AllBots = append(b.AllBots, s.Bot)
	}
	return p.frame.Show(w, r, http.StatusOK, "people", page.View{Title: "People", Topics: []core.Topic{core.TopicPeople, core.TopicPairing}, Body: b})
}

func undecided(g places.Row) bool { return !g.Enabled && g.By == "" }

// persons returns all users with what they may do: the owner first, then by name.
func (p *personPages) persons(ctx context.Context) ([]person, error) {
	rows, err := p.o.Persons.PersonsWithAccess(ctx, maxPersons)
	if err != nil {
		return nil, err
	}
	out := make([]person, len(rows))
	for i, row := range rows {
		out[i] = personOf(row.Person, row.Access)
	}
	rank := map[core.Role]int{core.RoleOwner: -2, core.RoleAdmin: -1}
	core.Sort(out, func(a, b person) int {
		return cmp.Or(cmp.Compare(rank[a.Role], rank[b.Role]), cmp.Compare(min(1, len(b.Access)), min(1, len(a.Access))),
			cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.User, b.User))
	})
	return out, nil
}

func personOf(row people.Person, access []core.AccessRow) person {
	x := person{Person: row, Access: access, Name: row.Name()}
	for _, a := range access {
		if r := (revocation{a.Bot, a.PlatformUserID}); a.PlatformUserID != "" && !slices.Contains(x.Revokes, r) {
			x.Revokes = append(x.Revokes, r)
		}
	}
	return x
}

// complete adds to a user what the page shows of them; seen is nil where that is not known.
func (x *person) complete(token string, blocks []blockView, seen map[int64]time.Time) {
	x.CSRF, x.Seen, x.Unseen = token, seen[x.User], seen == nil
	for _, a := range x.Accounts {
		for _, b := range blocks {
			if b.Platform != a.Platform || b.PlatformUserID != a.ID {
				continue
			}
			if !b.Over {
				x.Blocked = append(x.Blocked, b)
			}
			if b.Left > x.Undo {
				x.Undo, x.Undoes = b.Left, "blocked"
				if b.Over {
					x.Undoes = "unblocked"
				}
			}
		}
	}
}

// seen returns when these users were last active.
func (p *personPages) seen(ctx context.Context, list ...person) map[int64]time.Time {
	if p.o.LastSeen == nil || len(list) == 0 {
		return nil
	}
	rows := make([]people.Person, len(list))
	for i := range list {
		rows[i] = list[i].Person
	}
	return page.Load(ctx, p.frame, "When people were seen", func(ctx context.Context) (map[int64]time.Time, error) { return p.o.LastSeen(ctx, rows) }).Value
}

func peopleLede(b peopleBody, all []person) string {
	let, least := 0, ""
	if b.Cut {
		least = "At least "
	}
	for _, x := range all {
		let += min(1, len(x.Access))
	}
	switch {
	case b.People.Broken != "":
		return "The list can’t be shown right now."
	case b.Filter.Any():
		return least + page.Count(b.Total, "person matches", "people match") + "."
	case let == 0:
		return "No one has access yet."
	case let == len(all):
		return least + page.Count(let, "person", "people") + " may talk to a bot."
	}
	return least + page.Count(let, "person", "people") + " may talk to a bot; " + strconv.Itoa(len(all)-let) + " more did once."
}

// ---- blocks, and their undo

// maxLately bounds the ended blocks that are kept for an undo.
const maxLately = 50

// lately are blocks that were ended in this panel just now. They are not
// stored, since they can be undone for seconds only.
type lately struct {
	mu   sync.Mutex
	rows []people.Blocked // At is when it was ended; at most maxLately
}

func (l *lately) add(b people.Blocked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, b)
	l.rows = l.rows[max(0, len(l.rows)-maxLately):]
}

// since returns those ended after t.
func (l *lately) since(t time.Time) []people.Blocked {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = slices.DeleteFunc(l.rows, func(b people.Blocked) bool { return !b.At.After(t) })
	return slices.Clone(l.rows)
}

func (l *lately) take(bot, platform, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.rows)
	l.rows = slices.DeleteFunc(l.rows, func(b people.Blocked) bool {
		return b.Bot == bot && b.Platform == platform && b.PlatformUserID == id
	})
	return len(l.rows) < n
}

// blocks returns the blocks, and those ended so recently that this can be undone.
func (p *personPages) blocks(ctx context.Context) ([]blockView, error) {
	now := p.frame.Clock.Now()
	rows, err := p.o.Blocks.Blocks(ctx)
	var out []blockView
	for _, b := range p.lately.since(now.Add(-undoFor)) {
		if !slices.ContainsFunc(rows, func(x people.Blocked) bool {
			return x.Bot == b.Bot && x.Platform == b.Platform && x.PlatformUserID == b.PlatformUserID
		}) {
			out = append(out, blockView{Blocked: b, Left: page.Left(b.At, now, undoFor), Over: true})
		}
	}
	for _, b := range rows {
		out = append(out, blockView{Blocked: b, Left: page.Left(b.At, now, undoFor)})
	}
	return out, err
}
