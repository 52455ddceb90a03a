package main

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestCrashAKilledRunIsReportedOnceAndAStoppedOneIsNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, program(t), "queue", population{telegram: 1, direct: 1}, telegramtest.Options{})
	first := r.start()
	first.says(t, `"serving"`)
	first.kill()
	<-first.done
	r.note(r.look())
	for i := range 2 {
		c := r.start()
		c.says(t, `"serving"`)
		r.stop()
		if n := strings.Count(c.tail(), "the last run of the gateway did not end properly"); n != 1 { // in the log of both
			t.Errorf("after start %d there are %d reports, want 1:\n%s", i+1, n, c.tail())
		}
	}
	db := r.openCopy()
	defer db.Close()
	var got []string
	r.sql(db.Select(&got, `SELECT status FROM app_sessions ORDER BY started_at`))
	if !slices.Equal(got, []string{"reported", "clean", "clean"}) {
		t.Error(got)
	}
}

func TestAnErrorInTheLogIsOnThePanelsPageWithoutItsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for range 3 {
		w.app.log.Error("upkeep", "task", "trash", "text", "my diary")
	}
	if err := w.app.reports.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := w.browser().page("/admin/reports")
	if !strings.Contains(page, "task trash") || !strings.Contains(page, ">3<") || !strings.Contains(page, "Running") || strings.Contains(page, "my diary") {
		t.Error(page)
	}
	if !strings.Contains(w.log.String(), "my diary") {
		t.Error("the line is not in the log")
	}
}

func TestTheOwnerIsToldOfACrashOnceADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss := w.boss()
	for range 2 { // the run is killed before it can record its end
		w.stop()
		db := storetest.OpenAt(t, w.cfg.DatabasePath(), nil)
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE app_sessions SET status = 'running', ended_at = '' WHERE status = 'clean'`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		w.start()
	}
	w.hearsText(boss, "I was not stopped properly")
	w.quiet()
	if n := len(slices.DeleteFunc(w.said(boss.DM(), 0), func(s string) bool { return !strings.Contains(s, "I was not stopped properly") })); n != 1 {
		t.Errorf("the owner is told %d times", n)
	}
}
