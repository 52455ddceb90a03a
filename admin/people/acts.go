package people

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
)

// there reports whether the page Users has its sources.
func (p *personPages) there() bool { return p.o.Access != nil && p.o.Persons != nil }

func (p *personPages) routes() {
	if !p.there() {
		return
	}
	p.frame.Page("GET "+peoplePath, p.peoplePage)
	p.frame.Page("GET "+peoplePath+"/{user}", p.personPage)
	p.frame.Page("GET "+peoplePath+"/several", p.manyPage)
	p.frame.Post("POST "+peoplePath+"/several", p.many)
	p.frame.Post("POST "+peoplePath+"/access/{id}/remove", p.removeAccess)
	p.frame.Post("POST "+peoplePath+"/revoke", p.revoke)
	if p.o.Terms != nil {
		p.frame.Post("POST "+peoplePath+"/access/{id}/change", p.changeAccess)
		p.frame.Post("POST "+peoplePath+"/{user}/give", p.giveAccess)
		p.frame.Post("POST "+peoplePath+"/{user}/unlink", p.unlink)
	}
	if p.o.Blocks != nil {
		p.frame.Post("POST "+peoplePath+"/block", p.block)
		p.frame.Post("POST "+peoplePath+"/unblock", p.unblock)
		p.frame.Post("POST "+peoplePath+"/undo", p.undoBlock)
		p.frame.Post("POST "+peoplePath+"/{user}/block", p.blockPerson)
		p.frame.Post("POST "+peoplePath+"/{user}/unblock", p.unblockPerson)
		p.frame.Post("POST "+peoplePath+"/{user}/undo", p.undoPerson)
	}
	if p.o.Spending != nil {
		p.frame.Post("POST "+peoplePath+"/{user}/budget", p.setBudget)
	}
	if p.o.PersonalData != nil {
		p.frame.Post("POST "+peoplePath+"/{user}/forget", p.forget)
		p.frame.Post("POST "+peoplePath+"/{user}/export", p.export)
		p.frame.Secret("GET "+peoplePath+"/{user}/export", p.exported)
	}
	if p.o.Places != nil {
		p.frame.Post("POST "+peoplePath+"/places/enable", p.enablePlace)
		p.frame.Post("POST "+peoplePath+"/places/disable", p.disablePlace)
	}
	if p.o.SetPlace != nil {
		p.frame.Post("POST "+peoplePath+"/places/set", p.setPlace)
	}
}

// personPath returns the address of one user's page.
func personPath(user int64) string { return peoplePath + "/" + strconv.FormatInt(user, 10) }

// backFrom returns the page that a form was on: the user's, when it names one.
func backFrom(r *http.Request) string {
	if user, err := strconv.ParseInt(r.PostFormValue("from"), 10, 64); err == nil && user > 0 {
		return personPath(user)
	}
	return peoplePath
}

func (p *personPages) removeAccess(r *http.Request, by core.Actor) (page.Flash, string, error) {
	id, err := page.Number(r, "id")
	if err == nil {
		err = p.o.Access.RemoveAccess(r.Context(), id, by)
	}
	return page.Good("That access is removed. It holds from their next message on, and a running answer is stopped."), backFrom(r), err
}

func (p *personPages) revoke(r *http.Request, by core.Actor) (page.Flash, string, error) {
	f, err := revokeAccess(r, p.o.Access, by)
	return f, backFrom(r), err
}

// revokeAccess revokes every access of the form's account on the form's bot.
func revokeAccess(r *http.Request, from Access, by core.Actor) (page.Flash, error) {
	n, err := from.Revoke(r.Context(), r.PostFormValue("bot"), r.PostFormValue("user"), by)
	if err == nil && n == 0 {
		err = core.Errorf(core.Conflict, "they have no access there any more")
	}
	return page.Good("Revoked: " + page.Count(n, "access", "accesses") + " on " + r.PostFormValue("bot") + ". Their next message is refused and a running answer is stopped."), err
}

// terms reads level and end of an access. "keep" leaves the end as it is.
func (p *personPages) terms(r *http.Request, ends time.Time) (core.Approval, error) {
	if r.PostFormValue("end") == "keep" {
		r.PostForm.Set("end", "")
		a, err := approval(r, p.frame.Clock.Now())
		a.ExpiresAt = ends
		return a, err
	}
	return approval(r, p.frame.Clock.Now())
}

func (p *personPages) changeAccess(r *http.Request, by core.Actor) (page.Flash, string, error) {
	back := backFrom(r)
	id, err := page.Number(r, "id")
	if err != nil {
		return page.Flash{}, back, err
	}
	ends, err := core.ParseStamp(r.PostFormValue("ends")) // as it was when the page was made
	if err != nil {
		return page.Flash{}, back, core.Errorf(core.Invalid, "until: that is no time")
	}
	a, err := p.terms(r, ends)
	if err == nil {
		err = p.o.Terms.ChangeAccess(r.Context(), id, a, by)
	}
	return page.Good("Changed to " + a.Trust.String() + p.untilText(a.ExpiresAt) + ". It holds at once."), back, err
}

func (p *personPages) untilText(end time.Time) string {
	if end.IsZero() {
		return ", without end"
	}
	return ", for " + page.Span(end.Sub(p.frame.Clock.Now())+time.Second)
}

func (p *personPages) giveAccess(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	back := personPath(user)
	bot, place, ok := strings.Cut(r.PostFormValue("where"), " ")
	if !ok || bot == "" {
		return page.Flash{}, back, core.Errorf(core.Invalid, "where: choose direct messages or a group")
	}
	a, err := approval(r, p.frame.Clock.Now())
	if err == nil {
		err = p.o.Terms.GiveAccess(r.Context(), user, bot, place, a, by)
	}
	return page.Good("They may talk to " + bot + " there now, as " + a.Trust.String() + p.untilText(a.ExpiresAt) + ". They are not notified."), back, err
}

func (p *personPages) unlink(r *http.Request, by core.Actor) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	platform := r.PostFormValue("platform")
	err = p.o.Terms.Unlink(r.Context(), user, platform, by)
	return page.Good("The account on " + page.Platform(platform) + " has no person now: its next message becomes a request."), personPath(user), err
}

// ---- blocks

func (p *personPages) block(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot, platform, user := account(r)
	if bot == "" || user == "" || platform == "" {
		return page.Flash{}, peoplePath, core.Errorf(core.Invalid, "to block an account, give its platform, its id there, and the bot")
	}
	err := p.o.Blocks.BlockUser(r.Context(), bot, platform, user, by)
	return page.Good("Blocked. Their messages are neither kept nor answered until you unblock them."), peoplePath, err
}

// account returns the bot and the account of a form about a block.
func account(r *http.Request) (bot, platform, id string) {
	return r.PostFormValue("bot"), strings.ToLower(strings.TrimSpace(r.PostFormValue("platform"))), strings.TrimSpace(r.PostFormValue("user"))
}

func (p *personPages) unblock(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot, platform, user := account(r)
	err := p.endBlock(r.Context(), bot, platform, user, by)
	return page.Good("Unblocked. They are a stranger again: what they write next becomes a request."), backFrom(r), err
}

func (p *personPages) endBlock(ctx context.Context, bot, platform, id string, by core.Actor) error {
	if err := p.o.Blocks.Unblock(ctx, bot, platform, id, by); err != nil {
		return err
	}
	p.lately.add(people.Blocked{Bot: bot, Platform: platform, PlatformUserID: id, At: p.frame.Clock.Now()})
	return nil
}

// undoBlock undoes a block, or the end of one.
func (p *personPages) undoBlock(r *http.Request, by core.Actor) (page.Flash, string, error) {
	b := people.Blocked{Bot: r.PostFormValue("bot"), Platform: r.PostFormValue("platform"), PlatformUserID: r.PostFormValue("user")}
	said, err := p.takeBack(r.Context(), b, r.PostFormValue("was") == "unblocked", by)
	return page.Good(said), backFrom(r), err
}

func (p *personPages) takeBack(ctx context.Context, b people.Blocked, unblocked bool, by core.Actor) (string, error) {
	if !unblocked {
		return "Undone: they are not blocked, and what they might before they may again.", p.o.Blocks.UndoBlock(ctx, b.Bot, b.Platform, b.PlatformUserID, by)
	}
	p.lately.since(p.frame.Clock.Now().Add(-undoFor))
	if !p.lately.take(b.Bot, b.Platform, b.PlatformUserID) {
		return "", core.Errorf(core.Conflict, "too late to undo: a decision can be taken back for %d seconds; block them again", int(undoFor.Seconds()))
	}
	return "Undone: they are blocked as before.", p.o.Blocks.BlockUser(ctx, b.Bot, b.Platform, b.PlatformUserID, by)
}

func (p *personPages) ofPerson(r *http.Request, act func(ctx context.Context, x people.Person) (string, error)) (page.Flash, string, error) {
	user, err := page.Number(r, "user")
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	x, err := p.o.Persons.PersonOf(r.Context(), user)
	if err != nil {
		return page.Flash{}, peoplePath, err
	}
	said, err := act(r.Context(), x)
	return page.Good(said), backFrom(r), err
}

func (p *personPages) blockPerson(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return p.ofPerson(r, func(ctx context.Context, x people.Person) (string, error) {
		return "Blocked on every bot. Their messages are neither kept nor answered until you unblock them.", p.blockAll(ctx, x, by)
	})
}

// everyBot is all bots, in a block.
const everyBot = "*"

func (p *personPages) unblockPerson(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return p.ofPerson(r, func(ctx context.Context, x people.Person) (string, error) {
		n, err := p.eachBlock(ctx, x, false, func(b blockView) error { return p.endBlock(ctx, b.Bot, b.Platform, b.PlatformUserID, by) })
		if err == nil && n == 0 {
			err = core.Errorf(core.Conflict, "they are not blocked any more")
		}
		return "Unblocked. They are a stranger again: what they write next becomes a request.", err
	})
}

// undoPerson undoes the last block of a user, or its end.
func (p *personPages) undoPerson(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return p.ofPerson(r, func(ctx context.Context, x people.Person) (said string, err error) {
		n, err := p.eachBlock(ctx, x, true, func(b blockView) (err error) {
			said, err = p.takeBack(ctx, b.Blocked, b.Over, by)
			return err
		})
		if err == nil && n == 0 {
			err = core.Errorf(core.Conflict, "too late to undo: a decision can be taken back for %d seconds", int(undoFor.Seconds()))
		}
		return said, err
	})
}

// eachBlock calls f for the blocks of a user's accounts: those in force, or
// those that can be undone. It returns how many there were.
func (p *personPages) eachBlock(ctx context.Context, x people.Person, undoable bool, f func(blockView) error) (n int, err error) {
	all, err := p.blocks(ctx)
	for _, b := range all {
		for _, a := range x.Accounts {
			if err != nil {
				return n, err
			}
			if b.Platform == a.Platform && b.PlatformUserID == a.ID && (undoable && b.Left > 0 || !undoable && !b.Over) {
				n++
				err = f(b)
			}
		}
	}
	return n, err
}

// ---- groups

func (p *personPages) enablePlace(r *http.Request, by core.Actor) (page.Flash, string, error) {
	level, err := placeLevel(r)
	if err == nil {
		err = p.o.Places.Enable(r.Context(), r.PostFormValue("bot"), r.PostFormValue("place"), r.PostFormValue("name"), level, by)
	}
	return page.Good("The group is enabled as " + level.String() + ": mentions of the bot are answered there."), peoplePath + "#groups-h", err
}

func placeLevel(r *http.Request) (core.Trust, error) {
	level, err := core.ParseTrust(r.PostFormValue("trust"))
	if err == nil && level > core.Vault {
		err = core.Errorf(core.Invalid, "a group cannot have trust full; choose sandboxed or vault")
	}
	return level, err
}

func (p *personPages) disablePlace(r *http.Request, by core.Actor) (page.Flash, string, error) {
	err := p.o.Places.Disable(r.Context(), r.PostFormValue("bot"), r.PostFormValue("place"), by)
	return page.Good("The group is disabled: the bot is silent there."), peoplePath + "#groups-h", err
}

// mentions returns the choices of what an enabled group's bot reads.
func mentions() []page.Choice {
	return []page.Choice{{Value: places.MentionOnly, Label: "what is addressed to it"}, {Value: places.MentionContext, Label: "what is addressed to it, reading along"}, {Value: places.MentionAll, Label: "everything"}}
}

// setPlace changes how an enabled group is answered: its level, and what the bot
// reads there. The rest of the group's settings stays.
func (p *personPages) setPlace(r *http.Request, by core.Actor) (page.Flash, string, error) {
	back := peoplePath + "#groups-h"
	level, err := placeLevel(r)
	if err != nil {
		return page.Flash{}, back, err
	}
	err = p.o.SetPlace(r.Context(), r.PostFormValue("bot"), r.PostFormValue("place"), level, r.PostFormValue("mention"), by)
	return page.Good("The group’s settings are changed. They hold at once."), back, err
}
