package codes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

// Bounds of an invitation, however it is made.
const (
	MaxDays = 365 // that it is valid; its access lasts at most ten times that
	MaxUses = 1000
)

const (
	maxInviteLife = MaxDays * 24 * time.Hour
	maxInvites    = 1000 // that wait, over all bots
	inviteCode    = 16   // characters, five bits each: no one guesses one
)

// An Invitation is what an invitation gives to anyone who uses its code. Zero
// fields are the presets: the bot's level, direct messages, one use, InviteLife.
type Invitation struct {
	ID        string        `json:"id"`
	Bot       string        `json:"bot"`
	Trust     core.Trust    `json:"trust_level"`
	Scope     core.Scope    `json:"scope"`
	Place     string        `json:"place,omitempty"` // the group, for scope group
	Lasts     time.Duration `json:"lasts,omitempty"` // of the access, from its use on; 0 is without end
	ExpiresAt time.Time     `json:"expires_at"`      // of the invitation
	UsesLeft  int           `json:"uses_left"`       //
	By        int64         `json:"by"`              // the user who invites
	At        time.Time     `json:"at"`
}

type inviteRow struct {
	ID      string     `db:"id"`
	Bot     string     `db:"bot"`
	Trust   core.Trust `db:"trust_level"`
	Scope   core.Scope `db:"scope"`
	Place   string     `db:"place"`
	Lasts   int64      `db:"lasts"`
	Expires string     `db:"expires_at"`
	Uses    int        `db:"uses_left"`
	By      int64      `db:"by"`
	At      string     `db:"at"`
}

const inviteColumns = `SELECT id, bot, trust_level, scope, place, lasts, expires_at, uses_left, "by", at FROM invites`

func (r inviteRow) public() Invitation {
	return Invitation{ID: r.ID, Bot: r.Bot, Trust: r.Trust, Scope: r.Scope, Place: r.Place, Lasts: time.Duration(r.Lasts) * time.Second,
		ExpiresAt: core.TimeOf(r.Expires), UsesLeft: r.Uses, By: r.By, At: core.TimeOf(r.At)}
}

// Invite makes an invitation; anyone who sends the bot its code in a direct
// message (/start CODE, /pair CODE) is let in as it states. The code is given
// here and kept nowhere. The caller has made sure that by may let users in.
func (s *Store) Invite(ctx context.Context, inv Invitation, by core.Actor) (code string, made Invitation, err error) {
	code = Random(inviteCode)
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		made, err = s.invitable(inv, tx.Time())
		if err != nil {
			return err
		}
		var n int
		if err := tx.Get(ctx, &n, `SELECT count(*) FROM invites`); err != nil {
			return err
		}
		if n >= maxInvites {
			return texts.Error(core.Busy, "invite_many", texts.With{"Most": maxInvites})
		}
		made.ID, made.By, made.At = strings.ToLower(rand.Text()[:16]), by.User, tx.Time()
		_, err := tx.Exec(ctx, `INSERT INTO invites (id, hash, bot, trust_level, scope, place, lasts, expires_at, uses_left, "by", at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, made.ID, hash(code), made.Bot, made.Trust, string(made.Scope), made.Place,
			int64(made.Lasts/time.Second), core.Stamp(made.ExpiresAt), made.UsesLeft, made.By, core.Stamp(made.At))
		if err != nil {
			return err
		}
		s.o.Changes.Decided(tx, made.Bot, "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "invite.create", made.ID, map[string]any{"bot": made.Bot, "trust": made.Trust.String(),
			"scope": made.Scope, "uses": made.UsesLeft, "expires_at": core.Stamp(made.ExpiresAt)})
	})
	if err != nil {
		return "", Invitation{}, fmt.Errorf("invite: %w", err)
	}
	for i := 4; i < len(code); i += 5 {
		code = code[:i] + "-" + code[i:]
	}
	return code, made, nil
}

// invitable returns inv with its presets, checked.
func (s *Store) invitable(inv Invitation, now time.Time) (Invitation, error) {
	var err error
	if inv.Bot, err = s.o.Bots.Resolve(inv.Bot); err != nil {
		return inv, err
	}
	if inv.Bot == "" && len(s.o.Bots.List()) == 1 {
		inv.Bot = s.o.Bots.List()[0].Name
	}
	if !s.o.Bots.Configured(inv.Bot) {
		return inv, s.unnamed(inv.Bot)
	}
	p := s.o.Bots.Policy(inv.Bot)
	preset := p.DMTrust
	switch inv.Scope {
	case "", core.ScopeDM:
		inv.Scope = core.ScopeDM
		if inv.Place != "" {
			return inv, core.Errorf(core.Invalid, "an invitation to direct messages names no group")
		}
	case core.ScopeGroup:
		if preset = p.GroupTrust; inv.Place == "" {
			return inv, core.Errorf(core.Invalid, "an invitation to a group names it by its id")
		}
	default:
		return inv, core.Errorf(core.Invalid, "an invitation is to direct messages (dm) or to a group (group)")
	}
	if inv.Trust, err = bots.Grantable(inv.Trust, preset); err != nil {
		return inv, err
	}
	if inv.UsesLeft == 0 {
		inv.UsesLeft = 1
	}
	if inv.UsesLeft < 1 || inv.UsesLeft > MaxUses {
		return inv, texts.Error(core.Invalid, "invite_people", texts.With{"Most": MaxUses})
	}
	if inv.ExpiresAt.IsZero() {
		inv.ExpiresAt = now.Add(InviteLife)
	}
	if !inv.ExpiresAt.After(now) || inv.ExpiresAt.After(now.Add(maxInviteLife)) {
		return inv, core.Errorf(core.Invalid, "an invitation ends within a year from now")
	}
	if inv.Lasts < 0 || inv.Lasts > 10*maxInviteLife || inv.Lasts > 0 && inv.Lasts < time.Minute {
		return inv, texts.Error(core.Invalid, "invite_lasts")
	}
	return inv, nil
}

// unnamed reports of an invitation that no configured bot is named so.
func (s *Store) unnamed(name string) error {
	var names []string
	for _, bot := range s.o.Bots.List() {
		names = append(names, bot.Name)
	}
	switch slices.Sort(names); {
	case len(names) == 0:
		return core.Errorf(core.Invalid, "an invitation is to a bot, and no bot is configured: add one in the panel, under Settings, Bots, or by 'gatehouse init'")
	case name != "":
		return core.Errorf(core.Invalid, "there is no bot %s; name one of the bots: %s", core.CleanName(name), strings.Join(names, ", "))
	}
	return core.Errorf(core.Invalid, "an invitation is to one bot; name one of the bots: %s", strings.Join(names, ", "))
}

// Invites lists the invitations that still work, the newest first.
func (s *Store) Invites(ctx context.Context) ([]Invitation, error) {
	var rows []inviteRow
	err := s.db.Select(ctx, &rows, inviteColumns+` WHERE uses_left > 0 AND expires_at > $1 ORDER BY at DESC, id LIMIT $2`, core.Stamp(s.o.Clock.Now()), maxInvites)
	if err != nil {
		return nil, fmt.Errorf("invitations: %w", err)
	}
	out := make([]Invitation, len(rows))
	for i, r := range rows {
		out[i] = r.public()
	}
	return out, nil
}

// RevokeInvite takes an invitation back; who used it stays. NotFound without it.
func (s *Store) RevokeInvite(ctx context.Context, id string, by core.Actor) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM invites WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.NotFound, "there is no such invitation any more")
		}
		s.o.Changes.Decided(tx, "", "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "invite.revoke", id, nil)
	})
	if err != nil {
		return fmt.Errorf("take back an invitation: %w", err)
	}
	return nil
}

// IsCode reports whether in carries a code that is decided here: an
// invitation's or a link's. Without one the commands are ordinary.
func IsCode(in *core.Inbound) bool {
	return in.Kind == core.KindCommand && (in.Command == "pair" || in.Command == "link" || in.Command == "start") && Plain(in.Text) != ""
}

// Redeem decides about a code. handled is false for a /start with another payload, which
// is then an ordinary /start, and counts as a wrong code only where it is a stranger's.
func (s *Store) Redeem(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender) (handled bool, err error) {
	sum := hash(Plain(in.Text))
	typed := in.Command != "start"
	if in.Group() { // everyone there has read it
		s.o.Changes.Denied(tx, Rule)
		if err := s.void(ctx, tx, in, sum); err != nil || !typed || from.Silent {
			return typed, err
		}
		return true, s.sayPublic(ctx, tx, in)
	}
	tries, silent, err := s.triers(ctx, tx, in.From)
	if err != nil || silent {
		s.o.Changes.Denied(tx, Rule)
		return typed, err
	}
	if found, err := s.found(ctx, tx, in, from, sum); found || err != nil {
		return true, err
	}
	if !typed && from.Allowed {
		return false, nil
	}
	if err := s.wrongTry(ctx, tx, in, tries); err != nil {
		return true, err
	}
	if !typed {
		return false, nil
	}
	if from.Silent { // the bot's policy is silence
		return true, nil
	}
	text := "pair_wrong"
	if tries[personKey(in.From)].Wrong >= claimTries {
		text = "claim_silenced"
	}
	return true, s.o.Notices.Reply(ctx, tx, in, "notice:pair:"+in.Bot+":"+in.UpdateID, text, texts.Words{})
}

// found carries out a code that is right: /pair and /start take invitations,
// /link takes links, and none takes the other's.
func (s *Store) found(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, sum string) (bool, error) {
	if in.Command == "link" {
		err := s.linked(ctx, tx, in, from)
		if errors.Is(err, store.ErrNoRows) {
			return false, nil
		}
		return true, err
	}
	inv, err := s.openInvite(ctx, tx, in, sum)
	if err == nil {
		return true, s.invited(ctx, tx, in, inv)
	}
	if !errors.Is(err, store.ErrNoRows) {
		return false, err
	}
	return s.mistaken(ctx, tx, in, sum)
}

// void ends whatever a code that many have read would have opened.
func (s *Store) void(ctx context.Context, tx *store.Tx, in *core.Inbound, sum string) error {
	n, err := tx.Exec(ctx, `DELETE FROM invites WHERE hash = $1`, sum)
	if err != nil {
		return err
	}
	m, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE hash = $1`, sum)
	if n+m > 0 {
		s.o.Log.Warn("a code was typed in a group and is void; make a new one", "bot", in.Bot)
	}
	return err
}

// publicEvery is the time in which a group is told once where codes belong.
const publicEvery = 10 * time.Minute

// sayPublic tells a group that a code belongs in a direct message, the same for every code,
// whether it would have opened anything or not.
func (s *Store) sayPublic(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	key := fmt.Sprintf("notice:code:%s:%s:%d", in.Bot, in.Place, tx.Time().Unix()/int64(publicEvery/time.Second))
	err := s.o.Notices.Reply(ctx, tx, in, key, "code_public", texts.Words{})
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}

// openInvite returns the invitation of this code to this bot, for someone who was
// not turned away since it was made; store.ErrNoRows without one.
func (s *Store) openInvite(ctx context.Context, tx *store.Tx, in *core.Inbound, sum string) (r inviteRow, err error) {
	err = tx.Get(ctx, &r, inviteColumns+` WHERE hash = $1 AND bot = $2 AND uses_left > 0 AND expires_at > $3`, sum, in.Bot, core.Stamp(tx.Time()))
	if err != nil {
		return r, err
	}
	away, err := s.o.Requests.TurnedAway(ctx, tx, in, r.At)
	if err == nil && away {
		err = store.ErrNoRows
	}
	return r, err
}

// invited gives the sender the invitation's access, and counts the use.
func (s *Store) invited(ctx context.Context, tx *store.Tx, in *core.Inbound, r inviteRow) error {
	key := "notice:pair:" + in.Bot + ":" + in.UpdateID
	user, err := s.o.People.Ensure(ctx, tx, in.From.Platform, in.From.ID, core.CleanName(in.From.Name))
	if err != nil {
		return err
	}
	now := core.Stamp(tx.Time())
	there, err := s.o.People.HasAccess(ctx, tx, r.Bot, user, r.Scope, r.Place)
	if err != nil {
		return err
	}
	if there {
		return s.o.Notices.Reply(ctx, tx, in, key, "invite_known", texts.Words{})
	}
	n, err := tx.Exec(ctx, `UPDATE invites SET uses_left = uses_left - 1 WHERE id = $1 AND uses_left > 0`, r.ID)
	if err != nil {
		return err
	}
	if n == 0 { // someone was first
		return s.o.Notices.Reply(ctx, tx, in, key, "pair_wrong", texts.Words{})
	}
	by := core.Actor{User: r.By, Via: "invitation"}
	a := people.Grant{Bot: r.Bot, User: user, Scope: r.Scope, Place: r.Place, Trust: r.Trust, By: by.String(), At: now}
	if r.Lasts > 0 {
		a.ExpiresAt = core.Stamp(tx.Time().Add(time.Duration(r.Lasts) * time.Second))
	}
	if r.Scope == core.ScopeDM {
		a.Chat = in.Chat
	}
	if err := s.o.People.Put(ctx, tx, a); err != nil {
		return err
	}
	if err := s.o.Notices.Reply(ctx, tx, in, key, "invited", texts.Words{Name: in.From.Name}); err != nil {
		return err
	}
	if r.Scope == core.ScopeDM {
		if err := s.o.Requests.LetIn(ctx, tx, in, r.Trust, by, texts.Text("request_invited")); err != nil {
			return err
		}
	}
	s.o.Changes.Decided(tx, r.Bot, "invited", core.TopicPairing, core.TopicPeople)
	return store.Audit(ctx, tx, by, "invite.use", r.ID, map[string]any{"bot": r.Bot, "user": user, "trust": r.Trust.String(), "scope": r.Scope})
}
