package llm

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
)

func said(deltas ...Delta) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// gather is the text of deltas, and the last Stop.
func gather(t rapid.TB, deltas iter.Seq2[Delta, error]) (text, stop string) {
	for d, err := range deltas {
		if err != nil {
			t.Fatal(err)
		}
		text += d.Text
		if d.Stop != "" {
			stop = d.Stop
		}
	}
	return text, stop
}

// However the text comes in pieces, it ends before the first of the stops, and
// nothing of it is lost where there is none.
func TestAnAnswerEndsBeforeTheFirstStopHoweverItComesInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]string{"a", "b", "c"})
		text := strings.Join(rapid.SliceOfN(letter, 0, 30).Draw(t, "text"), "")
		var stops []string
		for range rapid.IntRange(0, 4).Draw(t, "stops") {
			stops = append(stops, strings.Join(rapid.SliceOfN(letter, 1, 4).Draw(t, "stop"), ""))
		}
		var deltas []Delta
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			deltas, rest = append(deltas, Delta{Text: rest[:n]}), rest[n:]
		}
		deltas = append(deltas, Delta{Stop: "end_turn", Usage: &core.Tokens{Output: 1}})
		want, reason := text, "end_turn"
		if at := first(text, stops); at >= 0 {
			want, reason = text[:at], StopSequence
		}
		if got, stop := gather(t, StopAt(said(deltas...), stops)); got != want || stop != reason {
			t.Fatalf("%q (%s) of %q with %q, want %q (%s)", got, stop, text, stops, want, reason)
		}
	})
}

// A short stop inside a longer one that is not whole yet does not end the answer.
func TestTheEarlierOfTwoStopsEndsTheAnswer(t *testing.T) {
	for _, c := range []struct{ first, rest, want string }{{"ab", "b", ""}, {"ab", "c", "a"}, {"ab", "", "a"}} {
		if got, stop := gather(t, StopAt(said(Delta{Text: c.first}, Delta{Text: c.rest}, Delta{Stop: "end_turn"}), []string{"abb", "b"})); got != c.want || stop != StopSequence {
			t.Errorf("%q, then %q: %q (%s), want %q", c.first, c.rest, got, stop, c.want)
		}
	}
}

func TestTextThatWaitsComesBeforeWhatFollowsIt(t *testing.T) {
	call := &core.Block{Type: "tool_use", Name: "Read"}
	var order []string
	for d := range StopAt(said(Delta{Text: "so E"}, Delta{Call: call}, Delta{Stop: "tool_use"}), []string{"END"}) {
		switch {
		case d.Text != "":
			order = append(order, d.Text)
		case d.Call != nil:
			order = append(order, "call")
		}
	}
	if got := strings.Join(order, "|"); got != "so |E|call" {
		t.Errorf("%s", got)
	}
	bad := errors.New("cut off")
	failing := func(yield func(Delta, error) bool) { _ = yield(Delta{Text: "half E"}, nil) && yield(Delta{}, bad) }
	text, last := "", error(nil)
	for d, err := range StopAt(failing, []string{"END"}) {
		text, last = text+d.Text, err
	}
	if text != "half E" || last != bad {
		t.Errorf("%q, %v", text, last)
	}
}
