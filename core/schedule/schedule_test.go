package schedule_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/schedule"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A rig is a scheduler whose inbox admits every message and keeps it.
type rig struct {
	*schedule.Scheduler
	t      *testing.T
	db     *store.DB
	clock  *coretest.Clock
	dir    string
	got    []core.Inbound
	state  string // of all messages
	before func() // called before a message is stored
	fails  bool   // the inbox stores the message, and says that it did not
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: coretest.NewClock(time.Date(2026, 1, 28, 12, 30, 0, 0, time.UTC)), dir: t.TempDir(), state: "ready"}
	r.db = storetest.Open(t, r.clock)
	v, err := vault.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	r.Scheduler = schedule.New(schedule.Options{
		DB: r.db, Vault: v, Clock: r.clock, Log: slog.New(slog.DiscardHandler), Metrics: schedule.NewMetrics(prometheus.NewRegistry(), r.clock),
		Name:  func(context.Context) (string, error) { return "", nil },
		State: func(context.Context, string, string) (string, string, error) { return r.state, "why", nil },
	})
	return r
}

func (r *rig) Put(ctx context.Context, page []core.Inbound, _ *core.Cursor) error {
	in := &page[0]
	if r.before != nil {
		r.before()
	}
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		trust, err := r.Admit(ctx, tx, in)
		if err == nil && trust == core.Stranger {
			err = core.Errorf(core.Denied, "dropped")
		}
		return err
	})
	if err == nil {
		r.got = append(r.got, *in)
	}
	if r.fails {
		return context.DeadlineExceeded
	}
	return err
}

func (r *rig) file(head string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, "Daily/.agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.md"), []byte("---\n"+head+"\n---\nOf {date}, {user_name}. {user_context}"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// dates are those of the messages that were stored since the last call.
func (r *rig) dates() (out []string) {
	r.t.Helper()
	if _, err := r.Tick(r.t.Context(), r); err != nil && !r.fails && r.before == nil {
		r.t.Fatal(err)
	}
	for i := range r.got {
		_, date, _, _ := schedule.Of(&r.got[i])
		out = append(out, date)
	}
	r.got = nil
	return out
}

func (r *rig) want(when string, dates ...string) {
	r.t.Helper()
	if got := r.dates(); len(got) != len(dates) || len(got) > 0 && got[0] != dates[0] {
		r.t.Errorf("%s: started for %v, want %v", when, got, dates)
	}
}

func TestTimesCountFromWhenTheAgentIsKnown(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "12:00"`)
	r.want("a new file")
	r.clock.Advance(24 * time.Hour)
	r.want("the next day", "2026-01-29")
	r.want("again")
	r.file(`schedule: "12:15"`)
	r.want("another schedule")
	r.clock.Advance(time.Hour)
	r.file("schedule: \"13:15\"\nschedule_enabled: false")
	r.want("switched off")
	r.clock.Advance(24 * time.Hour)
	r.want("still off")
	r.file(`schedule: "13:15"`)
	r.want("switched on again, after the time")
	r.clock.Advance(24 * time.Hour)
	r.want("the day after", "2026-01-31")
}

func TestTheNewestMissedDateIsMadeUpOnce(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "12:00"`)
	r.want("a new file")
	r.clock.Advance(20 * 24 * time.Hour)
	r.want("twenty days later", "2026-02-17")
	r.want("again")
	r.file(`schedule: "0 12 * * 1"`)
	r.want("another schedule")
	r.clock.Advance(7*24*time.Hour + time.Hour)
	r.want("a weekly one", "2026-02-23")
}

// The store has the message, and the scheduler does not know: the gateway was killed there.
func TestAMessageThatWasStoredIsNotStoredAgain(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "12:00"`)
	r.want("a new file")
	r.clock.Advance(24 * time.Hour)
	r.fails = true
	r.want("stored, and an error", "2026-01-29")
	r.fails = false
	r.want("after it")
	r.want("and again")
}

func TestAClockThatIsSetBackRepeatsNothing(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "12:00"`)
	r.want("a new file")
	r.clock.Advance(24 * time.Hour)
	r.want("the next day", "2026-01-29")
	r.clock.Advance(-2 * time.Hour)
	r.want("set back")
	r.clock.Advance(2 * time.Hour)
	if got := r.dates(); len(got) != 0 {
		t.Errorf("the time comes again: %v", got)
	}
	r.clock.Advance(-24 * 365 * time.Hour)
	r.want("set back by a year")
	r.clock.Advance(24 * time.Hour)
	if got := r.dates(); len(got) != 1 {
		t.Errorf("the schedule waits for the year to pass: %v", got)
	}
}

func TestARunWhoseMessageIsGivenUpEndsWithAnError(t *testing.T) {
	for state, want := range map[string]string{"dead": "it was given up: why", "refused": "the agent's file was removed or cannot be used", "ready": ""} {
		r := newRig(t)
		r.file(`schedule: "12:00"`)
		r.want("a new file")
		r.clock.Advance(24 * time.Hour)
		r.want("the next day", "2026-01-29")
		r.state = state
		r.want("later")
		runs, err := r.History(t.Context(), "x", 10)
		if err != nil || len(runs) != 1 || runs[0].Error != want || (runs[0].Result == daily.Failed) != (want != "") {
			t.Errorf("%s: %+v, %v", state, runs, err)
		}
	}
}

func TestThePromptDescribesTheOwner(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "13:00"`)
	if err := os.MkdirAll(filepath.Join(r.dir, ".parachute"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".parachute/profile.md"), []byte("Likes {date} tea.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), r, "x", "2026-01-20", false, core.Actor{User: core.Operator, Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	if got := r.got[0].Text; got != "Of 2026-01-20, the owner. Likes {date} tea." {
		t.Errorf("the prompt is %q", got)
	}
}

// named writes the file of a daily agent.
func (r *rig) named(name, head string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, "Daily/.agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte("---\n"+head+"\n---\nOf {date}"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func TestAnAgentWhoseFileIsPutBackHasNoTimesBeforeThat(t *testing.T) {
	r := newRig(t)
	r.named("x", `schedule: "12:00"`)
	r.dates()
	if err := os.Remove(filepath.Join(r.dir, "Daily/.agents/x.md")); err != nil {
		t.Fatal(err)
	}
	r.dates() // its absence is seen
	r.clock.Advance(30 * time.Minute)
	r.dates()
	r.named("x", `schedule: "12:00"`) // a program that saves by deleting first
	r.clock.Advance(24 * time.Hour)
	if got := r.dates(); len(got) != 1 {
		t.Errorf("after a short absence: %q, want a run", got)
	}
	if err := os.Remove(filepath.Join(r.dir, "Daily/.agents/x.md")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.clock.Advance(24 * time.Hour)
		r.dates()
	}
	r.named("x", `schedule: "12:00"`)
	if got := r.dates(); len(got) != 0 {
		t.Errorf("put back after three days: %q, want no run", got)
	}
}

func TestAStateFileThatCannotBeWrittenHoldsNoOtherBack(t *testing.T) {
	r := newRig(t)
	r.named("a", `schedule: "12:00"`)
	r.named("b", `schedule: "12:00"`)
	if err := os.WriteFile(filepath.Join(r.dir, "Daily/.a"), []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.dates()
	r.clock.Advance(24 * time.Hour)
	if got := r.dates(); len(got) != 2 {
		t.Fatalf("%q", got)
	}
	r.state = "dead"
	for range 2 {
		if _, err := r.Tick(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "Daily/.b/state.json")); err != nil {
		t.Error(err)
	}
}

func TestAFailedRunByHandTakesNoTimeAway(t *testing.T) {
	r := newRig(t)
	r.named("x", `schedule: "13:00"`)
	r.dates()
	cli := core.Actor{User: core.Operator, Via: "cli"}
	if _, err := r.Start(t.Context(), r, "x", "", false, cli); err != nil {
		t.Fatal(err)
	}
	r.got, r.state = nil, "dead"
	r.dates() // it has failed
	r.state = "ready"
	r.clock.Advance(time.Hour)
	if got := r.dates(); len(got) != 1 {
		t.Errorf("at its time: %q, want a run", got)
	}
	r.clock.Advance(30 * time.Second)
	if got := r.dates(); len(got) != 0 {
		t.Errorf("a second time: %q", got)
	}
}

func TestSkippedTimesOfADateAreOneRowAndHideNoFailure(t *testing.T) {
	r := newRig(t)
	r.named("x", `schedule: "*/10 * * * *"`)
	r.dates()
	cli := core.Actor{User: core.Operator, Via: "cli"}
	if _, err := r.Start(t.Context(), r, "x", "", false, cli); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		r.clock.Advance(10 * time.Minute)
		r.dates()
	}
	h, err := r.History(t.Context(), "x", 100)
	if err != nil || len(h) != 2 {
		t.Fatalf("%d rows, %v; want the run and one that was skipped", len(h), err)
	}
	r.got, r.state = nil, "dead"
	r.dates()
	r.state = "ready"
	run, err := r.Start(t.Context(), r, "x", "", false, cli)
	if err != nil || run.Result != "" {
		t.Errorf("again by hand after a failure: %q, %v", run.Result, err)
	}
}

func TestAnAgentWhoseFileIsBrokenForAMomentRunsLater(t *testing.T) {
	r := newRig(t)
	r.named("x", `schedule: "12:00"`)
	r.dates()
	r.clock.Advance(24 * time.Hour)
	r.before = func() { r.named("x", `schedule: "25:99"`) } // between reading and storing
	if got := r.dates(); len(got) != 0 {
		t.Fatalf("%q", got)
	}
	r.before = nil
	r.named("x", `schedule: "12:00"`)
	if got := r.dates(); len(got) != 1 {
		t.Errorf("%q, want the run of the time that has come", got)
	}
}

// A run that waits is refused where the file of its agent is gone, and not while the file is being saved.
func TestAFileThatIsBrokenForAMomentTakesNoTrustAway(t *testing.T) {
	r := newRig(t)
	r.named("x", `schedule: "12:00"`)
	r.dates()
	r.clock.Advance(24 * time.Hour)
	if _, err := r.Tick(t.Context(), r); err != nil || len(r.got) != 1 {
		t.Fatal(r.got, err)
	}
	in := &r.got[0]
	if trust, err := r.Trust(in); trust != core.Vault || err != nil {
		t.Errorf("%v, %v", trust, err)
	}
	r.named("x", `schedule: [`)
	if _, err := r.Trust(in); err == nil || core.KindOf(err) != core.Other {
		t.Errorf("while it is saved: %v, want an error that may pass", err)
	}
	if _, err := r.AgentOf(in); err == nil || core.KindOf(err) != core.Other {
		t.Errorf("while it is saved: %v, want an error that may pass", err)
	}
	if err := os.Remove(filepath.Join(r.dir, "Daily", ".agents", "x.md")); err != nil {
		t.Fatal(err)
	}
	if trust, err := r.Trust(in); trust != core.Stranger || err != nil {
		t.Errorf("without a file: %v, %v", trust, err)
	}
}

func TestAnAgentWithTheOutputOfAnotherDoesNotRun(t *testing.T) {
	r := newRig(t)
	r.file("schedule: \"12:00\"\noutput: Daily/report/{date}.md")
	r.want("a new file")
	if err := os.WriteFile(filepath.Join(r.dir, "Daily/.agents/w.md"), []byte("---\nschedule: \"12:00\"\noutput: Daily/report/{date}.md\n---\nx"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want("another one with its output")
	r.clock.Advance(24 * time.Hour)
	if _, err := r.Tick(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if len(r.got) != 1 {
		t.Errorf("%d runs, want the one of w", len(r.got))
	} else if agent, _, _, _ := schedule.Of(&r.got[0]); agent != "w" {
		t.Errorf("%s runs", agent)
	}
	if _, err := r.Start(t.Context(), r, "x", "", false, core.Actor{Via: "cli"}); core.KindOf(err) != core.Conflict || !strings.Contains(core.TextOf(err), "output is that of w") {
		t.Errorf("run by hand: %v", err)
	}
}

// Two nodes have one database and one vault: whichever comes first starts the run.
func TestTwoNodesStartAnAgentOncePerDate(t *testing.T) {
	a := newRig(t)
	a.file(`schedule: "12:00"`)
	a.want("a new file")
	v, err := vault.Open(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	b := &rig{t: t, clock: a.clock, dir: a.dir, db: a.db, state: "ready"}
	b.Scheduler = schedule.New(schedule.Options{
		DB: b.db, Vault: v, Clock: b.clock, Log: slog.New(slog.DiscardHandler), Metrics: schedule.NewMetrics(prometheus.NewRegistry(), b.clock),
		Name:  func(context.Context) (string, error) { return "", nil },
		State: func(context.Context, string, string) (string, string, error) { return b.state, "why", nil },
	})
	for range 5 {
		a.clock.Advance(24 * time.Hour)
		// Each knows of no run when it decides: the other has not stored its message yet.
		var both sync.WaitGroup
		both.Add(2)
		meet := func() { both.Done(); both.Wait() }
		a.before, b.before = meet, meet
		var done sync.WaitGroup
		for _, r := range []*rig{a, b} {
			done.Go(func() { _, _ = r.Tick(t.Context(), r) })
		}
		done.Wait()
		a.before, b.before = nil, nil
		if n := len(a.got) + len(b.got); n != 1 {
			t.Errorf("%d messages were stored for one date", n)
		}
		a.got, b.got = nil, nil
		a.want("later, on one node")
		b.want("later, on the other")
	}
	var rows int
	if err := a.db.Get(t.Context(), &rows, `SELECT count(*) FROM schedule_runs`); err != nil || rows != 5 {
		t.Errorf("%d runs of five dates, %v", rows, err)
	}
}

func TestRunsAreKeptFor400Days(t *testing.T) {
	r := newRig(t)
	r.file(`schedule: "12:00"`)
	r.want("a new file")
	for range 2 {
		r.clock.Advance(24 * time.Hour)
		if got := r.dates(); len(got) != 1 {
			t.Fatalf("started for %v", got)
		}
	}
	history := func() int {
		t.Helper()
		runs, err := r.History(t.Context(), "x", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(runs)
	}
	end := func() {
		t.Helper()
		runs, err := r.History(t.Context(), "x", 100)
		for _, run := range runs {
			if run.Result == "" && err == nil {
				err = r.db.Tx(t.Context(), func(tx *store.Tx) error { return r.Finish(t.Context(), tx, schedule.End{Run: run.Run, OK: true}) })
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(r.dir, "Daily/.agents/x.md")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		r.dates() // which writes the state file
	}
	end()
	prune := func() {
		t.Helper()
		for _, c := range r.Chores() {
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.clock.Advance(399*24*time.Hour - time.Minute)
	if prune(); history() != 2 {
		t.Errorf("%d runs are left before the 400 days are over", history())
	}
	r.clock.Advance(2 * time.Minute)
	if prune(); history() != 1 {
		t.Errorf("%d runs are left after 400 days, want the later one", history())
	}
}
