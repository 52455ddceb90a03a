package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/erasure"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// most is how many rows one commit may change, shadow tables of the full-text
// index among them, so that nobody waits long for the one writer.
const most = 5_000

// A crowded writer has somebody else commit all the time and sees how many rows
// were changed for each commit in between.
type crowded struct {
	w       *world
	worst   int64 // rows for one commit
	commits int64
	waited  time.Duration // the longest
}

// during runs f while somebody else commits.
func (c *crowded) during(f func()) {
	c.w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	db := c.w.app.db
	began := make(chan struct{})
	wg.Go(func() {
		var was, commits int64
		for n := 0; n < 2 || ctx.Err() == nil; n++ {
			var now int64
			at := time.Now()
			err := db.Tx(context.Background(), func(tx *store.Tx) error {
				if err := store.SetMetadata(ctx, tx, "crowded", fmt.Sprint(n)); err != nil {
					return err
				}
				return tx.Get(ctx, &now, `SELECT total_changes()`)
			})
			if err != nil {
				c.w.t.Error(err)
				return
			}
			c.waited = max(c.waited, time.Since(at))
			made := db.Commits() // perhaps one more than now knows of, or one less
			if n == 0 {
				close(began)
			} else {
				c.worst = max(c.worst, (now-was)/(made-commits+1))
				c.commits += made - commits
			}
			was, commits = now, made
		}
	})
	<-began
	f()
	stop()
	wg.Wait()
}

// inserts runs statements with the person's number and the time.
func (w *world) inserts(user int64, queries ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	err := w.app.db.Tx(ctx, func(tx *store.Tx) error {
		for _, q := range queries {
			q = strings.ReplaceAll(q, "USER", fmt.Sprint(user))
			if _, err := tx.Exec(ctx, strings.ReplaceAll(q, "NOW", core.Stamp(w.app.clock.Now()))); err != nil {
				return fmt.Errorf("%w in %s", err, q)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// upTo is the beginning of a statement over n = 1 … most.
func upTo(most int) string {
	return fmt.Sprintf(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %d) `, most)
}

const manyID = `printf('00000000-0000-4000-9000-%012d', n)`

// many gives somebody size rows in each table that may be large.
func (l *life) many(size int) {
	sessions, docs := size/50, 50
	l.w.inserts(l.user,
		`INSERT INTO sessions (id, title, created_at, last_accessed, user_id) `+upTo(sessions)+`SELECT `+manyID+`, 'xyzzyword', 'NOW', 'NOW', USER FROM c`,
		`INSERT INTO session_aliases (user_id, alias, session_id) `+upTo(sessions)+`SELECT USER, 'xyzzyword' || n, `+manyID+` FROM c`,
		`INSERT INTO session_tags (session_id, tag, created_at) `+upTo(sessions)+`SELECT `+manyID+`, 'xyzzyword', 'NOW' FROM c`,
		`INSERT INTO index_manifest (content_id, content_type, indexed_at, chunk_count, source_path, area, part, size) `+upTo(sessions)+`SELECT `+manyID+`, 'session', 'NOW', 0, 'none', 'session', 1, 1 FROM c`,
		fmt.Sprintf(`INSERT INTO chunks (n, id, content_id, content_type, chunk_index, chunk_text, created_at, length) `+upTo(sessions*docs)+`SELECT 1000000 + n, 'many' || n, printf('00000000-0000-4000-9000-%%012d', 1 + (n - 1) / %d), 'session', n, '', 'NOW', 1 FROM c`, docs),
		`INSERT INTO session_words (rowid, words, starts, keys) SELECT n, 'xyzzyword and some more words', '', 's' || n FROM chunks WHERE n > 1000000`,
		`INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, started, ended) `+upTo(size)+`SELECT 'many-' || n, printf('00000000-0000-4000-9000-%012d', 1 + n % 100), 1, 'done', 'api', 'x', USER, 'NOW', 'NOW' FROM c`,
		`INSERT INTO run_events (run, attempt, n, data) `+upTo(size)+`SELECT 'many-' || n, 1, 1, '"xyzzyword"' FROM c`,
		`INSERT INTO usage (at, run, session_id, user_id, bot, model) `+upTo(size)+`SELECT 'NOW', 'many-' || n, printf('00000000-0000-4000-9000-%012d', 1 + n % 100), USER, 'api', 'm' FROM c`,
		fmt.Sprintf(`INSERT INTO inbox (bot, update_id, chat, lane, kind, sender, state, received_at) `+upTo(size)+`SELECT 'telegram', 'many-' || n, 'c', 'l', 'message', '%d', 'done', 'NOW' FROM c`, l.zeb.ID()),
		fmt.Sprintf(`INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at, sent_at) `+upTo(size)+`SELECT 'telegram', '%d', 'many-' || n, 1, '{"text":"xyzzyword"}', 'sent', 'NOW', 'NOW' FROM c`, l.zeb.ID()),
		`INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at, sent_at) `+upTo(size)+`SELECT 'telegram', '7', 'told-' || n, 1, '{"text":"of Zebulon Quark"}', 'sent', 'NOW', 'NOW' FROM c`,
		`INSERT INTO asks (id, kind, user_id, asker, payload, state, created_at) `+upTo(size)+`SELECT 'many-' || n, 'permission', 1, USER, 'xyzzyword', 'decided', 'NOW' FROM c`,
		`INSERT INTO attachments (path, user_id, session_id, run, at, size) `+upTo(size)+`SELECT 'Chat/assets/xyzzyword-' || n, USER, 's', 'r', 'NOW', 1 FROM c`,
	)
}

// Somebody with tens of thousands of rows is forgotten in many short
// transactions: whoever else commits waits for a few thousand rows at most.
func TestForgettingSomeoneWithManyRowsLetsOthersCommit(t *testing.T) {
	storetest.SQLiteOnly(t, "its rows are made in its words")
	l, _ := newLife(t, nil)
	w := l.w
	l.many(manyRows)
	c := crowded{w: w}
	c.during(func() {
		f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil)
		if err != nil || f.Sessions < manyRows/50+2 || f.Turns != 1 || len(f.Left) != 0 {
			t.Errorf("%+v %v", f, err)
		}
	})
	t.Logf("at most %d rows for a commit, %d commits, others waited at most %v", c.worst, c.commits, c.waited)
	if c.worst > most || c.commits < 8*manyRows/erasure.Step {
		t.Errorf("a commit changed %d rows, of %d commits", c.worst, c.commits)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %.300s", hit)
	}
	for _, table := range w.personal() {
		if n := w.count(`SELECT count(*) FROM `+table+` WHERE user_id = $1`, l.user); n != 0 && table != "audit_events" {
			t.Errorf("%s has %d rows of theirs", table, n)
		}
	}
	if n := w.count(`SELECT count(*) FROM usage WHERE user_id = 0 AND run LIKE 'many-%' AND session_id = ''`); n != manyRows {
		t.Errorf("%d figures are left of %d", n, manyRows)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE chat = '7' AND body = '{}'`); n != manyRows {
		t.Errorf("%d replies to others lost the name", n)
	}
}

// manyRows of a person in each table.
const manyRows = 5_000

// A run's row goes after 90 days, and the group's transcript does not: what it
// says of the person goes with them all the same.
func TestForgettingReachesTurnsWhoseRunsWereForgottenByTime(t *testing.T) {
	l, _ := newLife(t, nil)
	w := l.w
	w.inserts(l.user, `UPDATE runs SET ended = '2020-01-01T00:00:00.000000Z' WHERE user_id = USER`)
	if n, err := runs.New(w.app.db, w.app.clock).Prune(t.Context()); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	if n := w.count(`SELECT count(*) FROM runs WHERE user_id = $1`, l.user); n != 0 {
		t.Fatalf("%d runs are there", n)
	}
	f, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(l.user), cli, nil)
	if err != nil || f.Turns != 1 {
		t.Errorf("%+v %v", f, err)
	}
	for _, hit := range grep(t, w, l.words...) {
		t.Errorf("still there: %s", hit)
	}
}

// A long conversation is deleted in short transactions; while it is answered it
// stays, and is found.
func TestALongConversationIsDeletedInShortTransactions(t *testing.T) {
	storetest.SQLiteOnly(t, "its rows are made in its words")
	w, _ := newModelWorld(t, nil)
	w.boss()
	_, reply, _ := w.asked("POST", "/api/chat", map[string]any{"message": "about xyzzyword"}, wantJSON)
	id := reply["session_id"].(string)
	w.inserts(1,
		`INSERT INTO chunks (n, id, content_id, content_type, chunk_index, chunk_text, created_at, length) `+upTo(manyRows)+`SELECT 1000000 + n, 'many' || n, '`+id+`', 'session', 1000000 + n, '', 'NOW', 1 FROM c`,
		`INSERT INTO session_words (rowid, words, starts, keys) SELECT n, 'some words that were said', '', 's' || n FROM chunks WHERE n > 1000000`)
	c := crowded{w: w}
	c.during(func() {
		if status, m, _ := w.asked("DELETE", "/api/chat/"+id, nil, nil); status != 204 {
			t.Error(status, m)
		}
	})
	t.Logf("at most %d rows for a commit, %d commits, others waited at most %v", c.worst, c.commits, c.waited)
	if c.worst > most || c.commits < manyRows/500 {
		t.Errorf("a commit changed %d rows, of %d commits", c.worst, c.commits)
	}
	if n := w.count(`SELECT count(*) FROM chunks WHERE content_type = 'session'`); n != 0 {
		t.Errorf("%d places are still in the index", n)
	}
}

// personal are the tables that know a person by number.
func (w *world) personal() (tables []string) {
	w.t.Helper()
	if tables = w.tables("user_id"); len(tables) < 12 {
		w.t.Fatal(tables)
	}
	return tables
}

// unowned returns the tables with a column that refers to a person and without
// an owner that is registered for erasure.
func (w *world) unowned() (tables []string) {
	w.t.Helper()
	if tables = w.tables("user_id", "platform_user_id", "sender", "asker"); len(tables) < 15 {
		w.t.Fatal(tables)
	}
	owned := w.app.owners.Tables()
	return slices.DeleteFunc(tables, func(name string) bool { return slices.Contains(owned, name) })
}

func TestErasure_EveryTableThatRefersToAPersonHasAnOwner(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	if tables := w.unowned(); len(tables) != 0 {
		t.Errorf("no participant has these tables: %q", tables)
	}
	w.inserts(1, `CREATE TABLE notes_of_people (user_id INTEGER NOT NULL, note TEXT NOT NULL)`)
	if tables := w.unowned(); !slices.Equal(tables, []string{"notes_of_people"}) {
		t.Errorf("a new table is not noticed: %q", tables)
	}
}

// notExported know a person by number and say nothing that is not elsewhere in an
// export.
var notExported = map[string]string{
	"admin_recovery": "hashes of codes that were shown once",
	"attachment_use": "the sum of the files' sizes",
	"link_codes":     "a hash that holds for minutes",
	"token_counters": "counts of what conversations, which are exported, took since their last backup",
	"raises":         "of the owner alone, for minutes; the audit log tells of each",
}

// What is known of a person is exported, whatever table knows it; a new table
// without a line here or in the export fails. What does not fit is named.
func TestAnExportHoldsEveryTableThatKnowsAPersonAndNamesWhatItCuts(t *testing.T) {
	l, _ := newLife(t, nil)
	w := l.w
	told := ""
	for _, x := range w.app.owners.Exports() {
		told += x.Query
	}
	for _, table := range w.personal() {
		if (notExported[table] == "") != regexp.MustCompile(`(FROM|JOIN) `+table+` `).MatchString(told) {
			t.Errorf("%s: exported, or named as not exported, but not both", table)
		}
	}
	export := func() (cut []string, rows map[string][]map[string]any) {
		t.Helper()
		res, err := w.app.eraser.Export(t.Context(), fmt.Sprint(l.user))
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(res.Rows, &all); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(all["cut"], &cut); err != nil {
			t.Fatal(err)
		}
		rows = map[string][]map[string]any{}
		for _, x := range w.app.owners.Exports() {
			var of []map[string]any
			if err := json.Unmarshal(all[x.Name], &of); err != nil {
				t.Fatal(x.Name, err)
			}
			rows[x.Name] = of
		}
		return cut, rows
	}
	cut, rows := export()
	for _, name := range []string{"identities", "access", "sessions", "usage", "runs", "grants", "api_keys", "files", "requests", "blocks", "questions", "sign_in"} {
		if len(rows[name]) == 0 {
			t.Errorf("of %s there is nothing", name)
		}
	}
	if len(cut) != 0 {
		t.Errorf("cut: %q", cut)
	}
	w.inserts(l.user, `INSERT INTO usage (at, run, session_id, user_id, bot, model) `+upTo(erasure.MaxExportRows)+`SELECT 'NOW', 'many-' || n, 's', USER, 'api', 'm' FROM c`)
	if cut, rows = export(); !slices.Equal(cut, []string{"usage"}) || len(rows["usage"]) != erasure.MaxExportRows {
		t.Errorf("cut: %q, %d rows", cut, len(rows["usage"]))
	}
}
