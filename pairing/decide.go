package pairing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crypto/rand"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Approve lets a stranger in: access is written, the person is told, and the
// messages held with the request are freed at the approved level, all in one
// transaction. ref is the request's id or a code that still works. A request
// that is decided already is a Conflict that names who was first.
func (b *Book) Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error) {
	return b.decide(ctx, "approve", ref, by, func(tx *store.Tx, r *request) error {
		trust, err := b.terms(r, a, core.Stamp(tx.Time()))
		if err != nil {
			return err
		}
		if err := b.resolve(ctx, tx, r, "approved", trust, by); err != nil {
			return err
		}
		user, err := b.ensureUser(ctx, tx, r.Platform, r.PlatformUserID, r.Display)
		if err != nil {
			return err
		}
		if err := b.grant(ctx, tx, r, user, core.Stamp(a.ExpiresAt)); err != nil {
			return err
		}
		if err := b.tell(ctx, tx, r, "approved"); err != nil {
			return err
		}
		if err := b.free(ctx, tx, r); err != nil {
			return err
		}
		detail := map[string]any{"bot": r.Bot, "user": user, "trust": trust.String(), "scope": r.Scope}
		if err := store.Audit(ctx, tx, by, "pairing.approve", r.ID, detail); err != nil {
			return err
		}
		b.after(tx, r.Bot, "approved", "pairing", "people")
		return b.closeAsk(ctx, tx, r.ID, texts.Text("request_approved", texts.With{"Trust": trust, "By": r.ResolvedBy}))
	})
}

// Deny says no: the person is told once, then nothing for CoolOff. What is
// held stays until the decision can no longer be undone (Expire).
func (b *Book) Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	return b.decide(ctx, "deny", ref, by, func(tx *store.Tx, r *request) error {
		if err := b.resolve(ctx, tx, r, "denied", core.Stranger, by); err != nil {
			return err
		}
		if err := b.tell(ctx, tx, r, "denied"); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "pairing.deny", r.ID, map[string]any{"bot": r.Bot}); err != nil {
			return err
		}
		b.after(tx, r.Bot, "denied", "pairing")
		return b.closeAsk(ctx, tx, r.ID, texts.Text("request_denied", texts.With{"By": r.ResolvedBy}))
	})
}

// Block denies the request without a word and leaves nothing of what the
// person sends to this bot from now on.
func (b *Book) Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error) {
	return b.decide(ctx, "block", ref, by, func(tx *store.Tx, r *request) error {
		if err := b.resolve(ctx, tx, r, "denied", core.Stranger, by); err != nil {
			return err
		}
		if err := b.block(ctx, tx, r.Bot, r.Platform, r.PlatformUserID, by); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "pairing.block", r.ID, map[string]any{"bot": r.Bot}); err != nil {
			return err
		}
		b.after(tx, r.Bot, "blocked", "pairing", "people")
		return b.closeAsk(ctx, tx, r.ID, texts.Text("request_blocked", texts.With{"By": r.ResolvedBy}))
	})
}

// Undo takes an approval, a denial or a block back within UndoFor of it: the
// request waits again, without cool-off, what the decision opened or closed is
// taken back, and what the person has running is stopped. Messages that an
// approval freed are not held again.
func (b *Book) Undo(ctx context.Context, id string, by core.Actor) (core.PairingRequest, error) {
	return b.decide(ctx, "undo", id, by, func(tx *store.Tx, r *request) error {
		now := tx.Time()
		revoked := r.Status == "denied" && r.Trust != core.Stranger
		if r.Status != "approved" && r.Status != "denied" || revoked {
			return decided(r, now)
		}
		if at := stamp(r.Resolved); now.Sub(at) > UndoFor {
			return core.Errorf(core.Conflict, "a decision can be undone for %d seconds; this one was made at %s UTC", int(UndoFor.Seconds()), at.UTC().Format("15:04:05"))
		}
		if err := b.takeBack(ctx, tx, r); err != nil {
			return err
		}
		if err := store.Audit(ctx, tx, by, "pairing.undo", r.ID, map[string]any{"bot": r.Bot, "was": r.Status}); err != nil {
			return err
		}
		r.Status, r.Trust, r.Resolved, r.ResolvedBy = "pending", core.Stranger, "", ""
		b.after(tx, r.Bot, "undone", "pairing", "people")
		return b.openAsk(ctx, tx, r.public())
	})
}

// decide runs one decision in its transaction and gives the request as it is then.
func (b *Book) decide(ctx context.Context, verb, ref string, by core.Actor, f func(*store.Tx, *request) error) (core.PairingRequest, error) {
	var out core.PairingRequest
	err := b.db.Tx(ctx, func(tx *store.Tx) error {
		r, err := byRef(ctx, tx, ref, tx.Time())
		if err != nil {
			return err
		}
		if err := b.ownerOnly(ctx, tx, r.Platform, r.PlatformUserID, by); err != nil {
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
func (b *Book) terms(r *request, a core.Approval, now string) (core.Trust, error) {
	if a.Scope != "" && a.Scope != r.Scope {
		return core.Stranger, core.Errorf(core.Invalid, "this request was made for scope %q and opens nothing else", r.Scope)
	}
	if end := core.Stamp(a.ExpiresAt); end != "" && end <= now {
		return core.Stranger, core.Errorf(core.Invalid, "the end of the access (%s) is already over", end)
	}
	p := b.o.Policy(r.Bot)
	fallback := p.DMTrust
	if r.Scope == core.ScopeGroup {
		fallback = p.GroupTrust
	}
	return grantable(a.Trust, fallback)
}

// resolve is the compare-and-set that only one decision wins.
func (b *Book) resolve(ctx context.Context, tx *store.Tx, r *request, status string, trust core.Trust, by core.Actor) error {
	now := tx.Time()
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = $1, approved_trust_level = nullif($2, ''), resolved_at = $3, resolved_by = $4
		WHERE id = $5 AND status = 'pending' AND expires_at > $3`, status, trust, core.Stamp(now), who(by), r.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		if r.Status == "pending" {
			r.Status = "expired"
		}
		return decided(r, now)
	}
	r.Status, r.Trust, r.Resolved, r.ResolvedBy = status, trust, core.Stamp(now), who(by)
	return nil
}

// grant writes the access row of an approved request. Its time is the
// decision's, by which Undo knows it again.
func (b *Book) grant(ctx context.Context, tx *store.Tx, r *request, user int64, expires string) error {
	chat := ""
	if r.Scope == core.ScopeDM {
		chat = r.PlatformChatID
	}
	return putAccess(ctx, tx, accessRow{Bot: r.Bot, User: user, Scope: r.Scope, Place: r.Place, Trust: r.Trust,
		ExpiresAt: expires, Chat: chat, By: r.ResolvedBy, At: r.Resolved})
}

// free hands the held messages on and notes that none is left.
func (b *Book) free(ctx context.Context, tx *store.Tx, r *request) error {
	if _, err := b.mail.Free(ctx, tx, r.ID, r.Trust); err != nil {
		return err
	}
	r.Attempts = 0
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET attempts = 0 WHERE id = $1`, r.ID)
	return err
}

func (b *Book) discard(ctx context.Context, tx *store.Tx, r *request) error {
	if _, err := b.mail.Discard(ctx, tx, r.ID); err != nil {
		return err
	}
	r.Attempts = 0
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET attempts = 0 WHERE id = $1`, r.ID)
	return err
}

// tell posts the outcome to the person, where the chat is known.
func (b *Book) tell(ctx context.Context, tx *store.Tx, r *request, text string) error {
	if r.PlatformChatID == "" {
		return nil
	}
	to := core.Address{Bot: r.Bot, Chat: r.PlatformChatID, Place: r.Place}
	key := "pair:" + r.ID + ":" + text + "-" + strings.ToLower(rand.Text()[:6]) // an undone decision is told again
	return b.post(ctx, tx, to, key, text, texts.Words{Name: r.Display})
}

// takeBack removes what the decision on r wrote and sets it waiting again.
func (b *Book) takeBack(ctx context.Context, tx *store.Tx, r *request) error {
	var user int64
	err := tx.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, r.Platform, r.PlatformUserID)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM access WHERE bot = $1 AND user_id = $2 AND scope = $3 AND place = $4 AND at = $5`,
		r.Bot, user, string(r.Scope), r.Place, r.Resolved); err != nil {
		return err
	}
	if err := b.unblock(ctx, tx, r.Bot, r.Platform, r.PlatformUserID, r.Resolved); err != nil {
		return err
	}
	b.abort(tx, r.Bot, user)
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'pending', approved_trust_level = NULL, resolved_at = NULL, resolved_by = NULL
		WHERE id = $1 AND status = $2 AND resolved_at = $3`, r.ID, r.Status, r.Resolved)
	if err == nil && n == 0 {
		err = core.Errorf(core.Conflict, "somebody else changed this request just now")
	}
	return err
}
