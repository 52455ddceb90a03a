package operations

import (
	"testing"
	"time"

	"gatehouse/admin/charts"
	"gatehouse/admin/page"
	"gatehouse/core/usage"
)

func TestPersonNameWithoutARow(t *testing.T) {
	for id, want := range map[string]string{"-1": "Programs on this machine, without a key", "1": "Operator", "2": "Ada", "3": "User 3", "0": "People who were forgotten"} {
		if got := personName(page.Names{2: "Ada"}, id); got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
}

func TestASeriesKeepsItsLookWhenRanksChange(t *testing.T) {
	look := func(values map[string]int64) map[string]charts.Look {
		c := usage.Chart{Step: time.Hour, Series: map[string][]int64{}}
		for name, v := range values {
			c.Series["tokens|"+name] = []int64{v}
		}
		out := map[string]charts.Look{}
		for _, s := range largest(c, "tokens", func(s string) string { return s }, charts.Named(nil, keys(c, "tokens"))) {
			out[s.Name] = s.Look
		}
		return out
	}
	one := look(map[string]int64{"a": 6, "b": 5, "c": 4, "d": 3, "e": 2, "f": 1})
	other := look(map[string]int64{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6})
	if one["others"] != charts.Others || other["others"] != charts.Others {
		t.Errorf("the rest looks like %v and %v", one["others"], other["others"])
	}
	for _, name := range []string{"c", "d"} {
		if one[name] != other[name] || one[name] == (charts.Look{}) {
			t.Errorf("%s looks like %v, and %v as the other rank", name, one[name], other[name])
		}
	}
}

func TestOutcomesHaveTheLooksOfTheirMeaning(t *testing.T) {
	c := usage.Chart{Series: map[string][]int64{"runs|done": {1}, "runs|error": {9}, "runs|aborted": {3}}}
	got := outcomes(c, 1)
	if len(got) != 3 || got[0].Look != charts.Answered || got[1].Look != charts.Stopped || got[2].Look != charts.Failed {
		t.Errorf("%+v", got)
	}
	if only := outcomes(usage.Chart{Series: map[string][]int64{"runs|error": {9}}}, 1); len(only) != 1 || only[0].Look != charts.Failed {
		t.Errorf("failures alone: %+v", only)
	}
	if charts.Answered.Pattern == charts.Failed.Pattern {
		t.Error("answered and failed differ by their colours alone")
	}
}

func TestFlowNamesOnlyWhatIsOnTheWay(t *testing.T) {
	for want, s := range map[string]stuckness{
		"Every message is answered.":         {},
		"3 replies on the way.":              {Open: 3},
		"1 message on the way.":              {Ready: 1},
		"2 messages and 1 reply on the way.": {Ready: 2, Open: 1},
	} {
		if got := flow(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
