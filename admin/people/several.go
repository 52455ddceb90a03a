package people

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/pairing/people"
)

const maxNamed = 30 // in a question about several users

// A peopleFilter narrows the list: a part of a name, id, bot or role; what they may
// ("access", "blocked", "none"); a trust level, a bot and a platform. "" is any.
type peopleFilter struct{ Text, State, Trust, Bot, Platform string }

func peopleFilterOf(q url.Values) peopleFilter {
	return peopleFilter{core.CutRunes(strings.TrimSpace(q.Get("q")), 200), q.Get("state"), q.Get("trust"), q.Get("bot"), q.Get("platform")}
}

// Any reports whether f leaves anything out.
func (f peopleFilter) Any() bool { return f != peopleFilter{} }

// address returns the list with this filter.
func (f peopleFilter) address() string {
	return page.Address(peoplePath, map[string]string{"q": f.Text, "state": f.State, "trust": f.Trust, "bot": f.Bot, "platform": f.Platform})
}

// of returns those that match f in a slice of their own: the blocked by when that was, the
// others in their order.
func (f peopleFilter) of(all []person, blocks []blockView) (found []person) {
	blocked := map[string]time.Time{} // by account; bounded by the blocks
	for _, b := range blocks {
		if !b.Over {
			blocked[b.Platform+":"+b.PlatformUserID] = b.At
		}
	}
	since := func(x person) (at time.Time) {
		for _, a := range x.Accounts {
			if t := blocked[a.Platform+":"+a.ID]; t.After(at) {
				at = t
			}
		}
		return at
	}
	for _, x := range all {
		if f.matches(x, !since(x).IsZero()) {
			found = append(found, x)
		}
	}
	if f.State == "blocked" {
		core.Sort(found, func(a, b person) int { return since(b).Compare(since(a)) })
	}
	return found
}

func (f peopleFilter) matches(x person, blocked bool) bool {
	state := map[string]bool{"": true, "access": len(x.Access) > 0, "blocked": blocked, "none": len(x.Access) == 0 && !blocked}
	text := []string{x.Name, x.Display, string(x.Role)}
	at := f.Platform == ""
	for _, a := range x.Accounts {
		at = at || a.Platform == f.Platform
		text = append(text, a.Display, a.ID, a.Platform)
	}
	may := f.Bot == "" && f.Trust == ""
	for _, a := range x.Access {
		may = may || (f.Bot == "" || a.Bot == f.Bot) && (f.Trust == "" || a.Trust.String() == f.Trust)
		text = append(text, a.Bot)
	}
	return state[f.State] && at && may && strings.Contains(strings.ToLower(strings.Join(text, "\n")), strings.ToLower(f.Text))
}

// choicesIn returns the bots and platforms to choose from.
func choicesIn(all []person) (bots, platforms []string) {
	for _, x := range all {
		for _, a := range x.Access {
			bots = append(bots, a.Bot)
		}
		for _, a := range x.Accounts {
			platforms = append(platforms, a.Platform)
		}
	}
	slices.Sort(bots)
	slices.Sort(platforms)
	return slices.Compact(bots), slices.Compact(platforms)
}

// Short returns on which bots they may what, each once.
func (x person) Short() (list []string) {
	for _, a := range x.Access {
		if s := a.Bot + " " + a.Trust.String(); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// Group returns the name of the group of an access.
func (x person) Group(a core.AccessRow) string { return cmp.Or(x.Groups[a.Bot+":"+a.Place], "a group") }

// ---- several at once

// A manyBody asks whether something is meant for these users.
type manyBody struct {
	CSRF, Verb, Do, Back, IDs string
	Names                     []string
	More                      int // that are not named
}

// manyPage asks before several users are blocked, or lose their access.
func (p *personPages) manyPage(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	f := peopleFilterOf(q)
	b := manyBody{CSRF: page.Token(r), Verb: q.Get("verb"), Back: f.address()}
	all, err := p.persons(ctx)
	var blocks []blockView
	if f.State != "" && p.o.Blocks != nil && err == nil {
		blocks, err = p.blocks(ctx)
	}
	if err != nil {
		return err
	}
	var ids []string
	for _, x := range f.of(all, blocks) {
		id := strconv.FormatInt(x.User, 10)
		if x.CanBlock() && (q.Get("all") != "" || slices.Contains(q["id"], id)) {
			ids, b.Names = append(ids, id), append(b.Names, x.Name)
		}
	}
	if len(ids) == 0 {
		p.frame.SetFlash(w, r, page.Note("Nobody was selected who can be blocked: mark people first."))
		http.Redirect(w, r, b.Back, http.StatusSeeOther)
		return nil
	}
	b.Do = "Block " + page.Count(len(ids), "person", "people")
	if b.Verb == "revoke" {
		b.Do = "Revoke all access of " + page.Count(len(ids), "person", "people")
	}
	b.IDs, b.More = strings.Join(ids, ","), page.Cut(&b.Names, maxNamed)
	return p.frame.Show(w, r, http.StatusOK, "many", page.View{Title: b.Do, In: "people", Still: true, Body: b})
}

// many does it, each person by a decision of its own.
func (p *personPages) many(r *http.Request, by core.Actor) (page.Flash, string, error) {
	do, did, back := p.revokeAll, "Revoked the access of ", peoplePath
	switch verb := r.PostFormValue("verb"); {
	case verb == "revoke":
	case verb == "block" && p.o.Blocks != nil:
		do, did, back = p.blockAll, "Blocked ", peopleFilter{State: "blocked"}.address()
	default:
		return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such decision")
	}
	ids := page.Head(strings.Split(r.PostFormValue("ids"), ","), maxPersons)
	done, late, err := page.Each(r.Context(), ids, func(ctx context.Context, id string) error {
		user, _ := strconv.ParseInt(id, 10, 64) // 0 is no one
		x, err := p.o.Persons.PersonOf(ctx, user)
		if err == nil {
			err = do(ctx, x, by)
		}
		return err
	})
	said := did + page.Count(done, "person", "people") + "."
	if late > 0 {
		said += " Unchanged: " + strconv.Itoa(late) + " (no access, or gone)."
	}
	return page.Good(said), back, err
}

// blockAll blocks a user's accounts on every bot.
func (p *personPages) blockAll(ctx context.Context, x people.Person, by core.Actor) error {
	if x.User == core.Operator || x.Role == core.RoleOwner {
		return core.Errorf(core.Invalid, "the owner cannot be blocked")
	}
	var err error
	for _, a := range x.Accounts {
		if err == nil {
			err = p.o.Blocks.BlockUser(ctx, everyBot, a.Platform, a.ID, by)
		}
	}
	return err
}

// revokeAll takes all that a user may do with any bot.
func (p *personPages) revokeAll(ctx context.Context, x people.Person, by core.Actor) error {
	rows, err := p.o.Persons.AccessOf(ctx, x.User)
	if err == nil && (x.Role == core.RoleOwner || len(rows) == 0) {
		err = core.Errorf(core.Conflict, "there is nothing to revoke")
	}
	for _, v := range personOf(x, rows).Revokes {
		if err == nil {
			_, err = p.o.Access.Revoke(ctx, v.Bot, v.Account, by)
		}
	}
	return err
}
