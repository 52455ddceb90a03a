package people

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// A requestFilter narrows the requests: a part of the name, the id or the first
// message, the bot, and where it was written ("dm", "group"). "" is any.
type requestFilter struct{ Text, Bot, Scope string }

func filterOf(q url.Values) requestFilter {
	return requestFilter{core.CutRunes(strings.TrimSpace(q.Get("q")), 200), q.Get("bot"), q.Get("scope")}
}

// Any reports whether f leaves anything out.
func (f requestFilter) Any() bool { return f != requestFilter{} }

// of returns the requests that match f, in a slice of their own.
func (f requestFilter) of(all []core.PairingRequest) (found []core.PairingRequest) {
	text := strings.ToLower(f.Text)
	for _, q := range all {
		if f.Bot != "" && q.Bot != f.Bot || f.Scope != "" && string(q.Scope) != f.Scope {
			continue
		}
		if text == "" || strings.Contains(strings.ToLower(q.Display+"\n"+q.PlatformUserID+"\n"+q.Code+"\n"+q.FirstMessage), text) {
			found = append(found, q)
		}
	}
	return found
}

// address returns the page with this filter.
func (f requestFilter) address() string {
	return page.Address(pairingPath, map[string]string{"q": f.Text, "bot": f.Bot, "scope": f.Scope})
}

// botsIn returns the bots that someone waits for, and the chosen one.
func botsIn(all []core.PairingRequest, chosen string) (bots []string) {
	if chosen != "" {
		bots = append(bots, chosen)
	}
	for _, q := range all {
		if !slices.Contains(bots, q.Bot) {
			bots = append(bots, q.Bot)
		}
	}
	slices.Sort(bots)
	return bots
}

// bulk denies or blocks the requests that the form selects: those named, or all that
// match its filter.
func (p *gatePages) bulk(r *http.Request, by core.Actor) (page.Flash, string, error) {
	f := filterOf(r.PostForm)
	back := f.address()
	do, did := p.o.Decisions.Deny, "Denied"
	switch r.PostFormValue("verb") {
	case "deny":
	case "block":
		do, did = p.o.Decisions.Block, "Blocked"
	default:
		return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such decision")
	}
	ids := page.Head(r.PostForm["id"], maxRequests)
	if r.PostFormValue("all") != "" {
		waiting := p.pending(r.Context())
		if waiting.Broken != "" {
			return page.Flash{}, back, core.Errorf(core.Busy, "%s", waiting.Broken)
		}
		ids = nil
		for _, q := range f.of(waiting.Value) {
			ids = append(ids, q.ID)
		}
	}
	if len(ids) == 0 {
		return page.Note("Nothing was selected: mark the requests first."), back, nil
	}
	done, late, err := page.Each(r.Context(), ids, func(ctx context.Context, id string) error {
		_, err := do(ctx, id, by)
		return err
	})
	if err != nil {
		return page.Flash{}, back, err
	}
	said := did + " " + page.Count(done, "request", "requests") + "."
	if late > 0 {
		said += " " + page.Count(late, "was", "were") + " decided before."
	}
	return page.Good(said), back, nil
}
