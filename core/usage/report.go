package usage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Bounds of Report.
const (
	maxRange = 366 * 24 * time.Hour
	maxRows  = 5000
)

// groupings are what figures may be grouped by, with their SQL.
var groupings = []struct{ name, column, expression string }{
	{"day", "day", "substr(at, 1, 10)"}, // UTC, as a stamp begins
	{"model", "model", "model"},
	{"user", "user_id", "user_id + 0"}, // so, that the engine is not tempted to walk all of an index that begins with it
	{"bot", "bot", "bot || ''"},
}

// A ReportQuery chooses figures.
type ReportQuery struct {
	By           []string  // of day, model, user, bot; at least one
	Since, Until time.Time // at most 366 days apart
	User         *int64    // only what this user used; nil: all
}

// A Figure is what one group took. Only the fields that the report is grouped
// by are set.
type Figure struct {
	Day   string `json:"day,omitempty" db:"day"` // 2006-01-02, UTC
	Model string `json:"model,omitempty" db:"model"`
	User  *int64 `json:"user_id,omitempty" db:"user_id"` // 0: users who were forgotten
	Bot   string `json:"bot,omitempty" db:"bot"`

	Calls      int64 `json:"calls" db:"calls"`
	Input      int64 `json:"input_tokens" db:"input"`
	Output     int64 `json:"output_tokens" db:"output"`
	CacheRead  int64 `json:"cache_read_tokens" db:"cache_read"`
	CacheWrite int64 `json:"cache_write_tokens" db:"cache_write"`
	MicroUSD   int64 `json:"-" db:"micro_usd"`
	Unpriced   int64 `json:"unpriced_calls" db:"unpriced"` // without a known price, not in the cost
}

// Report sums the settled calls of a time, one figure per group, in the
// groups' order. It reads the calls of that time alone, by an index. A question
// that makes no sense is core.Invalid, one with over 5,000 answers core.TooLarge.
func (l *Ledger) Report(ctx context.Context, q store.Queryer, r ReportQuery) ([]Figure, error) {
	if !r.Since.Before(r.Until) || r.Until.Sub(r.Since) > maxRange {
		return nil, core.Errorf(core.Invalid, "since must be before until, by at most 366 days")
	}
	var columns, groups []string
	for _, by := range r.By {
		i := slices.IndexFunc(groupings, func(g struct{ name, column, expression string }) bool { return g.name == by })
		if i < 0 || slices.Contains(groups, groupings[max(i, 0)].expression) {
			return nil, core.Errorf(core.Invalid, "figures are grouped by day, model, user or bot, each once")
		}
		columns = append(columns, groupings[i].expression+" AS "+groupings[i].column)
		groups = append(groups, groupings[i].expression)
	}
	if len(groups) == 0 {
		return nil, core.Errorf(core.Invalid, "figures are grouped by day, model, user or bot")
	}
	args := []any{core.Stamp(r.Since), core.Stamp(r.Until)}
	whose := ""
	if r.User != nil {
		args, whose = append(args, *r.User), " AND user_id = $3"
	}
	var all []Figure
	err := q.Select(ctx, &all, `SELECT `+strings.Join(columns, ", ")+`, count(*) AS calls, sum(input) AS input, sum(output) AS output,
			sum(cache_read) AS cache_read, sum(cache_write) AS cache_write,
			coalesce(sum(micro_usd), 0) AS micro_usd, sum(CASE WHEN micro_usd IS NULL THEN 1 ELSE 0 END) AS unpriced
		FROM usage WHERE at >= $1 AND at < $2 AND state = 'settled'`+whose+` GROUP BY `+strings.Join(groups, ", ")+`
		ORDER BY `+strings.Join(groups, ", ")+` LIMIT `+strconv.Itoa(maxRows+1), args...)
	if err != nil {
		return nil, fmt.Errorf("usage report: %w", err)
	}
	if len(all) > maxRows {
		return nil, core.Errorf(core.TooLarge, "that are over %d figures: ask for a shorter time or group by less", maxRows)
	}
	return all, nil
}
