package pairing

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// everyBot in blocks.bot stands for all bots of the platform.
const everyBot = "*"

// BlockUser leaves nothing of what a person sends to bot ("*": every bot) from
// now on: access is removed, requests that wait are denied, runs are stopped.
// Blocking twice is fine.
func (b *Book) BlockUser(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error {
	bot, err := b.blockable(bot, platform, platformUserID)
	if err != nil {
		return err
	}
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		if err := b.ownerOnly(ctx, tx, platform, platformUserID, by); err != nil {
			return err
		}
		if err := b.block(ctx, tx, bot, platform, platformUserID, by); err != nil {
			return err
		}
		if err := b.denyWaiting(ctx, tx, bot, platform, platformUserID, by); err != nil {
			return err
		}
		b.after(tx, bot, "blocked", "pairing", "people")
		return store.Audit(ctx, tx, by, "access.block", platform+":"+platformUserID, map[string]any{"bot": bot})
	})
	if err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return nil
}

// Unblock listens to a person again, as a stranger who may ask at once.
// NotFound when the person is not blocked there.
func (b *Book) Unblock(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error {
	bot, err := b.blockable(bot, platform, platformUserID)
	if err != nil {
		return err
	}
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3`, platform, platformUserID, bot)
		if err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.NotFound, "this person is not blocked there")
		}
		if err := uncool(ctx, tx, bot, platform, platformUserID); err != nil {
			return err
		}
		b.after(tx, bot, "", "pairing", "people")
		return store.Audit(ctx, tx, by, "access.unblock", platform+":"+platformUserID, map[string]any{"bot": bot})
	})
	if err != nil {
		return fmt.Errorf("unblock: %w", err)
	}
	return nil
}

// Blocks lists who is blocked, newest first, at most 1,000.
func (b *Book) Blocks(ctx context.Context) ([]BlockRow, error) {
	var rows []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Bot      string `db:"bot"`
		By       string `db:"by"`
		At       string `db:"at"`
	}
	err := b.db.Select(ctx, &rows, `SELECT platform, platform_user_id, bot, "by", at FROM blocks ORDER BY at DESC, platform, platform_user_id LIMIT 1000`)
	if err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	out := make([]BlockRow, len(rows))
	for i, r := range rows {
		out[i] = BlockRow{Platform: r.Platform, PlatformUserID: r.ID, Bot: r.Bot, By: r.By, At: stamp(r.At)}
	}
	return out, nil
}

func (b *Book) blockable(bot, platform, id string) (string, error) {
	if bot == "" || platform == "" || id == "" {
		return "", core.Errorf(core.Invalid, "a block needs a bot (or * for every one), a platform and the person's id there")
	}
	if bot == everyBot {
		return bot, nil
	}
	return b.bot(bot)
}

// block writes the row and takes what the person has there.
func (b *Book) block(ctx context.Context, tx *store.Tx, bot, platform, id string, by core.Actor) error {
	took, err := b.tookBy(ctx, tx, bot, platform, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO blocks (platform, platform_user_id, bot, "by", at, took) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		platform, id, bot, who(by), core.Stamp(tx.Time()), took); err != nil {
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
	for _, name := range b.botsOf(bot, platform) {
		if _, err := b.strip(ctx, tx, name, user); err != nil {
			return err
		}
	}
	return nil
}

// botsOf is bot, or for "*" every configured bot of the platform.
func (b *Book) botsOf(bot, platform string) []string {
	if bot != everyBot {
		return []string{bot}
	}
	var out []string // bounded by the configured bots
	for _, x := range b.o.Bots() {
		if x.Platform == platform {
			out = append(out, x.Name)
		}
	}
	return out
}

// denyWaiting denies what the person has waiting, without a word to them.
func (b *Book) denyWaiting(ctx context.Context, tx *store.Tx, bot, platform, id string, by core.Actor) error {
	var rows []request
	err := tx.Select(ctx, &rows, requestColumns+` WHERE platform = $1 AND platform_user_id = $2 AND status = 'pending' AND $3 IN (bot, '*')`, platform, id, bot)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if err := b.resolve(ctx, tx, r, "denied", core.Stranger, by); err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
		if err := b.discard(ctx, tx, r); err != nil {
			return err
		}
		if err := b.closeAsk(ctx, tx, r.ID, texts.Text("request_blocked", texts.With{"By": who(by)})); err != nil {
			return err
		}
	}
	return nil
}
