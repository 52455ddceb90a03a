package store_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
)

// alone opens the database as the gateway does.
func alone(t *testing.T, at string) (*store.DB, error) {
	t.Helper()
	db, err := store.Open(t.Context(), at, store.Options{Alone: 300 * time.Millisecond})
	if err == nil {
		t.Cleanup(func() { _ = db.Close() })
	}
	return db, err
}

// cutOff ends the session of the gateway that has the database, over db.
func cutOff(t *testing.T, db *store.DB) {
	t.Helper()
	var ended int
	if err := db.Get(t.Context(), &ended, storetest.EndHolder); err != nil || ended != 1 {
		t.Fatal(ended, err)
	}
}

func TestOneGatewayUsesADatabaseOnAServer(t *testing.T) {
	storetest.PostgresOnly(t, "a file is locked by its vault")
	at := storetest.Fresh(t)
	first, err := alone(t, at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = alone(t, at)
	if core.KindOf(err) != core.Busy || !strings.Contains(err.Error(), "another gateway uses this database (process ") {
		t.Errorf("a second gateway: %v", err)
	}
	if other, err := alone(t, storetest.Fresh(t)); err != nil {
		t.Errorf("a gateway with another schema: %v", err)
	} else if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := alone(t, at); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
}

// A gateway whose connection broke and whose place another one took writes nothing more.
func TestAGatewayThatLostItsLockWritesNothing(t *testing.T) {
	storetest.PostgresOnly(t, "a file is locked by its vault")
	at := storetest.Fresh(t)
	note := func(db *store.DB, text string) error {
		return db.Tx(context.Background(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "who", text) })
	}
	first, err := alone(t, at)
	if err != nil {
		t.Fatal(err)
	}
	helper := storetest.OpenAt(t, at, nil)
	cutOff(t, helper)
	if err := note(first, "first, again"); err != nil {
		t.Errorf("with nobody else there, over a new connection: %v", err)
	}
	cutOff(t, helper)
	second, err := alone(t, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := note(second, "second"); err != nil {
		t.Fatal(err)
	}
	if err := note(first, "first, late"); core.KindOf(err) != core.Busy {
		t.Errorf("the first gateway wrote without the lock: %v", err)
	}
	var all sync.WaitGroup
	for begun, i := time.Now(), 0; i < 60; i++ {
		all.Go(func() {
			if err := note(first, "first, late"); core.KindOf(err) != core.Busy || time.Since(begun) > 9*time.Second { // not each after a wait of its own
				t.Errorf("one of many: %v after %v", err, time.Since(begun))
			}
		})
	}
	all.Wait()
	if text, _, err := store.Metadata(t.Context(), helper, "who"); text != "second" || err != nil {
		t.Errorf("the database has %q, %v", text, err)
	}
}

// One that was cut off, and comes back when the one that took its place has ended too, does not know
// what that one has done.
func TestAGatewayThatComesBackAfterAnotherOneWritesNothing(t *testing.T) {
	storetest.PostgresOnly(t, "a file is locked by its vault")
	at := storetest.Fresh(t)
	taken := make(chan struct{})
	first, err := store.Open(t.Context(), at, store.Options{Alone: 300 * time.Millisecond, OnTaken: func() { close(taken) }})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cutOff(t, storetest.OpenAt(t, at, nil))
	second, err := alone(t, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := first.Save(t.Context(), "who", "first"); core.KindOf(err) != core.Busy {
			t.Errorf("the first gateway wrote: %v", err)
		}
	}
	<-taken
	third, err := alone(t, at)
	if err != nil {
		t.Fatalf("the first one keeps the lock: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

func TestAfterItsEndAGatewayWritesNothing(t *testing.T) {
	storetest.PostgresOnly(t, "no one takes a file away")
	taken := make(chan struct{})
	db, err := store.Open(t.Context(), storetest.Fresh(t), store.Options{Alone: 300 * time.Millisecond, OnTaken: func() { close(taken) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Save(t.Context(), "who", "first"); err != nil {
		t.Fatal(err)
	}
	end := core.Errorf(core.Busy, "another one is there")
	db.End(end)
	db.End(core.Errorf(core.Busy, "and another"))
	<-taken
	if err := db.Save(t.Context(), "who", "late"); !errors.Is(err, end) {
		t.Errorf("it wrote: %v", err)
	}
	if text, err := db.Load(t.Context(), "who"); text != "first" || err != nil {
		t.Errorf("it reads %q, %v", text, err)
	}
}

// Who is replaced may just be waiting for the lock.
func TestItsEndEndsAWaitForTheLock(t *testing.T) {
	storetest.PostgresOnly(t, "no one takes a file away")
	at := storetest.Fresh(t)
	first, err := store.Open(t.Context(), at, store.Options{Alone: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cutOff(t, storetest.OpenAt(t, at, nil))
	if _, err := alone(t, at); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error)
	go func() { wrote <- first.Save(t.Context(), "who", "first") }()
	end := core.Errorf(core.Busy, "another one is there")
	first.End(end)
	if err := <-wrote; !errors.Is(err, end) {
		t.Errorf("it wrote: %v", err)
	}
}

func TestASchemaThatDoesNotExistIsNamed(t *testing.T) {
	storetest.PostgresOnly(t, "files have none")
	u, err := url.Parse(storetest.Fresh(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", "nowhere")
	u.RawQuery = q.Encode()
	_, opened := alone(t, u.String())
	_, looked := postgres.Look(t.Context(), u.String(), "")
	for what, err := range map[string]error{"Open": opened, "Look": looked} {
		if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "search_path") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTextThatPostgreSQLCannotStoreIsStoredWithoutIt(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite stores any bytes")
	db := storetest.Open(t, nil)
	const odd = "a\x00b\xffc \u00e4"
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, odd, odd) }); err != nil {
		t.Fatal(err)
	}
	if text, ok, err := store.Metadata(t.Context(), db, odd); text != "a\ufffdb\ufffdc \u00e4" || !ok || err != nil {
		t.Errorf("%q, %t, %v", text, ok, err)
	}
}

func TestLookReadsADatabaseOnAServerAndChangesNothing(t *testing.T) {
	storetest.PostgresOnly(t, "files have Examine and Peek")
	at := storetest.Fresh(t)
	found, err := postgres.Look(t.Context(), at, "", "who")
	if err != nil || found.Version != 0 || found.Server == "" || found.Metadata["who"] != "" {
		t.Errorf("an empty schema: %+v, %v", found, err)
	}
	db, err := alone(t, at) // Look left nothing there: it would be of something else
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "who", "me") }); err != nil {
		t.Fatal(err)
	}
	if found, err = postgres.Look(t.Context(), at, "", "who"); err != nil || found.Version != store.Newest() || found.Metadata["who"] != "me" {
		t.Errorf("while a gateway runs: %+v, %v", found, err)
	}
}
