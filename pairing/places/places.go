// Package places keeps the groups that bots have been seen in: which are enabled,
// at which trust, and how each is answered. It owns the table places.
package places

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// maxSeen is the most groups that are listed without a decision, over all bots.
const maxSeen = 1000

// Changes reports what was decided, after the commit.
type Changes interface {
	Decided(tx *store.Tx, bot, decision string, topics ...core.Topic)
}

// A Store is the table of groups. It is safe for concurrent use.
type Store struct {
	db      *store.DB
	bots    bots.Bots
	changes Changes
	log     *slog.Logger
}

// New returns a Store over db.
func New(db *store.DB, b bots.Bots, c Changes, log *slog.Logger) *Store {
	return &Store{db: db, bots: b, changes: c, log: log}
}

// A Row is a group that a bot has been seen in.
type Row struct {
	Bot     string     `json:"bot"`
	Place   string     `json:"place"`
	Name    string     `json:"name"` // the group's title, cleaned; hostile text
	Enabled bool       `json:"enabled"`
	Level   core.Trust `json:"trust_level"` // no one exceeds it there
	By      string     `json:"by"`          // who decided last; "" when no one has
	At      time.Time  `json:"at"`          // of that decision, else when it was first seen
	Mention string     `json:"mention_mode"`
	Agent   string     `json:"agent,omitempty"`
	Model   string     `json:"model,omitempty"`
	RateN   int        `json:"rate_n,omitempty"`   // messages of the whole group in RatePer; 0 is no bound
	RatePer int64      `json:"rate_per,omitempty"` // seconds
}

// Enable lets bot answer in a group: users with access of their own there at
// the lower of their own level and level, everyone else at level. Stranger means the
// level that was decided before, or at first the bot's preset. An empty name
// keeps the known one.
func (s *Store) Enable(ctx context.Context, bot, place, name string, level core.Trust, by core.Actor) error {
	return s.set(ctx, "enable", bot, place, name, level, by)
}

// Disable silences bot in a group.
func (s *Store) Disable(ctx context.Context, bot, place string, by core.Actor) error {
	return s.set(ctx, "disable", bot, place, "", core.Stranger, by)
}

func (s *Store) set(ctx context.Context, verb, bot, place, name string, level core.Trust, by core.Actor) error {
	bot, err := s.bots.Resolve(bot)
	if err != nil {
		return err
	}
	if bot == "" || place == "" {
		return core.Errorf(core.Invalid, "a group is named by a bot and the group's id")
	}
	unsaid := level == core.Stranger // what was decided for the group before holds
	preset, err := bots.Grantable(level, s.bots.Policy(bot).GroupTrust)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		err := tx.Get(ctx, &level, `INSERT INTO places (bot, place, name, enabled, level, "by", at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (bot, place) DO UPDATE SET enabled = excluded.enabled, "by" = excluded."by", at = excluded.at,
				level = CASE WHEN $8 AND places."by" <> '' AND places.level <> '' THEN places.level ELSE excluded.level END,
				name = CASE WHEN excluded.name = '' THEN places.name ELSE excluded.name END
			RETURNING level`,
			bot, place, core.CleanName(name), verb == "enable", preset, by.String(), core.Stamp(tx.Time()), unsaid)
		if err != nil {
			return err
		}
		s.changes.Decided(tx, bot, "", core.TopicPeople, core.TopicPairing)
		return store.Audit(ctx, tx, by, "place."+verb, bot+":"+place, map[string]any{"trust": level.String()})
	})
	if err != nil {
		return fmt.Errorf("%s group: %w", verb, err)
	}
	return nil
}

// Places lists the groups, at most 2,000: the enabled ones, those that wait for a decision, the others.
func (s *Store) Places(ctx context.Context) ([]Row, error) {
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
	err := s.db.Select(ctx, &rows, `SELECT bot, place, name, enabled, level, "by", at, mention_mode, agent, model, rate_n, rate_per FROM places ORDER BY enabled DESC, "by" = '' DESC, at DESC, bot, place LIMIT 2000`)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	out := make([]Row, len(rows))
	for i, r := range rows {
		out[i] = Row{Bot: r.Bot, Place: r.Place, Name: r.Name, Enabled: r.Enabled, Level: r.Level, By: r.By, At: core.TimeOf(r.At),
			Mention: r.Mention, Agent: r.Agent, Model: r.Model, RateN: r.RateN, RatePer: r.RatePer}
	}
	return out, nil
}

// Seen notes a group that no one has enabled, so that the panel can offer it.
// At most maxSeen such notes are kept: the oldest goes.
func (s *Store) Seen(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	n, err := tx.Exec(ctx, `INSERT INTO places (bot, place, name, enabled, level, at) VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (bot, place) DO NOTHING`,
		in.Bot, in.Place, core.CleanName(in.PlaceName), bots.Preset(s.bots.Policy(in.Bot).GroupTrust), core.Stamp(tx.Time()))
	if err != nil || n == 0 {
		return err
	}
	bot := in.Bot
	tx.OnCommit(func() {
		s.log.Info("a group that is not enabled wrote to the bot; it gets no answer until the owner enables it", "bot", bot)
	})
	s.changes.Decided(tx, bot, "", core.TopicPeople)
	_, err = tx.Exec(ctx, `DELETE FROM places WHERE "by" = '' AND enabled = 0 AND (bot, place) NOT IN (
		SELECT bot, place FROM places WHERE "by" = '' AND enabled = 0 ORDER BY at DESC LIMIT $1)`, maxSeen)
	return err
}

// Known reports whether a new group needs no notice: its id is enabled already
// (it was moved here), or an enabled one has the same name (a group that turns
// into a supergroup has the bot added first), or more than most new groups came
// within the last hour.
func (s *Store) Known(ctx context.Context, tx *store.Tx, bot, place, name string, most int) (known bool, err error) {
	err = tx.Get(ctx, &known, `SELECT EXISTS (SELECT 1 FROM places WHERE bot = $1 AND enabled = 1 AND (place = $2 OR name = $3))
			OR (SELECT count(*) FROM places WHERE bot = $1 AND "by" = '' AND enabled = 0 AND at > $4) > $5`,
		bot, place, name, core.Stamp(tx.Time().Add(-time.Hour)), most)
	return known, err
}

// Left takes in that bot was removed from the groups ids: the enabled ones are
// disabled, with their settings kept, and their names returned; those without a
// decision are deleted.
func (s *Store) Left(ctx context.Context, tx *store.Tx, bot string, ids []string) (names []string, err error) {
	var rows []struct {
		Place   string `db:"place"`
		Name    string `db:"name"`
		Enabled bool   `db:"enabled"`
	}
	err = tx.Select(ctx, &rows, `SELECT place, name, enabled FROM places WHERE bot = $1 AND (enabled = 1 OR "by" = '') ORDER BY place`, bot)
	if err != nil {
		return nil, err
	}
	by := core.Actor{Via: s.bots.Platform(bot)}
	for _, r := range rows {
		if !slices.Contains(ids, r.Place) {
			continue
		}
		if !r.Enabled {
			if _, err := tx.Exec(ctx, `DELETE FROM places WHERE bot = $1 AND place = $2`, bot, r.Place); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := tx.Exec(ctx, `UPDATE places SET enabled = 0, "by" = $1, at = $2 WHERE bot = $3 AND place = $4`, by.String(), core.Stamp(tx.Time()), bot, r.Place); err != nil {
			return nil, err
		}
		if err := store.Audit(ctx, tx, by, "place.disable", bot+":"+r.Place, map[string]any{"why": "removed"}); err != nil {
			return nil, err
		}
		names = append(names, r.Name)
	}
	s.changes.Decided(tx, bot, "", core.TopicPeople)
	return names, nil
}

// Move rewrites a group's id when the platform gave it a new one. A row under
// the new id gives way to one under the old.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	for _, q := range []string{
		`DELETE FROM places WHERE place = $1 AND bot = $2 AND EXISTS (SELECT 1 FROM places o WHERE o.bot = $2 AND o.place = $3)`,
		`UPDATE places SET place = $1 WHERE bot = $2 AND place = $3`,
	} {
		if _, err := tx.Exec(ctx, q, to, bot, from); err != nil {
			return fmt.Errorf("move group: %w", err)
		}
	}
	return nil
}
