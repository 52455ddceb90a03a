package vaultsync_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"gatehouse/core/vaultsync"
)

// A scale measures the memory in use whenever it is asked for the time, which transactions do.
type scale struct {
	*coretest.Clock
	mu         sync.Mutex
	base, most uint64
	weighings  int
}

func (s *scale) weigh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has found finished
	runtime.ReadMemStats(&m)
	if s.weighings++; s.weighings == 1 {
		s.base = m.HeapAlloc
	}
	s.most = max(s.most, m.HeapAlloc)
}

func (s *scale) Now() time.Time {
	s.weigh()
	return s.Clock.Now()
}

// The list of a vault is made a row at a time, while it is scanned first, scanned again, and
// written.
func TestList_NeedsNoMoreMemoryForManyFiles(t *testing.T) {
	const files, most = 12_000, 3 << 20 // all rows in memory are 6 MiB and more
	dir := t.TempDir()
	w := &world{t: t, dir: dir}
	for i := range files {
		w.write(fmt.Sprintf("Notes/%02d/a note with a name %05d.md", i%60, i), "x")
	}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	s := &scale{Clock: coretest.NewClock(time.Now())}
	store := vaultsync.New(vaultsync.Options{DB: storetest.Open(t, s), Vault: v, Clock: s, Log: slog.New(slog.DiscardHandler)})
	asked := 0
	a := vaultsync.Area{User: core.Operator, Trust: core.Vault, May: func(core.Trust, int64, string, bool) bool {
		if asked++; asked%(files/6) == 0 {
			s.weigh()
		}
		return true
	}}
	for _, when := range []string{"first", "again"} {
		s.weighings, s.base, s.most = 0, 0, 0
		s.weigh()
		l, err := store.List(context.Background(), a, vaultsync.Query{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, l)
		if closed := l.Close(); err != nil || closed != nil || n != l.Size() || n < files*100 {
			t.Errorf("%s: a list of %d bytes, want %d: %v, %v", when, n, l.Size(), err, closed)
		}
		if grown := int64(s.most - s.base); s.weighings < 7 || grown > most {
			t.Errorf("%s: the list of %d files takes %.1f MiB, weighed %d times", when, files, float64(grown)/(1<<20), s.weighings)
		} else {
			t.Logf("%s: %.1f MiB, weighed %d times", when, float64(grown)/(1<<20), s.weighings)
		}
	}
}
