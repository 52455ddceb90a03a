// Package connectorstest is the test suite that every connector passes. A
// platform's package supplies a simulator as a Platform; Suite runs the tests.
package connectorstest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
)

// ErrStore is returned by Put while the Store is broken.
var ErrStore = errors.New("the disk is full")

// A Store is an Inbox, Cursors and Memory over Go maps, which drops repeats
// as the queue does. Its zero value is ready. It outlives connectors, as a
// database outlives a process.
type Store struct {
	// OnPut, when set, is called at the start of each Put that has a page,
	// outside the lock.
	OnPut func(page []core.Inbound)
	Clock core.Clock // core.System when nil

	mu      sync.Mutex
	rows    []core.Inbound
	seen    map[string]bool
	repeats int
	puts    int
	broken  bool
	cursors map[string]cursor
	memory  map[string]string
	bell    chan struct{}
}

type cursor struct {
	value   string
	updated time.Time
}

func (s *Store) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock.Now()
}

// Watch sets OnPut while a connector may be calling Put.
func (s *Store) Watch(f func([]core.Inbound)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.OnPut = f
}

// Put stores a page and its cursor, or nothing while the store is broken.
func (s *Store) Put(ctx context.Context, page []core.Inbound, c *core.Cursor) error {
	s.mu.Lock()
	watch := s.OnPut
	s.mu.Unlock()
	if watch != nil && len(page) > 0 {
		watch(page)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	s.ring()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.broken {
		return ErrStore
	}
	if s.seen == nil {
		s.seen, s.cursors = map[string]bool{}, map[string]cursor{}
	}
	for _, in := range page {
		if s.seen[in.Bot+" "+in.UpdateID] {
			s.repeats++
			continue
		}
		s.seen[in.Bot+" "+in.UpdateID] = true
		s.rows = append(s.rows, in)
	}
	if c != nil {
		s.cursors[c.Name] = cursor{c.Value, s.now()}
	}
	return nil
}

func (s *Store) ring() {
	if s.bell != nil {
		close(s.bell)
		s.bell = nil
	}
}

// Cursor returns the cursor that Put has stored.
func (s *Store) Cursor(_ context.Context, name string) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cursors[name]
	return c.value, c.updated, nil
}

// SetCursor stores a cursor as Put would at that time.
func (s *Store) SetCursor(name, value string, updated time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.cursors = map[string]bool{}, map[string]cursor{}
	}
	s.cursors[name] = cursor{value, updated}
}

// Load and Save are connectors.Memory.
func (s *Store) Load(_ context.Context, key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory[key], nil
}

func (s *Store) Save(_ context.Context, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = map[string]string{}
	}
	s.memory[key] = value
	return nil
}

// Break makes Put fail, or work again.
func (s *Store) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Rows returns the updates stored so far, in order.
func (s *Store) Rows() []core.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// Repeats returns the number of repeated updates, which were dropped.
func (s *Store) Repeats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeats
}

// Puts returns the number of calls of Put, failed ones included.
func (s *Store) Puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

// AwaitPuts waits until Put was called n times, failed calls included.
func (s *Store) AwaitPuts(t testing.TB, n int) {
	t.Helper()
	s.await(t, "calls of Put", func() bool { return s.puts >= n })
}

// Await waits for n stored updates, service updates not counted, and returns them.
func (s *Store) Await(t testing.TB, n int) []core.Inbound {
	t.Helper()
	var got []core.Inbound
	s.await(t, "updates", func() bool {
		got = Said(s.rows)
		return len(got) >= n
	})
	return got
}

// Said returns the updates that are not service updates.
func Said(rows []core.Inbound) []core.Inbound {
	return slices.DeleteFunc(slices.Clone(rows), func(in core.Inbound) bool { return in.Kind == core.KindService && in.Malformed == "" })
}

func (s *Store) await(t testing.TB, what string, done func() bool) {
	t.Helper()
	late := time.After(5 * time.Minute)
	for {
		s.mu.Lock()
		if done() {
			s.mu.Unlock()
			return
		}
		if s.bell == nil {
			s.bell = make(chan struct{})
		}
		bell := s.bell
		s.mu.Unlock()
		select {
		case <-bell:
		case <-late:
			t.Fatalf("the expected %s did not come; stored are %+v", what, s.Rows())
		}
	}
}
