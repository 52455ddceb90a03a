package daily_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	agents "gatehouse/core/schedule/daily"
	"gatehouse/core/schedule/when"
	"gatehouse/core/tool"
	"gatehouse/core/tool/daily"
	"gatehouse/core/vault"
)

// desk has the tools of a run of 2026-01-28 over a vault with these files.
func desk(t *testing.T, files map[string]string) (call func(name, input string) (string, error), since *time.Time) {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := v.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	since = new(time.Time)
	open := func(name string) bool { return !strings.Contains(name, "closed") }
	all := daily.New(daily.Options{Date: "2026-01-28", MayRead: open, MayWrite: open,
		Sessions: func(_ context.Context, at time.Time, _ int) ([]daily.Session, error) {
			*since = at
			return []daily.Session{{Title: "Tea", Source: "telegram", Last: at, Messages: 3}}, nil
		}})
	return func(name, input string) (string, error) {
		t.Helper()
		for _, x := range all {
			if x.Name == name {
				res, err := x.Run(t.Context(), &tool.Call{Input: json.RawMessage(input), Turn: &tool.Turn{Vault: v}})
				return res.Text, err
			}
		}
		t.Fatalf("there is no tool %s", name)
		return "", nil
	}, since
}

func TestRecentJournals_AreThoseOfTheDaysTheNewestFirst(t *testing.T) {
	call, _ := desk(t, map[string]string{"Daily/2026-01-28.md": "today", "Daily/2026-01-26.md": "before", "Daily/2026-01-21.md": "too old", "Daily/2026-01-29.md": "tomorrow"})
	got, err := call(agents.ReadRecentJournals, `{}`)
	if want := "=== Journal of 2026-01-28\n\ntoday\n\n=== Journal of 2026-01-26\n\nbefore\n\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if got, err := call(agents.ReadRecentJournals, `{"days": 8}`); err != nil || !strings.Contains(got, "too old") {
		t.Errorf("8 days: %q, %v", got, err)
	}
	if got, err := call(agents.ReadRecentJournals, `{"days": 1}`); err != nil || strings.Contains(got, "before") {
		t.Errorf("1 day: %q, %v", got, err)
	}
}

func TestDays_AreOneToThirty(t *testing.T) {
	call, since := desk(t, nil)
	for _, name := range []string{agents.ReadRecentJournals, agents.ReadRecentSessions} {
		for _, input := range []string{`{"days": 0}`, `{"days": 31}`, `{"days": -1}`, `{"days": "x"}`} {
			if got, err := call(name, input); core.KindOf(err) != core.Invalid {
				t.Errorf("%s %s: %q, %v", name, input, got, err)
			}
		}
	}
	if got, err := call(agents.ReadRecentSessions, `{"days": 30}`); err != nil || !strings.Contains(got, "Tea") || since.Format(time.DateOnly) != "2025-12-30" {
		t.Errorf("%q, %v, since %s", got, err, since)
	}
}

// The days of conversations are those of the run's date: in the time zone of the agent, which the
// answer names.
func TestRecentSessionsAreThoseOfTheUsersDay(t *testing.T) {
	zone, err := when.Zone("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := when.Parse("21:00", zone)
	if err != nil {
		t.Fatal(err)
	}
	evening := time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC) // 18:00 of 3 May
	var since time.Time
	all := daily.New(daily.Options{Agent: agents.Agent{Rule: rule}, Date: "2026-05-03", Sessions: func(_ context.Context, at time.Time, _ int) ([]daily.Session, error) {
		since = at
		return []daily.Session{{Title: "Tea", Source: "telegram", Last: evening, Messages: 3}}, nil
	}})
	i := slices.IndexFunc(all, func(x tool.Tool) bool { return x.Name == agents.ReadRecentSessions })
	res, err := all[i].Run(t.Context(), &tool.Call{Input: json.RawMessage(`{"days": 1}`), Turn: &tool.Turn{}})
	if want := "Times are of America/Los_Angeles.\n- 2026-05-03 18:00 \"Tea\", telegram, 3 messages\n"; err != nil || res.Text != want {
		t.Errorf("%q, %v, want %q", res.Text, err, want)
	}
	if want := time.Date(2026, 5, 3, 0, 0, 0, 0, zone); !since.Equal(want) {
		t.Errorf("since %s, want %s", since, want)
	}
}

func TestChatLog_IsThatOfADay(t *testing.T) {
	call, _ := desk(t, map[string]string{"Daily/chat-log/2026-01-27.md": "we spoke of tea"})
	if got, err := call(agents.ReadChatLog, `{"date": "2026-01-27"}`); err != nil || got != "we spoke of tea" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := call(agents.ReadChatLog, `{}`); err != nil || got != "There is no chat log of 2026-01-28." {
		t.Errorf("of today: %q, %v", got, err)
	}
	for _, date := range []string{"../../../etc/passwd", "2026-13-01", "27.1.2026"} {
		if got, err := call(agents.ReadChatLog, `{"date": "`+date+`"}`); core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %q, %v", date, got, err)
		}
	}
}
