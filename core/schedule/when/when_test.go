package when_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/core/schedule/when"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := when.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNext_ClockChanges(t *testing.T) {
	for _, c := range []struct{ name, spec, zone, after, want, then string }{
		{"a plain day", "8:00", "UTC", "2026-01-28T09:00:00Z", "2026-01-29T08:00:00Z", "2026-01-30T08:00:00Z"},
		{"a zone", "8:00", "America/New_York", "2026-01-28T12:59:00Z", "2026-01-28T13:00:00Z", "2026-01-29T13:00:00Z"},
		{"the skipped hour", "2:30", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		{"the skipped hour as cron", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		{"the doubled hour", "2:30", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"within the doubled hour", "2:30", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"},
		{"half an hour's change", "2:15", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"},
		{"midnight is skipped", "0:00", "America/Santiago", "2026-09-05T05:00:00Z", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"},
		{"weekdays", "30 7 * * 1-5", "UTC", "2026-01-30T08:00:00Z", "2026-02-02T07:30:00Z", "2026-02-03T07:30:00Z"},
		{"a leap day", "0 0 29 2 *", "UTC", "2026-01-30T08:00:00Z", "2028-02-29T00:00:00Z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := when.Parse(c.spec, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			next := r.Next(at(t, c.after))
			if !next.Equal(at(t, c.want)) {
				t.Errorf("after %s comes %s, want %s", c.after, next.UTC().Format(time.RFC3339), c.want)
			}
			if c.then == "" {
				return
			}
			if then := r.Next(next); !then.Equal(at(t, c.then)) {
				t.Errorf("and then %s, want %s", then.UTC().Format(time.RFC3339), c.then)
			}
		})
	}
}

func TestParse_RefusesWhatIsNoTime(t *testing.T) {
	for _, spec := range []string{"", "25:99", "24:00", "8:60", "8", "8:0", "-1:00", "+8:00", "morning", "1 2 3", "* * * * * *", "61 * * * *", "@every 1h", "@hourlyish", "TZ=UTC 0 8 * * *", "CRON_TZ=Foo", "TZ=", "0 0 30 2 *"} {
		if _, err := when.Parse(spec, time.UTC); err == nil {
			t.Errorf("%q was read as a schedule", spec)
		}
	}
	for _, name := range []string{"Nowhere/City", "../etc/passwd", "/etc/localtime", "Local"} {
		if _, err := when.Zone(name); err == nil {
			t.Errorf("%q was read as a time zone", name)
		}
	}
}

func TestLast_ReturnsTheNewestMissedTimeWithinTheLimit(t *testing.T) {
	r, err := when.Parse("3:00", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	now := at(t, "2026-01-28T12:00:00Z")
	if last, ok := r.Last(now.AddDate(0, 0, -20), now, 7*24*time.Hour); !ok || !last.Equal(at(t, "2026-01-28T03:00:00Z")) {
		t.Errorf("got %v, %v", last, ok)
	}
	if _, ok := r.Last(at(t, "2026-01-28T03:00:00Z"), now, 7*24*time.Hour); ok {
		t.Error("a time that was reached already is missed again")
	}
	weekly, err := when.Parse("0 3 * * 1", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if last, ok := weekly.Last(now.AddDate(0, 0, -20), now, 24*time.Hour); ok {
		t.Errorf("a time before the limit is made up: %v", last)
	}
}

// TestDailyRuleAppliesOncePerDate walks over years of clock changes in zones around the
// world.
func TestDailyRuleAppliesOncePerDate(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Auckland"}
	rapid.Check(t, func(rt *rapid.T) {
		z := zone(t, rapid.SampledFrom(zones).Draw(rt, "zone"))
		hour, minute := rapid.IntRange(0, 23).Draw(rt, "hour"), rapid.IntRange(0, 59).Draw(rt, "minute")
		r, err := when.Parse(time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC).Format("15:04"), z)
		if err != nil {
			rt.Fatal(err)
		}
		next := time.Date(2026, 1, 1, 0, 0, 0, 0, z).Add(-time.Second)
		day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		for range 365 {
			next = r.Next(next)
			if got, want := next.Format(time.DateOnly), day.Format(time.DateOnly); got != want {
				rt.Fatalf("the run of %s is on %s", want, got)
			}
			day = day.AddDate(0, 0, 1)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"8:00", "*/5 * * * *", "@daily", "0 0 29 2 *", "TZ=x 1 2 3 4 5"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := when.Parse(s, time.UTC)
		if err != nil {
			return
		}
		if next := r.Next(now); !next.IsZero() && !next.After(now) {
			t.Fatalf("%q: %v is not after %v", s, next, now)
		}
	})
}

func TestATimeInTheSkippedHourIsFoundFromWithinTheHourAfterIt(t *testing.T) {
	rule, err := when.Parse("2:30", zone(t, "Europe/Berlin"))
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC) // 3:30 summer time
	for _, from := range []time.Time{time.Date(2026, 3, 29, 0, 50, 0, 0, time.UTC), time.Date(2026, 3, 29, 1, 10, 0, 0, time.UTC)} {
		if got := rule.Next(from); !got.Equal(want) {
			t.Errorf("after %s: %s, want %s", from, got, want)
		}
	}
	if got := rule.Next(want); !got.Equal(want.Add(23 * time.Hour)) {
		t.Errorf("after it: %s", got)
	}
}
