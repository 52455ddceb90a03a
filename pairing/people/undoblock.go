package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gatehouse/core"
	"gatehouse/core/store"
)

// UndoBlock takes a block back within UndoFor of it, and gives back the access
// that it took. Requests that waited stay denied, without cool-off. Too late is
// a core.Conflict, no one blocked a core.NotFound.
func (s *Store) UndoBlock(ctx context.Context, bot, platform, platformUserID string, by core.Actor) error {
	bot, err := s.blockable(bot, platform, platformUserID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		var at string
		err := tx.Get(ctx, &at, `SELECT at FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3`, platform, platformUserID, bot)
		if errors.Is(err, store.ErrNoRows) {
			return core.Errorf(core.NotFound, "this person is not blocked there any more")
		}
		if err != nil {
			return err
		}
		if when := core.TimeOf(at); tx.Time().Sub(when) > UndoFor {
			return core.Errorf(core.Conflict, "a block can be undone for %d seconds; this one was made at %s UTC. Unblock them instead: then they may ask again", int(UndoFor.Seconds()), when.UTC().Format("15:04:05"))
		}
		if err := s.Restore(ctx, tx, bot, platform, platformUserID, at); err != nil {
			return err
		}
		if err := s.requests.Uncool(ctx, tx, bot, core.Identity{Platform: platform, ID: platformUserID}, nil, "", ""); err != nil {
			return err
		}
		s.changes.Decided(tx, bot, "undone", core.TopicPairing, core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.undo", platform+":"+platformUserID, map[string]any{"bot": bot, "was": "blocked"})
	})
	if err != nil {
		return fmt.Errorf("undo block: %w", err)
	}
	return nil
}

// tookBy returns the access that a block is about to take; "" for none.
func (s *Store) tookBy(ctx context.Context, tx *store.Tx, bot, platform, id string) (string, error) {
	var all, rows []Grant
	err := tx.Select(ctx, &all, `SELECT a.id, a.bot, a.user_id, a.scope, a.place, a.trust_level, a.expires_at, a.chat, a."by", a.at
		FROM access a JOIN identities i ON i.user_id = a.user_id WHERE i.platform = $1 AND i.platform_user_id = $2 LIMIT 1000`, platform, id)
	if err != nil {
		return "", err
	}
	for _, name := range s.bots.Of(bot, platform) {
		for _, a := range all {
			if a.Bot == name {
				rows = append(rows, a)
			}
		}
	}
	if len(rows) == 0 {
		return "", nil
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// Restore removes the block that was made at a moment, if there is one, and
// gives back what it took. Access that was given since stays as it is.
func (s *Store) Restore(ctx context.Context, tx *store.Tx, bot, platform, id, at string) error {
	var took string
	err := tx.Get(ctx, &took, `SELECT took FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3 AND at = $4`, platform, id, bot, at)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot = $3 AND at = $4`, platform, id, bot, at); err != nil {
		return err
	}
	rows, err := granted(took)
	if err != nil {
		return err
	}
	for _, a := range rows {
		_, err := tx.Exec(ctx, `INSERT INTO access (bot, user_id, scope, place, trust_level, expires_at, chat, "by", at)
			SELECT $1, user_id, $2, $3, $4, $5, $6, $7, $8 FROM identities WHERE platform = $9 AND platform_user_id = $10 AND user_id = $11
			ON CONFLICT (bot, user_id, scope, place) DO NOTHING`,
			a.Bot, string(a.Scope), a.Place, a.Trust, a.ExpiresAt, a.Chat, a.By, a.At, platform, id, a.User)
		if err != nil {
			return err
		}
	}
	return nil
}

// granted parses what tookBy returned.
func granted(took string) (rows []Grant, err error) {
	if took == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(took), &rows); err != nil {
		return nil, fmt.Errorf("access that a block took: %w", err)
	}
	return rows, nil
}

// moveTaken writes a group's new id into what blocks took.
func (s *Store) moveTaken(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	var all []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Bot      string `db:"bot"`
		Took     string `db:"took"`
	}
	if err := tx.Select(ctx, &all, `SELECT platform, platform_user_id, bot, took FROM blocks WHERE took <> '' AND bot IN ($1, '*')`, bot); err != nil {
		return fmt.Errorf("move group: %w", err)
	}
	for _, b := range all {
		rows, err := granted(b.Took)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rows, func(a Grant) bool { return a.Bot == bot && a.Scope == core.ScopeGroup && a.Place == from })
		if i < 0 {
			continue
		}
		rows[i].Place = to
		text, err := json.Marshal(rows)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE blocks SET took = $1 WHERE platform = $2 AND platform_user_id = $3 AND bot = $4`, string(text), b.Platform, b.ID, b.Bot); err != nil {
			return fmt.Errorf("move group: %w", err)
		}
	}
	return nil
}
