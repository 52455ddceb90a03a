package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Bounds of the rollups.
const (
	rollStep  = 5 * time.Minute
	rollsKeep = 48 * time.Hour      // of five minutes
	hoursKeep = 35 * 24 * time.Hour // of hours
	rollsBack = 30 * 24 * time.Hour // how far a first Fill looks back
	rollsEach = 1000                // steps that one Fill reads
	topSeries = 40                  // of one name in a step; the rest is summed up as Other
)

// rollsSkip are the times that are skipped at once where nothing happened, each a part
// of the one before. Else a new database, the first Fill of which goes a month back,
// shows nothing for minutes.
var rollsSkip = [...]time.Duration{24 * time.Hour, 4 * time.Hour, 40 * time.Minute}

// rolledKey is the metadata key of the time up to which rollups are filled.
const rolledKey = "rollups"

// A Tally sums what happened from a time until another, by series. It is a sum:
// that of two times together is that of both added.
type Tally func(ctx context.Context, q store.Queryer, from, until time.Time) (map[string]int64, error)

// Rollups are sums of five minutes (for 48 hours) and of hours (for 35 days),
// so that charts cost the same however much has happened.
type Rollups struct {
	db      *store.DB
	clock   core.Clock
	tallies []Tally
}

// NewRollups returns Rollups that are filled from tallies.
func NewRollups(db *store.DB, clock core.Clock, tallies ...Tally) *Rollups {
	return &Rollups{db: db, clock: clock, tallies: tallies}
}

// Fill continues where the last one ended, for at most rollsEach steps, and sums
// the present five minutes again. It removes what is too old and returns how many
// steps it read. Call it every minute.
func (r *Rollups) Fill(ctx context.Context) (int, error) {
	now := r.clock.Now().UTC()
	mark, _, err := store.Metadata(ctx, r.db, rolledKey)
	if err != nil {
		return 0, err
	}
	from, err := core.ParseStamp(mark)
	if err != nil || from.IsZero() || from.After(now) {
		from = now.Add(-rollsBack)
	}
	from = from.Truncate(rollStep)
	steps, hours := map[time.Time]map[string]int64{}, map[time.Time]bool{} // at most rollsEach
	n, skip := 0, skipping{}
	for ; n < rollsEach && !from.After(now); n++ {
		next, err := skip.over(from, now, func(until time.Time) (bool, error) {
			sums, err := r.sum(ctx, from, until)
			return len(sums) == 0, err
		})
		if err != nil {
			return n, err
		}
		if next.After(from) {
			from = next
			continue
		}
		sums, err := r.sum(ctx, from, from.Add(rollStep))
		if err != nil {
			return n, err
		}
		if len(sums) > 0 {
			steps[from] = sums
			hours[from.Truncate(time.Hour)] = true
		}
		from = from.Add(rollStep)
	}
	return n, r.db.Tx(ctx, func(tx *store.Tx) error {
		if err := writeSteps(ctx, tx, steps); err != nil {
			return err
		}
		for _, hour := range inOrder(hours) {
			if err := writeHour(ctx, tx, hour); err != nil {
				return err
			}
		}
		for prefix, keep := range map[string]time.Duration{"5m|": rollsKeep, "1h|": hoursKeep} {
			// A step that was written just now for an hour long ago has done its work.
			if _, err := tx.Exec(ctx, `DELETE FROM rollups WHERE bucket >= $1 AND bucket < $2`, prefix, prefix+core.Stamp(now.Add(-keep))); err != nil {
				return fmt.Errorf("old rollups: %w", err)
			}
		}
		return store.SetMetadata(ctx, tx, rolledKey, core.Stamp(from.Add(-rollStep)))
	})
}

// skipping is, for each of rollsSkip, until when something is known to have happened.
type skipping [len(rollsSkip)]time.Time

// over returns the end of the longest of rollsSkip from a time on that is over and in
// which nothing happened, or that time. It asks for none of them twice.
func (s *skipping) over(from, now time.Time, nothing func(until time.Time) (bool, error)) (time.Time, error) {
	for i, d := range rollsSkip {
		next := from.Add(d)
		if from.Before(s[i]) || next.After(now) {
			continue
		}
		if empty, err := nothing(next); err != nil || empty {
			return next, err
		}
		s[i] = next
	}
	return from, nil
}

func (r *Rollups) sum(ctx context.Context, from, until time.Time) (map[string]int64, error) {
	all := map[string]int64{}
	for _, t := range r.tallies {
		sums, err := t(ctx, r.db, from, until)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, sums)
	}
	return few(all), nil
}

// few keeps the largest of each name and sums up the others.
func few(all map[string]int64) map[string]int64 {
	byName := map[string][]string{}
	for series := range all {
		name, _, _ := strings.Cut(series, "|")
		byName[name] = append(byName[name], series)
	}
	for name, list := range byName {
		if len(list) <= topSeries {
			continue
		}
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
		for _, series := range list[topSeries:] {
			all[name+"|"+Other] += all[series]
			if series != name+"|"+Other {
				delete(all, series)
			}
		}
	}
	return all
}

// inOrder returns the keys of m, the earliest first.
func inOrder[V any](m map[time.Time]V) []time.Time {
	list := slices.Collect(maps.Keys(m))
	core.Sort(list, time.Time.Compare)
	return list
}

const putRollup = `INSERT INTO rollups (bucket, series, value) VALUES ($1, $2, $3) ON CONFLICT (bucket, series) DO UPDATE SET value = excluded.value`

func writeSteps(ctx context.Context, tx *store.Tx, steps map[time.Time]map[string]int64) error {
	for _, at := range inOrder(steps) {
		for _, series := range slices.Sorted(maps.Keys(steps[at])) {
			if _, err := tx.Exec(ctx, putRollup, "5m|"+core.Stamp(at), series, steps[at][series]); err != nil {
				return fmt.Errorf("rollup: %w", err)
			}
		}
	}
	return nil
}

func writeHour(ctx context.Context, tx *store.Tx, hour time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO rollups (bucket, series, value)
		SELECT $1, series, sum(value) FROM rollups WHERE bucket >= $2 AND bucket < $3 GROUP BY series
		ON CONFLICT (bucket, series) DO UPDATE SET value = excluded.value`,
		"1h|"+core.Stamp(hour), "5m|"+core.Stamp(hour), "5m|"+core.Stamp(hour.Add(time.Hour)))
	if err != nil {
		return fmt.Errorf("rollup of an hour: %w", err)
	}
	return nil
}

// A Chart is sums over a time in equal steps.
type Chart struct {
	From   time.Time
	Step   time.Duration
	Series map[string][]int64 // by series; one value for each step
}

// Len returns the number of steps.
func (c Chart) Len() int {
	for _, s := range c.Series {
		return len(s)
	}
	return 0
}

// Total returns the sum of a series.
func (c Chart) Total(series string) (n int64) {
	for _, v := range c.Series[series] {
		n += v
	}
	return n
}

// Read returns a chart of n steps, the last of which contains the present time.
// A step is a multiple of five minutes up to an hour, or of hours. Steps of several
// hours begin with the days of zone, to the hour.
func (r *Rollups) Read(ctx context.Context, step time.Duration, n int, zone *time.Location) (Chart, error) {
	prefix := "1h|"
	if step < time.Hour {
		prefix = "5m|"
	}
	now := r.clock.Now()
	_, east := now.In(zone).Zone()
	shift := (time.Duration(east) * time.Second).Truncate(time.Hour)
	from := now.UTC().Add(shift).Truncate(step).Add(-shift - step*time.Duration(n-1))
	c := Chart{From: from, Step: step, Series: map[string][]int64{}}
	var rows []struct {
		Bucket string `db:"bucket"`
		Series string `db:"series"`
		Value  int64  `db:"value"`
	}
	err := r.db.Select(ctx, &rows, `SELECT bucket, series, value FROM rollups WHERE bucket >= $1 AND bucket < $2`, prefix+core.Stamp(from), prefix+"9")
	if err != nil {
		return c, fmt.Errorf("rollups: %w", err)
	}
	for _, row := range rows {
		at, err := core.ParseStamp(strings.TrimPrefix(row.Bucket, prefix))
		if err != nil {
			return c, fmt.Errorf("rollups: %w", err)
		}
		c.add(n, at, row.Series, row.Value)
	}
	return c, r.addLate(ctx, c, n, now.UTC())
}

// add adds a value to the step of a time, of n steps.
func (c Chart) add(n int, at time.Time, series string, value int64) {
	i := int(at.Sub(c.From) / c.Step)
	if at.Before(c.From) || i >= n || value == 0 {
		return
	}
	if c.Series[series] == nil {
		c.Series[series] = make([]int64, n)
	}
	c.Series[series][i] += value
}

// addLate adds what happened since the last Fill, so that a chart agrees with the ledger. Where the last
// Fill is long ago, the next one does.
func (r *Rollups) addLate(ctx context.Context, c Chart, n int, now time.Time) error {
	mark, _, err := store.Metadata(ctx, r.db, rolledKey)
	if err != nil {
		return err
	}
	from, err := core.ParseStamp(mark)
	if err != nil || now.Sub(from) > 2*rollStep {
		return nil
	}
	for ; !from.After(now); from = from.Add(rollStep) {
		sums, err := r.sum(ctx, from, from.Add(rollStep))
		if err != nil {
			return err
		}
		var filled []struct {
			Series string `db:"series"`
			Value  int64  `db:"value"`
		}
		if err := r.db.Select(ctx, &filled, `SELECT series, value FROM rollups WHERE bucket = $1`, "5m|"+core.Stamp(from)); err != nil {
			return fmt.Errorf("rollups: %w", err)
		}
		for _, f := range filled {
			sums[f.Series] -= f.Value
		}
		for series, value := range sums {
			c.add(n, from, series, value)
		}
	}
	return nil
}

// Tally sums the settled calls of a time: tokens|MODEL, usd|MODEL (in millionths),
// and the same by person, user_tokens|ID and user_usd|ID, and by bot,
// bot_tokens|BOT and bot_usd|BOT.
func (l *Ledger) Tally(ctx context.Context, q store.Queryer, from, until time.Time) (map[string]int64, error) {
	var rows []struct {
		Model  string `db:"model"`
		User   int64  `db:"user_id"`
		Bot    string `db:"bot"`
		Tokens int64  `db:"tokens"`
		Micro  int64  `db:"micro"`
	}
	err := q.Select(ctx, &rows, `SELECT model, user_id, bot, sum(input + output + cache_read + cache_write) AS tokens, coalesce(sum(micro_usd), 0) AS micro
		FROM usage WHERE at >= $1 AND at < $2 AND state = 'settled' GROUP BY model, user_id, bot`, core.Stamp(from), core.Stamp(until))
	if err != nil {
		return nil, fmt.Errorf("tally of usage: %w", err)
	}
	out := map[string]int64{}
	for _, r := range rows {
		user := strconv.FormatInt(r.User, 10)
		for series, n := range map[string]int64{"tokens|" + r.Model: r.Tokens, "usd|" + r.Model: r.Micro, "user_tokens|" + user: r.Tokens, "user_usd|" + user: r.Micro,
			"bot_tokens|" + r.Bot: r.Tokens, "bot_usd|" + r.Bot: r.Micro} {
			if n > 0 {
				out[series] += n
			}
		}
	}
	return out, nil
}
