package discord

import "testing"

// What the bot remembers of channels, marks and places is bounded: the one that
// was used longest ago gives way.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := newLRU[int](3)
	for n, key := range []string{"a", "b", "c"} {
		l.put(key, n)
	}
	l.get("a")
	l.put("b", 7)
	l.put("d", 3)
	if _, ok := l.get("c"); ok || len(l.items) != 3 || l.order.Len() != 3 {
		t.Errorf("c is there: %v; %d keys, %d in order", ok, len(l.items), l.order.Len())
	}
	for key, want := range map[string]int{"a": 0, "b": 7, "d": 3} {
		if got, ok := l.get(key); !ok || got != want {
			t.Errorf("%s: %d, %v", key, got, ok)
		}
	}
	l.remove("a")
	l.put("e", 4)
	if _, ok := l.get("b"); !ok || len(l.items) != 3 {
		t.Errorf("a removed key left no room: %d keys", len(l.items))
	}
}
