package pairing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Person is who ref names, as this package's tables know them: the number of a
// user, or "platform:id" for somebody whom a platform knows, let in or not.
// core.NotFound where nothing is known of them.
func (b *Book) Person(ctx context.Context, q store.Queryer, ref string) (p core.Person, err error) {
	platform, id, byID := strings.Cut(ref, ":")
	if byID {
		err = q.Get(ctx, &p.User, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
		if errors.Is(err, store.ErrNoRows) {
			err = nil
			p.Identities = []core.Identity{{Platform: platform, ID: id}}
		}
	} else if p.User, err = strconv.ParseInt(ref, 10, 64); err != nil || p.User <= 0 {
		return p, core.Errorf(core.Invalid, "name a person by their number (the panel's page People shows it) or by platform and id, such as telegram:12345678")
	}
	if err != nil {
		return p, fmt.Errorf("person: %w", err)
	}
	return b.everyName(ctx, q, p)
}

// everyName fills p in.
func (b *Book) everyName(ctx context.Context, q store.Queryer, p core.Person) (core.Person, error) {
	known := false
	name := func(n string) {
		if n != "" && !slices.Contains(p.Names, n) {
			p.Names = append(p.Names, n)
		}
	}
	if p.User != 0 {
		var users, names []string
		var ids []struct {
			Platform string `db:"platform"`
			ID       string `db:"platform_user_id"`
		}
		err := errors.Join(
			q.Select(ctx, &users, `SELECT display FROM users WHERE id = $1`, p.User),
			q.Select(ctx, &names, `SELECT display FROM identities WHERE user_id = $1`, p.User),
			q.Select(ctx, &ids, `SELECT platform, platform_user_id FROM identities WHERE user_id = $1 ORDER BY platform, platform_user_id`, p.User))
		if err != nil {
			return p, fmt.Errorf("person: %w", err)
		}
		known = len(users) > 0
		for _, n := range append(users, names...) {
			name(n)
		}
		for _, id := range ids {
			p.Identities = append(p.Identities, core.Identity{Platform: id.Platform, ID: id.ID})
		}
	}
	for i := range p.Identities {
		found, err := b.traces(ctx, q, &p, &p.Identities[i], name)
		if err != nil {
			return p, err
		}
		known = known || found
	}
	if err := b.ownChats(ctx, q, &p); err != nil {
		return p, err
	}
	if !known {
		return p, core.Errorf(core.NotFound, "nobody of that name is known here")
	}
	return p, nil
}

// traces is what a platform's id has left: requests, names, chats.
func (b *Book) traces(ctx context.Context, q store.Queryer, p *core.Person, id *core.Identity, name func(string)) (found bool, err error) {
	var rows []request
	err = q.Select(ctx, &rows, requestColumns+` WHERE platform = $1 AND platform_user_id = $2`, id.Platform, id.ID)
	if err != nil {
		return false, fmt.Errorf("person: %w", err)
	}
	for _, x := range b.o.Bots() {
		if x.Platform == id.Platform {
			id.Bots = append(id.Bots, x.Name)
		}
	}
	for _, r := range rows {
		p.Requests = append(p.Requests, r.ID)
		name(r.Display)
		if !slices.Contains(id.Bots, r.Bot) {
			id.Bots = append(id.Bots, r.Bot)
		}
		if r.Scope == core.ScopeDM && r.PlatformChatID != "" {
			p.Chats = append(p.Chats, core.Address{Bot: r.Bot, Chat: r.PlatformChatID})
		}
	}
	var blocked bool
	err = q.Get(ctx, &blocked, `SELECT EXISTS (SELECT 1 FROM blocks WHERE platform = $1 AND platform_user_id = $2)`, id.Platform, id.ID)
	if err != nil {
		return false, fmt.Errorf("person: %w", err)
	}
	return len(rows) > 0 || blocked, nil
}

// ownChats adds the direct chats that access knows.
func (b *Book) ownChats(ctx context.Context, q store.Queryer, p *core.Person) error {
	var rows []struct{ Bot, Chat string }
	if p.User != 0 {
		if err := q.Select(ctx, &rows, `SELECT bot, chat FROM access WHERE user_id = $1 AND scope = 'dm' AND chat <> ''`, p.User); err != nil {
			return fmt.Errorf("person: %w", err)
		}
	}
	for _, r := range rows {
		if a := (core.Address{Bot: r.Bot, Chat: r.Chat}); !slices.Contains(p.Chats, a) {
			p.Chats = append(p.Chats, a)
		}
	}
	return nil
}

// Since is when a user came to be; false for nobody.
func (b *Book) Since(ctx context.Context, q store.Queryer, user int64) (time.Time, bool, error) {
	var at string
	err := q.Get(ctx, &at, `SELECT created_at FROM users WHERE id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("user: %w", err)
	}
	since, err := core.ParseStamp(at)
	return since, err == nil, err
}

// ShutOut takes every access of a user, on every bot, so that nothing of theirs
// begins any more, and stops what runs.
func (b *Book) ShutOut(ctx context.Context, tx *store.Tx, user int64) error {
	if err := notTheOperator(user); err != nil || user == 0 {
		return err
	}
	var bots []string
	if err := tx.Select(ctx, &bots, `SELECT DISTINCT bot FROM access WHERE user_id = $1 ORDER BY bot`, user); err != nil {
		return fmt.Errorf("shut out: %w", err)
	}
	for _, bot := range bots {
		if _, err := b.strip(ctx, tx, bot, user); err != nil {
			return fmt.Errorf("shut out: %w", err)
		}
	}
	b.abort(tx, core.APIBot, user)
	return nil
}

func notTheOperator(user int64) error {
	if user == core.Operator {
		return core.Errorf(core.Invalid, "the operator can't be forgotten")
	}
	return nil
}

// Forget erases who a person is: identities, access, requests, blocks, names.
// The empty user row stays, so that its number is never another person's.
// Whoever was blocked is a stranger again. The operator can't be forgotten.
func (b *Book) Forget(ctx context.Context, tx *store.Tx, p core.Person, by core.Actor) error {
	if err := notTheOperator(p.User); err != nil {
		return err
	}
	if err := b.forget(ctx, tx, p); err != nil {
		return fmt.Errorf("forget a person: %w", err)
	}
	tx.OnCommit(func() { b.o.Ring("pairing", "people") })
	return store.Audit(ctx, tx, by, "user.forget", strconv.FormatInt(p.User, 10), nil)
}

func (b *Book) forget(ctx context.Context, tx *store.Tx, p core.Person) error {
	for _, id := range p.Requests {
		r, err := oneRequest(ctx, tx, ` WHERE id = $1`, id)
		if errors.Is(err, store.ErrNoRows) {
			continue
		}
		if err == nil && (r.Attempts > 0 || r.Status == "pending") {
			if err = b.discard(ctx, tx, &r); err == nil {
				err = b.closeAsk(ctx, tx, r.ID, texts.Text("request_erased"))
			}
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM pairing_requests WHERE id = $1`, id); err != nil {
			return err
		}
	}
	if err := b.ShutOut(ctx, tx, p.User); err != nil {
		return err
	}
	for _, id := range p.Identities {
		if _, err := tx.Exec(ctx, `DELETE FROM blocks WHERE platform = $1 AND platform_user_id = $2`, id.Platform, id.ID); err != nil {
			return err
		}
		if err := b.forgetTrier(ctx, tx, core.Peer{Platform: id.Platform, ID: id.ID}); err != nil {
			return err
		}
	}
	if p.User == 0 {
		return nil
	}
	for _, q := range [...]string{
		`DELETE FROM identities WHERE user_id = $1`,
		`DELETE FROM link_codes WHERE user_id = $1`,
		`DELETE FROM invites WHERE "by" = $1`,
		`UPDATE users SET display = '', role = 'guest', settings = NULL WHERE id = $1`,
	} {
		if _, err := tx.Exec(ctx, q, p.User); err != nil {
			return err
		}
	}
	return nil
}

// forgetTrier drops somebody's wrong tries of a claim code.
func (b *Book) forgetTrier(ctx context.Context, tx *store.Tx, p core.Peer) error {
	tries, _, err := b.triers(ctx, tx, core.Peer{})
	if err != nil {
		return err
	}
	if _, there := tries[personKey(p)]; !there {
		return nil
	}
	delete(tries, personKey(p))
	return saveJSON(ctx, tx, triersKey, tries)
}
