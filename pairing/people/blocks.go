package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// Blocked is an account that gets no answer. Bot "*" is every bot.
type Blocked struct {
	Platform       string    `json:"platform"`
	PlatformUserID string    `json:"platform_user_id"`
	Display        string    `json:"platform_user_display,omitempty"` // as last seen; "" where the account never wrote
	Bot            string    `json:"bot"`
	By             string    `json:"by"`
	At             time.Time `json:"at"`
}

// BlockUser leaves nothing of what a user sends to bot ("*": every bot) from
// now on: access is removed, requests that wait are denied, runs are stopped.
// Blocking twice is fine.
func (s *Store) BlockUser(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error {
	bot, err := s.blockable(bot, platform, platformUserID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		if err := s.OwnerOnly(ctx, tx, platform, platformUserID, by); err != nil {
			return err
		}
		if err := s.Block(ctx, tx, bot, platform, platformUserID, by); err != nil {
			return err
		}
		if err := s.requests.DenyOpen(ctx, tx, bot, core.Identity{Platform: platform, ID: platformUserID}, by); err != nil {
			return err
		}
		s.changes.Decided(tx, bot, "blocked", core.TopicPairing, core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.block", platform+":"+platformUserID, map[string]any{"bot": bot})
	})
	if err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return nil
}

// Unblock listens to a user again, as a stranger who may ask at once. The access that the
// block took counts as revoked since then. NotFound when the user is not blocked there.
func (s *Store) Unblock(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error {
	bot, err := s.blockable(bot, platform, platformUserID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		var b struct{ Took, At, By string }
		err := tx.Get(ctx, &b, `SELECT took, at, "by" FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3`, platform, platformUserID, bot)
		if errors.Is(err, store.ErrNoRows) {
			return core.Errorf(core.NotFound, "this person is not blocked there")
		}
		if err != nil {
			return err
		}
		took, err := granted(b.Took)
		if err != nil {
			return err
		}
		took = slices.DeleteFunc(took, func(a Grant) bool { return a.ExpiresAt != "" && a.ExpiresAt <= b.At }) // it had ended before
		if err := s.requests.Uncool(ctx, tx, bot, core.Identity{Platform: platform, ID: platformUserID}, took, b.At, b.By); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3`, platform, platformUserID, bot); err != nil {
			return err
		}
		s.changes.Decided(tx, bot, "", core.TopicPairing, core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.unblock", platform+":"+platformUserID, map[string]any{"bot": bot})
	})
	if err != nil {
		return fmt.Errorf("unblock: %w", err)
	}
	return nil
}

// Blocks lists who is blocked, newest first: the newest 1,000, and all of the users that Persons lists.
func (s *Store) Blocks(ctx context.Context) ([]Blocked, error) {
	var rows []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Bot      string `db:"bot"`
		By       string `db:"by"`
		At       string `db:"at"`
		Display  string `db:"display"`
	}
	err := s.db.Select(ctx, &rows, `SELECT platform, platform_user_id, bot, "by", at, coalesce(
			(SELECT nullif(display, '') FROM identities i WHERE i.platform = b.platform AND i.platform_user_id = b.platform_user_id),
			(SELECT platform_user_display FROM pairing_requests r WHERE r.platform = b.platform AND r.platform_user_id = b.platform_user_id
				AND platform_user_display <> '' ORDER BY created_at DESC LIMIT 1), '') AS display
		FROM blocks b WHERE (platform, platform_user_id, bot) IN (SELECT platform, platform_user_id, bot FROM blocks ORDER BY at DESC LIMIT 1000)
			OR (platform, platform_user_id) IN (SELECT i.platform, i.platform_user_id FROM identities i JOIN (SELECT u.id `+listedPeople+`) AS who ON who.id = i.user_id)
		ORDER BY at DESC, platform, platform_user_id`, Limit(0))
	if err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	out := make([]Blocked, len(rows))
	for i, r := range rows {
		out[i] = Blocked{Platform: r.Platform, PlatformUserID: r.ID, Display: r.Display, Bot: r.Bot, By: r.By, At: core.TimeOf(r.At)}
	}
	return out, nil
}

func (s *Store) blockable(bot, platform, id string) (string, error) {
	if bot == "" || platform == "" || id == "" {
		return "", core.Errorf(core.Invalid, "a block needs a bot (or * for every one), a platform and the person's id there")
	}
	if bot == bots.Every {
		return bot, nil
	}
	return s.bots.Resolve(bot)
}

// Block writes the row and takes what the user has there.
func (s *Store) Block(ctx context.Context, tx *store.Tx, bot, platform, id string, by core.Actor) error {
	took, err := s.tookBy(ctx, tx, bot, platform, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO blocks (platform, platform_user_id, bot, "by", at, took) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		platform, id, bot, by.String(), core.Stamp(tx.Time()), took); err != nil {
		return err
	}
	var user int64
	err = tx.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range s.bots.Of(bot, platform) {
		if _, err := s.Strip(ctx, tx, name, user); err != nil {
			return err
		}
	}
	return nil
}
