package main

import (
	"database/sql"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// A messageCost is what the messages of one length left, on average.
type messageCost struct {
	Text       int     `json:"text_bytes"`          // of the message and of its answer, together
	Database   float64 `json:"database_bytes"`      // right after it
	Hour       float64 `json:"of_it_for_an_hour"`   // events of runs
	TwoDays    float64 `json:"of_it_for_48_hours"`  // finished messages, sent replies
	Days90     float64 `json:"of_it_for_90_days"`   // runs
	Vault      float64 `json:"vault_bytes"`         // its lines in the transcript
	WAL        float64 `json:"wal_bytes,omitempty"` // of PostgreSQL, without images of pages
	Commits    float64 `json:"commits"`             // one message in flight
	Statements float64 `json:"statements"`          // of the writer
}

// kept is what remains when all that upkeep deletes is deleted.
func (c messageCost) kept() float64 { return c.Database - c.Hour - c.TwoDays - c.Days90 }

const (
	costPeople   = 10
	costMessages = 20 // of each
)

// someText returns words of the given total length, the frequent ones more often, so that a full-text
// index has what it has of ordinary text.
func someText(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		rank := int(3000 * r.Float64() * r.Float64() * r.Float64())
		fmt.Fprintf(&b, "%s%s ", string(rune('a'+rank%26)), strings.Repeat(string(rune('a'+rank/26%26)), 1+rank%3)+string(rune('a'+rank/676)))
	}
	return b.String()[:n-1] + "."
}

// costOfMessages returns what messages and answers of the given lengths leave in the database and in the
// vault, and what they take of the database, one in flight.
func costOfMessages(t *testing.T, ask, answer int) (c messageCost) {
	t.Helper()
	w, model := newModelWorld(t, func(cfg *configs.Config) { unguarded(cfg); cfg.TelegramDMPolicy = "open" })
	r := rand.New(rand.NewPCG(uint64(ask), uint64(answer)))
	people := make([]*telegramtest.User, costPeople)
	for i := range people {
		people[i] = w.sim.NewUser(fmt.Sprint("Person ", i))
	}
	talk := func(each int) {
		for range each {
			for _, p := range people {
				model.Script(llmtest.Say(someText(r, answer)))
				at := p.Send(someText(r, ask))
				w.hears(p.DM(), func(m telegramtest.Message) bool { return m.ID > at.ID })
			}
		}
	}
	talk(2)
	const n = costPeople * costMessages
	db := w.app.db
	size, files := w.databaseBytes(""), transcriptBytes(t, w.cfg.VaultPath)
	hour, days, months := w.databaseBytes("run_events"), w.databaseBytes("inbox", "outbox"), w.databaseBytes("runs")
	commits, statements, log := db.Commits(), db.Statements(), w.logBytes()
	talk(costMessages)
	per := func(now, before int64) float64 { return float64(now-before) / n }
	c = messageCost{Text: ask + answer, Commits: per(db.Commits(), commits), Statements: per(db.Statements(), statements), WAL: per(w.logBytes(), log)}
	c.Database, c.Vault = per(w.databaseBytes(""), size), per(transcriptBytes(t, w.cfg.VaultPath), files)
	if storetest.Postgres() {
		c.Hour, c.TwoDays, c.Days90 = per(w.databaseBytes("run_events"), hour), per(w.databaseBytes("inbox", "outbox"), days), per(w.databaseBytes("runs"), months)
		return c
	}
	w.stop()
	file, err := sql.Open("sqlite3", "file:"+w.cfg.DatabasePath())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	frees := func(tables ...string) float64 {
		pages := func() (n int64) {
			if err := file.QueryRow(usedPages).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := pages()
		for _, table := range tables {
			if _, err := file.Exec("DELETE FROM " + table); err != nil {
				t.Fatal(err)
			}
		}
		return float64(before-pages()) / (n + 2*costPeople)
	}
	c.Hour, c.TwoDays, c.Days90 = frees("run_events"), frees("inbox", "outbox"), frees("runs")
	return c
}

const usedPages = `SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`

// databaseBytes returns how large the tables are on PostgreSQL, with their indexes; without names, how
// large the database is.
func (w *world) databaseBytes(tables ...string) (n int64) {
	w.t.Helper()
	query := usedPages
	switch {
	case storetest.Postgres() && tables[0] == "":
		query = `SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`
	case storetest.Postgres():
		query = `SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(string_to_array('` + strings.Join(tables, ",") + `', ',')) t`
	case tables[0] != "":
		return 0
	}
	if err := w.app.db.Get(w.t.Context(), &n, query); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// logBytes returns how far PostgreSQL's log of changes is, in bytes, for all databases of the server.
func (w *world) logBytes() (n int64) {
	w.t.Helper()
	if !storetest.Postgres() {
		return 0
	}
	if err := w.app.db.Get(w.t.Context(), &n, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// transcriptBytes returns how long the transcripts of a vault are together.
func transcriptBytes(t *testing.T, vault string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(vault, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		info, err := d.Info()
		n += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// costAsRecorded measures a message and compares it with docs/scale.json. With
// GATEHOUSE_TEST_SCALE_MODEL=measure it logs all lengths, for that file.
func costAsRecorded(t *testing.T, engine string) {
	if os.Getenv("GATEHOUSE_TEST_SCALE_MODEL") == "measure" {
		for _, c := range [][2]int{{60, 120}, {300, 1500}, {300, 3500}} {
			t.Logf("%v: %+v", c, costOfMessages(t, c[0], c[1]))
		}
		return
	}
	t.Parallel()
	m := readScale(t)
	want, got := m.message(engine), costOfMessages(t, 300, 1500)
	for what, c := range map[string][2]float64{"in the database": {got.Database, want.Database}, "for 48 hours": {got.TwoDays, want.TwoDays}, "for 90 days": {got.Days90, want.Days90},
		"in the transcript": {got.Vault, want.Vault}, "statements": {got.Statements, want.Statements}} {
		if math.Abs(c[0]/c[1]-1) > 0.25 {
			t.Errorf("%s: %.0f, and docs/scale.json has %.0f", what, c[0], c[1])
		}
	}
	if got.Hour < 0 || got.Hour > got.Database/10 {
		t.Errorf("events of the run: %.0f bytes", got.Hour)
	}
	if got.WAL < 0.7*want.WAL { // others on the server add to it
		t.Errorf("the log grows by %.0f, and docs/scale.json has %.0f", got.WAL, want.WAL)
	}
}

func TestScaleModel_BytesOfAMessage(t *testing.T) {
	storetest.SQLiteOnly(t, "the other is TestPostgres_ScaleModel_BytesOfAMessage")
	costAsRecorded(t, "sqlite")
}

func TestPostgres_ScaleModel_BytesOfAMessage(t *testing.T) {
	storetest.PostgresOnly(t, "the other is TestScaleModel_BytesOfAMessage")
	costAsRecorded(t, "postgres")
}
