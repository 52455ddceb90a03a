package store_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A rest gives back what is kept to be faster, and the next who come find
// everything as it was.
func TestARestGivesBackWhatIsKeptAndNothingElse(t *testing.T) {
	storetest.SQLiteOnly(t, "its connections' memory")
	ctx := t.Context()
	db := storetest.Open(t, nil)
	var readers sync.WaitGroup
	met := make(chan struct{})
	for i := range 4 {
		readers.Go(func() { // all at once, each on a connection of its own
			var rows []int
			if i == 0 {
				close(met)
			}
			<-met
			for range 50 {
				if err := db.Select(ctx, &rows, `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 2000) SELECT n FROM c`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	if err := set(ctx, db, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if statements, _, err := db.Kept(ctx); err != nil || statements == 0 {
		t.Fatalf("%d statements are kept, %v", statements, err)
	}
	if err := db.Rest(ctx); err != nil {
		t.Fatal(err)
	}
	if statements, idle, err := db.Kept(ctx); err != nil || statements != 0 || idle > 1 {
		t.Errorf("after a rest %d statements and %d readers are kept, %v", statements, idle, err)
	}
	if err := set(ctx, db, "b", "2"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "1", "b": "2"} {
		if got, _, err := store.Metadata(ctx, db, key); err != nil || got != want {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
}

// Whoever reads and writes while the store rests notices nothing.
func TestRestsNextToWorkLoseNothing(t *testing.T) {
	ctx := t.Context()
	db := storetest.Open(t, nil)
	const each = 60
	var work sync.WaitGroup
	for who := range 4 {
		work.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d.%d", who, i)
				if err := set(ctx, db, key, "x"); err != nil {
					t.Error(err)
				}
				if got, _, err := store.Metadata(ctx, db, key); err != nil || got != "x" {
					t.Errorf("%s is %q, %v", key, got, err)
				}
			}
		})
	}
	over := make(chan struct{})
	rests := make(chan error, 1)
	go func() {
		for {
			select {
			case <-over:
				rests <- nil
				return
			default:
			}
			if err := db.Rest(ctx); err != nil {
				rests <- err
				return
			}
		}
	}()
	work.Wait()
	close(over)
	if err := <-rests; err != nil {
		t.Error(err)
	}
	var n int
	if err := db.Get(ctx, &n, `SELECT count(*) FROM metadata WHERE value = 'x'`); err != nil || n != 4*each {
		t.Errorf("%d of %d values are there, %v", n, 4*each, err)
	}
}

// The gateway carries no driver of PostgreSQL: an address of one is refused in
// words, and without the password that it may hold.
func TestAProgramWithoutTheDriverRefusesAServer(t *testing.T) {
	store.WithoutServer(func() {
		_, err := store.Open(t.Context(), "postgres://me:secret@127.0.0.1:1/db", store.Options{})
		if core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), "PostgreSQL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	})
}

// What the closures of transactions held is free for collection when they are done, also
// while the writer waits for the next.
func TestTheWriterHoldsNothingOfFinishedTransactions(t *testing.T) {
	db := storetest.Open(t, nil)
	const closures = 20
	freed := make(chan int, closures)
	var all sync.WaitGroup
	for i := range closures {
		all.Go(func() {
			held := make([]byte, 1<<20)
			runtime.AddCleanup(&held[0], func(i int) { freed <- i }, i)
			err := db.Tx(t.Context(), func(tx *store.Tx) error {
				return store.SetMetadata(t.Context(), tx, fmt.Sprint("key", i), fmt.Sprint(len(held)))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for end, n := time.Now().Add(5*time.Minute), 0; n < closures; {
		runtime.GC()
		select {
		case <-freed:
			n++
		case <-time.After(10 * time.Millisecond): // cleanups run on a goroutine of their own
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d closures are still held", closures-n, closures)
		}
	}
}
