package pairing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// Person returns who ref names, as the gate's tables know them: the number of a
// user, or "platform:id" for an account on a platform, let in or not;
// core.NotFound where nothing is known of them.
func (g *Gate) Person(ctx context.Context, q store.Queryer, ref string) (core.Person, error) {
	p, known, err := g.People.Find(ctx, q, ref)
	if err != nil {
		return p, err
	}
	for i := range p.Identities {
		rows, err := g.requests.of(ctx, q, p.Identities[i])
		if err != nil {
			return p, fmt.Errorf("person: %w", err)
		}
		known = known || len(rows) > 0
		addTraces(&p, &p.Identities[i], rows)
	}
	if err := g.People.Chats(ctx, q, &p); err != nil {
		return p, err
	}
	if !known {
		if p.User > 0 && !strings.Contains(ref, ":") {
			return p, core.Errorf(core.NotFound, "no person has the number %d; the panel's page People shows the numbers", p.User)
		}
		return p, core.Errorf(core.NotFound, "no person has the account %s", core.CleanName(ref))
	}
	return p, nil
}

// addTraces adds what an account's requests name: bots, names, chats.
func addTraces(p *core.Person, id *core.Identity, rows []request) {
	for _, r := range rows {
		p.Requests = append(p.Requests, r.ID)
		if r.Display != "" && !slices.Contains(p.Names, r.Display) {
			p.Names = append(p.Names, r.Display)
		}
		if !slices.Contains(id.Bots, r.Bot) {
			id.Bots = append(id.Bots, r.Bot)
		}
		if r.Scope == core.ScopeDM && r.PlatformChatID != "" {
			p.Chats = append(p.Chats, core.Address{Bot: r.Bot, Chat: r.PlatformChatID})
		}
	}
}

// Forget deletes who a user is: accounts, access, requests, blocks, names,
// codes. The empty user row stays, so that its number is never another user's.
// An account that was blocked is a stranger's again. The operator can't be forgotten.
func (g *Gate) Forget(ctx context.Context, tx *store.Tx, p core.Person, by core.Actor) error {
	if err := people.NotTheOperator(p.User); err != nil {
		return err
	}
	if err := g.requests.forget(ctx, tx, p.Requests); err != nil {
		return fmt.Errorf("forget a person: %w", err)
	}
	if err := g.People.Forget(ctx, tx, p); err != nil {
		return fmt.Errorf("forget a person: %w", err)
	}
	if err := g.Codes.Forget(ctx, tx, p); err != nil {
		return fmt.Errorf("forget a person: %w", err)
	}
	g.changes.Decided(tx, "", "", core.TopicPairing, core.TopicPeople)
	return store.Audit(ctx, tx, by, "user.forget", strconv.FormatInt(p.User, 10), nil)
}
