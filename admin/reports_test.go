package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/reports"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/report"
	"gatehouse/core/store"
)

// A reportWorld is the record of a gateway that crashed, in a real database.
type reportWorld struct {
	*report.Store
	db     *store.DB
	faults *report.Faults
}

func (w *world) openReports(db *store.DB, o *admin.Options) {
	w.reports = &reportWorld{db: db, faults: report.NewFaults(w.clock, "v1.4.0")}
	w.reports.open(w.clock)
	o.Reports = reports.Options{Reports: w.reports}
}

// open makes the record of another run.
func (w *reportWorld) open(clock core.Clock) {
	w.Store = report.New(report.Options{DB: w.db, Clock: clock, Log: slog.New(slog.DiscardHandler), Version: "v1.4.0", Faults: w.faults})
}

// crashes has runs end with an error and crash, and this one write errors to
// its log.
func (w *world) crashes(message, task string) {
	ctx, now := context.Background(), w.clock.Now()
	must(w.reports.db.Tx(ctx, func(tx *store.Tx) error {
		for _, x := range []struct {
			id, status string
			started    time.Duration
			lasted     time.Duration
		}{{"first", report.Failed, -80 * time.Hour, 20 * time.Minute}, {"second", report.Clean, -79 * time.Hour, 30 * time.Hour}, {"third", report.Crashed, -49 * time.Hour, 24 * time.Hour}} {
			end := core.Stamp(now.Add(x.started + x.lasted))
			ended := end
			if x.status == report.Crashed {
				ended = ""
			}
			if _, err := tx.Exec(ctx, `INSERT INTO app_sessions (session_id, status, version, pid, boot_id, started_at, heartbeat_at, ended_at) VALUES ($1, $2, 'v1.3.2', 4711, '', $3, $4, $5)`,
				x.id, x.status, core.Stamp(now.Add(x.started)), end, ended); err != nil {
				return err
			}
		}
		return nil
	}))
	w.reports.Begin(ctx)
	w.reports.write("upkeep", "task", task, "err", syscall.ENOSPC)
	w.reports.write("upkeep", "task", task, "err", syscall.ENOSPC)
	w.reports.write(message, "err", errors.New("what nobody may see"))
	func() {
		defer func() { w.reports.write("turn panicked", "run", "run-1", "panic", recover()) }()
		var seats []string
		_ = seats[3]
	}()
}

// write writes a line to the log at level error.
func (w *reportWorld) write(message string, args ...any) {
	r := slog.NewRecord(time.Time{}, slog.LevelError, message, 0)
	r.Add(args...)
	w.faults.Note(r, func(s string) string { return s })
	must(w.Flush(context.Background()))
}

func TestReports_CrashesAndErrors(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin").lacks(t, "did not end properly")
	s.get("/admin/reports").has(t, "No error reached the log", "No run is recorded")
	s.world.full()
	s.get("/admin/audit").has(t, `href="/admin/reports"`)
	a := s.get("/admin/reports")
	a.has(t, "1 crash in the last 4 runs, 3 kinds of errors", "Crashed", "Ended with an error", "Stopped", "Running", "no space left on device", "task journal", "Panic", "index out of range [3] with length 0", "v1.3.2", "4711")
	a.lacks(t, "what nobody may see")
	if strings.Count(a.body, "no space left on device") != 1 {
		t.Errorf("the same error is there twice: %s", a.main())
	}
}

func TestReports_TheOverviewSaysForADayThatTheLastRunCrashed(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := newSite(t, clock, nil).enter()
	w := s.world
	w.reports.Begin(t.Context())
	s.get("/admin").lacks(t, "did not end properly")
	w.reports.open(clock) // it was killed
	w.reports.Begin(t.Context())
	s.get("/admin").has(t, "a run did not end properly. ", `It was seen last on <time datetime="2026-01-02T03:04:05Z"`, `href="/admin/reports"`)
	clock.Advance(25 * time.Hour)
	s.enter().get("/admin").lacks(t, "did not end properly")
}
