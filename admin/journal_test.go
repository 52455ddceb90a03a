package admin_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/admin"
	adminjournal "gatehouse/admin/journal"
	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
)

// openJournal fills the options with a real journal in the world's vault.
func (w *world) openJournal(db *store.DB, o *admin.Options) {
	log := slog.New(slog.DiscardHandler)
	ids := paraid.New(db, w.vault, log)
	w.journal = journal.New(journal.Options{DB: db, Vault: w.vault, IDs: ids, Rows: ids, Clock: w.clock, Log: log})
	must(db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := ids.Claim(context.Background(), tx, paraid.Entry{ID: "abc123def456", Type: paraid.Journal, Path: diaryFile, User: core.Operator})
		return err
	}))
	o.Journal = adminjournal.Options{
		Store: w.journal, Files: w.vault.FS(),
		May: func(trust core.Trust, _ int64, _ string, _ bool) bool { return trust >= core.Vault },
		Now: func(context.Context, int64) (time.Time, error) { return diaryNow, nil },
	}
}

const diaryDay, diaryFile = "2026-01-28", "Daily/2026-01-28.md"

var diaryNow = time.Date(2026, 1, 28, 16, 5, 0, 0, time.UTC)

// writes has the journal have a few days, with a picture and a recording.
func (w *world) writes() {
	w.file("Daily/2026-01-05.md", "# para:abc123def001 9:00 AM\n\nSnow.\n")
	w.file("Daily/2026-01-17.md", "# para:abc123def002 9:00 AM\n\nThe lease is signed.\n")
	w.file(diaryFile, "Saturday’s market moved to the **square**.\n\n# para:abc123def456 10:30 AM\n\nWalked to the coffee shop this morning. Had a great idea about the *project architecture*:\n\n- one file for each day\n- every editor may write in it\n\n"+
		"## Images\n![Morning sky](assets/2026-01-28/photo-10-30-am.png)\n\n# para:abc123def003 2:15 PM\n\nCalled Ines about the seed potatoes.\n\n## Audio\n- Duration: 2:30\n- Path: ../assets/2026-01-28/audio-2-15-pm.wav\n\n# 3:40 PM\nFrom another program.\n")
	sky := image.NewRGBA(image.Rect(0, 0, 480, 200))
	for y := range 200 {
		for x := range 480 {
			sky.Set(x, y, color.RGBA{R: uint8(90 + y/2), G: uint8(140 + y/4), B: 220, A: 255})
		}
	}
	var b bytes.Buffer
	must(png.Encode(&b, sky))
	must(w.vault.WriteFile("Daily/assets/2026-01-28/photo-10-30-am.png", b.Bytes()))
	must(w.vault.WriteFile("Daily/assets/2026-01-28/audio-2-15-pm.wav", append([]byte("RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x08\x00\x00"), bytes.Repeat([]byte{128}, 2048)...)))
	must(w.vault.WriteFile("Daily/assets/2026-01-28/page.html", []byte("<script>alert(1)</script>")))
}

func (w *world) diary() string {
	b, err := os.ReadFile(filepath.Join(w.vault.Path(), filepath.FromSlash(diaryFile)))
	must(err)
	return string(b)
}

func TestJournalPage_ShowsADayWithItsAttachmentsAndACalendar(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/journal")
	a.has(t, "Wednesday, 28 January 2026", "<strong>square</strong>", "10:30 AM", "<em>project architecture</em>", `alt="Morning sky"`, `<audio controls`, "From another program.",
		"It can be edited here in a minute", `aria-label="Saturday, 17 January, has entries"`, `aria-current="date"`, "January 2026")
	for path, want := range map[string]int{"assets/2026-01-28/photo-10-30-am.png": 200, "../assets/2026-01-28/audio-2-15-pm.wav": 200,
		"assets/2026-01-28/page.html": 404, "assets/none.png": 404, "../../Allotment/plan.md": 404, "assets/../2026-01-28.md": 404, "/etc/passwd": 404} {
		if f := s.get("/admin/journal/file?path=" + url.QueryEscape(path)); f.status != want {
			t.Errorf("%s: %d, want %d", path, f.status, want)
		}
	}
	if f := s.get("/admin/journal?date=2026-02-30"); f.status != http.StatusBadRequest {
		t.Errorf("no such day: %d", f.status)
	}
	s.get("/admin/journal?date=2025-03-01").has(t, "No entries", "March 2025")
}

func TestJournalPage_AddsChangesAndDeletes(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.post("/admin/journal", url.Values{"date": {diaryDay}, "text": {"Tea.\r\n# para:abc123def456 1:00 AM"}})
	if got := s.world.diary(); !strings.HasSuffix(got, "4:05 PM\n\nTea.\n\\# para:abc123def456 1:00 AM\n") {
		t.Errorf("%s", got)
	}
	e, err := s.world.journal.Entry(t.Context(), core.Operator, "abc123def456")
	must(err)
	form := url.Values{"date": {diaryDay}, "id": {e.ID}, "version": {e.Version}, "text": {"Walked home."}, "do": {"save"}}
	s.post("/admin/journal/entry", form)
	if got := s.world.diary(); !strings.Contains(got, "Walked home.\n\n## Images\n![Morning sky]") || !strings.Contains(got, "Called Ines") {
		t.Errorf("%s", got)
	}
	form.Set("text", "Walked to the tea shop.")
	s.postForm("/admin/journal/entry", form).has(t, "was changed meanwhile", "Walked home.", "Walked to the tea shop.</textarea>")
	if got := s.world.diary(); !strings.Contains(got, "Walked home.") || strings.Contains(got, "tea shop") {
		t.Errorf("%s", got)
	}
	if e, err = s.world.journal.Entry(t.Context(), core.Operator, "abc123def456"); err != nil {
		t.Fatal(err)
	}
	form.Set("version", e.Version)
	form.Set("do", "delete")
	s.post("/admin/journal/entry", form)
	if got := s.world.diary(); strings.Contains(got, "Walked home.") || !strings.Contains(got, "Called Ines") {
		t.Errorf("%s", got)
	}
	s.postForm("/admin/journal/entry", form).has(t, "no entry", "Walked to the tea shop.</textarea>") // what was typed is not lost
	s.postForm("/admin/journal", url.Values{"date": {diaryDay}, "text": {strings.Repeat("a", 300<<10)}}).has(t, "at most 256 KB", "aaa</textarea>")
}
