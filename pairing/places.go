package pairing

import (
	"context"
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
	Mention string     `json:"mention_mode"`
	Agent   string     `json:"agent,omitempty"`
	Model   string     `json:"model,omitempty"`
	RateN   int        `json:"rate_n,omitempty"`   // messages of the whole group in RatePer; 0 is no bound
	RatePer int64      `json:"rate_per,omitempty"` // seconds
}

// Enable lets bot answer in a group: people with access of their own there at
// the lower of theirs and level, everybody else at level. Stranger means the
// level that was decided before, or at first the bot's preset. An empty name
// keeps the known one.
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
	unsaid := level == core.Stranger // what was decided for the group before holds
	preset, err := grantable(level, b.o.Policy(bot).GroupTrust)
	if err != nil {
		return err
	}
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		err := tx.Get(ctx, &level, `INSERT INTO places (bot, place, name, enabled, level, "by", at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (bot, place) DO UPDATE SET enabled = excluded.enabled, "by" = excluded."by", at = excluded.at,
				level = CASE WHEN $8 AND places."by" <> '' AND places.level <> '' THEN places.level ELSE excluded.level END,
				name = CASE WHEN excluded.name = '' THEN places.name ELSE excluded.name END
			RETURNING level`,
			bot, place, core.CleanName(name), verb == "enable", preset, who(by), core.Stamp(tx.Time()), unsaid)
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
		Mention string     `db:"mention_mode"`
		Agent   string     `db:"agent"`
		Model   string     `db:"model"`
		RateN   int        `db:"rate_n"`
		RatePer int64      `db:"rate_per"`
	}
	err := b.db.Select(ctx, &rows, `SELECT bot, place, name, enabled, level, "by", at, mention_mode, agent, model, rate_n, rate_per FROM places ORDER BY "by" = '' DESC, at DESC, bot, place LIMIT 2000`)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	out := make([]PlaceRow, len(rows))
	for i, r := range rows {
		out[i] = PlaceRow{Bot: r.Bot, Place: r.Place, Name: r.Name, Enabled: r.Enabled, Level: r.Level, By: r.By, At: stamp(r.At),
			Mention: r.Mention, Agent: r.Agent, Model: r.Model, RateN: r.RateN, RatePer: r.RatePer}
	}
	return out, nil
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
