package response

import (
	"fmt"
	"strings"
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

func (s *Store) add(t *testing.T, i int, answer string) {
	t.Helper()
	if _, err := s.Add(t.Context(), numbered(i)); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.End(t.Context(), numbered(i).ID, []byte(answer)); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// has reports which of the first n responses can be read.
func (s *Store) has(t *testing.T, n int) (ids []int) {
	t.Helper()
	for i := range n {
		if _, err := s.Get(t.Context(), 7, numbered(i).ID); err == nil {
			ids = append(ids, i)
		} else if core.KindOf(err) != core.NotFound {
			t.Fatal(err)
		}
	}
	return ids
}

func TestTheOldestResponsesOfAUserMakeRoom(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock)
	open := numbered(9000)
	if _, err := s.Add(t.Context(), open); err != nil { // the oldest of all, and not answered
		t.Fatal(err)
	}
	other := numbered(9001)
	other.User = 8
	if _, err := s.Add(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for i := range MaxRows + 2 {
		clock.Advance(time.Second)
		s.add(t, i, "{}")
	}
	if got := s.has(t, MaxRows+2); len(got) != MaxRows-1 || got[0] != 3 {
		t.Errorf("%d responses from %v on are stored", len(got), got[:min(len(got), 1)])
	}
	if _, err := s.Get(t.Context(), 7, open.ID); err != nil {
		t.Errorf("the one that is open: %v", err)
	}
	if _, err := s.Get(t.Context(), 8, other.ID); err != nil {
		t.Errorf("that of another user: %v", err)
	}
}

func TestLargeResponsesMakeRoomByTheirBytes(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock)
	large := string(make([]byte, MaxBytes/8))
	large = strings.ReplaceAll(large, "\x00", "x")
	for i := range 9 {
		clock.Advance(time.Second)
		s.add(t, i, large)
	}
	clock.Advance(time.Second)
	s.add(t, 9, "{}")
	if got := fmt.Sprint(s.has(t, 10)); got != "[2 3 4 5 6 7 8 9]" {
		t.Errorf("%s are stored", got)
	}
}

func TestOldResponsesArePruned(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	s := New(storetest.Open(t, clock), clock)
	for i := range 450 { // more than one transaction deletes
		s.add(t, i, "{}")
	}
	clock.Advance(MaxAge / 2)
	s.add(t, 450, "{}")
	chore := s.Chores()[0]
	if n, err := chore.Run(t.Context()); n != 0 || err != nil {
		t.Errorf("%d are deleted too early: %v", n, err)
	}
	clock.Advance(MaxAge/2 + time.Second)
	if n, err := chore.Run(t.Context()); n != 450 || err != nil {
		t.Errorf("%d are deleted: %v", n, err)
	}
	if got := fmt.Sprint(s.has(t, 451)); got != "[450]" {
		t.Errorf("%s are stored", got)
	}
}
