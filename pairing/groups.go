package pairing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Mention modes: what an enabled group's bot takes in. "" is MentionOnly.
const (
	MentionOnly    = "mention_only" // what is addressed to it; the rest is not heard
	MentionContext = "context"      // likewise, and it is told what others said lately
	MentionAll     = "all"          // everything is answered
)

// A PlaceSettings is how one enabled group is answered. Empty fields are the gateway's.
type PlaceSettings struct {
	Mention string
	Agent   string // as it was called when it was chosen; it may be gone
	Model   string // likewise
	RateN   int    // messages of the whole group in RatePer; 0 is no bound
	RatePer time.Duration
}

// A place is a group as the gate reads it.
type place struct {
	Level   core.Trust `db:"level"` // Stranger: not enabled
	Mention string     `db:"mention_mode"`
	Agent   string     `db:"agent"`
	Model   string     `db:"model"`
	RateN   int        `db:"rate_n"`
	RatePer int64      `db:"rate_per"`
	From    string     `db:"rate_from"`
	Used    int        `db:"rate_used"`
}

// placeOf is the enabled group, or the zero place.
func placeOf(ctx context.Context, q store.Queryer, bot, id string) (place, error) {
	return placeRow(ctx, q, bot, id, ` AND enabled = 1`)
}

func placeRow(ctx context.Context, q store.Queryer, bot, id, and string) (p place, err error) {
	p, err = store.Recall[place](ctx, q, `SELECT level, mention_mode, agent, model, rate_n, rate_per, rate_from, rate_used FROM places WHERE bot = $1 AND place = $2`+and, bot, id)
	if errors.Is(err, store.ErrNoRows) {
		return place{}, nil
	}
	return p, err
}

// Place is how an enabled group is answered; the zero value for one that is not.
func (b *Book) Place(ctx context.Context, q store.Queryer, bot, id string) (PlaceSettings, error) {
	p, err := placeOf(ctx, q, bot, id)
	if err != nil {
		return PlaceSettings{}, fmt.Errorf("settings of group: %w", err)
	}
	return p.settings(), nil
}

// Kept is how a group was answered last, whether or not it is enabled now; the
// zero value for one that never was.
func (b *Book) Kept(ctx context.Context, q store.Queryer, bot, id string) (PlaceSettings, error) {
	p, err := placeRow(ctx, q, bot, id, ` AND "by" <> ''`)
	if err != nil {
		return PlaceSettings{}, fmt.Errorf("settings of group: %w", err)
	}
	return p.settings(), nil
}

func (p place) settings() PlaceSettings {
	return PlaceSettings{Mention: p.Mention, Agent: p.Agent, Model: p.Model, RateN: p.RateN, RatePer: time.Duration(p.RatePer) * time.Second}
}

// SetPlace changes how an enabled group is answered. NotFound for one that is
// not. Whether there is such an agent or model is the caller's to know.
func (b *Book) SetPlace(ctx context.Context, bot, id string, s PlaceSettings, by core.Actor) error {
	if s.Mention == "" {
		s.Mention = MentionOnly
	}
	if s.Mention != MentionOnly && s.Mention != MentionContext && s.Mention != MentionAll {
		return core.Errorf(core.Invalid, "a group is heard by one of %s, %s, %s", MentionOnly, MentionContext, MentionAll)
	}
	if s.RateN < 0 || s.RateN > 10_000 || s.RateN > 0 && (s.RatePer < time.Second || s.RatePer > 24*time.Hour) {
		return texts.Error(core.Invalid, "enable_rate_bounds")
	}
	err := b.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE places SET mention_mode = $1, agent = $2, model = $3, rate_n = $4, rate_per = $5, rate_from = '', rate_used = 0, "by" = $6, at = $7
			WHERE bot = $8 AND place = $9 AND enabled = 1`, s.Mention, s.Agent, s.Model, s.RateN, int64(s.RatePer/time.Second), who(by), core.Stamp(tx.Time()), bot, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return texts.Error(core.NotFound, "group_not_enabled")
		}
		b.after(tx, bot, "", "people")
		return store.Audit(ctx, tx, by, "place.set", bot+":"+id, map[string]any{"mention": s.Mention, "agent": s.Agent, "model": s.Model, "rate": fmt.Sprintf("%d/%s", s.RateN, s.RatePer)})
	})
	if err != nil {
		return fmt.Errorf("set group: %w", err)
	}
	return nil
}

// speaks: what a bot that answers everything answers of what is not addressed
// to it. Commands are for other bots there.
func speaks(in *core.Inbound) bool {
	return in.Kind == core.KindMessage && !strings.HasPrefix(in.Text, "/") && (in.Text != "" || len(in.Files) > 0)
}

// overhears reports whether an unaddressed line is kept for the next prompt,
// and at which trust it was said: not of somebody who was turned away.
func (b *Book) overhears(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) (bool, core.Trust, error) {
	if s.place.Mention != MentionContext || !speaks(in) || in.Text == "" {
		return false, core.Stranger, nil
	}
	if s.valid(core.Stamp(tx.Time())) {
		return true, core.Least(s.Trust, s.place.Level), nil
	}
	cool, err := b.cooling(ctx, tx, in)
	return !cool, core.Stranger, err
}

// paced counts a message against its group's rate, by the platform's time, and
// says whether it is one too many; the group is told once in each period.
func (b *Book) paced(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) (over bool, err error) {
	p := s.place
	if p.RateN == 0 || in.Kind != core.KindMessage || s.Role == "owner" || s.Role == "admin" {
		return false, nil
	}
	from, per := stamp(p.From), time.Duration(p.RatePer)*time.Second
	if from.IsZero() || in.At.Before(from.Add(-per)) || !in.At.Before(from.Add(per)) {
		p.From, p.Used = core.Stamp(in.At), 0
	}
	if over = p.Used >= p.RateN; over {
		err := b.reply(ctx, tx, in, "notice:group:"+in.Bot+":"+in.Place+":"+p.From, "group_flood", texts.Words{})
		if core.KindOf(err) == core.Conflict {
			err = nil
		}
		return true, err
	}
	_, err = tx.Exec(ctx, `UPDATE places SET rate_from = $1, rate_used = $2 WHERE bot = $3 AND place = $4`, p.From, p.Used+1, in.Bot, in.Place)
	return false, err
}
