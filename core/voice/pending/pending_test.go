package pending

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/journal"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"gatehouse/core/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is a journal with recordings that wait.
type fixture struct {
	*Store
	t       *testing.T
	journal *journal.Store
	vault   *vault.Vault
	db      *store.DB
	clock   *coretest.Clock
	hear    func(path string) (string, error)
	asked   int
	begins  bool // what fails has begun
	chat
}

func open(t *testing.T) *fixture {
	t.Helper()
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	f := &fixture{t: t, vault: v, clock: coretest.NewClock(time.Now().Add(time.Hour))}
	f.db = storetest.Open(t, f.clock)
	log := slog.New(slog.DiscardHandler)
	ids := paraid.New(f.db, v, log)
	t.Cleanup(func() { _ = ids.Close() })
	f.journal = journal.New(journal.Options{DB: f.db, Vault: v, IDs: ids, Rows: ids, Clock: f.clock, Log: log})
	f.may = true
	f.Store = New(Options{DB: f.db, Clock: f.clock, Log: log, Journal: f.journal, Chats: f.chats(), Hear: func(_ context.Context, _ int64, file core.File, show func(string)) (string, error) {
		if f.asked++; f.begins {
			show("We")
		}
		return f.hear(file.Path)
	}})
	return f
}

// entry adds an entry with a recording that waits.
func (f *fixture) entry(text string) journal.Entry {
	f.t.Helper()
	at := time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC)
	path, err := f.journal.Attach(f.t.Context(), core.Operator, journal.Recording, ".ogg", at, bytes.NewReader([]byte("OggS")), 4)
	if err != nil {
		f.t.Fatal(err)
	}
	e, err := f.journal.Append(f.t.Context(), core.Operator, journal.Draft{Date: "2026-01-28", At: at, Text: text, Audio: []journal.Audio{{Path: path}}}, by)
	if err != nil {
		f.t.Fatal(err)
	}
	for range 2 { // a repeated command adds nothing
		if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
			return f.Add(f.t.Context(), tx, core.Operator, e.ID, []string{path})
		}); err != nil {
			f.t.Fatal(err)
		}
	}
	return e
}

func (f *fixture) text(e journal.Entry) string {
	f.t.Helper()
	now, err := f.journal.Entry(f.t.Context(), core.Operator, e.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return now.Text
}

func (f *fixture) retry() Report {
	f.t.Helper()
	r, err := f.Retry(f.t.Context(), func(string) {})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func TestARecordingIsTranscribedWhenTheEngineWorksAgain(t *testing.T) {
	f := open(t)
	a, b := f.entry(""), f.entry("A caption.")
	broken := &voice.Fault{Code: voice.FaultEngine, Err: errors.New("the engine is down")}
	f.hear = func(string) (string, error) { return "", broken }
	pass := func() Report {
		t.Helper()
		r, err := f.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if pass(); f.asked != 0 {
		t.Errorf("asked %d times at once", f.asked)
	}
	f.clock.Advance(firstPause + time.Second)
	if pass(); f.asked != 1 {
		t.Errorf("asked %d times in a pass although the engine is down", f.asked)
	}
	if r, err := f.Retry(t.Context(), func(string) {}); !errors.Is(err, broken) || r.Waiting != 2 || f.asked != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	f.hear = func(path string) (string, error) { return "We had tea.\n", nil }
	if r := pass(); r.Transcribed != 1 {
		t.Errorf("%+v: only the second was due", r)
	}
	f.clock.Advance(lastPause)
	if r := pass(); r.Transcribed != 1 {
		t.Errorf("%+v", r)
	}
	if f.text(a) != "We had tea." || f.text(b) != "A caption.\n\nWe had tea." {
		t.Errorf("%q, %q", f.text(a), f.text(b))
	}
	if r := f.retry(); r != (Report{}) {
		t.Errorf("%+v", r)
	}
}

func TestRecordingsThatWaitAreCounted(t *testing.T) {
	f := open(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(f.Gauge())
	want := func(n int) {
		t.Helper()
		text := fmt.Sprintf("# HELP gatehouse_voice_pending Recordings in journals and chats that wait for their text.\n# TYPE gatehouse_voice_pending gauge\ngatehouse_voice_pending %d\n", n)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	}
	want(0)
	f.hear = func(string) (string, error) { return "We had tea.", nil }
	f.entry("")
	f.note("a.ogg")
	want(2)
	f.retry()
	want(0)
}

func TestARecordingIsDroppedWhenThereIsNothingToAdd(t *testing.T) {
	f := open(t)
	gone, silent, damaged, done := f.entry("gone"), f.entry(""), f.entry(""), f.entry("")
	if err := f.journal.Delete(t.Context(), core.Operator, gone.ID, gone.Version, by); err != nil {
		t.Fatal(err)
	}
	said := "It was said. And edited."
	if _, err := f.journal.Edit(t.Context(), core.Operator, done.ID, done.Version, journal.Edit{Text: &said}, by); err != nil {
		t.Fatal(err)
	}
	f.hear = func(path string) (string, error) {
		switch {
		case strings.HasSuffix(path, silent.Audio[0].Path):
			return "", nil
		case strings.HasSuffix(path, damaged.Audio[0].Path):
			return "", &voice.Fault{Code: voice.FaultDamaged, Err: errors.New("damaged")}
		}
		return "It was said.", nil
	}
	if r := f.retry(); r != (Report{Transcribed: 1, Dropped: 3}) {
		t.Errorf("%+v", r)
	}
	if f.text(done) != said {
		t.Errorf("the text of an interrupted pass was added twice: %q", f.text(done))
	}
}

// A user who removes a recording from an entry does not find its text there later.
func TestARecordingThatItsEntryHasNoMoreIsDropped(t *testing.T) {
	f := open(t)
	before, during := f.entry("One."), f.entry("Two.")
	remove := func(e journal.Entry) {
		t.Helper()
		name, err := journal.PathOf(core.Operator, e.Date)
		if err != nil {
			t.Fatal(err)
		}
		data, err := f.vault.ReadNoLinks(name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		line := "\n## Audio\n- Path: " + e.Audio[0].Path + "\n"
		if !bytes.Contains(data, []byte(line)) {
			t.Fatalf("no %q in\n%s", line, data)
		}
		if err := f.vault.WriteFile(name, bytes.Replace(data, []byte(line), nil, 1)); err != nil {
			t.Fatal(err)
		}
	}
	remove(before)
	f.hear = func(string) (string, error) {
		remove(during)
		return "We had tea.", nil
	}
	if r := f.retry(); r != (Report{Dropped: 2}) || f.asked != 1 {
		t.Errorf("%+v, asked %d times", r, f.asked)
	}
	if f.text(before) != "One." || f.text(during) != "Two." {
		t.Errorf("%q, %q", f.text(before), f.text(during))
	}
}

func TestAFormatThatIsNotReadDoesNotKeepOthersFromTheirText(t *testing.T) {
	f := open(t)
	m4a, ogg := f.entry(""), f.entry("")
	f.hear = func(path string) (string, error) {
		if strings.HasSuffix(path, m4a.Audio[0].Path) {
			return "", &voice.Fault{Code: voice.FaultFormat, Err: errors.New("install ffmpeg")}
		}
		return "We had tea.", nil
	}
	if r := f.retry(); r != (Report{Transcribed: 1, Waiting: 1}) || f.text(ogg) != "We had tea." {
		t.Errorf("%+v, %q", r, f.text(ogg))
	}
}

func TestAShortTextIsAddedThoughOtherWordsContainIt(t *testing.T) {
	f := open(t)
	e := f.entry("nothing new")
	f.hear = func(string) (string, error) { return "no", nil }
	if r := f.retry(); r != (Report{Transcribed: 1}) || f.text(e) != "nothing new\n\nno" {
		t.Errorf("%+v, %q", r, f.text(e))
	}
}

func TestWaitingRecordingsAreBounded(t *testing.T) {
	f := open(t)
	count := func() (n int) {
		t.Helper()
		if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM voice_pending`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range maxOfUser + 3 {
			if err := f.Add(t.Context(), tx, 7, strings.Repeat("x", i), []string{"a.ogg"}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil || count() != maxOfUser {
		t.Errorf("%d rows, %v", count(), err)
	}
	f.clock.Advance(keep + time.Hour)
	if n, err := f.Chores()[0].Run(t.Context()); err != nil || n != maxOfUser || count() != 0 {
		t.Errorf("%d given up, %d left, %v", n, count(), err)
	}
	off := New(Options{DB: f.db, Clock: f.clock})
	if _, err := off.Retry(t.Context(), nil); core.KindOf(err) != core.Conflict {
		t.Error(err)
	}
	off.Run(t.Context()) // returns: nothing is transcribed
}

func TestARecordingIsGivenUpWhoseTranscriptionBeginsAndFailsTenTimes(t *testing.T) {
	f := open(t)
	e := f.entry("")
	f.note("a.ogg")
	down := &voice.Fault{Code: voice.FaultEngine, Err: errors.New("it died")}
	f.hear = func(string) (string, error) { return "", down }
	pass := func() {
		t.Helper()
		for range 2 { // a pass ends with the first failure
			if _, err := f.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f.clock.Advance(12 * time.Hour)
	}
	for range 12 { // nothing of it is transcribed: that costs nothing
		f.clock.Advance(time.Hour)
		pass()
	}
	if f.waiting() != 2 {
		t.Fatalf("%d wait while the engine is down", f.waiting())
	}
	f.begins = true
	asked := f.asked
	for range 8 {
		pass()
	}
	if f.waiting() != 0 || f.asked-asked > 2*maxTries || f.text(e) != "" {
		t.Errorf("%d wait after %d further tries", f.waiting(), f.asked-asked)
	}
	if len(f.posted) != 1 || !strings.Contains(f.posted[0].Parts[0].Text, "the transcription service failed (send it again later)") {
		t.Errorf("%+v", f.posted)
	}
}
