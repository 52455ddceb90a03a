package response

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func numbered(i int) Row {
	return Row{ID: fmt.Sprintf("resp_%04x", i), Run: fmt.Sprintf("run%d", i), User: 7, Session: fmt.Sprintf("s%d", i), Number: 1, Request: []byte("{}")}
}

// A response that is cancelled has a run until that has ended, so cancelling makes no
// room for further ones.
func TestResponsesThatAreStoppingCountAsOpen(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock)
	for i := range MaxOpen {
		if _, err := s.Add(t.Context(), numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	first, second := numbered(0).ID, numbered(1).ID
	if ok, err := s.Stop(t.Context(), first, []byte(`{"status":"cancelled"}`)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := s.Hide(t.Context(), 7, second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := s.Add(t.Context(), numbered(MaxOpen)); core.KindOf(err) != core.Busy {
		t.Errorf("with two that are stopping: %v", err)
	}
	if err := s.Stopped(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), numbered(MaxOpen)); err != nil {
		t.Errorf("after the end of one: %v", err)
	}
}

// What waits is looked through every minute, so it comes without its texts.
func TestPendingResponsesComeWithoutTexts(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock)
	if _, err := s.Add(t.Context(), numbered(1)); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Pending(t.Context(), 10)
	if err != nil || len(rows) != 1 || len(rows[0].Request) != 0 || rows[0].Run != "run1" || rows[0].State != Open {
		t.Errorf("%+v, %v", rows, err)
	}
}
