package report_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/report"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// A gateway is one run of the program on a database.
type gateway struct {
	*report.Store
	faults *report.Faults
	log    *coretest.Log
}

func start(db *store.DB, clock core.Clock, version string) *gateway {
	g := &gateway{faults: report.NewFaults(clock, version), log: &coretest.Log{}}
	g.Store = report.New(report.Options{DB: db, Clock: clock, Log: slog.New(slog.NewTextHandler(g.log, nil)), Version: version, Faults: g.faults})
	return g
}

// logger returns a log whose lines the gateway takes in.
func (g *gateway) logger() *slog.Logger { return slog.New(taken{slog.DiscardHandler, g.faults}) }

type taken struct {
	slog.Handler
	faults *report.Faults
}

func (taken) Enabled(context.Context, slog.Level) bool { return true }

func (h taken) Handle(_ context.Context, r slog.Record) error {
	h.faults.Note(r, func(s string) string { return strings.ReplaceAll(s, "token-12345", "[redacted]") })
	return nil
}

func (g *gateway) statuses(t *testing.T) (list []string) {
	t.Helper()
	all, err := g.Runs(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		list = append(list, r.Version+" "+r.Status)
	}
	return list
}

func (g *gateway) stored(t *testing.T) []report.Fault {
	t.Helper()
	if err := g.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := g.Faults(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestARunThatWasKilledIsReportedByTheNextStartOnce(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	first := start(db, clock, "v1")
	first.Begin(t.Context())
	if _, crashed := first.Last(); crashed {
		t.Error("the first start reports a crash")
	}
	begun := clock.Now()
	clock.Advance(time.Hour)
	for _, c := range first.Chores() {
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(time.Minute)
	second := start(db, clock, "v2") // the first was killed
	second.Begin(t.Context())
	last, crashed := second.Last()
	if !crashed || !last.Tell || last.Version != "v1" || last.Status != report.Running || !last.Started.Equal(begun) || !last.Alive.Equal(begun.Add(time.Hour)) || last.Restarted {
		t.Errorf("%+v", last)
	}
	if !strings.Contains(second.log.String(), "the last run of the gateway did not end properly") {
		t.Error(second.log.String())
	}
	clock.Advance(time.Minute)
	second.End(t.Context(), nil)
	clock.Advance(time.Minute)
	killed := start(db, clock, "v3")
	killed.Begin(t.Context())
	clock.Advance(time.Minute)
	again := start(db, clock, "v3")
	again.Begin(t.Context())
	if last, crashed := again.Last(); !crashed || !last.Tell {
		t.Errorf("the second crash of a day, with the owner not told of the first: %+v", last)
	}
	again.End(t.Context(), nil)
	clock.Advance(time.Minute)
	third := start(db, clock, "v3")
	third.Begin(t.Context())
	if last, crashed := third.Last(); !crashed || !last.Tell || last.Version != "v3" || third.log.String() != "" {
		t.Errorf("a crash that the owner was not told of is found by the start after: %+v\n%s", last, third.log.String())
	}
	third.End(t.Context(), errors.New("the address is taken"))
	if got := third.statuses(t); !slices.Equal(got, []string{"v3 failed", "v3 clean", "v3 reported", "v2 clean", "v1 reported"}) {
		t.Error(got)
	}
}

// The owner is told of a crash at most once a day, however many there are, and of the first
// one after that.
func TestTheOwnerIsToldAgainAfterADay(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	start(db, clock, "v1").Begin(t.Context())
	var told []bool
	for range 5 {
		clock.Advance(17 * time.Hour)
		next := start(db, clock, "v1") // the one before was killed
		next.Begin(t.Context())
		last, _ := next.Last()
		told = append(told, last.Tell)
		if last.Tell {
			if err := db.Tx(t.Context(), func(tx *store.Tx) error { return report.Told(t.Context(), tx, last.ID) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(told, []bool{true, false, true, false, true}) {
		t.Error(told)
	}
	quiet := start(db, clock, "v1")
	clock.Advance(3 * 24 * time.Hour)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return report.AfterRestore(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	quiet.Begin(t.Context())
	if last, crashed := quiet.Last(); crashed {
		t.Errorf("a crash of long ago is shown: %+v", last)
	}
}

// A gateway that starts again and again, and never gets to its chores, keeps no more runs
// than another.
func TestStartsAloneKeepTheRowsFew(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	for range 250 {
		clock.Advance(10 * time.Second)
		start(db, clock, "v1").Begin(t.Context())
	}
	var n int
	if err := db.Get(t.Context(), &n, `SELECT count(*) FROM app_sessions`); err != nil || n > 201 {
		t.Errorf("%d runs, %v", n, err)
	}
}

// A panic in a transaction is passed on by the caller, and is recorded where it was.
func TestAPanicInATransactionHasItsPlace(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	g := start(db, clock, "v1")
	g.Begin(t.Context())
	for _, f := range []func(tx *store.Tx) error{ofOneKind, ofAnother} {
		func() {
			defer func() { g.logger().Error("turn panicked", "panic", recover()) }()
			_ = db.Tx(t.Context(), f)
		}()
	}
	var places []string
	for _, f := range g.stored(t) {
		places = append(places, f.Place)
	}
	slices.Sort(places)
	if len(places) != 2 || !strings.Contains(places[0], "ofAnother:") || !strings.Contains(places[1], "ofOneKind:") {
		t.Error(places)
	}
}

func ofOneKind(*store.Tx) error { return *(*error)(nil) }

func ofAnother(*store.Tx) error { panic("x") }

func TestTheRunOfABackupIsNoCrashAfterARestore(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	start(db, clock, "v1").Begin(t.Context())
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return report.AfterRestore(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	next := start(db, clock, "v1")
	next.Begin(t.Context())
	if _, crashed := next.Last(); crashed {
		t.Error("a restore looks like a crash")
	}
}

func TestADatabaseThatFailsStopsNeitherStartNorEndNorLog(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	g := start(db, clock, "v1")
	g.Begin(t.Context())
	for range 1000 {
		g.logger().Error("a fault")
	}
	g.End(t.Context(), nil)
	if log := g.log.String(); !strings.Contains(log, "the start of the gateway is not recorded") || !strings.Contains(log, "the end of the gateway is not recorded") {
		t.Error(log)
	}
}

func TestFaultsAreCountedByKindAndHoldNoTextOfUsers(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	g := start(db, clock, "v1")
	log, begun := g.logger(), clock.Now()
	for _, secret := range []string{"one", "two"} {
		log.Error("upkeep", "task", "journal", "err", fmt.Errorf("write my diary %s: %w", secret, &fs.PathError{Op: "write", Path: "/home/olga/diary.md", Err: syscall.ENOSPC}))
		clock.Advance(time.Minute)
	}
	log.Error("upkeep", "task", "trash", "err", core.Errorf(core.Conflict, "diary"))
	log.Error("a text", "text", "diary", "err", errors.New("diary"), "bot", "family")
	log.Error("refused token-12345", "err", context.DeadlineExceeded)
	log.Warn("a warning")
	list := g.stored(t)
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprint(f.Type, " | ", f.Message, " | ", f.Context, " | ", f.Count))
		if !strings.HasPrefix(f.Place, "core/report_test.TestFaultsAreCountedByKindAndHoldNoTextOfUsers:") {
			t.Errorf("place %q", f.Place)
		}
	}
	slices.Sort(got)
	want := []string{
		"error | a text | map[bot:family] | 1",
		"error | refused [redacted]: timeout | map[] | 1",
		"error | upkeep: conflict | map[task:trash] | 1",
		"error | upkeep: no space left on device | map[task:journal] | 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, f := range list {
		if f.Count == 2 && (!f.First.Equal(begun) || !f.Last.Equal(begun.Add(time.Minute))) {
			t.Errorf("from %s to %s", f.First, f.Last)
		}
	}
	log.Error("a text", "text", "diary", "err", errors.New("diary"), "bot", "family")
	if list = g.stored(t); len(list) != 5 { // it is of another line
		t.Errorf("%d kinds", len(list))
	}
	var rows []string
	if err := db.Select(t.Context(), &rows, `SELECT error_message || place || traceback || context FROM error_reports`); err != nil || strings.Contains(strings.Join(rows, " "), "diary") {
		t.Errorf("%q, %v", rows, err)
	}
}

//go:noinline
func broken(list []string) string { return list[7] }

func TestAPanicIsRecordedWithItsFunctionsAndWithoutItsValues(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	g := start(storetest.Open(t, clock), clock, "v1")
	log := g.logger()
	panics := func(report func(value any), f func()) {
		defer func() { report(recover()) }()
		f()
	}
	panics(func(p any) { log.Error("turn panicked", "panic", p) }, func() { broken(nil) })
	panics(func(p any) { log.Error("store events", "err", fmt.Errorf("panic: %v\n%s", p, debug.Stack())) }, func() { panic("diary") })
	list := g.stored(t)
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	for _, f := range list {
		first, _, _ := strings.Cut(f.Trace, "\n")
		if f.Type != report.TypePanic || f.Place != first || strings.Contains(f.Trace+f.Message, "diary") || strings.Contains(f.Trace, "0x") || !strings.Contains(f.Trace, "core/report_test.TestAPanic") {
			t.Errorf("%+v", f)
		}
		if strings.HasPrefix(f.Message, "turn panicked") && (!strings.Contains(f.Message, "index out of range [7] with length 0") || !strings.HasPrefix(f.Place, "core/report_test.broken:")) {
			t.Errorf("%+v", f)
		}
	}
}

func TestFaultsWaitForADatabaseThatIsBack(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	run := func(query string) {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(t.Context(), query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	g := start(db, clock, "v1")
	g.logger().Error("a fault")
	run(`ALTER TABLE error_reports RENAME TO away`)
	if err := g.Flush(t.Context()); err == nil {
		t.Fatal("it was stored")
	}
	run(`ALTER TABLE away RENAME TO error_reports`)
	if list := g.stored(t); len(list) != 1 || list[0].Count != 1 {
		t.Errorf("%+v", list)
	}
}

func TestRunStoresFaultsTogether(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	g := start(db, clock, "v1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	before := db.Commits()
	for range 50 {
		g.logger().Error("a fault")
	}
	clock.AwaitWaiters(1)
	clock.Advance(time.Minute)
	g.logger().Error("another fault")
	clock.AwaitWaiters(1) // the first write is done
	cancel()
	<-done
	list, err := g.Faults(t.Context(), 10)
	list = slices.DeleteFunc(list, func(f report.Fault) bool { return f.Message != "a fault" })
	if err != nil || len(list) != 1 || list[0].Count != 50 || db.Commits() != before+1 {
		t.Errorf("%+v, %d commits, %v", list, db.Commits()-before, err)
	}
}

func TestRowsAreBoundedInNumberAndAge(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	prune := func(g *gateway) {
		t.Helper()
		for _, c := range g.Chores() {
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	var last *gateway
	for i := range 250 {
		last = start(db, clock, "v1")
		last.Begin(t.Context())
		last.logger().Error(fmt.Sprintf("fault %d", i))
		last.stored(t)
		clock.Advance(time.Second)
	}
	prune(last)
	count := func(table string) (n int) {
		if err := db.Get(t.Context(), &n, `SELECT count(*) FROM `+table); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if runs, faults := count("app_sessions"), count("error_reports"); runs != 200 || faults != 200 {
		t.Errorf("%d runs, %d faults", runs, faults)
	}
	clock.Advance(91 * 24 * time.Hour)
	prune(last)
	if runs, faults := count("app_sessions"), count("error_reports"); runs != 1 || faults != 0 {
		t.Errorf("%d runs, %d faults after 91 days; want the running one alone", runs, faults)
	}
}
