package watch

import (
	"context"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// A caller that is gone is notified once, however often it is checked until it forgets, and one
// that has forgotten is not notified.
func TestWhoIsGoneIsNotifiedOnce(t *testing.T) {
	x := New(coretest.NewClock(time.Time{}), Checks{
		Keys: func(context.Context, []*Caller) (map[*Caller]bool, error) { return nil, nil },
	})
	n := 0
	forget := x.Add(&Caller{Key: "k", Gone: func() { n++ }})
	x.Look()
	x.Look()
	if n != 1 {
		t.Errorf("notified %d times", n)
	}
	forget()
	left := &Caller{Key: "k", Gone: func() { t.Error("who has forgotten is notified") }}
	x.Add(left)()
	x.Look()
}

// A key that has one of the scopes of which a stream needs one keeps it open.
func TestKeepsNeedsOneOfTheScopes(t *testing.T) {
	for _, c := range []struct {
		needs []string
		has   string
		want  bool
	}{
		{[]string{"chat", "read"}, "chat send", true},
		{[]string{"chat", "read"}, "read", true},
		{[]string{"chat", "read"}, "send admin", false},
		{[]string{"admin"}, "chat read", false},
		{[]string{"admin"}, "", false},
		{nil, "", true},
	} {
		if got := (&Caller{Scopes: c.needs}).Keeps(c.has); got != c.want {
			t.Errorf("one of %q, with %q: %v", c.needs, c.has, got)
		}
	}
}
