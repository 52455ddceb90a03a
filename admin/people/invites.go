package people

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/places"
)

const (
	invitesPath = "/admin/pairing/invites"
	maxInvites  = 20
)

type invitesBody struct {
	CSRF   string
	Open   page.Part[[]codes.Invitation]
	More   int
	Where  []page.Choice     // each bot, and each group that one answers in
	Groups map[string]string // their names, by where
	Levels []core.Trust
	Ends   []end // of the access
	Code   string
	Link   string // opens the chat, where the platform has such links
	Made   codes.Invitation
	Error  string
}

func (p *gatePages) invitesPage(w http.ResponseWriter, r *http.Request) error {
	return p.showInvites(w, r, http.StatusOK, invitesBody{})
}

func (p *gatePages) showInvites(w http.ResponseWriter, r *http.Request, status int, b invitesBody) error {
	b.CSRF, b.Levels = page.Token(r), []core.Trust{core.Sandboxed, core.Vault}
	for i, e := range ends {
		b.Ends = append(b.Ends, end{e.value, e.label, i == 0})
	}
	groups := p.openGroups(r.Context())
	b.Groups = map[string]string{}
	for _, s := range p.bots() {
		b.Where = append(b.Where, page.Choice{Value: s.Bot, Label: s.Bot + ": direct messages"})
		for _, g := range groups {
			if g.Bot == s.Bot {
				b.Groups[g.Bot+"/"+g.Place] = g.Name
				b.Where = append(b.Where, page.Choice{Value: g.Bot + "/" + g.Place, Label: g.Bot + ": the group " + page.DisplayName(g.Name)})
			}
		}
	}
	b.Open = page.Load(r.Context(), p.frame, "The list of invitations", p.o.Invites.Invites)
	b.More = page.Cut(&b.Open.Value, maxInvites)
	return p.frame.Show(w, r, status, "invites", page.View{Title: "Invitations", In: "pairing", Topics: []core.Topic{core.TopicPairing, core.TopicPeople}, Still: b.Code != "" || b.Error != "", Body: b})
}

// maxInvitedTo bounds the groups that an invitation can be to here.
const maxInvitedTo = 50

// openGroups returns those that a bot answers in. Without them an invitation is to
// direct messages alone.
func (p *gatePages) openGroups(ctx context.Context) []places.Row {
	if p.o.Places == nil {
		return nil
	}
	rows := page.Load(ctx, p.frame, "The list of groups", p.o.Places.Places).Value
	rows = slices.DeleteFunc(rows, func(g places.Row) bool { return !g.Enabled })
	return rows[:min(len(rows), maxInvitedTo)]
}

// invite answers with the page itself: the code is in no cookie and no address.
func (p *gatePages) invite(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	inv, err := p.invitation(r)
	var b invitesBody
	if err == nil {
		b.Code, b.Made, err = p.o.Invites.Invite(r.Context(), inv, who.Actor())
	}
	if err != nil {
		status, ok := page.Refusal(w, err)
		if !ok {
			return err
		}
		b.Error = page.Sentence(core.TextOf(err))
		return p.showInvites(w, r, status, b)
	}
	if p.o.InviteLink != nil {
		b.Link = p.o.InviteLink(b.Made.Bot, b.Code)
	}
	return p.showInvites(w, r, http.StatusOK, b)
}

// invitation reads the form: level and end as in an approval.
func (p *gatePages) invitation(r *http.Request) (inv codes.Invitation, err error) {
	a, err := approval(r, p.frame.Clock.Now())
	if err != nil {
		return inv, err
	}
	uses, bad := strconv.Atoi(r.PostFormValue("uses"))
	days, wrong := strconv.Atoi(r.PostFormValue("days"))
	if bad != nil || wrong != nil || uses < 1 || uses > codes.MaxUses || days < 1 || days > codes.MaxDays {
		return inv, core.Errorf(core.Invalid, "an invitation is for 1 to %d people and works for 1 to %d days", codes.MaxUses, codes.MaxDays)
	}
	now := p.frame.Clock.Now()
	bot, place, group := strings.Cut(r.PostFormValue("where"), "/")
	inv = codes.Invitation{Bot: bot, Trust: a.Trust, Scope: core.ScopeDM, Place: place, UsesLeft: uses, ExpiresAt: now.Add(time.Duration(days) * 24 * time.Hour)}
	if group {
		if inv.Scope = core.ScopeGroup; !slices.ContainsFunc(p.openGroups(r.Context()), func(g places.Row) bool { return g.Bot == bot && g.Place == place }) {
			return inv, core.Errorf(core.Invalid, "the bot answers in no such group: enable it under People first")
		}
	}
	if !a.ExpiresAt.IsZero() {
		inv.Lasts = a.ExpiresAt.Sub(now)
	}
	return inv, nil
}

func (p *gatePages) revokeInvite(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The invitation is revoked. Those who used it keep their access."), invitesPath, p.o.Invites.RevokeInvite(r.Context(), r.PathValue("id"), by)
}
