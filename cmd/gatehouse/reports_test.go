package main

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
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
