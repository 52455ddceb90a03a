package pairing

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// LinkLife is how long a code works by which somebody links a second account.
const LinkLife = 10 * time.Minute

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

// NewLink makes the code with which user says that another account, on another
// platform, is theirs too: they type /link CODE there, read whose code it is and
// what follows, and type /link yes. It is single use, works for LinkLife and
// voids an older one. from is where it was asked for, and is told.
func (b *Book) NewLink(ctx context.Context, user int64, from core.Address) (code string, expires time.Time, err error) {
	if user <= 0 {
		return "", time.Time{}, texts.Error(core.Denied, "link_nobody")
	}
	code = newCode(linkCode)
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
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
// whoever was told that it is something else reads first whose it is.
func (b *Book) linked(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing) error {
	word, column := plainCode(in.Text), "hash"
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
		return b.link(ctx, tx, in, s, l)
	}
	return b.askLink(ctx, tx, in, s, l)
}

// asker is the account as a link's row keeps it: nobody's id is read from it.
func asker(p core.Peer) string { return hash(p.Platform + ":" + p.ID) }

// askLink shows whose code it is and what it does, and notes who was asked: the
// yes of anybody else, or to another code, is none.
func (b *Book) askLink(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing, l linkRow) error {
	key := "notice:pair:" + in.Bot + ":" + in.UpdateID
	refused, err := b.unlinkable(ctx, tx, in, s, l)
	if err != nil {
		return err
	}
	if refused != "" {
		return b.reply(ctx, tx, in, key, refused, texts.Words{})
	}
	if _, err := tx.Exec(ctx, `UPDATE link_codes SET asked = CASE WHEN hash = $1 THEN $2 ELSE '' END WHERE hash = $1 OR asked = $2`, l.Hash, asker(in.From)); err != nil {
		return err
	}
	names, err := accounts(ctx, tx, l.User)
	if err != nil {
		return err
	}
	return b.reply(ctx, tx, in, key, "link_ask", texts.Words{Accounts: names})
}

// accounts names a person's accounts, one a line, in plain text.
func accounts(ctx context.Context, tx *store.Tx, user int64) (string, error) {
	var rows []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Display  string `db:"display"`
	}
	err := tx.Select(ctx, &rows, `SELECT platform, platform_user_id, display FROM identities WHERE user_id = $1 ORDER BY platform, platform_user_id LIMIT 10`, user)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = texts.Text("link_account", texts.With{"Platform": r.Platform, "Name": core.CleanName(r.Display), "ID": r.ID})
	}
	return strings.Join(lines, "\n"), err
}

// mistaken ends a link code that was typed as if it were an invitation, and
// says so: that is how somebody takes another's conversations. False when it is none.
func (b *Book) mistaken(ctx context.Context, tx *store.Tx, in *core.Inbound, sum string) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE hash = $1 AND expires_at > $2`, sum, core.Stamp(tx.Time()))
	if err != nil || n == 0 {
		return false, err
	}
	return true, b.reply(ctx, tx, in, "notice:pair:"+in.Bot+":"+in.UpdateID, "link_mistaken", texts.Words{})
}

// link makes the sender's account one of the person who asked for the code.
// What the account may already is theirs from now on; nothing more is opened
// by it, but for the owner: an account of theirs is let in as by /claim.
func (b *Book) link(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing, l linkRow) error {
	key := "notice:pair:" + in.Bot + ":" + in.UpdateID
	refused, err := b.unlinkable(ctx, tx, in, s, l)
	if err != nil {
		return err
	}
	if refused != "" {
		return b.reply(ctx, tx, in, key, refused, texts.Words{})
	}
	n, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE hash = $1`, l.Hash)
	if err != nil {
		return err
	}
	if n == 0 {
		return b.reply(ctx, tx, in, key, "pair_wrong", texts.Words{})
	}
	if err := b.merge(ctx, tx, in, s.User, l.User); err != nil {
		return err
	}
	text := "linked_waits"
	switch {
	case s.rule == "":
		text = "linked"
	case l.User == core.Operator:
		text = "linked"
		by := core.Actor{User: core.Operator, Via: "chat"}
		if err := putAccess(ctx, tx, accessRow{Bot: in.Bot, User: core.Operator, Scope: core.ScopeDM, Trust: core.Vault, Chat: in.Chat, By: who(by), At: core.Stamp(tx.Time())}); err != nil {
			return err
		}
		if err := b.letIn(ctx, tx, in, core.Vault, by, texts.Text("request_owner")); err != nil {
			return err
		}
	}
	if err := b.reply(ctx, tx, in, key, text, texts.Words{}); err != nil {
		return err
	}
	if err := b.post(ctx, tx, core.Address{Bot: l.Bot, Chat: l.Chat}, key+":there", "linked_there", texts.Words{}); err != nil {
		return err
	}
	b.after(tx, in.Bot, "linked", "people")
	return store.Audit(ctx, tx, core.Actor{User: l.User, Via: "chat"}, "identity.link", strconv.FormatInt(l.User, 10),
		map[string]any{"bot": in.Bot, "platform": in.From.Platform, "was": s.User})
}

// unlinkable names the text that says why not; "" when the account may be
// linked. One account a platform: else a second one there would have the access
// that was given to the first.
func (b *Book) unlinkable(ctx context.Context, tx *store.Tx, in *core.Inbound, s standing, l linkRow) (string, error) {
	var taken bool
	err := tx.Get(ctx, &taken, `SELECT EXISTS (SELECT 1 FROM identities WHERE user_id = $1 AND platform = $2)`, l.User, in.From.Platform)
	if err != nil || taken {
		return "link_taken", err
	}
	if s.User == 0 {
		return "", nil
	}
	var elsewhere bool // the account's person has another one where the code's has one, too
	err = tx.Get(ctx, &elsewhere, `SELECT EXISTS (SELECT 1 FROM identities a JOIN identities b ON b.platform = a.platform AND b.user_id = $1 WHERE a.user_id = $2)`, l.User, s.User)
	switch {
	case err != nil:
		return "", err
	case s.User == core.Operator, s.Role != "guest" && s.Role != "":
		return "link_staff", nil
	case elsewhere:
		return "link_taken", nil
	}
	return "", nil
}

// merge gives what was of the user from, if there is one, to the user to.
func (b *Book) merge(ctx context.Context, tx *store.Tx, in *core.Inbound, from, to int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (platform, platform_user_id) DO UPDATE SET user_id = excluded.user_id, display = excluded.display`,
		in.From.Platform, in.From.ID, to, core.CleanName(in.From.Name), core.Stamp(tx.Time()))
	if err != nil || from == 0 {
		return err
	}
	var bots []string
	if err := tx.Select(ctx, &bots, `SELECT DISTINCT bot FROM access WHERE user_id = $1`, from); err != nil {
		return err
	}
	for _, bot := range bots { // what runs was begun in the other name
		b.abort(tx, bot, from)
	}
	for _, q := range []string{
		`UPDATE identities SET user_id = $1 WHERE user_id = $2`,
		`UPDATE access SET user_id = $1 WHERE user_id = $2 AND NOT EXISTS (SELECT 1 FROM access o WHERE o.user_id = $1 AND o.bot = access.bot AND o.scope = access.scope AND o.place = access.place)`,
	} {
		if _, err := tx.Exec(ctx, q, to, from); err != nil {
			return fmt.Errorf("link accounts: %w", err)
		}
	}
	for _, q := range []string{
		`DELETE FROM access WHERE user_id = $1`,
		`DELETE FROM link_codes WHERE user_id = $1`,
		`UPDATE users SET display = '', settings = NULL WHERE id = $1`, // nobody any more; the number is not given again
	} {
		if _, err := tx.Exec(ctx, q, from); err != nil {
			return fmt.Errorf("link accounts: %w", err)
		}
	}
	if b.o.Merge == nil {
		return nil
	}
	return b.o.Merge(ctx, tx, from, to)
}
