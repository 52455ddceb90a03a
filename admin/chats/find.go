package chats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatehouse/admin/page"
)

const (
	maxHits   = 8    // users, and groups, of a search
	maxFailed = 1000 // conversations that failed
)

// states are the choices of a conversation's state; the first is every one that is not
// archived.
var states = []page.Choice{{Value: "", Label: "Not archived"}, {Value: "running", Label: "Being answered"}, {Value: "waiting", Label: "Wait for approval"},
	{Value: "failed", Label: "Last answer failed"}, {Value: "archived", Label: "Archived"}, {Value: "all", Label: "All"}}

// A hit is a user or a group that a search found, and where their conversations are.
type hit struct{ Name, What, URL string }

// only returns the conversations in this state, as far as they are few; nil for a state
// that the list itself knows.
func (p *Pages) only(ctx context.Context, state string) ([]string, error) {
	ids := []string{}
	switch state {
	case "running":
		return slices.AppendSeq(ids, maps.Keys(p.running())), nil
	case "waiting":
		waiting, err := p.waiting(ctx)
		return append(ids, waiting...), err
	case "failed":
		failed, err := p.o.Runs.LastFailed(ctx, maxFailed)
		return append(ids, failed...), err
	}
	return nil, nil
}

// waiting returns the conversations in which a tool call waits for approval.
func (p *Pages) waiting(ctx context.Context) ([]string, error) {
	if p.links.Waiting == nil {
		return nil, nil
	}
	return p.links.Waiting(ctx)
}

// found adds the users and groups that the search finds by name, and the name of the
// group that the list is of.
func (p *Pages) found(ctx context.Context, b *chatsBody) {
	query := strings.ToLower(b.Filter.Query)
	if query == "" && b.Filter.Place == "" || p.links.Groups == nil {
		return
	}
	groups := p.links.Groups(ctx)
	for _, g := range groups {
		if g.Bot == b.Filter.Bot && g.Place == b.Filter.Place {
			b.Where = cmp.Or(g.Name, "A group")
		}
	}
	if query == "" {
		return
	}
	var people []page.Choice
	if p.links.Known != nil {
		for user, name := range p.links.Known(ctx) {
			if strings.Contains(strings.ToLower(name), query) {
				people = append(people, page.Choice{Value: strconv.FormatInt(user, 10), Label: name})
			}
		}
	}
	page.ByLabel(people)
	for _, c := range page.Head(people, maxHits) {
		b.Hits = append(b.Hits, hit{c.Label, "Person", chatsPath + "?state=all&user=" + c.Value})
	}
	n := 0
	for _, g := range groups {
		if strings.Contains(strings.ToLower(g.Name), query) && n < maxHits {
			n++
			b.Hits = append(b.Hits, hit{g.Name, "Group of " + g.Bot, chatFilter{State: "all", Bot: g.Bot, Place: g.Place}.address("")})
		}
	}
}
