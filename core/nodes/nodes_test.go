package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/nodes"
	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

func TestIDIsTheHostAndThePort(t *testing.T) {
	if a, b := nodes.ID("127.0.0.1:3333"), nodes.ID("[::]:3333"); a != b || !strings.HasSuffix(a, ":3333") || len(a) < 6 {
		t.Errorf("%q and %q", a, b)
	}
}

// A listed is a database on a server, and gateways in its list.
type listed struct {
	*testing.T
	at    string
	db    *store.DB
	clock *coretest.Clock
	log   coretest.Log
}

func newListed(t *testing.T) *listed {
	storetest.PostgresOnly(t, "gateways share a server")
	at := storetest.Fresh(t)
	return &listed{T: t, at: at, db: storetest.OpenAt(t, at, nil), clock: coretest.NewClock(time.Time{})}
}

// join adds a gateway to the list; leave stops it.
func (l *listed) join(id, version, state string) (leave func()) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		nodes.Keep(ctx, nodes.Self{Node: nodes.Node{ID: id, Version: version, Newest: 7, Address: "127.0.0.1:1", State: state}, Clock: l.clock,
			Log: slog.New(slog.NewTextHandler(&l.log, nil)), Open: func() (*sqlx.DB, error) { return postgres.Open(l.at, "", false, 1) }})
	}()
	l.waits(id + " " + version + " " + state)
	return func() { cancel(); <-done }
}

func (l *listed) do(query string, args ...any) {
	l.Helper()
	if err := l.db.Tx(l.Context(), func(tx *store.Tx) error { _, err := tx.Exec(l.Context(), query, args...); return err }); err != nil {
		l.Fatal(err)
	}
}

// all returns the list as text.
func (l *listed) all() (text string) {
	l.Helper()
	list, err := nodes.List(l.Context(), l.db)
	if err != nil {
		l.Fatal(err)
	}
	for _, n := range list {
		text += fmt.Sprintf("%s %s %s;", n.ID, n.Version, n.State)
	}
	return text
}

func (l *listed) waits(want string) {
	l.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(l.all(), want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("%q is not in the list: %s", want, l.all())
		}
	}
}

func TestTheOneThatServesIsFirstAndWhoLeavesIsNotListed(t *testing.T) {
	l := newListed(t)
	second := l.join("a:1", "v2", nodes.Standby)
	first := l.join("b:2", "v1", nodes.Serving)
	if got := l.all(); got != "b:2 v1 serving;a:1 v2 standby;" {
		t.Error(got)
	}
	first()
	if got := l.all(); got != "a:1 v2 standby;" {
		t.Error(got)
	}
	second()
	if got := l.all(); got != "" {
		t.Error(got)
	}
}

func TestASilentGatewayIsGoneUntilItIsHeardAgain(t *testing.T) {
	l := newListed(t)
	defer l.join("a:1", "v1", nodes.Standby)()
	l.do(`UPDATE nodes SET seen = seen - 11000`)
	list, err := nodes.List(t.Context(), l.db)
	if err != nil || len(list) != 1 || list[0].State != nodes.Gone || list[0].Silent < 11*time.Second || list[0].Newest != 7 || time.Since(list[0].Started).Abs() > time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
	l.clock.AwaitWaiters(1)
	l.clock.Advance(nodes.Every)
	l.waits("a:1 v1 standby")
}

func TestOneThatIsGoneForADayIsNotListed(t *testing.T) {
	l := newListed(t)
	for id, seen := range map[string]string{"old:1": "86401000", "new:1": "86000000"} {
		l.do(`INSERT INTO nodes (id, process, version, newest, address, state, started, seen)
			VALUES ($1, 'p', 'v1', 1, '', 'standby', 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - `+seen+`)`, id)
	}
	defer l.join("a:1", "v1", nodes.Serving)()
	for end := time.Now().Add(30 * time.Second); strings.Contains(l.all(), "old:1"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(l.all())
		}
	}
	if !strings.Contains(l.all(), "new:1 v1 gone") {
		t.Error(l.all())
	}
}

func TestTwoGatewaysOfOneNameAreReported(t *testing.T) {
	l := newListed(t)
	first := l.join("a:1", "v1", nodes.Serving)
	second := l.join("a:1", "v2", nodes.Standby) // like one that starts anew
	if strings.Contains(l.log.String(), "another gateway has the same name") {
		t.Errorf("a start is reported: %s", l.log.String())
	}
	l.clock.AwaitWaiters(2)
	l.clock.Advance(nodes.Every)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(l.log.String(), "another gateway has the same name"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("two of one name are not reported")
		}
	}
	second()
	first()
}

func TestADatabaseWithoutTheListIsLeftAlone(t *testing.T) {
	l := newListed(t)
	l.do(`ALTER TABLE nodes RENAME TO other`)
	ctx, cancel := context.WithCancel(t.Context())
	done, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		nodes.Keep(ctx, nodes.Self{Node: nodes.Node{ID: "a:1", State: nodes.Standby}, Clock: l.clock, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
			Open: func() (*sqlx.DB, error) { defer close(asked); return postgres.Open(l.at, "", false, 1) }})
	}()
	<-asked
	l.clock.AwaitWaiters(1)
	l.do(`ALTER TABLE other RENAME TO nodes`)
	l.clock.Advance(nodes.Every)
	l.waits("a:1")
	cancel()
	<-done
	if l.log.String() != "" {
		t.Errorf("it logs %s", l.log.String())
	}
}

// A stander is a gateway that stands by a process which has signed the vault's lock and was last
// heard of in 1970, "old".
type stander struct {
	*listed
	able   error
	holder string
	from   string
	looks  atomic.Int64
	stolen atomic.Int64
}

func (l *listed) stander() *stander {
	l.do(`INSERT INTO nodes (id, process, version, newest, address, state, started, seen) VALUES ('a:1', 'old', 'v1', 1, '', 'serving', 0, 0)`)
	return &stander{listed: l, holder: "old"}
}

// waitsFor has it stand by for some seconds, and calls each after each of its looks.
func (s *stander) waitsFor(looks int, each func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		nodes.Keep(ctx, nodes.Self{Node: nodes.Node{ID: "b:2", State: nodes.Standby}, Clock: s.clock, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
			Open:   func() (*sqlx.DB, error) { return postgres.Open(s.at, "", false, 1) },
			Able:   func(context.Context) error { s.looks.Add(1); return s.able },
			Holder: func() (string, error) { return s.holder, nil },
			Steal: func(process string) error {
				s.stolen.Add(1)
				s.from, s.holder = process, ""
				return nil
			}})
	}()
	for range looks {
		s.clock.AwaitWaiters(1)
		each()
		s.clock.Advance(nodes.Every)
	}
	s.clock.AwaitWaiters(1)
	cancel()
	<-done
}

// alone opens the database as the gateway does that serves.
func (l *listed) alone() *store.DB {
	l.Helper()
	db, err := store.Open(l.Context(), l.at, store.Options{Alone: time.Second})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = db.Close() })
	return db
}

// A gateway whose beats do not arrive, but that works in the database, is not replaced.
func TestAGatewayThatWorksIsNotReplaced(t *testing.T) {
	s := newListed(t).stander()
	serving := s.alone()
	s.waitsFor(9, func() {
		if err := serving.Save(t.Context(), "who", "serving"); err != nil {
			t.Errorf("the gateway that works cannot: %v", err)
		}
	})
	if s.looks.Load() == 0 || s.stolen.Load() > 0 || !strings.Contains(s.log.String(), "its session of the database works") {
		t.Errorf("%d looks, %d thefts: %s", s.looks.Load(), s.stolen.Load(), s.log.String())
	}
	if err := serving.Save(t.Context(), "who", "still serving"); err != nil {
		t.Errorf("the gateway that works was replaced: %v", err)
	}
}

// The vault may be locked by a command, or by a gateway that starts and migrates: neither beats.
func TestWhoHasNotSignedTheLockIsNotReplaced(t *testing.T) {
	s := newListed(t).stander()
	for _, holder := range []string{"", "another"} {
		s.holder = holder
		if s.waitsFor(9, func() {}); s.looks.Load() > 0 || s.stolen.Load() > 0 {
			t.Errorf("%q is replaced", holder)
		}
	}
}

func TestAGatewayThatCannotServeReplacesNone(t *testing.T) {
	s := newListed(t).stander()
	s.able = errors.New("it lacks a key")
	if s.waitsFor(9, func() {}); s.stolen.Load() > 0 || !strings.Contains(s.log.String(), "it lacks a key") {
		t.Errorf("%d thefts: %s", s.stolen.Load(), s.log.String())
	}
}

// The session of a gateway that is cut off may have ended, or the standby after it ended it.
func TestAGatewayWithoutASessionIsReplacedOnceAndItsTenureEnds(t *testing.T) {
	s := newListed(t).stander()
	serving := s.alone()
	if err := serving.Save(t.Context(), "who", "serving"); err != nil {
		t.Fatal(err)
	}
	var ended int
	if err := s.db.Get(t.Context(), &ended, storetest.EndHolder); err != nil || ended != 1 {
		t.Fatal(ended, err)
	}
	early := 0
	s.waitsFor(20, func() {
		if early++; early < 6 && s.stolen.Load() > 0 {
			t.Errorf("after %d looks", early)
		}
	})
	if n := s.stolen.Load(); n != 1 {
		t.Errorf("the vault's lock was taken %d times: %s", n, s.log.String())
	}
	if err := serving.Save(t.Context(), "who", "late"); core.KindOf(err) != core.Busy {
		t.Errorf("the one that was replaced writes: %v", err)
	}
}

func TestAGatewayThatWasReplacedIsToldSo(t *testing.T) {
	other := `INSERT INTO nodes (id, process, version, newest, address, state, started, seen)
		VALUES ('b:2', 'p', 'v1', 1, '', 'standby', 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000)`
	const taken, unread, hangs = 1, 2, 3
	for name, lose := range map[string]func(l *listed, vault *atomic.Int64){
		"in the database":                     func(l *listed, _ *atomic.Int64) { l.do(`UPDATE nodes SET state = 'replaced'`) },
		"in the vault":                        func(_ *listed, vault *atomic.Int64) { vault.Store(taken) },
		"in the vault, without the database":  func(l *listed, vault *atomic.Int64) { l.do(`ALTER TABLE nodes RENAME TO away`); vault.Store(taken) },
		"the vault cannot be read, one waits": func(l *listed, vault *atomic.Int64) { l.do(other); vault.Store(unread) },
		"the vault hangs, and one waits":      func(l *listed, vault *atomic.Int64) { l.do(other); vault.Store(hangs) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newListed(t)
			var vault atomic.Int64
			goOn := make(chan struct{})
			defer close(goOn)
			told, done, signed := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			go func() {
				defer close(done)
				nodes.Keep(t.Context(), nodes.Self{Node: nodes.Node{ID: "a:1", State: nodes.Serving}, Clock: l.clock, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
					Open: func() (*sqlx.DB, error) { return postgres.Open(l.at, "", false, 1) }, Replaced: func() { close(told) },
					Sign: func(process string) error { signed <- process; return nil }, Holds: func() (bool, error) {
						switch vault.Load() {
						case unread:
							return false, errors.New("no")
						case hangs:
							<-goOn
						}
						return vault.Load() != taken, nil
					}})
			}()
			l.waits("a:1  serving")
			l.clock.AwaitWaiters(1)
			var process string
			if err := l.db.Get(t.Context(), &process, `SELECT process FROM nodes`); err != nil || process != <-signed {
				t.Errorf("it has not signed as %q, %v", process, err)
			}
			lose(l, &vault)
			for gone := false; !gone; {
				l.clock.Advance(time.Second)
				select {
				case <-told:
					gone = true
				case <-time.After(2 * time.Millisecond):
				}
			}
			<-done
			var left int
			if _ = l.db.Get(t.Context(), &left, `SELECT count(*) FROM nodes WHERE process = $1`, process); left != 1 && name != "in the vault, without the database" {
				t.Error("it has left the list: nobody takes the vault's lock from it, should it hang")
			}
		})
	}
}

// A file server that is away for a while ends no gateway that nobody can replace.
func TestAGatewayWhoseVaultDoesNotAnswerGoesOnIfNoneStandsBy(t *testing.T) {
	l := newListed(t)
	ctx, cancel := context.WithCancel(t.Context())
	done, looks := make(chan struct{}), make(chan struct{}, 100)
	go func() {
		defer close(done)
		nodes.Keep(ctx, nodes.Self{Node: nodes.Node{ID: "a:1", State: nodes.Serving}, Clock: l.clock, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
			Open: func() (*sqlx.DB, error) { return postgres.Open(l.at, "", false, 1) }, Replaced: func() { t.Error("it ends") },
			Holds: func() (bool, error) { looks <- struct{}{}; return false, errors.New("no") }})
	}()
	for range 30 {
		l.clock.AwaitWaiters(2)
		l.clock.Advance(time.Second)
	}
	cancel()
	<-done
	if len(looks) == 0 {
		t.Error("the vault was not looked at")
	}
}

// The standby that ended the session may have been ended itself before it took the lock of the vault.
func TestTheLockOfOneThatWasReplacedIsTakenByAnyThatStandsBy(t *testing.T) {
	s := newListed(t).stander()
	s.do(`UPDATE nodes SET state = 'replaced'`)
	if s.waitsFor(1, func() {}); s.stolen.Load() == 0 || s.from != "old" {
		t.Errorf("%d thefts, from %q: %s", s.stolen.Load(), s.from, s.log.String())
	}
}

// Nothing is taken from the vault before the database is.
func TestAReplacementThatFailsInTheDatabaseTakesNothingFromTheVault(t *testing.T) {
	s := newListed(t).stander()
	s.do(`ALTER TABLE metadata RENAME TO elsewhere`)
	if s.waitsFor(9, func() {}); s.looks.Load() == 0 || s.stolen.Load() > 0 {
		t.Errorf("%d looks, %d thefts: %s", s.looks.Load(), s.stolen.Load(), s.log.String())
	}
	s.do(`ALTER TABLE elsewhere RENAME TO metadata`)
}

// One that is about to be replaced stops receiving first: a platform sends to one receiver.
func TestAGatewayIsToldWhenItIsCutOffAndWhenItIsBackIfOneStandsBy(t *testing.T) {
	for _, stands := range []bool{true, false} {
		t.Run(map[bool]string{true: "one stands by", false: "none stands by"}[stands], func(t *testing.T) {
			l := newListed(t)
			if stands {
				l.do(`INSERT INTO nodes (id, process, version, newest, address, state, started, seen)
					VALUES ('b:2', 'p', 'v1', 1, '', 'standby', 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000)`)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done, told := make(chan struct{}), make(chan bool, 10)
			go func() {
				defer close(done)
				nodes.Keep(ctx, nodes.Self{Node: nodes.Node{ID: "a:1", State: nodes.Serving}, Clock: l.clock, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
					Open: func() (*sqlx.DB, error) { return postgres.Open(l.at, "", false, 1) }, Cut: func(off bool) bool { told <- off; return true }})
			}()
			step := func() {
				l.clock.AwaitWaiters(2)
				l.clock.Advance(time.Second)
			}
			for range 4 { // the second beat knows who stands by
				step()
			}
			l.do(`ALTER TABLE nodes RENAME TO other`)
			for range 15 {
				step()
			}
			l.clock.AwaitWaiters(2)
			if stands != (len(told) == 1) || stands && !<-told {
				t.Errorf("it was told %d times", len(told))
			}
			l.do(`ALTER TABLE other RENAME TO nodes`)
			for range 4 {
				step()
			}
			l.clock.AwaitWaiters(2)
			if stands != (len(told) == 1) || stands && <-told {
				t.Errorf("that it is back was told %d times", len(told))
			}
			cancel()
			<-done
		})
	}
}
