package connectors

import "testing"

// What is remembered of chats, channels and places is bounded: the one that
// was used longest ago gives way.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := NewLRU[string, int](3)
	for n, key := range []string{"a", "b", "c"} {
		l.Put(key, n)
	}
	l.Get("a")
	l.Put("b", 7)
	l.Put("d", 3)
	if _, ok := l.Get("c"); ok || len(l.items) != 3 || l.order.Len() != 3 {
		t.Errorf("c is there: %v; %d keys, %d in order", ok, len(l.items), l.order.Len())
	}
	for key, want := range map[string]int{"a": 0, "b": 7, "d": 3} {
		if got, ok := l.Get(key); !ok || got != want {
			t.Errorf("%s: %d, %v", key, got, ok)
		}
	}
	l.Remove("a")
	l.Put("e", 4)
	if _, ok := l.Get("b"); !ok || len(l.items) != 3 {
		t.Errorf("a removed key left no room: %d keys", len(l.items))
	}
}
