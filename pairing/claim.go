package pairing

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Keys of the metadata table.
const (
	claimKey  = "pairing.claim"  // the open code: claimCode
	triersKey = "pairing.triers" // wrong tries by person: map of trier
)

// A claimCode is the owner's open code, hashed. It is single use.
type claimCode struct {
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires"`
	Wrong   int       `json:"wrong"` // tries by anybody
	Replace bool      `json:"replace"`
}

// A trier is somebody who typed wrong codes; forgotten claimSilent after the last.
type trier struct {
	Wrong int       `json:"wrong"`
	Last  time.Time `json:"last"`
}

// NewClaim makes the single-use code with which somebody becomes the owner in
// chat (/claim CODE in a direct message); it voids an older one and works for
// ClaimLife. While an owner has an account in a chat it is a Conflict, unless
// replace is set: then the claim takes that account's place on its platform.
func (b *Book) NewClaim(ctx context.Context, replace bool) (code string, expires time.Time, err error) {
	code = newCode(10)
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		owned, err := hasOwner(ctx, tx)
		if err != nil {
			return err
		}
		if owned && !replace {
			return core.Errorf(core.Conflict, "the bots have an owner already; to put another account in its place, ask for a code that replaces it (gatehouse claim --replace)")
		}
		expires = tx.Time().Add(ClaimLife)
		if err := b.saveClaim(ctx, tx, claimCode{SHA256: hash(code), Expires: expires, Replace: replace}); err != nil {
			return err
		}
		return store.Audit(ctx, tx, core.Actor{Via: "cli"}, "owner.code", "1", map[string]any{"replace": replace})
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("claim code: %w", err)
	}
	return code[:5] + "-" + code[5:], expires, nil
}

// HasOwner reports whether the operator has an account on a chat platform.
func (b *Book) HasOwner(ctx context.Context) (bool, error) { return hasOwner(ctx, b.db) }

func hasOwner(ctx context.Context, q store.Queryer) (ok bool, err error) {
	err = q.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM identities WHERE user_id = $1)`, core.Operator)
	return ok, err
}

// claims reports whether in is a /claim, which is decided here for everybody
// and never handed on.
func claims(in *core.Inbound) bool { return in.Kind == core.KindCommand && in.Command == "claim" }

// claim decides a /claim. In a group nothing is said, and a right code typed
// there is void: everybody there has read it.
func (b *Book) claim(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing) error {
	c, open, err := b.openClaim(ctx, tx)
	if err != nil {
		return err
	}
	right := open && subtle.ConstantTimeCompare([]byte(hash(plainCode(in.Text))), []byte(c.SHA256)) == 1
	if in.Group() {
		b.deny(tx, ruleClaim)
		if right {
			b.o.Log.Warn("the owner's claim code was typed in a group and is void; make a new one", "bot", in.Bot)
			return store.DeleteMetadata(ctx, tx, claimKey)
		}
		return nil
	}
	tries, silent, err := b.triers(ctx, tx, in.From)
	if err != nil {
		return err
	}
	switch {
	case silent:
		b.deny(tx, ruleClaim)
		return nil
	case !right:
		return b.wrongClaim(ctx, tx, in, c, open, tries)
	}
	return b.makeOwner(ctx, tx, in, s, c)
}

// wrongClaim counts a wrong code against the person and against the code.
func (b *Book) wrongClaim(ctx context.Context, tx *store.Tx, in *core.Inbound, c claimCode, open bool, tries map[string]trier) error {
	key := personKey(in.From)
	if err := b.wrongTry(ctx, tx, in, tries); err != nil {
		return err
	}
	if open {
		if c.Wrong++; c.Wrong >= claimVoid {
			b.o.Log.Warn("the owner's claim code is void after too many wrong tries; make a new one", "bot", in.Bot)
			if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
				return err
			}
		} else if err := b.saveClaim(ctx, tx, c); err != nil {
			return err
		}
	}
	text := "claim_wrong"
	if tries[key].Wrong >= claimTries {
		text = "claim_silenced"
	}
	return b.reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, text, texts.Words{})
}

// wrongTry counts a wrong code, of whatever kind, against the person.
func (b *Book) wrongTry(ctx context.Context, tx *store.Tx, in *core.Inbound, tries map[string]trier) error {
	b.deny(tx, ruleClaim)
	key, now := personKey(in.From), tx.Time()
	tries[key] = trier{tries[key].Wrong + 1, now}
	if len(tries) > maxTriers {
		oldest := key
		for k, t := range tries {
			if t.Last.Before(tries[oldest].Last) {
				oldest = k
			}
		}
		delete(tries, oldest)
	}
	return saveJSON(ctx, tx, triersKey, tries)
}

// makeOwner binds the sender to user 1 and opens this bot's direct messages to
// them at vault trust. What they had waiting is let in.
func (b *Book) makeOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing, c claimCode) error {
	owned, err := hasOwner(ctx, tx)
	if err != nil {
		return err
	}
	if owned && !c.Replace && s.User != core.Operator {
		return b.reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, "claim_wrong", texts.Words{})
	}
	by := core.Actor{User: core.Operator, Via: "chat"}
	if err := b.operator(ctx, tx); err != nil {
		return err
	}
	if err := b.bindOwner(ctx, tx, in, s, c.Replace); err != nil {
		return err
	}
	if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
		return err
	}
	err = putAccess(ctx, tx, accessRow{Bot: in.Bot, User: core.Operator, Scope: core.ScopeDM, Trust: core.Vault,
		Chat: in.Chat, By: who(by), At: core.Stamp(tx.Time())})
	if err != nil {
		return err
	}
	if err := b.reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, "claimed", texts.Words{}); err != nil {
		return err
	}
	if err := b.letIn(ctx, tx, in, core.Vault, by, texts.Text("request_owner_now")); err != nil {
		return err
	}
	b.after(tx, in.Bot, "claimed", "pairing", "people")
	return store.Audit(ctx, tx, by, "owner.claim", "1", map[string]any{"bot": in.Bot, "platform": in.From.Platform, "replace": c.Replace})
}

// bindOwner makes the sender's identity user 1's. With replace, the account
// the owner had on this platform loses it, and its access to that platform's bots.
func (b *Book) bindOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing, replace bool) error {
	if replace && s.User != core.Operator {
		if _, err := tx.Exec(ctx, `DELETE FROM identities WHERE user_id = $1 AND platform = $2`, core.Operator, in.From.Platform); err != nil {
			return err
		}
		for _, bot := range append(b.botsOf(everyBot, in.From.Platform), in.Bot) {
			if _, err := b.strip(ctx, tx, bot, core.Operator); err != nil {
				return err
			}
		}
	}
	if s.User != 0 && s.User != core.Operator { // a guest becomes the owner: their old access would outlive a revocation
		for _, bot := range append(b.botsOf(everyBot, in.From.Platform), in.Bot) {
			if _, err := b.strip(ctx, tx, bot, s.User); err != nil {
				return err
			}
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (platform, platform_user_id) DO UPDATE SET user_id = excluded.user_id, display = excluded.display`,
		in.From.Platform, in.From.ID, core.Operator, core.CleanName(in.From.Name), core.Stamp(tx.Time()))
	return err
}

// letIn answers what the sender had written as a stranger.
func (b *Book) letIn(ctx context.Context, tx *store.Tx, in *core.Inbound, trust core.Trust, by core.Actor, outcome string) error {
	var rows []request
	err := tx.Select(ctx, &rows, requestColumns+` WHERE bot = $1 AND platform_user_id = $2 AND scope = 'dm' AND place = '' AND status = 'pending'`, in.Bot, in.From.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if err := b.resolve(ctx, tx, r, "approved", trust, by); core.KindOf(err) == core.Conflict {
			continue // over its time: upkeep expires it
		} else if err != nil {
			return err
		}
		if err := b.free(ctx, tx, r); err != nil {
			return err
		}
		if err := b.closeAsk(ctx, tx, r.ID, outcome); err != nil {
			return err
		}
	}
	return nil
}

// openClaim is the code that can be claimed now.
func (b *Book) openClaim(ctx context.Context, tx *store.Tx) (c claimCode, open bool, err error) {
	v, ok, err := store.Metadata(ctx, tx, claimKey)
	if err != nil || !ok {
		return c, false, err
	}
	if err := json.Unmarshal([]byte(v), &c); err != nil {
		return claimCode{}, false, nil // a damaged row opens nothing
	}
	return c, c.SHA256 != "" && tx.Time().Before(c.Expires), nil
}

func (b *Book) saveClaim(ctx context.Context, tx *store.Tx, c claimCode) error {
	return saveJSON(ctx, tx, claimKey, c)
}

// triers is who typed wrong codes lately, and whether p is silenced for it.
func (b *Book) triers(ctx context.Context, tx *store.Tx, p core.Peer) (map[string]trier, bool, error) {
	tries := map[string]trier{} // bounded by maxTriers
	v, ok, err := store.Metadata(ctx, tx, triersKey)
	if err != nil {
		return nil, false, err
	}
	if ok && json.Unmarshal([]byte(v), &tries) != nil || tries == nil {
		tries = map[string]trier{}
	}
	for k, t := range tries {
		if !tx.Time().Before(t.Last.Add(claimSilent)) {
			delete(tries, k)
		}
	}
	return tries, tries[personKey(p)].Wrong >= claimTries, nil
}

func personKey(p core.Peer) string { return p.Platform + ":" + p.ID }

func saveJSON(ctx context.Context, tx *store.Tx, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return store.SetMetadata(ctx, tx, key, string(body))
}

func hash(code string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(code)))
	return hex.EncodeToString(sum[:])
}
