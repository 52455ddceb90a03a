package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/upkeep"
)

// A laptop is rarely on for a day.
func TestWhatIsDueOnceADayRunsAlsoWhereTheGatewayIsStartedEachDay(t *testing.T) {
	ran := map[string][]int{}
	minute := 0
	chore := func(name string, every time.Duration) core.Chore {
		return core.Chore{Name: name, Every: every, Run: func(context.Context) (int, error) { ran[name] = append(ran[name], minute); return 0, nil }}
	}
	u := upkeep.New([]core.Chore{chore("minute", time.Minute), chore("hour", time.Hour), chore("hours", 6*time.Hour), chore("day", 24*time.Hour)},
		coretest.NewClock(time.Time{}), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	for minute = 1; minute <= 7*60; minute++ {
		u.Once(t.Context(), minute)
	}
	if len(ran["minute"]) != 7*60 || len(ran["hour"]) != 7 || ran["hour"][0] != 60 {
		t.Errorf("each minute %d times, each hour %v", len(ran["minute"]), ran["hour"])
	}
	if got := ran["hours"]; len(got) != 2 || got[0] != 10 || got[1] != 360 {
		t.Errorf("each 6 hours: at %v", got)
	}
	if got := ran["day"]; len(got) != 1 || got[0] != 10 {
		t.Errorf("each day: at %v", got)
	}
}

func TestAChoreThatFailsStopsNoOtherAndIsNoSuccess(t *testing.T) {
	clock, reg := coretest.NewClock(time.Time{}), prometheus.NewRegistry()
	began, ran := clock.Now(), false
	u := upkeep.New([]core.Chore{
		{Name: "bad", Every: time.Minute, Run: func(context.Context) (int, error) { return 0, errors.New("no") }},
		{Name: "good", Every: time.Minute, Run: func(context.Context) (int, error) { ran = true; return 1, nil }},
	}, clock, slog.New(slog.DiscardHandler), reg)
	clock.Advance(time.Hour)
	u.Once(t.Context(), 1)
	if !ran {
		t.Error("the other did not run")
	}
	found, err := reg.Gather()
	if err != nil || testutil.CollectAndCount(reg) != 2 {
		t.Fatal(err)
	}
	for _, m := range found[0].GetMetric() {
		at := time.Unix(int64(m.GetGauge().GetValue()), 0)
		if good := m.GetLabel()[0].GetValue() == "good"; good != at.Equal(clock.Now().Truncate(time.Second)) || !good && !at.Equal(began.Truncate(time.Second)) {
			t.Errorf("%s: %s", m.GetLabel()[0].GetValue(), at)
		}
	}
}
