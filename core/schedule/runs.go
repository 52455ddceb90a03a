package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
)

// A Run is one run of a daily agent.
type Run = daily.Run

type runRow struct {
	Agent   string `db:"agent"`
	Date    string `db:"date"`
	N       int    `db:"n"`
	Run     string `db:"run"`
	Session string `db:"session"`
	Cause   string `db:"cause"`
	Result  string `db:"result"`
	Error   string `db:"error"`
	Output  string `db:"output"`
	Model   string `db:"model"`
	Due     string `db:"due"`
	Created string `db:"created"`
	Ended   string `db:"ended"`
}

const runColumns = `SELECT agent, date, n, run, session, cause, result, error, output, model, due, created, ended FROM schedule_runs `

func (r runRow) value() Run {
	return Run{Agent: r.Agent, Date: r.Date, N: r.N, Run: r.Run, Session: r.Session, Cause: r.Cause, Result: r.Result, Error: r.Error, Output: r.Output,
		Model: r.Model, Due: core.TimeOf(r.Due), Created: core.TimeOf(r.Created), Ended: core.TimeOf(r.Ended)}
}

// Limits of what is kept and returned.
const (
	MaxHistory = 100 // runs in one answer
	keepRuns   = 400 * 24 * time.Hour
	maxError   = 500 // characters of a stored error
)

// History returns the newest runs of an agent, newest first, at most limit and MaxHistory.
func (s *Scheduler) History(ctx context.Context, agent string, limit int) ([]Run, error) {
	var rows []runRow
	err := s.o.DB.Select(ctx, &rows, runColumns+`WHERE agent = $1 ORDER BY date DESC, n DESC LIMIT $2`, agent, min(max(limit, 1), MaxHistory))
	if err != nil {
		return nil, fmt.Errorf("runs of daily agents: %w", err)
	}
	out := make([]Run, len(rows))
	for i, r := range rows {
		out[i] = r.value()
	}
	return out, nil
}

// A dateRuns is what is stored of an agent's runs of one date.
type dateRuns struct {
	exists  bool // run is set
	run     Run  // the newest that was not skipped
	last    int  // the highest N, 0 for none
	byTime  bool // one was started by the schedule
	skipped bool // a time was skipped
}

// ofDate returns the runs of an agent for a date.
func ofDate(ctx context.Context, q store.Queryer, agent, date string) (d dateRuns, err error) {
	var rows []runRow
	if err := q.Select(ctx, &rows, runColumns+`WHERE agent = $1 AND date = $2 ORDER BY n DESC LIMIT 1000`, agent, date); err != nil {
		return d, fmt.Errorf("runs of a daily agent: %w", err)
	}
	for _, r := range rows {
		d.last = max(d.last, r.N)
		if r.Result == daily.Skipped {
			d.skipped = true
			continue
		}
		d.byTime = d.byTime || r.Cause == daily.ByTime || r.Cause == daily.Missed
		if !d.exists {
			d.exists, d.run = true, r.value()
		}
	}
	return d, nil
}

// insert stores a run, and reports whether it is new.
func insert(ctx context.Context, tx *store.Tx, r Run) (bool, error) {
	n, err := tx.Exec(ctx, `INSERT INTO schedule_runs (agent, date, n, run, session, cause, result, error, due, created, ended, noted)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (agent, date, n) DO NOTHING`,
		r.Agent, r.Date, r.N, r.Run, r.Session, r.Cause, r.Result, r.Error, core.Stamp(r.Due), core.Stamp(tx.Time()), core.Stamp(r.Ended), r.Result == daily.Skipped)
	if err != nil {
		return false, fmt.Errorf("store a run of a daily agent: %w", err)
	}
	return n > 0, nil
}

// Wrote stores which file a run has written; it is the tool's.
func (s *Scheduler) Wrote(ctx context.Context, run, file string) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE schedule_runs SET output = $1 WHERE run = $2`, file, run)
		return err
	})
}

// An End is how a run ended.
type End struct {
	Run   string
	OK    bool
	Why   string // it did not end well
	Model string // that answered
}

// ByRun returns the run of that id; core.NotFound without one.
func (s *Scheduler) ByRun(ctx context.Context, run string) (Run, error) {
	var r runRow
	err := s.o.DB.Get(ctx, &r, runColumns+`WHERE run = $1`, run)
	if errors.Is(err, store.ErrNoRows) {
		return Run{}, core.Errorf(core.NotFound, "this is no run of a daily agent")
	}
	if err != nil {
		return Run{}, fmt.Errorf("run of a daily agent: %w", err)
	}
	return r.value(), nil
}

// Finish stores the end of a run, in the transaction that ends it.
func (s *Scheduler) Finish(ctx context.Context, tx *store.Tx, e End) error {
	var r runRow
	err := tx.Get(ctx, &r, runColumns+`WHERE run = $1`, e.Run)
	if errors.Is(err, store.ErrNoRows) { // too old
		return nil
	}
	if err != nil {
		return fmt.Errorf("end of a daily agent's run: %w", err)
	}
	result := daily.Failed
	switch {
	case e.OK && r.Output != "":
		result = daily.Completed
	case e.OK:
		result = daily.CompletedNoOutput
	}
	_, err = tx.Exec(ctx, `UPDATE schedule_runs SET result = $1, error = $2, model = $3, ended = $4, noted = 0 WHERE run = $5`,
		result, core.CutRunes(e.Why, maxError), e.Model, core.Stamp(tx.Time()), e.Run)
	if err != nil {
		return fmt.Errorf("end of a daily agent's run: %w", err)
	}
	now := tx.Time()
	tx.OnCommit(func() {
		s.o.Metrics.ended(r.Agent, result, now)
		s.ring()
	})
	return nil
}

// settle ends the runs whose message was given up, refused or removed.
func (s *Scheduler) settle(ctx context.Context) error {
	var open []runRow
	if err := s.o.DB.Select(ctx, &open, runColumns+`WHERE result = '' LIMIT 100`); err != nil {
		return fmt.Errorf("open runs of daily agents: %w", err)
	}
	for _, r := range open {
		state, reason, err := s.o.State(ctx, core.ScheduleBot, updateID(r.value()))
		why := ""
		switch {
		case core.KindOf(err) == core.NotFound:
			why = "its message was removed"
		case err != nil:
			return fmt.Errorf("message of a daily agent's run: %w", err)
		case state == "refused":
			why = "the agent's file was removed or cannot be used"
		case state == "dead":
			why = "it was given up: " + reason
		case state == "done":
			why = "it ended without a result"
		default:
			continue
		}
		err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			var still bool
			if err := tx.Get(ctx, &still, `SELECT EXISTS (SELECT 1 FROM schedule_runs WHERE run = $1 AND result = '')`, r.Run); err != nil || !still {
				return err
			}
			return s.Finish(ctx, tx, End{Run: r.Run, Why: why})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tables returns the scheduler's tables: they hold data of the owner alone, who is not
// forgotten.
func (s *Scheduler) Tables() []string { return []string{"schedule_agents", "schedule_runs"} }

// Chores returns the tables' housekeeping.
func (s *Scheduler) Chores() []core.Chore {
	return []core.Chore{{Name: "schedule_runs", Every: time.Hour, Run: func(ctx context.Context) (n int, err error) {
		err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			gone, err := tx.Exec(ctx, `DELETE FROM schedule_runs WHERE created < $1 AND result <> '' AND noted = 1`, core.Stamp(tx.Time().Add(-keepRuns)))
			n = int(gone)
			return err
		})
		return n, err
	}}}
}
