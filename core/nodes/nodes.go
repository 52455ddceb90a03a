// Package nodes keeps the list of the gateways that share a database on a PostgreSQL
// server: which one serves, which ones stand by, and when each was last alive. It owns the
// table nodes.
package nodes

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Times of the list.
const (
	Every   = 2 * time.Second  // a node tells that it is alive
	Silence = 10 * time.Second // after which it counts as gone
	keep    = 24 * time.Hour   // a node that is gone stays in the list
	limit   = 4 * time.Second  // of one beat
	repeat  = 10 * time.Minute // between two equal warnings
)

// States of a node.
const (
	Serving = "serving"
	Standby = "standby"
	Gone    = "gone" // it did not end properly, and is not heard from; not stored

	replaced = "replaced" // stored, and listed as gone
)

// A Node is one gateway.
type Node struct {
	ID      string        `db:"id"` // ID's
	Version string        `db:"version"`
	Newest  int64         `db:"newest"` // the newest migration that its program has
	Address string        `db:"address"`
	State   string        `db:"state"`
	Started time.Time     `db:"-"`
	Silent  time.Duration `db:"-"` // since it was last heard from, by the server's clock
}

// Outdated reports whether n waits in vain: its program has not got the newest migration of
// the database.
func (n Node) Outdated(newest int64) bool { return n.State == Standby && n.Newest < newest }

// ID returns the name of the gateway that listens on addr of this machine, such as
// "gate1:3333". It stays the same when the gateway starts anew.
func ID(addr string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// A Self is the gateway that this process is.
type Self struct {
	Node  // Started and Silent are not used
	Clock core.Clock
	Log   *slog.Logger
	// Open connects to the database; Keep uses one connection and closes it.
	Open func() (*sqlx.DB, error)
	// Of one that serves: Sign notes in the vault's lock which process has it, and Holds reports
	// whether it still has it; an error means that the vault cannot be read. Holds may take any time.
	Sign  func(process string) error
	Holds func() (bool, error)
	// Of one that stands by, together: Holder returns the process that has signed the vault's lock, "" for
	// another program. Steal takes the lock from that process. Able returns why this program could
	// not serve the database and the vault, or nil.
	Holder func() (process string, err error)
	Steal  func(process string) error
	Able   func(ctx context.Context) error
	// Time, if not nil, is told the server's time at each beat that is answered promptly, or after several that were not.
	Time func(now time.Time)
	// Cut, of one that serves, is told when it has not reached the database for so long that one that stands by
	// is about to replace it, and when it reaches the database again; until it returns true it is called again
	// each second. It is not called concurrently.
	Cut func(off bool) (done bool)
	// Replaced, of one that serves, is called once when that has been done to it, or is left to be done because it does
	// not reach the vault.
	Replaced func()
}

// Keep has the list show that this process is alive, until ctx ends; then it is taken out of the
// list. While the server is away, or has no such table yet, it tries again.
func Keep(ctx context.Context, s Self) {
	db, err := s.Open()
	if err != nil {
		s.Log.Error("this gateway is not in the list of gateways", "err", err)
		return
	}
	defer db.Close()
	k := keeper{Self: s, db: db, process: rand.Text(), said: map[string]time.Time{}}
	work, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() { end(); beside.Wait() }()
	if s.Cut != nil {
		beside.Go(func() { k.tellCut(work) })
	}
	if s.Holds != nil {
		beside.Go(func() { defer end(); k.watchVault(work) })
	}
	for n := 0; ; n++ {
		err := k.limited(work, func(ctx context.Context) error { return k.beat(ctx, n) })
		if errors.Is(err, errReplaced) {
			k.end(err)
			break
		}
		if k.warn("this gateway cannot be noted in the list of gateways", err); s.Steal != nil {
			k.warn("a gateway that is not heard of cannot be replaced", k.watch(work))
		}
		if !core.Sleep(work, s.Clock, Every) {
			break
		}
	}
	if k.ended.Load() {
		return // its place in the list is for the one that replaces it
	}
	k.warn("this gateway could not be taken out of the list of gateways", k.limited(context.WithoutCancel(ctx), k.leave))
}

// A keeper is the work of Keep.
type keeper struct {
	Self
	db      *sqlx.DB
	process string
	noted   bool
	signed  bool
	slow    int                  // beats in a row whose answer was late
	said    map[string]time.Time // by the text of a warning, of which there are four
	silence silence
	reached reached
	vault   reach
	ended   atomic.Bool // by end
}

// end ends this gateway.
func (k *keeper) end(because error) {
	if !k.ended.Swap(true) {
		k.Log.Error("this gateway ends", "node", k.ID, "because", because)
		k.Replaced()
	}
}

func (k *keeper) limited(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// warn logs a warning, and not again soon.
func (k *keeper) warn(text string, err error) {
	if err == nil || k.Clock.Now().Sub(k.said[text]) < repeat {
		return
	}
	k.said[text] = k.Clock.Now()
	k.Log.Warn(text, "node", k.ID, "err", err)
}

// Agree tells f the time of a database's server, as exactly as it answers soon.
func Agree(ctx context.Context, db *store.DB, f func(now time.Time)) error {
	for try := 0; ; try++ {
		var ms int64
		asked := time.Now()
		if err := db.Get(ctx, &ms, `SELECT `+now); err != nil {
			return err
		}
		if time.Since(asked) < prompt || try == 3 {
			f(time.UnixMilli(ms))
			return nil
		}
	}
}

// prompt is an answer of the server that states its time of now. Of answers that are all later one in so many counts.
const (
	prompt  = 200 * time.Millisecond
	slowest = 5
)

const now = `floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// beat notes that this process is alive, for the n-th time.
func (k *keeper) beat(ctx context.Context, n int) error {
	if !k.noted { // the table is made by a gateway that serves
		if ok, err := hasTable(ctx, k.db); err != nil || !ok {
			return err
		}
	}
	var seen []struct {
		At     int64 `db:"seen"`
		Others bool  `db:"others"`
	}
	asked, clock := time.Now(), k.Clock.Now()
	err := k.db.SelectContext(ctx, &seen, `UPDATE nodes SET seen = `+now+` WHERE id = $1 AND process = $2 AND state = $3
		RETURNING seen, EXISTS (SELECT 1 FROM nodes AS o WHERE o.state = '`+Standby+`' AND o.seen > `+now+` - $4) AS others`, k.ID, k.process, k.State, Silence.Milliseconds())
	if err != nil {
		return err
	}
	k.reached.note(clock, len(seen) > 0 && seen[0].Others)
	if k.slow++; time.Since(asked) < prompt {
		k.slow = 0
	}
	switch {
	case len(seen) > 0 && k.Time != nil && k.slow%slowest == 0:
		k.Time(time.UnixMilli(seen[0].At))
	case len(seen) == 0:
		if err := k.unlessReplaced(ctx); err != nil {
			return err
		}
		if err := k.enter(ctx); err != nil {
			return err
		}
	}
	k.noted = true
	if k.Sign != nil && !k.signed {
		if err := k.Sign(k.process); err != nil {
			return err
		}
		k.signed = true
	}
	if k.State != Serving || n%int(time.Hour/Every) != 0 {
		return nil
	}
	_, err = k.db.ExecContext(ctx, `DELETE FROM nodes WHERE seen < `+now+` - $1`, keep.Milliseconds())
	return err
}

// enter notes this process in place of an earlier one with its name.
func (k *keeper) enter(ctx context.Context) error {
	var again bool
	err := k.db.GetContext(ctx, &again, `INSERT INTO nodes (id, process, version, newest, address, state, started, seen)
		VALUES ($1, $2, $3, $4, $5, $6, `+now+`, `+now+`)
		ON CONFLICT (id) DO UPDATE SET process = excluded.process, version = excluded.version, newest = excluded.newest,
			address = excluded.address, state = excluded.state, started = excluded.started, seen = excluded.seen
		RETURNING xmax <> 0`, k.ID, k.process, k.Version, k.Newest, k.Address, k.State)
	if again && k.noted {
		k.warn("two gateways", core.Errorf(core.Conflict, "another gateway has the same name and port: give each machine or container a host name of its own. Until then neither can be replaced if it is silent"))
	}
	return err
}

func (k *keeper) leave(ctx context.Context) error {
	if !k.noted {
		return nil
	}
	_, err := k.db.ExecContext(ctx, `DELETE FROM nodes WHERE id = $1 AND process = $2`, k.ID, k.process)
	return err
}

// gone selects the gateways that are not heard of for $1 milliseconds, or were replaced.
const gone = `(seen < ` + now + ` - $1 OR state = '` + replaced + `')`

const selectNodes = `SELECT id, version, newest, address, CASE WHEN ` + gone + ` THEN '` + Gone + `' ELSE state END AS state, started, ` + now + ` - seen AS silent
	FROM nodes ORDER BY CASE WHEN ` + gone + ` THEN 2 WHEN state = '` + Serving + `' THEN 0 ELSE 1 END, id LIMIT 100`

type row struct {
	Node
	Started int64 `db:"started"`
	Silent  int64 `db:"silent"`
}

// List returns the gateways that share the database of db, at most 100, the one that serves first. On
// SQLite there are none.
func List(ctx context.Context, db *store.DB) ([]Node, error) {
	if !store.OnServer(db.Path()) {
		return nil, nil
	}
	var rows []row
	err := db.Select(ctx, &rows, selectNodes, Silence.Milliseconds())
	return list(rows), err
}

// Look is List over another connection, which may be read-only; it lists none where there
// is no such table yet.
func Look(ctx context.Context, db *sqlx.DB) ([]Node, error) {
	if ok, err := hasTable(ctx, db); err != nil || !ok {
		return nil, err
	}
	var rows []row
	err := db.SelectContext(ctx, &rows, selectNodes, Silence.Milliseconds())
	return list(rows), err
}

func hasTable(ctx context.Context, db *sqlx.DB) (ok bool, err error) {
	err = db.GetContext(ctx, &ok, `SELECT to_regclass('nodes') IS NOT NULL`)
	return ok, err
}

func list(rows []row) []Node {
	var out []Node
	for _, r := range rows {
		r.Node.Started, r.Node.Silent = time.UnixMilli(r.Started), time.Duration(max(0, r.Silent))*time.Millisecond
		out = append(out, r.Node)
	}
	return out
}
