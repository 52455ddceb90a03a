package sidecar

import (
	"log/slog"
	"testing"
	"time"
)

// A session is deleted on the database's writer, which is not to wait until all sidecars are written.
func TestDropWaitsForTheSidecarOfItsSessionAlone(t *testing.T) {
	f := New(nil, slog.New(slog.DiscardHandler))
	f.writing, f.now, f.dirty = true, "slow", map[string]Sidecar{"gone": {}, "other": {}}
	drop := func(id string) <-chan struct{} {
		done := make(chan struct{})
		go func() { defer close(done); f.Drop(id) }()
		return done
	}
	await := func(done <-chan struct{}) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("it waits for the others")
		}
	}
	await(drop("gone"))
	if _, waits := f.dirty["gone"]; waits || len(f.dirty) != 1 {
		t.Errorf("%d sidecars wait", len(f.dirty))
	}
	slow := drop("slow")
	select {
	case <-slow:
		t.Error("it does not wait for its own")
	default:
	}
	f.mu.Lock()
	f.now = ""
	f.idle.Broadcast()
	f.mu.Unlock()
	await(slow)
}
