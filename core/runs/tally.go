package runs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// TookBounds are the upper ends, in milliseconds, of the classes that Tally
// counts durations in; the last class has none.
var TookBounds = [...]int64{250, 500, 1000, 2000, 4000, 8000, 15_000, 30_000, 60_000, 120_000, 300_000}

// tallyMost limits the runs that one Tally reads.
const tallyMost = 100_000

// Tally counts the runs that ended in a time: runs|STATE, bot_done|BOT and
// bot_error|BOT, and of the answered ones took|CLASS, an index of TookBounds,
// and what the answers of each model took together, model_ms|MODEL, with how
// many they are, model_done|MODEL. That is without the time that they waited for
// users, which is waited_ms|MODEL of waited_runs|MODEL answers.
func (s *Store) Tally(ctx context.Context, q store.Queryer, from, until time.Time) (map[string]int64, error) {
	var rows []struct {
		State   string `db:"state"`
		Bot     string `db:"bot"`
		Model   string `db:"model"`
		Started string `db:"started"`
		Ended   string `db:"ended"`
		Waited  int64  `db:"waited_ms"`
	}
	err := q.Select(ctx, &rows, `SELECT state, bot, model, started, ended, waited_ms FROM runs WHERE ended >= $1 AND ended < $2 AND ended <> '' LIMIT $3`, core.Stamp(from), core.Stamp(until), tallyMost)
	if err != nil {
		return nil, fmt.Errorf("tally of runs: %w", err)
	}
	out := map[string]int64{}
	for _, r := range rows {
		out["runs|"+r.State]++
		if r.State == "done" || r.State == "error" {
			out["bot_"+r.State+"|"+r.Bot]++
		}
		started, err := core.ParseStamp(r.Started)
		ended, more := core.ParseStamp(r.Ended)
		if err == nil && more == nil && r.State == "done" && !started.IsZero() {
			ms := max(0, ended.Sub(started).Milliseconds()-r.Waited)
			out["took|"+strconv.Itoa(class(ms))]++
			if r.Model != "" {
				out["model_ms|"+r.Model] += ms
				out["model_done|"+r.Model]++
			}
			if r.Waited > 0 {
				out["waited_ms|"+r.Model] += r.Waited
				out["waited_runs|"+r.Model]++
			}
		}
	}
	return out, nil
}

func class(ms int64) int {
	for i, bound := range TookBounds {
		if ms <= bound {
			return i
		}
	}
	return len(TookBounds)
}

// Quantile returns the duration that a part p of those counted did not exceed,
// interpolated within its class; 0 where nothing was counted. counts has one number
// for each class of TookBounds and one for the rest, which counts as its lower end.
func Quantile(counts []int64, p float64) time.Duration {
	var all int64
	for _, n := range counts {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank, seen, low := p*float64(all), 0.0, int64(0)
	for i, n := range counts {
		if i >= len(TookBounds) {
			break
		}
		if n > 0 && seen+float64(n) >= rank {
			ms := float64(low) + (rank-seen)/float64(n)*float64(TookBounds[i]-low)
			return time.Duration(ms * float64(time.Millisecond))
		}
		seen, low = seen+float64(n), TookBounds[i]
	}
	return time.Duration(low) * time.Millisecond
}
