package remind_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestParse(t *testing.T) {
	now := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC) // a Friday, 13:00 in Berlin; the clock changes on Sunday
	for _, c := range []struct{ said, due, text, rule string }{
		{"20m tea", "2026-03-27T12:20:00Z", "tea", ""},
		{"in 20 minutes tea", "2026-03-27T12:20:00Z", "tea", ""},
		{"2h30m  walk the dog", "2026-03-27T14:30:00Z", "walk the dog", ""},
		{"1 day 2 hours x", "2026-03-28T14:00:00Z", "x", ""},
		{"3d 20m is a text", "2026-03-30T12:20:00Z", "is a text", ""},
		{"18:30 call home", "2026-03-27T17:30:00Z", "call home", ""},
		{"at 9:00 post", "2026-03-28T08:00:00Z", "post", ""},
		{"tomorrow 9:00 post", "2026-03-28T08:00:00Z", "post", ""},
		{"Tomorrow at 9:00 post", "2026-03-28T08:00:00Z", "post", ""},
		{"today 13:30 post", "2026-03-27T12:30:00Z", "post", ""},
		{"sunday 9:00 after the change", "2026-03-29T07:00:00Z", "after the change", ""},
		{"friday 12:00 passed today", "2026-04-03T10:00:00Z", "passed today", ""},
		{"on friday 14:00 still today", "2026-03-27T13:00:00Z", "still today", ""},
		{"2026-12-24 18:00 presents", "2026-12-24T17:00:00Z", "presents", ""},
		{"2026-03-29 2:30 in the skipped hour", "2026-03-29T01:30:00Z", "in the skipped hour", ""},
		{"every 8:00 vitamins", "2026-03-28T07:00:00Z", "vitamins", "8:00"},
		{"every day at 8:00 vitamins", "2026-03-28T07:00:00Z", "vitamins", "8:00"},
		{"every monday 9:00 bins", "2026-03-30T07:00:00Z", "bins", "0 9 * * 1"},
		{"every day at 8 take pills", "2026-03-28T07:00:00Z", "take pills", "8:00"},
		{"daily 8am pills", "2026-03-28T07:00:00Z", "pills", "8:00"},
		{"every evening at 8 pills", "2026-03-27T19:00:00Z", "pills", "20:00"},
		{"every weekday 7:30 train", "2026-03-30T05:30:00Z", "train", "30 7 * * 1-5"},
		{"every monday and friday at 6pm run", "2026-03-27T17:00:00Z", "run", "0 18 * * 1,5"},
		{"every Mondays at 9 bins", "2026-03-30T07:00:00Z", "bins", "0 9 * * 1"},
		{"every weekend 10:00 rest", "2026-03-28T09:00:00Z", "rest", "0 10 * * 6,0"},
		{"in 2 hours call", "2026-03-27T14:00:00Z", "call", ""},
		{"in an hour call", "2026-03-27T13:00:00Z", "call", ""},
		{"in half an hour call", "2026-03-27T12:30:00Z", "call", ""},
		{"me in 20m to call home", "2026-03-27T12:20:00Z", "call home", ""},
		{"8pm call", "2026-03-27T19:00:00Z", "call", ""},
		{"8 pm call", "2026-03-27T19:00:00Z", "call", ""},
		{"8:15 p.m. call", "2026-03-27T19:15:00Z", "call", ""},
		{"12am sleep", "2026-03-27T23:00:00Z", "sleep", ""},
		{"20:30 call", "2026-03-27T19:30:00Z", "call", ""},
		{"at 14 call", "2026-03-27T13:00:00Z", "call", ""},
		{"at 9 o'clock call", "2026-03-28T08:00:00Z", "call", ""},
		{"noon lunch", "2026-03-28T11:00:00Z", "lunch", ""},
		{"tonight at 8 film", "2026-03-27T19:00:00Z", "film", ""},
		{"tonight at 11 film", "2026-03-27T22:00:00Z", "film", ""},
		{"every night at 1am look", "2026-03-28T00:00:00Z", "look", "1:00"},
		{"every night at 0:00 look", "2026-03-27T23:00:00Z", "look", "0:00"},
		{"this afternoon at 4 tea", "2026-03-27T15:00:00Z", "tea", ""},
		{"tomorrow afternoon at 12 tea", "2026-03-28T11:00:00Z", "tea", ""},
		{"tomorrow evening at 7 film", "2026-03-28T18:00:00Z", "film", ""},
		{"tomorrow 9am post", "2026-03-28T08:00:00Z", "post", ""},
		{"9am tomorrow post", "2026-03-28T08:00:00Z", "post", ""},
		{"9:00 on monday post", "2026-03-30T07:00:00Z", "post", ""},
		{"18:30 friday drinks", "2026-03-27T17:30:00Z", "friday drinks", ""},
		{"18:30 this is due", "2026-03-27T17:30:00Z", "this is due", ""},
		{"day after tomorrow 9:00 x", "2026-03-29T07:00:00Z", "x", ""},
		{"next monday 9am bins", "2026-03-30T07:00:00Z", "bins", ""},
		{"next friday at 14:00 not today", "2026-04-03T12:00:00Z", "not today", ""},
		{"this friday 14:00 still today", "2026-03-27T13:00:00Z", "still today", ""},
		{"on Tue, 9:00 x", "2026-03-31T07:00:00Z", "x", ""},
		{"24 december 18:00 presents", "2026-12-24T17:00:00Z", "presents", ""},
		{"on the 24th of December at 6pm presents", "2026-12-24T17:00:00Z", "presents", ""},
		{"jan 2, 2028 8:00 x", "2028-01-02T07:00:00Z", "x", ""},
		{"march 1 8:00 of the next year", "2027-03-01T07:00:00Z", "of the next year", ""},
	} {
		got, text, ok, err := remind.Parse(c.said, now, berlin(t))
		if err != nil || !ok {
			t.Errorf("%q: %v, %v", c.said, ok, err)
			continue
		}
		if due := got.Due.UTC().Format(time.RFC3339); due != c.due || text != c.text || got.Rule != c.rule || got.Zone != "Europe/Berlin" {
			t.Errorf("%q: %s %q by %q, want %s %q by %q", c.said, due, text, got.Rule, c.due, c.text, c.rule)
		}
	}
	for _, said := range []string{"", "tea", "tea 20m", "20 tea", "some day 9:00 x", "next week x", "8 tea"} {
		if _, _, ok, err := remind.Parse(said, now, berlin(t)); ok || err != nil {
			t.Errorf("%q is read as a time: %v", said, err)
		}
	}
	for _, said := range []string{"0m tea", "9999w tea", "today 9:00 tea", "25:99 tea", "2026-02-30 9:00 tea", "2020-01-01 9:00 tea", "every 25:00 x", "30 february 9:00 x", "13pm x", "0am x"} {
		if _, _, ok, err := remind.Parse(said, now, berlin(t)); ok && core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", said, err)
		}
	}
	for _, rule := range []string{"* * * * *", "*/5 * * * *", "0,5 9 * * *", "nonsense"} {
		if _, err := remind.Every(rule, now, time.UTC); core.KindOf(err) != core.Invalid {
			t.Errorf("%q is a rule: %v", rule, err)
		}
	}
	for _, at := range []string{"2026-12-24T18:00", "2026-12-24t18:00:00", "2026-12-24 18:00", "2026-12-24T17:00:00Z", "24 december at 6pm", "6pm on 24 december"} {
		if got, err := remind.At(at, now, berlin(t)); err != nil || got.Due.UTC().Format(time.RFC3339) != "2026-12-24T17:00:00Z" {
			t.Errorf("%s is %v, %v", at, got.Due, err)
		}
	}
}

func TestATimeThatIsNotClearIsAnsweredWithWhatIsMissing(t *testing.T) {
	now := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]string{
		"tomorrow tea":          "/remind tomorrow 9:00",
		"next monday buy milk":  "/remind next monday 9:00",
		"monday 9 eggs":         "/remind monday 9:00",
		"every day 8 pills":     "/remind every day 9:00",
		"every 2 hours drink":   "ask me in a sentence",
		"every month rent":      "daily agent",
		"tomorrow 25:99 tea":    "25:99",
		"30 february 9:00 x":    "30 February",
		"every night at 12 x":   "“at 12”",
		"every evening at 12 x": "“at 12”",
		"every night at 1 x":    "“at 1”",
		"tonight at 12 x":       "“at 12”",
		"tonight at 4 x":        "“at 4”",
		"at 12 tonight x":       "“at 12 tonight”",
		"this evening at 1 x":   "“at 1”",
		"every evening at 2 x":  "“at 2”",

		"this afternoon at 11 x":     "“at 11”",
		"tomorrow afternoon at 10 x": "“at 10”",
	} {
		_, _, ok, err := remind.Parse(said, now, time.UTC)
		if !ok || core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), want) {
			t.Errorf("%q: %v, %v; want %q", said, ok, err, want)
		}
	}
}

// TestASpanIsReadWholeOrRefused has spans that models write, whose beginnings are other spans.
func TestARepeatedReminderComesAtMostEveryTenMinutes(t *testing.T) {
	now := time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)
	for rule, ok := range map[string]bool{"*/10 * * * *": true, "*/9 * * * *": false, "* * * * *": false, "0,5 8 * * *": false, "0 8,9 * * *": true, "55,59 23 31 12 *": false} {
		if _, err := remind.Every(rule, now, time.UTC); (err == nil) != ok || err != nil && !strings.Contains(core.TextOf(err), "every ten minutes") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestASpanIsReadWholeOrRefused(t *testing.T) {
	now := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for span, want := range map[string]time.Duration{"20m": 20 * time.Minute, " 2h30m ": 150 * time.Minute, "1 day 2 hours": 26 * time.Hour, "in 3 Weeks": 21 * 24 * time.Hour} {
		if got, err := remind.In(span, now, time.UTC); err != nil || got.Due.Sub(now) != want {
			t.Errorf("%q is %v, %v", span, got.Due, err)
		}
	}
	for _, span := range []string{"", "tea", "1 month", "3 months", "1.5h", "20m tea", "-20m", "12345m", "1h and 5m", "30 seconds"} {
		if got, err := remind.In(span, now, time.UTC); core.KindOf(err) != core.Invalid {
			t.Errorf("%q is %v, %v", span, got.Due, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"20m tea", "every monday 9:00 bins", "next mon at 9 o'clock x", "on the 31st of feb 8 p.m. y", "2026-03-29 2:30 x", "tomorrow 25:99"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if got, _, ok, err := remind.Parse(s, now, time.UTC); ok && err == nil && !got.Due.After(now) {
			t.Errorf("%q is due at %v", s, got.Due)
		}
	})
}

// A rig is a store whose messages are kept by key.
type rig struct {
	*remind.Store
	t     *testing.T
	db    *store.DB
	clock *coretest.Clock
	sent  map[string]string // of committed transactions
	keys  map[string]bool   // of all messages; the outbox takes each key once
	may   bool
	fails bool
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, clock: coretest.NewClock(time.Date(2026, 1, 28, 12, 0, 0, 0, time.UTC)), sent: map[string]string{}, keys: map[string]bool{}, may: true}
	r.db = storetest.Open(t, r.clock)
	r.Store = remind.New(remind.Options{DB: r.db, Clock: r.clock, Log: slog.New(slog.DiscardHandler),
		May:  func(context.Context, *store.Tx, core.Address, core.Peer) (bool, error) { return r.may, nil },
		Name: func(context.Context, store.Queryer, int64) (string, error) { return "Ada", nil },
		Post: func(_ context.Context, tx *store.Tx, m core.Reply) error {
			if r.fails {
				return errors.New("no")
			}
			if r.keys[m.Key] {
				return core.Errorf(core.Conflict, "this key was used")
			}
			tx.OnCommit(func() {
				r.keys[m.Key] = true
				if r.sent[m.Key] != "" {
					t.Errorf("%s is sent twice", m.Key)
				}
				r.sent[m.Key] = m.Parts[0].Text
			})
			return nil
		}})
	return r
}

func (r *rig) add(user int64, made, said string, to core.Address) error {
	r.t.Helper()
	at, text, _, err := remind.Parse(said, r.clock.Now(), time.UTC)
	if err != nil {
		r.t.Fatal(err)
	}
	one := remind.Reminder{User: user, Made: made, To: to, From: core.Peer{Platform: "p", ID: "7"}, Text: text, Time: at}
	if err := r.Check(r.t.Context(), r.db, one); err != nil {
		return err
	}
	return r.db.Tx(r.t.Context(), func(tx *store.Tx) error { return r.Add(r.t.Context(), tx, one) })
}

// said delivers, and returns the texts that were sent since.
func (r *rig) said() string {
	r.t.Helper()
	if _, err := r.Deliver(r.t.Context()); (err != nil) != r.fails {
		r.t.Fatal(err)
	}
	var all []string
	for _, text := range r.sent {
		all = append(all, text)
	}
	clear(r.sent)
	return strings.Join(all, "|")
}

var here = core.Address{Bot: "b", Chat: "c"}

func TestAReminderIsDeliveredOnceAtItsTime(t *testing.T) {
	r := newRig(t)
	for range 2 { // the same message handled twice
		if err := r.add(1, "m1", "20m tea", here); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.said(); got != "" {
		t.Errorf("early: %q", got)
	}
	r.clock.Advance(20 * time.Minute)
	r.fails = true
	r.said() // and it is tried again
	r.fails = false
	if got := r.said(); got != "⏰ tea" {
		t.Errorf("at its time: %q", got)
	}
	if got := r.said(); got != "" {
		t.Errorf("again: %q", got)
	}
}

// TestEveryReminderIsDelivered sets each reminder when the one before has ended, whose id in the
// database it may have.
func TestEveryReminderIsDelivered(t *testing.T) {
	r := newRig(t)
	var marks []string
	for _, text := range []string{"tea", "coffee", "water"} {
		if err := r.add(1, "update "+text, "20m "+text, here); err != nil {
			t.Fatal(err)
		}
		list, err := r.List(t.Context(), r.db, 1)
		if err != nil || len(list) != 1 || slices.Contains(marks, list[0].Mark()) {
			t.Fatalf("%+v after %q, %v", list, marks, err)
		}
		marks = append(marks, list[0].Mark())
		r.clock.Advance(20 * time.Minute)
		if got := r.said(); got != "⏰ "+text {
			t.Errorf("of %s: %q", text, got)
		}
	}
}

// TestARuleThatWasTakenGoesOn has two times of a day follow each other closely, but only after many others.
func TestARuleThatWasTakenGoesOn(t *testing.T) {
	r := newRig(t)
	r.clock.Advance(time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC).Sub(r.clock.Now()))
	at, err := remind.Every("0,59 0,23 1,31 * *", r.clock.Now(), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	one := remind.Reminder{User: 1, Made: "m1", To: here, Text: "rent", Time: at}
	if err := r.db.Tx(t.Context(), func(tx *store.Tx) error { return r.Add(t.Context(), tx, one) }); err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		list, err := r.List(t.Context(), r.db, 1)
		if err != nil || len(list) != 1 {
			t.Fatalf("after %d deliveries: %+v, %v", n, list, err)
		}
		r.clock.Advance(list[0].Due.Sub(r.clock.Now()))
		if got := r.said(); got != "⏰ rent" {
			t.Errorf("delivery %d: %q", n, got)
		}
	}
}

func TestALateReminderSaysSo(t *testing.T) {
	r := newRig(t)
	if err := r.add(1, "m1", "20m tea", here); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(3 * time.Hour)
	if got := r.said(); !strings.HasPrefix(got, "⏰ tea\n") || !strings.Contains(got, "It was due: 12:20 UTC") {
		t.Errorf("late: %q", got)
	}
}

func TestARepeatedReminderComesAgainAndMissedTimesCountOnce(t *testing.T) {
	r := newRig(t)
	if err := r.add(1, "m1", "every 8:00 vitamins", core.Address{Bot: "b", Chat: "g", Place: "g"}); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(20 * time.Hour)
	if got := r.said(); got != "⏰ Ada: vitamins" {
		t.Errorf("the first: %q", got)
	}
	r.clock.Advance(5 * 24 * time.Hour)
	if got := r.said(); strings.Count(got, "vitamins") != 1 {
		t.Errorf("after five days: %q", got)
	}
	if got := r.said(); got != "" {
		t.Errorf("again: %q", got)
	}
	if list, err := r.List(t.Context(), r.db, 1); err != nil || len(list) != 1 || !list[0].Due.After(r.clock.Now()) {
		t.Errorf("open: %v, %v", list, err)
	}
}

func TestAPersonHasAtMost50Reminders(t *testing.T) {
	r := newRig(t)
	for i := range remind.MaxOpen {
		if err := r.add(1, fmt.Sprint(i), "1d tea", here); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.add(1, "more", "1d tea", here); core.KindOf(err) != core.Busy {
		t.Errorf("one more: %v", err)
	}
	if err := r.add(2, "other", "1d tea", here); err != nil {
		t.Errorf("another person: %v", err)
	}
	if err := r.add(0, "none", "1d tea", here); core.KindOf(err) != core.Denied {
		t.Errorf("no person: %v", err)
	}
	if err := r.add(2, "long", "1d "+strings.Repeat("x", remind.MaxText+1), here); core.KindOf(err) != core.Invalid {
		t.Errorf("a long one: %v", err)
	}
	if err := r.add(2, "empty", "1d", here); core.KindOf(err) != core.Invalid {
		t.Errorf("an empty one: %v", err)
	}
}

// Chats of a person are handled in parallel: each may have been checked before any of them
// was stored.
func TestRemindersThatAreSetAtOnceKeepToTheLimit(t *testing.T) {
	r := newRig(t)
	for i := range remind.MaxOpen - 1 {
		if err := r.add(1, fmt.Sprint(i), "1d tea", here); err != nil {
			t.Fatal(err)
		}
	}
	at, err := remind.In("1d", r.clock.Now(), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	const atOnce = 8
	var all []remind.Reminder
	for i := range atOnce {
		one := remind.Reminder{User: 1, Made: fmt.Sprint("at once ", i), To: here, Text: "tea", Time: at}
		if err := r.Check(t.Context(), r.db, one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	errs := make([]error, atOnce)
	var done sync.WaitGroup
	for i, one := range all {
		done.Go(func() {
			errs[i] = r.db.Tx(t.Context(), func(tx *store.Tx) error { return r.Add(t.Context(), tx, one) })
		})
	}
	done.Wait()
	full := 0
	for _, err := range errs {
		if core.KindOf(err) == core.Busy {
			full++
		} else if err != nil {
			t.Error(err)
		}
	}
	var open int
	if err := r.db.Get(t.Context(), &open, `SELECT count(*) FROM reminders`); err != nil || open != remind.MaxOpen || full != atOnce-1 {
		t.Errorf("%d are open, %d were refused, %v", open, full, err)
	}
}

func TestTheLastReminderIsSetAgainWithoutAnError(t *testing.T) {
	r := newRig(t)
	for i := range remind.MaxOpen {
		if err := r.add(1, fmt.Sprint(i), "1d tea", here); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.add(1, fmt.Sprint(remind.MaxOpen-1), "1d tea", here); err != nil {
		t.Error(err)
	}
	if list, err := r.List(t.Context(), r.db, 1); err != nil || len(list) != remind.MaxOpen {
		t.Errorf("%d are open, %v", len(list), err)
	}
}

func TestWhoeverLostAccessIsNotReminded(t *testing.T) {
	r := newRig(t)
	if err := r.add(1, "m1", "every 8:00 vitamins", here); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(20 * time.Hour)
	r.may = false
	if got := r.said(); got != "" {
		t.Errorf("without access: %q", got)
	}
	r.may = true
	if list, err := r.List(t.Context(), r.db, 1); err != nil || len(list) != 0 {
		t.Errorf("open: %v, %v", list, err)
	}
}

func TestRemindersFollowPeopleAndChats(t *testing.T) {
	r := newRig(t)
	for user, made := range map[int64]string{1: "a", 2: "b", 3: "c"} {
		if err := r.add(user, made, "1d "+made, core.Address{Bot: "b", Chat: "g", Place: "g"}); err != nil {
			t.Fatal(err)
		}
	}
	err := r.db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(r.Merge(t.Context(), tx, 2, 1), r.Move(t.Context(), tx, "b", "g", "new"),
			r.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 3}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.List(t.Context(), r.db, 1)
	if err != nil || len(list) != 2 || list[0].To.Chat != "new" || list[0].To.Place != "new" {
		t.Errorf("merged and moved: %+v, %v", list, err)
	}
	if list, err := r.List(t.Context(), r.db, 3); err != nil || len(list) != 0 {
		t.Errorf("forgotten: %+v, %v", list, err)
	}
}
