package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
)

// State is the content of an agent's state file, for other programs. The database decides.
type State struct {
	Agent         string `json:"agent"`
	Backend       string `json:"backend"`
	Session       string `json:"sdk_session_id"`
	Model         string `json:"model"`
	LastRun       string `json:"last_run_at"`
	LastProcessed string `json:"last_processed_date"`
	Count         int    `json:"run_count"`
	Created       string `json:"created_at"`
}

// stateOf returns the state of an agent, and when its last run ended; the zero value where
// it has never run.
func (s *Scheduler) stateOf(ctx context.Context, agent string) (state State, last string, err error) {
	var sum struct {
		Count   int    `db:"n"`
		Created string `db:"created"`
		Date    string `db:"date"`
	}
	err = s.o.DB.Get(ctx, &sum, `SELECT count(*) AS n, coalesce(min(created), '') AS created,
		coalesce(max(CASE WHEN result IN ('completed', 'completed_no_output') THEN date END), '') AS date
		FROM schedule_runs WHERE agent = $1 AND result NOT IN ('', 'skipped')`, agent)
	if err != nil || sum.Count == 0 {
		return State{}, "", err
	}
	var r runRow
	if err := s.o.DB.Get(ctx, &r, runColumns+`WHERE agent = $1 AND result NOT IN ('', 'skipped') ORDER BY ended DESC LIMIT 1`, agent); err != nil {
		return State{}, "", err
	}
	return State{Agent: agent, Backend: "gatehouse", Session: r.Session, Model: r.Model, LastRun: second(r.Ended), LastProcessed: sum.Date,
		Count: sum.Count, Created: second(sum.Created)}, r.Ended, nil
}

func second(stamp string) string { return core.TimeOf(stamp).Format(time.RFC3339) }

// note writes the state files of agents with runs that ended since. One that cannot be
// written is logged and tried again.
func (s *Scheduler) note(ctx context.Context) error {
	var agents []string
	if err := s.o.DB.Select(ctx, &agents, `SELECT DISTINCT agent FROM schedule_runs WHERE noted = 0 AND result <> '' LIMIT 64`); err != nil {
		return fmt.Errorf("state of daily agents: %w", err)
	}
	var faults []string
	for _, agent := range agents {
		if err := s.noteOne(ctx, agent); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %s", agent, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := strings.Join(faults, "\n"); text != s.unnoted { // once, and not by each pass
		s.unnoted = text
		for _, fault := range faults {
			s.o.Log.Warn("the state file of a daily agent cannot be written", "err", fault)
		}
	}
	return nil
}

func (s *Scheduler) noteOne(ctx context.Context, agent string) error {
	state, last, err := s.stateOf(ctx, agent)
	if err != nil || state.Count == 0 {
		return err
	}
	b, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	if err := s.o.Vault.WriteFile(daily.StateFile(agent), append(b, '\n')); err != nil {
		return err
	}
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error { // one that ended in the meantime is noted by the next pass
		_, err := tx.Exec(ctx, `UPDATE schedule_runs SET noted = 1 WHERE agent = $1 AND noted = 0 AND result <> '' AND ended <= $2`, agent, last)
		return err
	})
}

// aboutFile describes the owner to agents, in the words of the owner.
const aboutFile = ".parachute/profile.md"

// about returns the value of {user_context}; "" without the file.
func (s *Scheduler) about() string {
	f, err := s.o.Vault.OpenNoLinks(aboutFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), ""))
}
