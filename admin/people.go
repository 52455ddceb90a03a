package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/pairing"
)

const (
	maxAccess     = 1000 // rows read for the page; the filter looks through these
	peoplePerPage = 15
	maxBlocks     = 20
	maxPlaces     = 20
)

type peopleBody struct {
	Lede     string
	People   part[[]person]
	Total    int // people that match the filter
	Cut      bool
	Query    string
	Number   int // of this page, from 1
	Prev     int
	Next     int
	Blocks   part[[]pairing.BlockRow]
	MoreBl   int
	Places   part[[]pairing.PlaceRow]
	MorePl   int
	Bots     []string
	CSRF     string
	HasBlock bool
	HasPlace bool
}

// A person is one identity with what it may do.
type person struct {
	User           int64
	Display        string
	Role           string
	Platform       string
	PlatformUserID string
	Access         []core.AccessRow
	Bots           []string // with access, for "revoke everything there"
	CSRF           string
	CanBlock       bool
}

func (p *Panel) peoplePage(w http.ResponseWriter, r *http.Request) error {
	ctx, token := r.Context(), p.token(r)
	b := peopleBody{CSRF: token, Query: strings.TrimSpace(r.URL.Query().Get("q")), HasBlock: p.o.Blocks != nil, HasPlace: p.o.Places != nil}
	rows := load(ctx, p, "The list of people", func(ctx context.Context) ([]core.AccessRow, error) {
		return p.o.People.Access(ctx, maxAccess)
	})
	b.Cut = len(rows.Value) == maxAccess
	people := matching(persons(rows.Value), b.Query)
	b.Total = len(people)
	b.page(r.URL.Query().Get("page"))
	people = people[min(len(people), (b.Number-1)*peoplePerPage):min(len(people), b.Number*peoplePerPage)]
	for i := range people {
		people[i].CSRF, people[i].CanBlock = token, b.HasBlock
	}
	b.People = part[[]person]{Value: people, Broken: rows.Broken}
	b.Lede = peopleLede(b)
	if b.HasBlock {
		b.Blocks = load(ctx, p, "The list of blocked people", p.o.Blocks.Blocks)
		b.MoreBl = cut(&b.Blocks.Value, maxBlocks)
	}
	if b.HasPlace {
		b.Places = load(ctx, p, "The list of groups", p.o.Places.Places)
		b.MorePl = cut(&b.Places.Value, maxPlaces)
	}
	for _, s := range p.states() {
		b.Bots = append(b.Bots, s.Bot)
	}
	return p.show(w, r, http.StatusOK, "people", view{Title: "People", Topics: "people pairing", Body: b})
}

func peopleLede(b peopleBody) string {
	switch {
	case b.People.Broken != "":
		return "The list can’t be shown right now."
	case b.Query != "":
		return count(b.Total, "person matches", "people match") + " “" + b.Query + "”."
	case b.Total == 0:
		return "Nobody may talk to a bot yet."
	}
	return count(b.Total, "person", "people") + " may talk to a bot."
}

// page sets the page's number within bounds, and its neighbours; 0 is none.
func (b *peopleBody) page(asked string) {
	last := max(1, (b.Total+peoplePerPage-1)/peoplePerPage)
	n, _ := strconv.Atoi(asked)
	b.Number = min(max(n, 1), last)
	b.Prev = b.Number - 1
	if b.Number < last {
		b.Next = b.Number + 1
	}
}

// cut shortens *rows to n and says how many went.
func cut[T any](rows *[]T, n int) int {
	more := max(0, len(*rows)-n)
	*rows = (*rows)[:len(*rows)-more]
	return more
}

// persons groups access rows by identity: owner first, then by name.
func persons(rows []core.AccessRow) []person {
	var out []person
	at := map[[2]string]int{} // bounded by maxAccess
	for _, a := range rows {
		key := [2]string{a.Platform, a.PlatformUserID}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, person{User: a.User, Display: a.Display, Role: a.Role, Platform: a.Platform, PlatformUserID: a.PlatformUserID})
		}
		out[i].Access = append(out[i].Access, a)
		if !slices.Contains(out[i].Bots, a.Bot) {
			out[i].Bots = append(out[i].Bots, a.Bot)
		}
	}
	rank := map[string]int{"owner": 0, "admin": 1}
	slices.SortStableFunc(out, func(a, b person) int {
		ra, ok := rank[a.Role]
		if !ok {
			ra = 2
		}
		rb, ok := rank[b.Role]
		if !ok {
			rb = 2
		}
		return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(strings.ToLower(a.Display), strings.ToLower(b.Display)), cmp.Compare(a.PlatformUserID, b.PlatformUserID))
	})
	return out
}

// matching keeps those whose name, id, bot or role contains the words.
func matching(all []person, query string) []person {
	if query == "" {
		return all
	}
	q := strings.ToLower(query)
	return slices.DeleteFunc(all, func(x person) bool {
		text := strings.Join(append([]string{x.Display, x.PlatformUserID, x.Platform, x.Role}, x.Bots...), "\n")
		return !strings.Contains(strings.ToLower(text), q)
	})
}

const peoplePath = "/admin/people"

func (p *Panel) removeAccess(r *http.Request, by core.Actor) (flash, string, error) {
	id, err := number(r, "id")
	if err == nil {
		err = p.o.People.RemoveAccess(r.Context(), id, by)
	}
	return good("That access is removed. It holds from their next message on, and a running answer is stopped."), peoplePath, err
}

func (p *Panel) revoke(r *http.Request, by core.Actor) (flash, string, error) {
	n, err := p.o.People.Revoke(r.Context(), r.PostFormValue("bot"), r.PostFormValue("user"), by)
	if err == nil && n == 0 {
		err = core.Errorf(core.Conflict, "they had no access there any more")
	}
	return good("Revoked: " + count(n, "access", "accesses") + " on " + r.PostFormValue("bot") + ". Their next message is refused and a running answer is stopped."), peoplePath, err
}

func (p *Panel) block(r *http.Request, by core.Actor) (flash, string, error) {
	bot, user := r.PostFormValue("bot"), strings.TrimSpace(r.PostFormValue("user"))
	platform := strings.ToLower(strings.TrimSpace(r.PostFormValue("platform")))
	if bot == "" || user == "" || platform == "" {
		return flash{}, peoplePath, core.Errorf(core.Invalid, "to block somebody, say the platform, their id there, and the bot")
	}
	err := p.o.Blocks.BlockUser(r.Context(), bot, platform, user, by)
	return good("Blocked. Nothing they write is kept or answered until you unblock them."), peoplePath, err
}

func (p *Panel) unblock(r *http.Request, by core.Actor) (flash, string, error) {
	err := p.o.Blocks.Unblock(r.Context(), r.PostFormValue("bot"), r.PostFormValue("platform"), r.PostFormValue("user"), by)
	return good("Unblocked. They are a stranger again: what they write next becomes a request."), peoplePath, err
}

func (p *Panel) enablePlace(r *http.Request, by core.Actor) (flash, string, error) {
	level, err := core.ParseTrust(r.PostFormValue("trust"))
	if err == nil && level > core.Vault {
		err = core.Errorf(core.Invalid, "a group can't be given the level full; choose sandboxed or vault")
	}
	if err == nil {
		err = p.o.Places.Enable(r.Context(), r.PostFormValue("bot"), r.PostFormValue("place"), r.PostFormValue("name"), level, by)
	}
	return good("The group is enabled as " + level.String() + ": mentions of the bot are answered there."), peoplePath, err
}

func (p *Panel) disablePlace(r *http.Request, by core.Actor) (flash, string, error) {
	err := p.o.Places.Disable(r.Context(), r.PostFormValue("bot"), r.PostFormValue("place"), by)
	return good("The group is disabled: the bot is silent there."), peoplePath, err
}

// number reads a numeric part of the path.
func number(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, core.Errorf(core.NotFound, "there is no such entry")
	}
	return n, nil
}
