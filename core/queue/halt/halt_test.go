package halt

import "testing"

func TestAStopIsOfItsSessionAndKeepsItsCause(t *testing.T) {
	for _, why := range []Cause{Aborted, Interrupted} {
		if got, stops := Of(Text("s1", why), "s1"); !stops || got != why {
			t.Errorf("%q is read as %q, %v", why, got, stops)
		}
		for _, other := range []string{"", "s", "s2", "s11"} {
			if _, stops := Of(Text("s1", why), other); stops {
				t.Errorf("%q stops a turn of the session %q", Text("s1", why), other)
			}
		}
	}
	for _, text := range []string{"", "s10", "s1 otherwise"} {
		if _, stops := Of(text, "s1"); stops {
			t.Errorf("%q stops", text)
		}
	}
}
