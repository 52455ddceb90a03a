package codes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/people"
)

const linkCode = 12 // characters, five bits each

type linkRow struct {
	Hash    string `db:"hash"`
	User    int64  `db:"user_id"`
	Bot     string `db:"bot"`
	Chat    string `db:"chat"`
	Expires string `db:"expires_at"`
}

// linkYes is what is typed instead of the code once its account was shown.
const linkYes = "YES"

// NewLink makes the code with which user means that another account, on another
// platform, is theirs too: they type /link CODE there, read who created the code and what
// follows, and type /link yes. It is single use, valid for LinkLife and invalidates an
// older one. from is where it was requested, and is notified.
func (s *Store) NewLink(ctx context.Context, user int64, from core.Address) (code string, expires time.Time, err error) {
	if user <= 0 {
		return "", time.Time{}, texts.Error(core.Denied, "link_nobody")
	}
	code = Random(linkCode)
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		expires = tx.Time().Add(LinkLife)
		_, err := tx.Exec(ctx, `INSERT INTO link_codes (hash, user_id, bot, chat, expires_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, bot = excluded.bot, chat = excluded.chat, expires_at = excluded.expires_at, asked = ''`,
			hash(code), user, from.Bot, from.Chat, core.Stamp(expires))
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, core.Actor{User: user, Via: "chat"}, "link.code", strconv.FormatInt(user, 10), nil)
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("link code: %w", err)
	}
	return code[:4] + "-" + code[4:8] + "-" + code[8:], expires, nil
}

// linked decides about a typed link code, or about the yes to one that was
// typed before; store.ErrNoRows for anything else. A code alone links nothing:
// a user who was misled about it reads first who created it.
func (s *Store) linked(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender) error {
	word, column := Plain(in.Text), "hash"
	sum := hash(word)
	if word == linkYes {
		column, sum = "asked", asker(in.From)
	}
	var l linkRow
	err := tx.Get(ctx, &l, `SELECT hash, user_id, bot, chat, expires_at FROM link_codes WHERE `+column+` = $1 AND expires_at > $2`, sum, core.Stamp(tx.Time()))
	if err != nil {
		return err
	}
	if word == linkYes {
		return s.link(ctx, tx, in, from, l)
	}
	return s.askLink(ctx, tx, in, from, l)
}

// asker returns the account as a link's row keeps it: no one's id is read from it.
func asker(p core.Peer) string { return hash(p.Platform + ":" + p.ID) }

// askLink shows who created the code and what it does, and records who was asked: a yes
// of anyone else, or to another code, is ignored.
func (s *Store) askLink(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, l linkRow) error {
	key := "notice:pair:" + in.Bot + ":" + in.UpdateID
	refused, err := s.unlinkable(ctx, tx, in, from, l)
	if err != nil {
		return err
	}
	if refused != "" {
		return s.o.Notices.Reply(ctx, tx, in, key, refused, texts.Words{})
	}
	if _, err := tx.Exec(ctx, `UPDATE link_codes SET asked = CASE WHEN hash = $1 THEN $2 ELSE '' END WHERE hash = $1 OR asked = $2`, l.Hash, asker(in.From)); err != nil {
		return err
	}
	names, err := s.o.People.Accounts(ctx, tx, l.User)
	if err != nil {
		return err
	}
	return s.o.Notices.Reply(ctx, tx, in, key, "link_ask", texts.Words{Accounts: names})
}

// mistaken invalidates a link code that was entered as an invitation, with a notice: that
// is how an attacker would take another user's conversations. It reports false if it is
// not a link code.
func (s *Store) mistaken(ctx context.Context, tx *store.Tx, in *core.Inbound, sum string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE hash = $1 AND expires_at > $2`, sum, core.Stamp(tx.Time()))
	if err != nil || n == 0 {
		return false, err
	}
	return true, s.o.Notices.Reply(ctx, tx, in, "notice:pair:"+in.Bot+":"+in.UpdateID, "link_mistaken", texts.Words{})
}

// link makes the sender's account one of the user who asked for the code.
// What the account may already is theirs from now on; nothing more is opened
// by it, but for the owner: the owner's account is let in as by /claim.
func (s *Store) link(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, l linkRow) error {
	key := "notice:pair:" + in.Bot + ":" + in.UpdateID
	refused, err := s.unlinkable(ctx, tx, in, from, l)
	if err != nil {
		return err
	}
	if refused != "" {
		return s.o.Notices.Reply(ctx, tx, in, key, refused, texts.Words{})
	}
	n, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE hash = $1`, l.Hash)
	if err != nil {
		return err
	}
	if n == 0 {
		return s.o.Notices.Reply(ctx, tx, in, key, "pair_wrong", texts.Words{})
	}
	if err := s.merge(ctx, tx, in, from.User, l.User); err != nil {
		return err
	}
	text := "linked_waits"
	switch {
	case from.Allowed:
		text = "linked"
	case l.User == core.Operator:
		text = "linked"
		by := core.Actor{User: core.Operator, Via: "chat"}
		if err := s.o.People.Put(ctx, tx, people.Grant{Bot: in.Bot, User: core.Operator, Scope: core.ScopeDM, Trust: core.Vault, Chat: in.Chat, By: by.String(), At: core.Stamp(tx.Time())}); err != nil {
			return err
		}
		if err := s.o.Requests.LetIn(ctx, tx, in, core.Vault, by, texts.Text("request_owner")); err != nil {
			return err
		}
	}
	if err := s.o.Notices.Reply(ctx, tx, in, key, text, texts.Words{}); err != nil {
		return err
	}
	if err := s.o.Notices.Post(ctx, tx, core.Address{Bot: l.Bot, Chat: l.Chat}, key+":there", "linked_there", texts.Words{}); err != nil {
		return err
	}
	if l.User == core.Operator {
		if err := s.showWaiting(ctx, tx, in); err != nil {
			return err
		}
	}
	s.o.Changes.Decided(tx, in.Bot, "linked", core.TopicPeople)
	return store.Audit(ctx, tx, core.Actor{User: l.User, Via: "chat"}, "identity.link", strconv.FormatInt(l.User, 10),
		map[string]any{"bot": in.Bot, "platform": in.From.Platform, "was": from.User})
}

// unlinkable names the text that explains why not; "" when the account may be
// linked. One account a platform: else a second one there would have the access
// that was given to the first.
func (s *Store) unlinkable(ctx context.Context, tx *store.Tx, in *core.Inbound, from Sender, l linkRow) (string, error) {
	taken, err := s.o.People.HasAccount(ctx, tx, l.User, in.From.Platform)
	if err != nil || taken {
		return "link_taken", err
	}
	if from.User == 0 {
		return "", nil
	}
	// The account's person may have another one where the code's has one, too.
	elsewhere, err := s.o.People.SharePlatform(ctx, tx, l.User, from.User)
	switch {
	case err != nil:
		return "", err
	case from.User == core.Operator, from.Role.Manages():
		return "link_staff", nil
	case elsewhere:
		return "link_taken", nil
	}
	return "", nil
}

// merge gives what was of the user from, if there is one, to the user to.
func (s *Store) merge(ctx context.Context, tx *store.Tx, in *core.Inbound, from, to int64) error {
	if err := s.o.People.Merge(ctx, tx, in.From, from, to); err != nil || from == 0 {
		return err
	}
	if err := s.DropLink(ctx, tx, from); err != nil || s.o.Merge == nil {
		return err
	}
	return s.o.Merge(ctx, tx, from, to)
}

// DropLink deletes the link code of a user.
func (s *Store) DropLink(ctx context.Context, tx *store.Tx, user int64) error {
	if _, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE user_id = $1`, user); err != nil {
		return fmt.Errorf("link accounts: %w", err)
	}
	return nil
}
