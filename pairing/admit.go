package pairing

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/places"
)

// Why someone may not: label values of gatehouse_denied_total.
const (
	ruleShared      = "shared"      // not one user
	ruleBot         = "bot"         // another bot: the loop guard
	ruleBlocked     = "blocked"     // leaves nothing
	ruleStranger    = "stranger"    // no access, may ask for it
	ruleCoolOff     = "cool_off"    // denied or revoked recently
	rulePolicy      = "policy"      // the bot's DM policy
	rulePlace       = "place"       // a group that no one enabled
	ruleUnaddressed = "unaddressed" // in an enabled group, but not to the bot
	ruleFlood       = "flood"       // over a bound of the gate
	ruleClaim       = codes.Rule    // a wrong code
)

// A standing is who someone is to a bot at one address, and why not if not.
type standing struct {
	person
	trust core.Trust // Stranger when rule is set
	rule  string
	place places.Group // in a group
}

// sender returns what codes must know of s.
func (s *standing) sender() codes.Sender {
	return codes.Sender{User: s.User, Role: s.Role, Allowed: s.rule == "", Silent: s.rule != "" && s.rule != ruleStranger}
}

// A person is what the tables know of a sender, for one bot, scope and place.
type person struct {
	Blocked   bool       `db:"blocked"`
	User      int64      `db:"user_id"` // 0: no identity
	Role      core.Role  `db:"role"`
	Access    int64      `db:"access_id"`
	Trust     core.Trust `db:"trust_level"`
	ExpiresAt string     `db:"expires_at"`
	Chat      string     `db:"chat"`
	Until     string     `db:"until"` // when the last access anywhere ends; "" is none
}

func (p *person) valid(now string) bool {
	return p.Access != 0 && p.Trust != core.Stranger && (p.ExpiresAt == "" || p.ExpiresAt > now)
}

// Admit decides about one new update inside the transaction that stores it.
// Every kind goes the same way; what the gate wants to say is posted in the
// same transaction. It must be called once per update, after deduplication.
func (g *Gate) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	if in.Standing != "" { // the platform's report about the bot, no matter which user caused it; it is not a request
		if err := g.stands(ctx, tx, in); err != nil {
			return core.Admission{}, fmt.Errorf("admit: %w", err)
		}
		return core.Admission{}, nil
	}
	s, err := g.judge(ctx, tx, in)
	if err != nil {
		return core.Admission{}, fmt.Errorf("admit: %w", err)
	}
	v, err := g.admit(ctx, tx, in, &s)
	if err != nil {
		return core.Admission{}, fmt.Errorf("admit: %w", err)
	}
	return s.admission(tx, v), nil
}

func (g *Gate) admit(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) (core.Verdict, error) {
	if s.rule == ruleBlocked {
		g.changes.Denied(tx, s.rule)
		return core.Verdict{Action: core.Forget}, nil
	}
	if in.Kind == core.KindEdit {
		if err := g.edited(ctx, tx, in); err != nil {
			return core.Verdict{}, err
		}
	}
	if codes.IsClaim(in) && s.rule != ruleShared && s.rule != ruleBot {
		return core.Verdict{}, g.Codes.Claim(ctx, tx, in, s.sender())
	}
	if codes.IsCode(in) && s.rule != ruleShared && s.rule != ruleBot && (in.Command != "start" || s.rule != "" || !in.Group()) {
		if s.rule == ruleCoolOff && !in.Group() {
			g.changes.Denied(tx, s.rule)
			return core.Verdict{}, g.refused(ctx, tx, in, s)
		}
		if handled, err := g.Codes.Redeem(ctx, tx, in, s.sender()); handled || err != nil {
			return core.Verdict{}, err
		}
	}
	switch s.rule {
	case "":
		if over, err := g.paced(ctx, tx, in, s); over || err != nil {
			g.changes.Denied(tx, ruleFlood)
			return core.Verdict{}, err
		}
		return core.Verdict{Action: core.Run, Trust: s.trust}, g.let(ctx, tx, in, s)
	case ruleUnaddressed:
		g.changes.Denied(tx, s.rule)
		heard, trust, err := g.overhears(ctx, tx, in, s)
		return core.Verdict{Overheard: heard, Trust: trust}, err
	case ruleStranger:
		return g.stranger(ctx, tx, in)
	case ruleCoolOff:
		if err := g.refused(ctx, tx, in, s); err != nil {
			return core.Verdict{}, err
		}
	case rulePlace:
		if err := g.Places.Seen(ctx, tx, in); err != nil {
			return core.Verdict{}, err
		}
	}
	g.changes.Denied(tx, s.rule)
	return core.Verdict{}, nil
}

// Present returns the admission of a stored update as it is now: its Trust is
// Trust's, and its Action is not set.
func (g *Gate) Present(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Admission, error) {
	s, err := g.judge(ctx, tx, in)
	if err != nil {
		return core.Admission{}, fmt.Errorf("present trust: %w", err)
	}
	return s.admission(tx, core.Verdict{Trust: s.trust}), nil
}

// admission returns v with what is known of the sender.
func (s *standing) admission(tx *store.Tx, v core.Verdict) core.Admission {
	a := core.Admission{Verdict: v, User: s.User, Role: s.Role, Agent: s.place.Agent, Model: s.place.Model}
	if s.User != 0 && s.Until <= core.Stamp(tx.Time()) {
		a.Role = core.RoleGuest
	}
	return a
}

// Trust returns what the sender may do there now; Stranger when access has ended,
// was revoked, the sender was blocked or the group disabled since Admit.
func (g *Gate) Trust(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Trust, error) {
	a, err := g.Present(ctx, tx, in)
	return a.Trust, err
}

// judge decides who may write; no other function does. It changes nothing. A known user
// in a direct message costs one query.
func (g *Gate) judge(ctx context.Context, tx *store.Tx, in *core.Inbound) (standing, error) {
	switch {
	case in.Bot == core.APIBot: // keys and sessions decide there, not these tables
		return standing{rule: ruleShared}, nil
	case in.From.Bot:
		return standing{rule: ruleBot}, nil
	case !in.From.Person():
		return standing{rule: ruleShared}, nil
	}
	p, err := g.person(ctx, tx, in)
	if err != nil {
		return standing{}, err
	}
	s := standing{person: p}
	switch {
	case p.Blocked:
		s.rule = ruleBlocked
	case in.Group():
		err = g.judgeGroup(ctx, tx, in, &s)
	case p.valid(core.Stamp(tx.Time())):
		s.trust = p.Trust
	default:
		err = g.judgeStranger(ctx, tx, in, &s)
	}
	return s, err
}

// personQuery is all that a direct message by a known person costs. SQLite
// numbers $n by first appearance: keep them in order.
const personQuery = `SELECT EXISTS (SELECT 1 FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot IN ($3, '*')) AS blocked,
		coalesce(u.id, 0) AS user_id, coalesce(u.role, '') AS role, coalesce(a.id, 0) AS access_id,
		coalesce(a.trust_level, '') AS trust_level, coalesce(a.expires_at, '') AS expires_at, coalesce(a.chat, '') AS chat,
		coalesce((SELECT max(CASE WHEN o.expires_at = '' THEN '9999' ELSE o.expires_at END) FROM access o WHERE o.user_id = u.id), '') AS until
	FROM (SELECT 1 AS one) AS one
	LEFT JOIN identities i ON i.platform = $1 AND i.platform_user_id = $2
	LEFT JOIN users u ON u.id = i.user_id
	LEFT JOIN access a ON a.bot = $3 AND a.user_id = u.id AND a.scope = $4 AND a.place = $5`

func (g *Gate) person(ctx context.Context, tx *store.Tx, in *core.Inbound) (person, error) {
	return store.Recall[person](ctx, tx, personQuery, in.From.Platform, in.From.ID, in.Bot, string(in.Scope()), in.Place)
}

// judgeStranger is a direct message by someone without access of their own.
func (g *Gate) judgeStranger(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) error {
	cool, err := g.requests.Cooling(ctx, tx, in)
	if err != nil {
		return err
	}
	p := g.bots.Policy(in.Bot)
	switch {
	case cool:
		s.rule = ruleCoolOff
	case p.DM == bots.Pairing || p.DM == "":
		s.rule = ruleStranger
	default:
		if s.trust = p.Admits(in.From.ID); s.trust == core.Stranger {
			s.rule = rulePolicy
		}
	}
	return nil
}

// judgeGroup: the group's level bounds everyone; users with access of their
// own to this group may have less. Access to direct messages counts nothing here.
func (g *Gate) judgeGroup(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) error {
	p, err := places.Enabled(ctx, tx, in.Bot, in.Place)
	if err != nil {
		return err
	}
	level := p.Level
	s.place = p
	if level == core.Stranger {
		s.rule = rulePlace
		if opens(in) {
			ok, err := g.manages(ctx, tx, in.Bot, s)
			if err != nil {
				return err
			}
			if ok {
				s.rule, s.trust = "", core.Sandboxed
			}
		}
		return nil
	}
	if !in.Addressed && in.Kind != core.KindCallback && (p.Mention != places.MentionAll || !speaks(in)) {
		s.rule = ruleUnaddressed
		return nil
	}
	if s.valid(core.Stamp(tx.Time())) {
		s.trust = core.Least(s.Trust, level)
		return nil
	}
	cool, err := g.requests.Cooling(ctx, tx, in)
	if err != nil || cool {
		s.rule = ruleCoolOff
		return err
	}
	s.trust = level
	return nil
}

// opens: the two commands that work in a group which no one has enabled yet.
func opens(in *core.Inbound) bool {
	return in.Kind == core.KindCommand && in.Addressed && (in.Command == "enable" || in.Command == "disable")
}

// manages reports whether s is an owner or admin with access to this bot now.
func (g *Gate) manages(ctx context.Context, tx *store.Tx, bot string, s *standing) (bool, error) {
	if !s.Role.Manages() {
		return false, nil
	}
	var ok bool
	err := tx.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM access WHERE user_id = $1 AND bot = $2 AND (expires_at = '' OR expires_at > $3))`,
		s.User, bot, core.Stamp(tx.Time()))
	return ok, err
}

// let records an admitted sender: someone admitted by a policy or a group gets a user of
// their own, and the chat is stored as where the bot may write to them.
func (g *Gate) let(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) error {
	if s.User == 0 {
		id, err := g.People.Ensure(ctx, tx, in.From.Platform, in.From.ID, core.CleanName(in.From.Name))
		if err != nil {
			return err
		}
		s.User, s.Role = id, core.RoleGuest
		return store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "user.create", strconv.FormatInt(id, 10), map[string]any{"bot": in.Bot})
	}
	if s.Access == 0 || in.Group() || s.Chat == in.Chat || in.Chat == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE access SET chat = $1 WHERE id = $2`, in.Chat, s.Access)
	return err
}

// due reports whether d has passed since stamp; a stamp in the future (the
// clock was set back) counts as long ago.
func due(stamp string, now time.Time, d time.Duration) bool {
	t, err := core.ParseStamp(stamp)
	return err != nil || t.IsZero() || t.After(now) || !now.Before(t.Add(d))
}
