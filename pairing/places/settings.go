package places

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Mention modes: what an enabled group's bot takes in. "" is MentionOnly.
const (
	MentionOnly    = "mention_only" // what is addressed to it; the rest is not heard
	MentionContext = "context"      // also, and it gets what others wrote recently
	MentionAll     = "all"          // everything is answered
)

// A Settings is how one enabled group is answered. Empty fields are the gateway's.
type Settings struct {
	Mention string
	Agent   string // as it was called when it was chosen; it may be gone
	Model   string // also
	RateN   int    // messages of the whole group in RatePer; 0 is no bound
	RatePer time.Duration
}

// A Group is how a group is answered now, and how much of its rate is used up.
type Group struct {
	Level   core.Trust `db:"level"` // Stranger: not enabled
	Mention string     `db:"mention_mode"`
	Agent   string     `db:"agent"`
	Model   string     `db:"model"`
	RateN   int        `db:"rate_n"`
	RatePer int64      `db:"rate_per"`
	From    string     `db:"rate_from"`
	Used    int        `db:"rate_used"`
}

// Enabled returns a group that is enabled, or the zero Group.
func Enabled(ctx context.Context, q store.Queryer, bot, id string) (Group, error) {
	return groupRow(ctx, q, bot, id, ` AND enabled = 1`)
}

// IsEnabled reports whether a bot answers in a group.
func (s *Store) IsEnabled(ctx context.Context, tx *store.Tx, bot, id string) (bool, error) {
	p, err := Enabled(ctx, tx, bot, id)
	return p.Level != core.Stranger, err
}

func groupRow(ctx context.Context, q store.Queryer, bot, id, and string) (p Group, err error) {
	p, err = store.Recall[Group](ctx, q, `SELECT level, mention_mode, agent, model, rate_n, rate_per, rate_from, rate_used FROM places WHERE bot = $1 AND place = $2`+and, bot, id)
	if errors.Is(err, store.ErrNoRows) {
		return Group{}, nil
	}
	return p, err
}

// Place returns how an enabled group is answered; the zero value for one that is not.
func (s *Store) Place(ctx context.Context, q store.Queryer, bot, id string) (Settings, error) {
	p, err := Enabled(ctx, q, bot, id)
	if err != nil {
		return Settings{}, fmt.Errorf("settings of group: %w", err)
	}
	return p.settings(), nil
}

// Kept returns how a group was answered last, whether or not it is enabled now; the
// zero value for one that never was.
func (s *Store) Kept(ctx context.Context, q store.Queryer, bot, id string) (Settings, error) {
	p, err := groupRow(ctx, q, bot, id, ` AND "by" <> ''`)
	if err != nil {
		return Settings{}, fmt.Errorf("settings of group: %w", err)
	}
	return p.settings(), nil
}

func (p Group) settings() Settings {
	return Settings{Mention: p.Mention, Agent: p.Agent, Model: p.Model, RateN: p.RateN, RatePer: time.Duration(p.RatePer) * time.Second}
}

// Check returns the error with which SetPlace refuses set, or nil.
func (set Settings) Check() error {
	switch set.Mention {
	case "", MentionOnly, MentionContext, MentionAll:
	default:
		return core.Errorf(core.Invalid, "a group's messages are read by one of %s, %s, %s", MentionOnly, MentionContext, MentionAll)
	}
	if set.RateN < 0 || set.RateN > 10_000 || set.RateN > 0 && (set.RatePer < time.Second || set.RatePer > 24*time.Hour) {
		return texts.Error(core.Invalid, "enable_rate_bounds")
	}
	return nil
}

// SetPlace changes how an enabled group is answered. NotFound for one that is
// not. Whether there is such an agent or model is the caller's to know.
func (s *Store) SetPlace(ctx context.Context, bot, id string, set Settings, by core.Actor) error {
	if err := set.Check(); err != nil {
		return err
	}
	set.Mention = cmp.Or(set.Mention, MentionOnly)
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE places SET mention_mode = $1, agent = $2, model = $3, rate_n = $4, rate_per = $5, rate_from = '', rate_used = 0, "by" = $6, at = $7
			WHERE bot = $8 AND place = $9 AND enabled = 1`, set.Mention, set.Agent, set.Model, set.RateN, int64(set.RatePer/time.Second), by.String(), core.Stamp(tx.Time()), bot, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return texts.Error(core.NotFound, "group_not_enabled")
		}
		s.changes.Decided(tx, bot, "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "place.set", bot+":"+id, map[string]any{"mention": set.Mention, "agent": set.Agent, "model": set.Model, "rate": fmt.Sprintf("%d/%s", set.RateN, set.RatePer)})
	})
	if err != nil {
		return fmt.Errorf("set group: %w", err)
	}
	return nil
}

// Flooded counts a message of the group against its rate, by the platform's
// time, and reports whether it is one too many; period names the time in which
// the group has ended its rate.
func (s *Store) Flooded(ctx context.Context, tx *store.Tx, p Group, in *core.Inbound) (over bool, period string, err error) {
	if p.RateN == 0 {
		return false, "", nil
	}
	from, per := core.TimeOf(p.From), time.Duration(p.RatePer)*time.Second
	if from.IsZero() || in.At.Before(from.Add(-per)) || !in.At.Before(from.Add(per)) {
		p.From, p.Used = core.Stamp(in.At), 0
	}
	if p.Used >= p.RateN {
		return true, p.From, nil
	}
	_, err = tx.Exec(ctx, `UPDATE places SET rate_from = $1, rate_used = $2 WHERE bot = $3 AND place = $4`, p.From, p.Used+1, in.Bot, in.Place)
	return false, p.From, err
}
