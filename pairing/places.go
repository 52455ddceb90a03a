package pairing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A PlaceRow is a group that a bot has been seen in.
type PlaceRow struct {
	Bot     string     `json:"bot"`
	Place   string     `json:"place"`
	Name    string     `json:"name"` // the group's title, cleaned; hostile text
	Enabled bool       `json:"enabled"`
	Level   core.Trust `json:"trust_level"` // nobody exceeds it there
	By      string     `json:"by"`          // who decided last; "" when nobody has
	At      time.Time  `json:"at"`          // of that decision, else when it was first seen
}

// Enable lets bot answer in a group: people with access of their own there at
// the lower of theirs and level, everybody else at level. Stranger means the
// bot's preset. An empty name keeps the known one.
func (b *Book) Enable(ctx context.Context, bot, place, name string, level core.Trust, by core.Actor) error {
	return b.setPlace(ctx, "enable", bot, place, name, level, by)
}

// Disable silences bot in a group.
func (b *Book) Disable(ctx context.Context, bot, place string, by core.Actor) error {
	return b.setPlace(ctx, "disable", bot, place, "", core.Stranger, by)
}

func (b *Book) setPlace(ctx context.Context, verb, bot, place, name string, level core.Trust, by core.Actor) error {
	bot, err := b.bot(bot)
	if err != nil {
		return err
	}
	if bot == "" || place == "" {
		return core.Errorf(core.Invalid, "a group is named by a bot and the group's id")
	}
	if level, err = grantable(level, b.o.Policy(bot).GroupTrust); err != nil {
		return err
	}
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO places (bot, place, name, enabled, level, "by", at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (bot, place) DO UPDATE SET enabled = excluded.enabled, level = excluded.level, "by" = excluded."by", at = excluded.at,
				name = CASE WHEN excluded.name = '' THEN places.name ELSE excluded.name END`,
			bot, place, core.CleanName(name), verb == "enable", level, who(by), core.Stamp(tx.Time()))
		if err != nil {
			return err
		}
		b.after(tx, bot, "", "people", "pairing")
		return store.Audit(ctx, tx, by, "place."+verb, bot+":"+place, map[string]any{"trust": level.String()})
	})
	if err != nil {
		return fmt.Errorf("%s group: %w", verb, err)
	}
	return nil
}

// Places lists the groups, those that wait for a decision first, at most 2,000.
func (b *Book) Places(ctx context.Context) ([]PlaceRow, error) {
	var rows []struct {
		Bot     string     `db:"bot"`
		Place   string     `db:"place"`
		Name    string     `db:"name"`
		Enabled bool       `db:"enabled"`
		Level   core.Trust `db:"level"`
		By      string     `db:"by"`
		At      string     `db:"at"`
	}
	err := b.db.Select(ctx, &rows, `SELECT bot, place, name, enabled, level, "by", at FROM places ORDER BY "by" = '' DESC, at DESC, bot, place LIMIT 2000`)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	out := make([]PlaceRow, len(rows))
	for i, r := range rows {
		out[i] = PlaceRow{Bot: r.Bot, Place: r.Place, Name: r.Name, Enabled: r.Enabled, Level: r.Level, By: r.By, At: stamp(r.At)}
	}
	return out, nil
}

// level is the most that anybody may do in an enabled group; Stranger elsewhere.
func (b *Book) level(ctx context.Context, tx *store.Tx, bot, place string) (core.Trust, error) {
	var level core.Trust
	err := tx.Get(ctx, &level, `SELECT level FROM places WHERE bot = $1 AND place = $2 AND enabled = 1`, bot, place)
	if errors.Is(err, store.ErrNoRows) {
		return core.Stranger, nil
	}
	return level, err
}

// seen notes a group that nobody has enabled, so that the panel can offer it.
// At most maxSeen such notes are kept: the oldest goes.
func (b *Book) seen(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	n, err := tx.Exec(ctx, `INSERT INTO places (bot, place, name, enabled, level, at) VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (bot, place) DO NOTHING`,
		in.Bot, in.Place, core.CleanName(in.PlaceName), preset(b.o.Policy(in.Bot).GroupTrust), core.Stamp(tx.Time()))
	if err != nil || n == 0 {
		return err
	}
	bot := in.Bot
	tx.OnCommit(func() {
		b.o.Log.Info("a group that is not enabled wrote to the bot; it gets no answer until the owner enables it", "bot", bot)
	})
	b.after(tx, bot, "", "people")
	_, err = tx.Exec(ctx, `DELETE FROM places WHERE "by" = '' AND enabled = 0 AND (bot, place) NOT IN (
		SELECT bot, place FROM places WHERE "by" = '' AND enabled = 0 ORDER BY at DESC LIMIT $1)`, maxSeen)
	return err
}
