package store

import (
	"context"
	"database/sql/driver"

	"gatehouse/core/store/fulltext"
	"gatehouse/core/store/migrations"
)

// An engine is what differs between SQLite and PostgreSQL once a database is
// open. All else is one text for both; migrations have their own rule (package
// migrations). Both have the one writer and its group commit, with the same
// promises: on PostgreSQL it saves flushes of the server's log, as it does on
// SQLite, and each closure its own connection. PostgreSQL differs in one thing
// that a closure must know: a statement that fails ends the transaction up to
// the last savepoint. Where SQLite would let a closure go on, there the commit
// fails. So what may fail is asked for by ON CONFLICT DO NOTHING, or is in a Try.
type engine struct {
	kind       migrations.Engine
	begin      string                    // the writer's transaction
	bind       func(query string) string // translates the placeholders $1, $2 …
	args       func(args []any) []any    // makes them what the engine can store
	returning  string                    // ends an INSERT to return its integer key; "": the driver returns it
	skipLocked string                    // see Tx.SkipLocked
	forUpdate  string                    // see Tx.ForUpdate
	optimistic bool                      // several jobs are tried without savepoints: a statement that fails alone undoes itself alone
	again      func(error) bool          // lost against other transactions: worth another run
	pause      string                    // before another run: a statement that lets the others finish
	lost       func(error) bool          // the connection is gone
	farewell   string                    // the writer's last statement

	match      func(table string, terms []fulltext.Term, first int) (cond string, args []any) // see DB.Match
	words      func(text string) string                                                       // see Tx.Words
	emptyWords string                                                                         // see Tx.EmptyWords
	rank       string                                                                         // see DB.Rank
	merged     []string                                                                       // tables of DB.MergeWords and DB.MergeSome
}

var sqlite = engine{
	kind:       migrations.SQLite,
	begin:      "BEGIN IMMEDIATE", // a transaction never has to give up half way
	bind:       numbered,
	args:       func(args []any) []any { return args },
	optimistic: true,
	again:      func(error) bool { return false }, // there is no other writer
	lost:       func(error) bool { return false },
	farewell:   "PRAGMA wal_checkpoint(TRUNCATE)",

	match:      fulltext.FTS5,
	words:      func(text string) string { return text },
	emptyWords: "INSERT INTO session_words (session_words) VALUES ('delete-all')",
	rank:       "rank",
	merged:     fulltext.Tables(),
}

func postgreSQL(server Server) engine {
	return engine{
		kind:       migrations.Postgres,
		begin:      "BEGIN ISOLATION LEVEL READ COMMITTED",
		bind:       func(query string) string { return query },
		args:       server.Storable,
		returning:  " RETURNING lastval()", // the identity that this row has just drawn
		skipLocked: " FOR UPDATE SKIP LOCKED",
		forUpdate:  " FOR UPDATE",
		again:      server.Again,
		pause:      "SELECT pg_sleep(0.01 + random() / 20)", // who runs at once takes its locks again before those who waited
		lost:       server.Lost,

		match:      fulltext.Like,
		words:      func(text string) string { return " " + text + " " },
		emptyWords: "DELETE FROM session_words",
		rank:       "rowid",
	}
}

// maxAgain bounds how often a transaction that lost against another is run.
const maxAgain = 5

// SkipLocked returns the end of a SELECT … LIMIT n that selects rows to update: on
// PostgreSQL it skips those that another node's transaction has locked; on SQLite
// there is no other writer and it is empty.
func (t *Tx) SkipLocked() string { return t.db.engine.skipLocked }

// ForUpdate returns the end of a SELECT that locks its rows until the commit; "" on
// SQLite, which has no other writer. A statement on PostgreSQL sees what was
// committed before it began, also after it has waited for a row: to change a row
// by the content of others, lock it first in a separate statement.
func (t *Tx) ForUpdate() string { return t.db.engine.forUpdate }

// begin begins the writer's transaction, over a new connection when the old one
// is gone: nothing has been done yet that could be done twice.
func (d *DB) begin() error {
	if err := d.tenure.Err(); err != nil {
		return err
	}
	err := d.exec(d.engine.begin)
	if !d.engine.lost(err) {
		return err
	}
	conn, err := d.write.Connx(context.Background())
	if err != nil {
		return err
	}
	if err := d.tenure.Again(conn); err != nil {
		// Not back to the pool: its session may have got the lock, which is another gateway's to take.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return err
	}
	for _, s := range d.stmts {
		_ = s.Close()
	}
	_ = d.conn.Close()
	d.conn, d.stmts = conn, map[string]*stmt{}
	return d.exec(d.engine.begin)
}
