package codes

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/people"
)

// Bounds of wrong codes.
const (
	claimTries  = 5 // wrong owner codes before a user is silenced for claimSilent
	claimSilent = time.Hour
	claimVoid   = 50  // wrong tries by anyone that void the code
	maxTriers   = 200 // users with remembered wrong tries
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
	Wrong   int       `json:"wrong"` // tries by anyone
	Replace bool      `json:"replace"`
}

// A trier is someone who typed wrong codes; forgotten claimSilent after the last.
type trier struct {
	Wrong int       `json:"wrong"`
	Last  time.Time `json:"last"`
}

// NewClaim makes the single-use code with which someone becomes the owner in
// chat (/claim CODE in a direct message); it voids an older one and works for
// ClaimLife. While an owner has an account in a chat it is a Conflict, unless
// replace is set: then the claim takes that account's place on its platform.
func (s *Store) NewClaim(ctx context.Context, replace bool) (code string, expires time.Time, err error) {
	return s.newClaim(ctx, replace, false)
}

// FirstClaim is NewClaim where no one has asked for a code: one that is valid already stays so,
// and code is "".
func (s *Store) FirstClaim(ctx context.Context) (code string, expires time.Time, err error) {
	return s.newClaim(ctx, false, true)
}

func (s *Store) newClaim(ctx context.Context, replace, keep bool) (code string, expires time.Time, err error) {
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		owned, err := s.o.People.HasOwner(ctx, tx)
		if err != nil {
			return err
		}
		if owned && !replace {
			return core.Errorf(core.Conflict, "the bots have an owner already; to replace it with another account, create a code with gatehouse claim --replace")
		}
		if keep {
			if c, open, err := s.openClaim(ctx, tx); err != nil || open {
				code, expires = "", c.Expires
				return err
			}
		}
		code, expires = Random(10), tx.Time().Add(ClaimLife)
		if err := s.saveClaim(ctx, tx, claimCode{SHA256: hash(code), Expires: expires, Replace: replace}); err != nil {
			return err
		}
		return store.Audit(ctx, tx, core.Actor{Via: "cli"}, "owner.code", "1", map[string]any{"replace": replace})
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("claim code: %w", err)
	}
	if code == "" {
		return "", expires, nil
	}
	return code[:5] + "-" + code[5:], expires, nil
}

// IsClaim reports whether in is a /claim, which is decided here for every sender
// and never handed on.
func IsClaim(in *core.Inbound) bool { return in.Kind == core.KindCommand && in.Command == "claim" }

// Claim decides a /claim. In a group there is no answer, and a valid code typed there
// becomes invalid, because everyone there has read it.
func (s *Store) Claim(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender) error {
	c, open, err := s.openClaim(ctx, tx)
	if err != nil {
		return err
	}
	right := open && subtle.ConstantTimeCompare([]byte(hash(Plain(in.Text))), []byte(c.SHA256)) == 1
	if in.Group() {
		s.o.Changes.Denied(tx, Rule)
		if right {
			s.o.Log.Warn("the owner's claim code was typed in a group and is void; make a new one", "bot", in.Bot)
			return store.DeleteMetadata(ctx, tx, claimKey)
		}
		return nil
	}
	tries, silent, err := s.triers(ctx, tx, in.From)
	if err != nil {
		return err
	}
	switch {
	case silent:
		s.o.Changes.Denied(tx, Rule)
		return nil
	case !right:
		return s.wrongClaim(ctx, tx, in, from, c, open, tries)
	}
	return s.makeOwner(ctx, tx, in, from, c)
}

// wrongClaim counts a wrong code against the user and against the code. A user whom the bot
// does not answer gets none here either.
func (s *Store) wrongClaim(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, c claimCode, open bool, tries map[string]trier) error {
	key := personKey(in.From)
	if err := s.wrongTry(ctx, tx, in, tries); err != nil {
		return err
	}
	if open {
		if c.Wrong++; c.Wrong >= claimVoid {
			s.o.Log.Warn("the owner's claim code is void after too many wrong tries; make a new one", "bot", in.Bot)
			if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
				return err
			}
		} else if err := s.saveClaim(ctx, tx, c); err != nil {
			return err
		}
	}
	if from.Silent {
		return nil
	}
	text := "claim_wrong"
	if tries[key].Wrong >= claimTries {
		text = "claim_silenced"
	}
	return s.o.Notices.Reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, text, texts.Words{})
}

// wrongTry counts a wrong code, of whatever kind, against the user.
func (s *Store) wrongTry(ctx context.Context, tx *store.Tx, in *core.Inbound, tries map[string]trier) error {
	s.o.Changes.Denied(tx, Rule)
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
func (s *Store) makeOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, c claimCode) error {
	owned, err := s.o.People.HasOwner(ctx, tx)
	if err != nil {
		return err
	}
	if owned && !c.Replace && from.User != core.Operator {
		if from.Silent {
			return nil
		}
		return s.o.Notices.Reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, "claim_wrong", texts.Words{})
	}
	by := core.Actor{User: core.Operator, Via: "chat"}
	if err := s.o.People.Operator(ctx, tx); err != nil {
		return err
	}
	if err := s.bindOwner(ctx, tx, in, from, c.Replace); err != nil {
		return err
	}
	if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
		return err
	}
	err = s.o.People.Put(ctx, tx, people.Grant{Bot: in.Bot, User: core.Operator, Scope: core.ScopeDM, Trust: core.Vault,
		Chat: in.Chat, By: by.String(), At: core.Stamp(tx.Time())})
	if err != nil {
		return err
	}
	if err := s.o.Notices.Reply(ctx, tx, in, "notice:claim:"+in.Bot+":"+in.UpdateID, "claimed", texts.Words{}); err != nil {
		return err
	}
	if err := s.o.Requests.LetIn(ctx, tx, in, core.Vault, by, texts.Text("request_owner_now")); err != nil {
		return err
	}
	if err := s.o.Requests.Withdraw(ctx, tx); err != nil { // from the owner before
		return err
	}
	if err := s.showWaiting(ctx, tx, in); err != nil {
		return err
	}
	s.o.Changes.Decided(tx, in.Bot, "claimed", core.TopicPairing, core.TopicPeople)
	return store.Audit(ctx, tx, by, "owner.claim", "1", map[string]any{"bot": in.Bot, "platform": in.From.Platform, "replace": c.Replace})
}

// showWaiting shows the owner, who writes in from now on, the requests that wait.
func (s *Store) showWaiting(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	more, err := s.o.Requests.ShowWaiting(ctx, tx, in.Bot)
	if err != nil || !more {
		return err
	}
	return s.o.Notices.Post(ctx, tx, in.Address, "notice:waiting:"+in.Bot+":"+in.UpdateID, "requests_more", texts.Words{})
}

// bindOwner makes the sender's identity user 1's. With replace, the account
// the owner had on this platform loses it, and its access to that platform's bots.
func (s *Store) bindOwner(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, replace bool) error {
	if replace && from.User != core.Operator {
		if err := s.o.People.ReplaceOperator(ctx, tx, in.From.Platform, in.Bot); err != nil {
			return err
		}
	}
	if from.User != 0 && from.User != core.Operator { // a guest becomes the owner: their old access would outlive a revocation
		if err := s.o.People.StripAll(ctx, tx, in.From.Platform, in.Bot, from.User); err != nil {
			return err
		}
	}
	return s.o.People.Bind(ctx, tx, in.From, core.Operator)
}

// openClaim returns the code that can be claimed now.
func (s *Store) openClaim(ctx context.Context, tx *store.Tx) (c claimCode, open bool, err error) {
	v, ok, err := store.Metadata(ctx, tx, claimKey)
	if err != nil || !ok {
		return c, false, err
	}
	if err := json.Unmarshal([]byte(v), &c); err != nil {
		return claimCode{}, false, nil // a damaged row opens nothing
	}
	return c, c.SHA256 != "" && tx.Time().Before(c.Expires), nil
}

func (s *Store) saveClaim(ctx context.Context, tx *store.Tx, c claimCode) error {
	return saveJSON(ctx, tx, claimKey, c)
}

// triers returns who typed wrong codes recently, and whether p is silenced for it.
func (s *Store) triers(ctx context.Context, tx *store.Tx, p core.Peer) (map[string]trier, bool, error) {
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
