package session_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript/words"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
	"gatehouse/pairing"
)

// A size is how much a database holds that the benchmark looks into.
type size struct {
	name          string
	sessions, log int // log: rows of audit_events, and of usage
}

var sizes = []size{{"10k", 10_000, 100_000}, {"1M", 1_000_000, 10_000_000}}

// What is rare is as rare in both; what is common is a third of all.
const (
	rareHits   = 40
	rareWord   = "xylophonist"
	commonWord = "tuesday"
	guest      = 7 // who has 200 sessions
)

// oneLine is what every message of the filled database stands for.
const oneLine = "on tuesday the xylophonist brought a plan for the budget and the kettle to the meeting with green tea and seven chairs"

// BenchmarkScale looks up what lists, chats and the panel look up, in a
// database of 10,000 sessions and in one of 1,000,000 with 10,000,000 rows of
// audit log and of usage. GATEHOUSE_TEST_SCALE names the folder in which these
// are made, once; without it the benchmark is skipped. A figure is of single
// calls: p50 and p99 in ms.
//
//	GATEHOUSE_TEST_SCALE=/var/tmp/scale go test -tags sqlite_fts5 -run - -bench Scale -benchtime 3000x -timeout 2h ./core/session
func BenchmarkScale(b *testing.B) {
	dir := os.Getenv("GATEHOUSE_TEST_SCALE")
	if dir == "" {
		b.Skip("GATEHOUSE_TEST_SCALE names no folder")
	}
	for _, sz := range sizes {
		b.Run(sz.name, func(b *testing.B) { scale(b, dir, sz) })
	}
}

func scale(b *testing.B, dir string, sz size) {
	db, s, gate := filled(b, filepath.Join(dir, sz.name), sz)
	ctx, random := context.Background(), rand.New(rand.NewPCG(1, 2))
	list := func(f session.Filter, least int) func() error {
		return func() error {
			got, _, err := s.List(ctx, f)
			if err == nil && len(got) < least {
				err = fmt.Errorf("%d sessions, want %d", len(got), least)
			}
			return err
		}
	}
	deep := func() session.Filter { // the second page
		f := session.Filter{All: true, Search: commonWord, Limit: 50}
		_, next, err := s.Search(ctx, f)
		if err != nil {
			b.Fatal(err)
		}
		f.Cursor = next
		return f
	}()
	for _, q := range []struct {
		name string
		do   func() error
	}{
		{"session by id", func() error { _, err := s.ByID(ctx, db, idOf(1+random.IntN(sz.sessions))); return err }},
		{"session by chat", func() error {
			_, ok, err := s.Current(ctx, db, core.Address{Bot: "telegram", Chat: fmt.Sprint("c", 1+random.IntN(sz.sessions))})
			if err == nil && !ok {
				err = store.ErrNoRows
			}
			return err
		}},
		{"50 newest, everybody's", list(session.Filter{All: true}, 50)},
		{"50 newest of a guest", list(session.Filter{User: guest}, 50)},
		{"50 by tag, rare", list(session.Filter{All: true, Tag: "rare"}, rareHits)},
		{"50 by tag, on a third", list(session.Filter{All: true, Tag: "common"}, 50)},
		{"search, rare word", list(session.Filter{All: true, Search: rareWord}, rareHits)},
		{"search, word of a third", list(session.Filter{All: true, Search: commonWord}, 50)},
		{"search, the same of a guest", list(session.Filter{User: guest, Search: commonWord}, 50)},
		{"search, two words", list(session.Filter{All: true, Search: commonWord + " budget"}, 50)},
		{"search, next page", list(deep, 50)},
		{"search, nothing", list(session.Filter{All: true, Search: "zzzyx"}, 0)},
		{"session by a client's own id", func() error {
			n := 1 + random.IntN(sz.sessions)
			_, known, err := s.Locate(ctx, int64(ownerOf(n, sz)), fmt.Sprint("alias-", n))
			if err == nil && !known {
				err = store.ErrNoRows
			}
			return err
		}},
		{"50 by folder, rare", list(session.Filter{All: true, Context: "Rare"}, rareHits)},
		{"50 by folder, on a third", list(session.Filter{All: true, Context: "Common"}, 50)},
		{"50 by folder of a guest", list(session.Filter{User: guest, Context: "Common"}, 50)},
		{"count, of a guest", func() error { _, err := s.Count(ctx, session.Filter{User: guest}); return err }},
		{"tags for a choice", func() error { _, err := s.CommonTags(ctx); return err }},
		{"tags of a guest", func() error { _, err := s.Tags(ctx, guest, false); return err }},
		{"due for retention, none", func() error { _, err := s.Due(ctx, 36_500); return err }},
		{"pending pairings", func() error {
			got, err := gate.Requests(ctx, "pending", 100)
			if err == nil && len(got) != 20 {
				err = fmt.Errorf("%d requests", len(got))
			}
			return err
		}},
		{"100 newest pairings", func() error { _, err := gate.Requests(ctx, "", 100); return err }},
	} {
		timed(b, q.name, q.do)
	}
	scaleLog(b, db, sz, random)
}

// scaleLog looks into the audit log and the ledger as API and panel do.
func scaleLog(b *testing.B, db *store.DB, sz size, random *rand.Rand) {
	ctx := context.Background()
	audit := func(f store.AuditFilter, least int) func() error {
		f.Limit = 100
		return func() error {
			got, _, err := store.AuditLog(ctx, db, f)
			if err == nil && len(got) < least {
				err = fmt.Errorf("%d events, want %d", len(got), least)
			}
			return err
		}
	}
	deep := store.AuditFilter{Until: scaleNow.Add(-time.Duration(sz.log/2) * time.Second)}
	one := int64(1 + random.Int64N(1000))
	l := usage.New(nil, usage.Budgets{UserDay: usage.Budget{Tokens: 1 << 40}})
	day, hour := scaleNow.Truncate(24*time.Hour), scaleNow.Add(-time.Hour)
	person := func() int64 { return 1 + random.Int64N(1000) }
	for _, q := range []struct {
		name string
		do   func() error
	}{
		{"100 newest of the audit log", audit(store.AuditFilter{}, 100)},
		{"100 from the middle of the log", audit(deep, 100)},
		{"100 newest of a person", audit(store.AuditFilter{User: &one}, 100)},
		{"100 newest of a common action", audit(store.AuditFilter{Action: "session.update"}, 100)},
		{"100 newest of a rare action", audit(store.AuditFilter{Action: "key.create"}, rareHits)},
		{"100 newest of a kind of action", audit(store.AuditFilter{Action: "session.*"}, 100)},
		{"a page for a rare kind of action", audit(store.AuditFilter{Action: "key.*"}, 0)},
		{"100 newest about one thing", audit(store.AuditFilter{Subject: "7"}, 1)},
		{"a person's rare actions", audit(store.AuditFilter{User: &one, Action: "key.create"}, 0)},
		{"100 newest of one hour", audit(store.AuditFilter{Since: hour, Until: scaleNow}, 100)},
		{"what a person has used today", func() error { _, err := l.Left(ctx, db, person(), "telegram", scaleNow); return err }},
		{"a person's day and month", func() error { _, err := l.Standing(ctx, db, person(), scaleNow); return err }},
		{"a person's models today", func() error { _, err := l.Own(ctx, db, person(), day); return err }},
		{"a person's days of a month", func() error {
			u := person()
			_, err := l.Report(ctx, db, usage.ReportQuery{By: []string{"day"}, Since: day.AddDate(0, 0, -30), Until: scaleNow, User: &u})
			return err
		}},
		{"everybody's models of an hour", func() error {
			_, err := l.Report(ctx, db, usage.ReportQuery{By: []string{"model"}, Since: hour, Until: scaleNow})
			return err
		}},
		{"what a run took", func() error { _, err := l.Spent(ctx, db, fmt.Sprint("run-", 1+random.IntN(sz.log))); return err }},
		{"when 50 persons were last here", func() error {
			users := make([]int64, 50)
			for i := range users {
				users[i] = person()
			}
			_, err := l.LastOf(ctx, db, users)
			return err
		}},
	} {
		timed(b, q.name, q.do)
	}
}

// timed does something b.N times and tells how long a single time took.
func timed(b *testing.B, name string, do func() error) {
	b.Run(name, func(b *testing.B) {
		took := make([]time.Duration, 0, b.N)
		for range b.N {
			began := time.Now()
			if err := do(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	})
}

// ownerOf is whose session n is.
func ownerOf(n int, sz size) int {
	if n%(sz.sessions/200) == 1 {
		return guest
	}
	return 1000 + n%900
}

var scaleNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func idOf(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// filled opens the database of this size, and makes it if it is not there.
func filled(b *testing.B, dir string, sz size) (*store.DB, *session.Store, *pairing.Gate) {
	b.Helper()
	v, err := vault.Open(filepath.Join(dir, "vault"))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "sessions.db")
	if _, err := os.Stat(path + ".whole2"); err != nil {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		db, err := store.Open(context.Background(), path, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		makeScale(b, path, v, sz)
		b.Logf("%s made in %v", sz.name, time.Since(began).Round(time.Second))
		if err := os.WriteFile(path+".whole2", nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	db, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := session.New(session.Options{DB: db, Vault: v})
	b.Cleanup(func() { _ = s.Close(); _ = db.Close(); _ = v.Close() })
	return db, s, pairing.New(db, pairing.Options{}, nil, nil, nil)
}

// makeScale fills an empty database. All messages stand for one line of one
// transcript, so that a hit is read as in life and no million files are made.
func makeScale(b *testing.B, path string, v *vault.Vault, sz size) {
	b.Helper()
	message, err := json.Marshal(map[string]any{"role": "user", "content": oneLine})
	if err != nil {
		b.Fatal(err)
	}
	line := `{"uuid":"00000000-0000-4000-8000-000000000000","parentUuid":null,"sessionId":"x","type":"user","timestamp":"2026-03-01T12:00:00.000Z","message":` + string(message) + "}\n"
	file := ".claude/projects/scale/all.jsonl"
	if err := v.WriteFile(file, []byte(line)); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=OFF")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(q string, args ...any) {
		b.Helper()
		if _, err := db.Exec(q, args...); err != nil {
			b.Fatalf("%v\n%.200s", err, q)
		}
	}
	count := func(n int) string {
		return fmt.Sprintf(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < %d) `, n)
	}
	at := func(n int) string {
		return fmt.Sprintf(`strftime('%%Y-%%m-%%dT%%H:%%M:%%S.000000Z', '2026-03-01 12:00:00', '-' || (%d - n) || ' seconds')`, n)
	}
	const id = `printf('00000000-0000-4000-8000-%012d', n)`
	every := sz.sessions / rareHits
	owner := fmt.Sprintf(`CASE WHEN n %% %d = 1 THEN %d ELSE 1000 + n %% 900 END`, sz.sessions/200, guest)
	exec(`PRAGMA cache_size = -500000`)
	exec(`BEGIN`)
	exec(`INSERT INTO sessions (id, title, created_at, last_accessed, user_id, message_count, agent_type) ` + count(sz.sessions) +
		`SELECT ` + id + `, 'Conversation ' || n, ` + at(sz.sessions) + `, ` + at(sz.sessions) + `, ` + owner + `, 2, 'vault-agent' FROM c`)
	exec(`INSERT INTO chats (bot, chat, session_id, updated_at) ` + count(sz.sessions) + `SELECT 'telegram', 'c' || n, ` + id + `, '' FROM c`)
	exec(`INSERT INTO session_tags (session_id, tag, created_at) ` + count(sz.sessions) + `SELECT ` + id + `, 'common', '' FROM c WHERE n % 3 = 1`)
	exec(`INSERT INTO session_tags (session_id, tag, created_at) ` + count(sz.sessions) + `SELECT ` + id + fmt.Sprintf(`, 'rare', '' FROM c WHERE n %% %d = 0`, every))
	exec(`INSERT INTO session_contexts (session_id, folder_path, added_at) ` + count(sz.sessions) + `SELECT ` + id + fmt.Sprintf(`, 'Common', '' FROM c WHERE n %% 3 = 1 OR n %% %d = 1`, sz.sessions/200))
	exec(`INSERT INTO session_contexts (session_id, folder_path, added_at) ` + count(sz.sessions) + `SELECT ` + id + fmt.Sprintf(`, 'Rare', '' FROM c WHERE n %% %d = 0`, every))
	exec(`INSERT INTO session_aliases (user_id, alias, session_id) ` + count(sz.sessions) + `SELECT ` + owner + `, 'alias-' || n, ` + id + ` FROM c`)
	exec(`INSERT INTO index_manifest (content_id, content_type, indexed_at, chunk_count, source_path, area, part, size) `+count(sz.sessions)+`SELECT `+id+`, 'session', '', 0, ?, 'session', 1, 1 FROM c`, file)
	exec(`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, status, created_at, bot) ` + count(sz.sessions/10) +
		`SELECT 'p' || n, 'telegram', n, n, CASE WHEN n <= 20 THEN 'pending' ELSE 'approved' END, ` + at(sz.sessions/10) + `, 'telegram' FROM c`)
	exec(`INSERT INTO audit_events (at, user_id, via, action, subject) ` + count(sz.log) +
		`SELECT ` + at(sz.log) + fmt.Sprintf(`, 1 + n %% 1000, 'api', CASE WHEN n %% %d = 0 THEN 'key.create' ELSE 'session.update' END, n %% 100000 FROM c`, sz.log/rareHits))
	exec(`INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd) ` + count(sz.log) +
		`SELECT ` + at(sz.log) + `, 'run-' || n, n % 100000, 1 + n % 1000, 'telegram', 'm', 100, 100, 10 FROM c`)
	exec(`COMMIT`)
	fillWords(b, db, sz, len(line), every)
	exec(`INSERT INTO metadata (key, value, updated_at) VALUES ('sessions.walked', '*', '')`)
	exec(`ANALYZE`)
	exec(`DELETE FROM sqlite_stat1`) // the program does not make it
	exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
}

// fillWords gives each session a title and a message of 20 words.
func fillWords(b *testing.B, db *sql.DB, sz size, length, every int) {
	b.Helper()
	filler := strings.Fields("plan budget kettle meeting green tea seven chairs brought")
	if _, err := db.Exec(`INSERT INTO session_words (session_words, rank) VALUES ('hashsize', 67108864)`); err != nil { // fewer merges meanwhile
		b.Fatal(err)
	}
	defer func() { _, _ = db.Exec(`INSERT INTO session_words (session_words, rank) VALUES ('hashsize', 1048576)`) }()
	random := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(random, 1.1, 5, 200_000)
	for from := 1; from <= sz.sessions; from += 20_000 {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		put := func(n, at, length int, text, starts string) {
			user := ownerOf(n, sz)
			id, field := fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "content"
			if at < 0 {
				field, at = "title", 0
			}
			res, err := tx.Exec(`INSERT INTO chunks (id, content_id, content_type, field, chunk_index, chunk_text, created_at, length) VALUES ($1, $2, 'session', $3, $4, '', '', $5)`, fmt.Sprint("chunk:", id, ":", field, ":", at), id, field, at, length)
			if err != nil {
				b.Fatal(err)
			}
			row, _ := res.LastInsertId()
			if _, err := tx.Exec(`INSERT INTO session_words (rowid, words, starts, keys) VALUES ($1, $2, $3, $4)`, row, text, starts, keysOf(id, user, text+" "+starts)); err != nil {
				b.Fatal(err)
			}
		}
		for n := from; n < from+20_000 && n <= sz.sessions; n++ {
			title := fmt.Sprint("Conversation ", n)
			put(n, -1, 0, words.Index(title), words.Starts(title))
			var text []string
			for range 18 {
				text = append(text, fmt.Sprint("w", zipf.Uint64()))
			}
			text = append(text, filler[random.IntN(len(filler))])
			if n%3 == 0 || n%(sz.sessions/200) == 1 {
				text = append(text, commonWord)
			}
			if n%every == 0 {
				text = append(text, rareWord)
			}
			put(n, 0, length, strings.Join(text, " "), "")
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
}

// keysOf is the column keys as the program makes it.
func keysOf(id string, user int, text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	out := "s" + strconv.FormatUint(h.Sum64(), 36)
	for _, w := range strings.Fields(text) {
		out += fmt.Sprintf(" u%dw%s", user, w)
	}
	return out
}

// BenchmarkFinish is a turn's end with the words of a question and an answer
// for the index, and without.
func BenchmarkFinish(b *testing.B) {
	for _, indexed := range []bool{false, true} {
		b.Run(fmt.Sprint("indexed=", indexed), func(b *testing.B) {
			h := open(b)
			sess := h.resolve(chat(5, "c1")).Session
			c := h.open(h.Store, sess)
			for i := range b.N {
				b.StopTimer()
				if err := c.Append(fmt.Sprint("r", i), 0, user(oneLine), answer(strings.Repeat(oneLine+". ", 4))); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				f := session.Finish{Messages: 2, Title: oneLine, At: h.clock.Now()}
				if indexed {
					f.Words = h.Words(context.Background(), c)
				}
				h.finish(sess.ID, f)
			}
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
