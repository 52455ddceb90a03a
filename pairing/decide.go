package pairing

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

// Approve approves a request: it stores access, notifies the user and releases the held
// messages at the approved level, in one transaction. ref is the request's id or a valid
// code. A request that is already decided is a Conflict that names who decided; one whose
// access was revoked later can be approved again.
func (g *Gate) Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error) {
	return g.decide(ctx, "approve", ref, by, func(tx *store.Tx, r *request) error {
		trust, err := g.terms(r, a, core.Stamp(tx.Time()))
		if err != nil {
			return err
		}
		text := "approved"
		if r.Shut && r.revoked() {
			return core.Errorf(core.Conflict, "they are blocked there: unblock them first")
		} else if r.revoked() {
			text, err = g.requests.again(ctx, tx, r, trust, by)
		} else {
			err = g.requests.resolve(ctx, tx, r, "approved", trust, by)
		}
		if err != nil {
			return err
		}
		user, err := g.People.Ensure(ctx, tx, r.Platform, r.PlatformUserID, r.Display)
		if err != nil {
			return err
		}
		if err := g.grant(ctx, tx, r, user, core.Stamp(a.ExpiresAt)); err != nil {
			return err
		}
		if err := g.tell(ctx, tx, r, text); err != nil {
			return err
		}
		if err := g.requests.free(ctx, tx, r); err != nil {
			return err
		}
		detail := map[string]any{"bot": r.Bot, "user": user, "trust": trust.String(), "scope": r.Scope}
		if err := store.Audit(ctx, tx, by, "pairing.approve", r.ID, detail); err != nil {
			return err
		}
		g.changes.Decided(tx, r.Bot, "approved", core.TopicPairing, core.TopicPeople)
		return g.requests.closeAsk(ctx, tx, r.ID, texts.Text("request_approved", texts.With{"Name": core.CleanName(r.Display), "Trust": trust, "By": r.ResolvedBy}))
	})
}

// Deny denies a request: the user is notified once, then not for CoolOff. Held messages
// stay until the time for undoing has passed (Expire).
func (g *Gate) Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	return g.decide(ctx, "deny", ref, by, func(tx *store.Tx, r *request) error {
		if err := g.requests.resolve(ctx, tx, r, "denied", core.Stranger, by); err != nil {
			return err
		}
		if err := g.tell(ctx, tx, r, "denied"); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "pairing.deny", r.ID, map[string]any{"bot": r.Bot}); err != nil {
			return err
		}
		g.changes.Decided(tx, r.Bot, "denied", core.TopicPairing)
		return g.requests.closeAsk(ctx, tx, r.ID, texts.Text("request_denied", texts.With{"Name": core.CleanName(r.Display), "By": r.ResolvedBy}))
	})
}

// Block denies the request without a notice and drops what the user sends to this bot
// from now on.
func (g *Gate) Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	return g.decide(ctx, "block", ref, by, func(tx *store.Tx, r *request) error {
		if err := g.requests.resolve(ctx, tx, r, "denied", core.Stranger, by); err != nil {
			return err
		}
		if err := g.requests.markBlocked(ctx, tx, r); err != nil {
			return err
		}
		if err := g.People.Block(ctx, tx, r.Bot, r.Platform, r.PlatformUserID, by); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "pairing.block", r.ID, map[string]any{"bot": r.Bot}); err != nil {
			return err
		}
		g.changes.Decided(tx, r.Bot, "blocked", core.TopicPairing, core.TopicPeople)
		return g.requests.closeAsk(ctx, tx, r.ID, texts.Text("request_blocked", texts.With{"Name": core.CleanName(r.Display), "By": r.ResolvedBy}))
	})
}

// Undo undoes a denial or a block within people.UndoFor of it: the request waits
// again, without cool-off, with the messages that were held. It returns Conflict for
// an approval, which has released the messages: revoke the access instead.
func (g *Gate) Undo(ctx context.Context, id string, by core.Actor) (core.PairingRequest, error) {
	return g.decide(ctx, "undo", id, by, func(tx *store.Tx, r *request) error {
		now := tx.Time()
		if r.Status == "approved" {
			return core.Errorf(core.Conflict, "an approval cannot be undone, because the held messages are released: revoke the access instead")
		}
		if r.Status != "denied" || r.revoked() {
			return decided(r, now)
		}
		if at := core.TimeOf(r.Resolved); now.Sub(at) > people.UndoFor {
			return core.Errorf(core.Conflict, "a decision can be undone for %d seconds; this one was made at %s UTC", int(people.UndoFor.Seconds()), at.UTC().Format("15:04:05"))
		}
		if err := g.takeBack(ctx, tx, r); err != nil {
			return err
		}
		was := r.Status
		if r.Blocked {
			was = "blocked"
		}
		if err := store.Audit(ctx, tx, by, "pairing.undo", r.ID, map[string]any{"bot": r.Bot, "was": was}); err != nil {
			return err
		}
		r.Status, r.Blocked, r.Resolved, r.ResolvedBy = "pending", false, "", ""
		g.changes.Decided(tx, r.Bot, "undone", core.TopicPairing, core.TopicPeople)
		return g.requests.openAsk(ctx, tx, r.public())
	})
}

// decide runs one decision in its transaction and gives the request as it is then.
func (g *Gate) decide(ctx context.Context, verb, ref string, by core.Actor, f func(*store.Tx, *request) error) (core.PairingRequest, error) {
	var out core.PairingRequest
	err := g.db.Tx(ctx, func(tx *store.Tx) error {
		r, err := byRef(ctx, tx, ref, tx.Time())
		if err != nil {
			return err
		}
		if err := g.People.OwnerOnly(ctx, tx, r.Platform, r.PlatformUserID, by); err != nil {
			return err
		}
		if err := f(tx, &r); err != nil {
			return err
		}
		out = r.public()
		return nil
	})
	if err != nil {
		return core.PairingRequest{}, fmt.Errorf("%s pairing request: %w", verb, err)
	}
	return out, nil
}

// terms checks what an approval asks for and gives its level.
func (g *Gate) terms(r *request, a core.Approval, now string) (core.Trust, error) {
	if a.Scope != "" && a.Scope != r.Scope {
		return core.Stranger, core.Errorf(core.Invalid, "this request was made for scope %q and cannot be approved for another", r.Scope)
	}
	if end := core.Stamp(a.ExpiresAt); end != "" && end <= now {
		return core.Stranger, core.Errorf(core.Invalid, "the end of the access (%s) is already over", end)
	}
	p := g.bots.Policy(r.Bot)
	fallback := p.DMTrust
	if r.Scope == core.ScopeGroup {
		fallback = p.GroupTrust
	}
	return bots.Within(a.Trust, fallback, a.Most)
}

// grant writes the access row of an approved request.
func (g *Gate) grant(ctx context.Context, tx *store.Tx, r *request, user int64, expires string) error {
	chat := ""
	if r.Scope == core.ScopeDM {
		chat = r.PlatformChatID
	}
	return g.People.Put(ctx, tx, people.Grant{Bot: r.Bot, User: user, Scope: r.Scope, Place: r.Place, Trust: r.Trust,
		ExpiresAt: expires, Chat: chat, By: r.ResolvedBy, At: r.Resolved})
}

// tell posts the outcome to the user, if the chat is known.
func (g *Gate) tell(ctx context.Context, tx *store.Tx, r *request, text string) error {
	if r.PlatformChatID == "" {
		return nil
	}
	to := core.Address{Bot: r.Bot, Chat: r.PlatformChatID, Place: r.Place}
	key := "pair:" + r.ID + ":" + text + "-" + strings.ToLower(rand.Text()[:6]) // an undone decision is reported again
	return g.notices.Post(ctx, tx, to, key, text, texts.Words{Name: r.Display})
}

// takeBack removes what the decision on r wrote and sets it waiting again.
func (g *Gate) takeBack(ctx context.Context, tx *store.Tx, r *request) error {
	if err := g.People.Restore(ctx, tx, r.Bot, r.Platform, r.PlatformUserID, r.Resolved); err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'pending', blocked = 0, resolved_at = NULL, resolved_by = NULL, card_stale = 0, cooled = 0
		WHERE id = $1 AND status = 'denied' AND resolved_at = $2`, r.ID, r.Resolved)
	if err == nil && n == 0 {
		err = core.Errorf(core.Conflict, "this request was just changed by another user")
	}
	return err
}
