package charts

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func plain(v int64) string { return fmt.Sprint(v) }

func TestTheValuesAtTheSideAreRoundAndReachTheTop(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		top  int64
		want string
	}{
		{Counted("answers", plain), 1, "1 0"},
		{Counted("answers", plain), 3, "3 2 1 0"},
		{Counted("answers", plain), 7, "8 6 4 2 0"},
		{Counted("tokens", plain), 4100, "6000 4000 2000 0"},
		{Counted("tokens", plain), 17_400, "20 k 15 k 10 k 5 k 0"},
		{Counted("tokens", plain), 1_700_000, "2 M 1.5 M 1 M 0.5 M 0"},
		{Money(plain), 1300, "$0.0015 $0.0010 $0.0005 $0"},
		{Money(plain), 61_000, "$0.08 $0.06 $0.04 $0.02 $0"},
		{Money(plain), 17_000, "$0.0200 $0.0150 $0.0100 $0.0050 $0"},
		{Money(plain), 11_500_000, "$15 $10 $5 $0"},
		{Durations(plain), 37, "40 ms 30 ms 20 ms 10 ms 0"},
		{Durations(plain), 1700, "2 s 1.5 s 1 s 0.5 s 0"},
		{Durations(plain), 44_000, "45 s 30 s 15 s 0"},
		{Durations(plain), 95_000, "2 min 1.5 min 1 min 0.5 min 0"},
		{Durations(plain), 9_000_000, "3 h 2 h 1 h 0"},
		{Durations(plain), 400_000_000, "150 h 100 h 50 h 0"},
	} {
		chart := Stacked("k", "T", Span{N: 1, Step: time.Hour, Zone: time.UTC, Every: time.Hour}, []Series{{Values: []int64{c.top}}}, c.unit)
		var labels []string
		for _, m := range chart.Side {
			labels = append(labels, m.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("up to %d: %s, want %s", c.top, got, c.want)
		}
	}
}

func TestTimesBelowAChartAreTheReaders(t *testing.T) {
	at := time.Date(2026, 5, 3, 22, 0, 0, 0, time.UTC) // a Sunday
	for _, c := range []struct {
		zone  string
		span  Span
		want  string
		first string
	}{
		{"UTC", Span{From: at, Step: time.Hour, N: 24, Name: "15:04", Mark: "15:04", Every: 6 * time.Hour}, "00:00@8.3% 06:00@33.3% 12:00@58.3% 18:00@83.3%", "22:00"},
		{"Asia/Kolkata", Span{From: at, Step: time.Hour, N: 24, Name: "15:04", Mark: "15:04", Every: 6 * time.Hour}, "06:00@10.4% 12:00@35.4% 18:00@60.4% 00:00@85.4%", "03:30"},
		{"Europe/Berlin", Span{From: at, Step: 24 * time.Hour, N: 2, Name: "2 Jan", Mark: "Mon", Every: 24 * time.Hour}, "Mon@0% Tue@50%", "4 May"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		c.span.Zone = zone
		chart := Lines("k", "T", c.span, []Series{{Values: append([]int64{1}, make([]int64, c.span.N-1)...)}}, Money(plain))
		var marks []string
		for _, m := range chart.Below {
			marks = append(marks, m.Label+"@"+m.At)
		}
		if got := strings.Join(marks, " "); got != c.want || chart.First != c.first {
			t.Errorf("%s: %s from %s, want %s from %s", c.zone, got, chart.First, c.want, c.first)
		}
	}
}

func TestALookBelongsToANameWhateverElseIsThere(t *testing.T) {
	known := []string{"anthropic/claude-sonnet-4-5", "local/quote", "openai/gpt-5-mini"}
	alone := Named(known, nil)
	many := append([]string{}, known...)
	for i := range 60 {
		many = append(many, fmt.Sprintf("a/%d", i))
	}
	among := Named(known, many)
	seen := map[Look]string{}
	for _, name := range known {
		if alone[name] != among[name] {
			t.Errorf("%s looks like %v, and %v where others are", name, alone[name], among[name])
		}
		if other, taken := seen[alone[name]]; taken {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[alone[name]] = name
	}
	people := Numbered([]string{"12", "3", "-1", "31", "2"})
	if people["2"] != slot(2) || people["3"] != slot(3) || people["31"] == people["3"] {
		t.Errorf("people look like %v", people)
	}
}

func TestLooksThatFollowEachOtherDifferInColourAndPattern(t *testing.T) {
	all := map[Look]bool{}
	for i := range slots {
		a, b := slot(i), slot(i+1)
		if all[a] = true; a.Colour == b.Colour || a.Pattern == b.Pattern {
			t.Errorf("%d: %v and %v", i, a, b)
		}
	}
	if len(all) != slots {
		t.Errorf("%d looks, want %d", len(all), slots)
	}
}
