// Package report records how runs of the gateway ended, and the kinds of faults that
// reached its log. A run that is still open at the next start did not end properly. What is
// recorded of a fault is in the program itself: the constant message of the log line, types,
// functions and lines; no text of users and no secret. Nothing is sent anywhere.
package report

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Limits.
const (
	Keep     = 90 * 24 * time.Hour
	maxRows  = 200 // of each table
	day      = 24 * time.Hour
	beat     = 5 * time.Minute // between signs of life
	patience = 3 * time.Second // for a write at the start and the end
)

// How a run ended.
const (
	Running = "running" // it goes on
	Clean   = "clean"
	Failed  = "failed"   // it ended with an error
	Crashed = "reported" // it did not end: it was killed, or the machine stopped
)

// A Run is one run of the gateway.
type Run struct {
	ID      string
	Status  string
	Version string
	PID     int
	Boot    string // the boot of the machine; "" not known
	Started time.Time
	Alive   time.Time // seen last; some five minutes before the end of a run that crashed
	Ended   time.Time // zero where it did not end
}

type runRow struct {
	ID      string `db:"session_id"`
	Status  string `db:"status"`
	Version string `db:"version"`
	PID     int    `db:"pid"`
	Boot    string `db:"boot_id"`
	Started string `db:"started_at"`
	Alive   string `db:"heartbeat_at"`
	Ended   string `db:"ended_at"`
	Told    string `db:"told_at"`
}

const runColumns = `SELECT session_id, status, version, pid, boot_id, started_at, heartbeat_at, ended_at, told_at FROM app_sessions `

func (r runRow) run() Run {
	return Run{r.ID, r.Status, r.Version, r.PID, r.Boot, core.TimeOf(r.Started), core.TimeOf(r.Alive), core.TimeOf(r.Ended)}
}

// Options of New. All are required.
type Options struct {
	DB      *store.DB
	Clock   core.Clock
	Log     *slog.Logger
	Version string
	Faults  *Faults
}

// A Store records one run of the gateway, and its faults. It is safe for concurrent use.
type Store struct {
	o    Options
	id   string
	last Crash
}

// New returns the Store of the run that begins with Begin.
func New(o Options) *Store { return &Store{o: o, id: uuid.NewString()} }

// A Crash is a run that did not end, as the next one found it.
type Crash struct {
	Run
	Restarted bool      // the machine has started since
	Tell      bool      // the owner was notified of none in the last day, nor of this one
	Found     time.Time // by this run, or when that run was alive last; zero: there is none of the last day
}

// Begin records that this run has begun, and reports the last one in the log if it did not
// end. A database that fails costs the record only.
func (s *Store) Begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	boot := bootID()
	var open, untold []runRow
	var told int
	err := s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		open, untold = nil, nil
		if err := tx.Select(ctx, &open, runColumns+`WHERE status = 'running' ORDER BY started_at DESC`); err != nil {
			return err
		}
		since := core.Stamp(tx.Time().Add(-day))
		if err := tx.Select(ctx, &untold, runColumns+`WHERE status = 'reported' AND heartbeat_at > $1 ORDER BY told_at, started_at DESC`, since); err != nil {
			return err
		}
		if err := tx.Get(ctx, &told, `SELECT count(*) FROM app_sessions WHERE told_at > $1`, since); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE app_sessions SET status = 'reported' WHERE status = 'running'`); err != nil {
			return err
		}
		now := core.Stamp(tx.Time())
		_, err := tx.Exec(ctx, `INSERT INTO app_sessions (session_id, status, version, pid, boot_id, started_at, heartbeat_at) VALUES ($1, 'running', $2, $3, $4, $5, $5)`,
			s.id, s.o.Version, os.Getpid(), boot, now)
		return err
	})
	if err != nil {
		s.o.Log.Warn("the start of the gateway is not recorded: a crash of this run will not be noticed", "err", err)
		return
	}
	if _, err := s.prune(ctx); err != nil { // a gateway that starts again and again does not get to its chores
		s.o.Log.Warn("old reports are not deleted", "err", err)
	}
	if len(open)+len(untold) == 0 {
		return
	}
	last := append(open, untold...)[0]
	s.last = Crash{Run: last.run(), Found: core.TimeOf(last.Alive), Tell: told == 0 && last.Told == "", Restarted: boot != "" && last.Boot != "" && boot != last.Boot}
	if len(open) == 0 { // the log has it
		return
	}
	s.last.Found = s.o.Clock.Now()
	s.o.Log.Warn("the last run of the gateway did not end properly", "started", last.Started, "alive", last.Alive, "version", last.Version, "machine_restarted", s.last.Restarted)
}

// Told records, in the transaction of the message, that the owner is notified of a crash.
func Told(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE app_sessions SET told_at = $1 WHERE session_id = $2`, core.Stamp(tx.Time()), id)
	return err
}

// Last returns the crash that Begin found, or that an earlier run found in the last day;
// false without one.
func (s *Store) Last() (Crash, bool) { return s.last, !s.last.Found.IsZero() }

// End records that the run has ended, with an error or without, and the faults of it that
// are not stored yet.
func (s *Store) End(ctx context.Context, fault error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := s.Flush(ctx)
	status := Clean
	if fault != nil {
		status = Failed
	}
	err2 := s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		now := core.Stamp(tx.Time())
		_, err := tx.Exec(ctx, `UPDATE app_sessions SET status = $1, ended_at = $2, heartbeat_at = $2 WHERE session_id = $3 AND status = 'running'`, status, now, s.id)
		return err
	})
	if err != nil || err2 != nil {
		s.o.Log.Warn("the end of the gateway is not recorded: the next start takes it for a crash", "err", err, "end", err2)
	}
}

// alive records that the run goes on.
func (s *Store) alive(ctx context.Context) (int, error) {
	return 0, s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE app_sessions SET heartbeat_at = $1 WHERE session_id = $2 AND status = 'running'`, core.Stamp(tx.Time()), s.id)
		return err
	})
}

// Runs returns the newest runs.
func (s *Store) Runs(ctx context.Context, limit int) ([]Run, error) {
	var rows []runRow
	if err := s.o.DB.Select(ctx, &rows, runColumns+`ORDER BY started_at DESC, session_id LIMIT $1`, limit); err != nil {
		return nil, fmt.Errorf("runs of the gateway: %w", err)
	}
	list := make([]Run, len(rows))
	for i, r := range rows {
		list[i] = r.run()
	}
	return list, nil
}

// Chores are signs of life, and the deletion of what is old or too much.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{
		{Name: "alive", Every: beat, Run: s.alive},
		{Name: "old_reports", Every: time.Hour, Run: s.prune},
	}
}

func (s *Store) prune(ctx context.Context) (rows int, err error) {
	before := core.Stamp(s.o.Clock.Now().Add(-Keep))
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		rows = 0
		for _, q := range []string{
			`DELETE FROM app_sessions WHERE status <> 'running' AND (started_at < $1 OR session_id NOT IN (SELECT session_id FROM app_sessions ORDER BY started_at DESC LIMIT $2))`,
			`DELETE FROM error_reports WHERE last_at < $1 OR report_id NOT IN (SELECT report_id FROM error_reports ORDER BY last_at DESC LIMIT $2)`,
		} {
			n, err := tx.Exec(ctx, q, before, maxRows)
			if err != nil {
				return fmt.Errorf("old reports: %w", err)
			}
			rows += int(n)
		}
		return nil
	})
	return rows, err
}

// AfterRestore forgets the run in which the backup was made: it did not crash.
func AfterRestore(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM app_sessions WHERE status = 'running'`)
	return err
}

// bootID returns the id of this boot of the machine, "" where the system has none.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
