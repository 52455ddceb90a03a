package columns_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/sealed"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// A desk is a database with a table of notes, and a place for the key file.
type desk struct {
	*testing.T
	db   *store.DB
	file string
	list []columns.Column
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, db: storetest.Open(t, core.System{}), file: filepath.Join(t.TempDir(), "keys", "content.key")}
	d.list = []columns.Column{{Table: "notes", Name: "text", Row: "CAST(id AS TEXT)"}}
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)`)
		return err
	})
	return d
}

func (d *desk) tx(f func(ctx context.Context, tx *store.Tx) error) {
	d.Helper()
	if err := d.db.Tx(d.Context(), func(tx *store.Tx) error { return f(d.Context(), tx) }); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) options() columns.Options {
	return columns.Options{DB: d.db, File: d.file, Setting: "GATEHOUSE_CONTENT_KEY_FILE", Columns: d.list}
}

func (d *desk) start() *sealed.Box {
	d.Helper()
	box, _, err := columns.Start(d.Context(), d.options())
	if err != nil {
		d.Fatal(err)
	}
	return box
}

func at(id int) sealed.Place {
	return sealed.Place{Table: "notes", Column: "text", Row: strconv.Itoa(id)}
}

func (d *desk) write(box *sealed.Box, id int, text string) {
	d.Helper()
	value, err := box.Seal(at(id), text)
	if err != nil {
		d.Fatal(err)
	}
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO notes (id, text) VALUES ($1, $2)`, id, value)
		return err
	})
}

func (d *desk) read(box *sealed.Box, id int) (text, key string) {
	d.Helper()
	var value string
	if err := d.db.Get(d.Context(), &value, `SELECT text FROM notes WHERE id = $1`, id); err != nil {
		d.Fatal(err)
	}
	text, err := box.Open(at(id), value)
	if err != nil {
		d.Fatal(err)
	}
	return text, sealed.KeyOf(value)
}

func (d *desk) recorded() []string {
	d.Helper()
	ids, err := columns.Recorded(d.Context(), d.db)
	if err != nil {
		d.Fatal(err)
	}
	return ids
}

func TestTheFirstStartMakesTheKeyFileAndTheNextOneOpensIt(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	d.write(box, 1, "first")
	again := d.start()
	if again.ID() != box.ID() || !slices.Equal(d.recorded(), []string{box.ID()}) {
		t.Errorf("the keys are %s and %s, recorded %v", box.ID(), again.ID(), d.recorded())
	}
	if text, _ := d.read(again, 1); text != "first" {
		t.Errorf("read %q", text)
	}
}

func TestStartIsRefusedWhileRowsAreEncryptedAndTheKeyFileIsMissing(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	d.write(box, 1, "text")
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
	_, _, err := columns.Start(t.Context(), d.options())
	if core.KindOf(err) != core.Invalid {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{box.ID(), d.file, "GATEHOUSE_CONTENT_KEY_FILE", "--lost-content-key"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	if _, err := os.Stat(d.file); err == nil {
		t.Error("a new key file was made")
	}
}

func TestStartIsRefusedWithTheKeyFileOfAnotherDatabase(t *testing.T) {
	d, other := newDesk(t), filepath.Join(t.TempDir(), "other.key")
	box := d.start()
	d.write(box, 1, "text")
	if _, err := sealed.Create(other); err != nil {
		t.Fatal(err)
	}
	right := d.file
	d.file = other
	if _, _, err := columns.Start(t.Context(), d.options()); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), box.ID()) {
		t.Fatalf("the error is %v", err)
	}
	d.file = right
	if text, _ := d.read(d.start(), 1); text != "text" {
		t.Errorf("with the right file it reads %q", text)
	}
}

func TestWithoutEncryptedRowsALostKeyFileIsReplaced(t *testing.T) {
	d := newDesk(t)
	first := d.start().ID()
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
	if id := d.start().ID(); id == first || !slices.Equal(d.recorded(), []string{id}) {
		t.Errorf("the key is %s, recorded %v", id, d.recorded())
	}
}

func TestLostDeletesOnlyTheTextsWhoseKeyIsMissing(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	d.write(box, 1, "old")
	lost := box.ID()
	id, err := box.Add()
	if err != nil {
		t.Fatal(err)
	}
	d.write(d.start(), 2, "young")
	b, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(b[:strings.Index(string(b), "\n"+lost)+1])
	if err := os.WriteFile(d.file, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	o := d.options()
	if _, _, err := columns.Start(t.Context(), o); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), lost) {
		t.Fatalf("the error is %v", err)
	}
	o.Lost = true
	box, deleted, err := columns.Start(t.Context(), o)
	if err != nil || deleted != 1 || box.ID() != id {
		t.Fatalf("deleted %d: %v", deleted, err)
	}
	if text, _ := d.read(box, 2); text != "young" {
		t.Errorf("the other text is %q", text)
	}
	if text, _ := d.read(box, 1); text != "" {
		t.Errorf("the lost text is %q", text)
	}
	d.start()
}

func TestStartSaysWhichSettingWhereTheKeyFileCannotBeMade(t *testing.T) {
	d := newDesk(t)
	blocked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/nowhere/at/all", blocked); err != nil {
		t.Fatal(err)
	}
	d.file = filepath.Join(blocked, "content.key")
	if _, _, err := columns.Start(t.Context(), d.options()); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "GATEHOUSE_CONTENT_KEY_FILE") {
		t.Errorf("the error is %v", err)
	}
}

func TestRotationEncryptsEveryRowAgainAndTheOldKeyIsUnused(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	const rows = 450 // more than two pages
	for id := range rows {
		d.write(box, id+1, fmt.Sprintf("text %d", id+1))
	}
	first := box.ID()
	r, err := columns.Rotate(t.Context(), d.db, box, d.list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows != rows || r.Resumed || r.Key != box.ID() || !slices.Equal(r.Earlier, []string{first}) {
		t.Errorf("rotated %+v", r)
	}
	for id := 1; id <= rows; id++ {
		if text, key := d.read(box, id); text != fmt.Sprintf("text %d", id) || key != r.Key {
			t.Fatalf("row %d is %q with the key %s", id, text, key)
		}
	}
	if !slices.Equal(d.recorded(), []string{r.Key}) {
		t.Errorf("recorded are %v", d.recorded())
	}
	if used, err := columns.Used(t.Context(), d.db, d.list); err != nil || !slices.Equal(used, []string{r.Key}) {
		t.Errorf("used are %v, %v", used, err)
	}
}

func TestAnInterruptedRotationGoesOnWithItsKeyAndBothKeysOpenMeanwhile(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	const rows = 450
	for id := range rows {
		d.write(box, id+1, "text")
	}
	first := box.ID()
	ctx, stop := context.WithCancel(t.Context())
	if _, err := columns.Rotate(ctx, d.db, box, d.list, func(string) { stop() }); err == nil {
		t.Fatal("it was not interrupted")
	}
	box = d.start() // as after a crash
	keys := map[string]int{}
	for id := 1; id <= rows; id++ {
		_, key := d.read(box, id)
		keys[key]++
	}
	if keys[first] == 0 || keys[box.ID()] == 0 || len(keys) != 2 {
		t.Fatalf("the rows have %v", keys)
	}
	r, err := columns.Rotate(t.Context(), d.db, box, d.list, nil)
	if err != nil || !r.Resumed || r.Rows != keys[first] || len(box.IDs()) != 2 {
		t.Errorf("rotated %+v: %v", r, err)
	}
}

func TestRotationLeavesDamagedRowsAndKeepsTheirKeyRecorded(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	d.write(box, 1, "one")
	first := box.ID()
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO notes (id, text) SELECT 2, text FROM notes WHERE id = 1`)
		return err
	})
	r, err := columns.Rotate(t.Context(), d.db, box, d.list, nil)
	if err != nil || r.Rows != 1 || r.Damaged != 1 {
		t.Fatalf("rotated %+v: %v", r, err)
	}
	if !slices.Equal(d.recorded(), []string{r.Key, first}) {
		t.Errorf("recorded are %v", d.recorded())
	}
	again, err := columns.Rotate(t.Context(), d.db, box, d.list, nil)
	if err != nil || again.Resumed || again.Key == r.Key || again.Rows != 1 || again.Damaged != 1 {
		t.Errorf("the next rotation makes no key: %+v, %v", again, err)
	}
	if !slices.Equal(d.recorded(), []string{again.Key, first}) {
		t.Errorf("recorded are %v", d.recorded())
	}
}

func TestARotationPassesManyDamagedRows(t *testing.T) {
	d := newDesk(t)
	box := d.start()
	d.write(box, 1000, "one")
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450) INSERT INTO notes (id, text) SELECT i, (SELECT text FROM notes WHERE id = 1000) FROM n`)
		return err
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	pages := 0
	r, err := columns.Rotate(ctx, d.db, box, d.list, func(string) {
		if pages++; pages > 5 {
			stop()
		}
	})
	if err != nil || r.Rows != 1 || r.Damaged != 450 {
		t.Errorf("rotated %+v: %v", r, err)
	}
}

func TestTwoProcessesAtTheFirstStartHaveOneKey(t *testing.T) {
	for range 20 {
		d := newDesk(t)
		boxes, errs := make([]*sealed.Box, 4), make([]error, 4)
		var all sync.WaitGroup
		for i := range boxes {
			all.Go(func() { boxes[i], _, errs[i] = columns.Start(t.Context(), d.options()) })
		}
		all.Wait()
		file, err := sealed.Open(d.file)
		if err != nil {
			t.Fatal(err)
		}
		for i, box := range boxes {
			if errs[i] != nil || box.ID() != file.ID() {
				t.Fatalf("a process seals with another key than the file's: %v", errs[i])
			}
		}
	}
}

func TestAnEncryptedTextIsInNoFileOfTheDatabase(t *testing.T) {
	storetest.SQLiteOnly(t, "it reads the files of the database")
	const marker = "zq7marker5kx"
	d := newDesk(t)
	box := d.start()
	d.write(box, 1, "I prefer "+marker)
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(d.db.Path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(b)), marker) {
			t.Errorf("the text is in %s", filepath.Base(d.db.Path()+suffix))
		}
	}
	if text, _ := d.read(box, 1); text != "I prefer "+marker {
		t.Errorf("read %q", text)
	}
}

func TestStartEncryptsWhatEarlierVersionsLeftInPlainText(t *testing.T) {
	d := newDesk(t)
	d.write(d.start(), 1, "sealed before")
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO notes (id, text) VALUES (2, 'PLAIN'), (3, '')`)
		return err
	})
	d.list[0].Was = true
	box := d.start()
	for id, want := range map[int]string{1: "sealed before", 2: "PLAIN", 3: ""} {
		if text, _ := d.read(box, id); text != want {
			t.Errorf("row %d is %q", id, text)
		}
	}
	r, err := columns.Rotate(t.Context(), d.db, box, d.list, nil)
	if err != nil || r.Rows != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if text, key := d.read(d.start(), 2); text != "PLAIN" || key != r.Key {
		t.Errorf("rotated: %q with %s, want %s", text, key, r.Key)
	}
}

func TestNoFileOfTheDatabaseHasThePlainTextThatAnEarlierVersionLeft(t *testing.T) {
	storetest.SQLiteOnly(t, "it reads the files of the database")
	const marker = "zq7marker5kx"
	d := newDesk(t)
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO notes (id, text) VALUES (1, $1)`, marker)
		return err
	})
	d.tx(func(ctx context.Context, tx *store.Tx) error { // as an update of an earlier version left it in a free page
		if _, err := tx.Exec(ctx, `INSERT INTO notes (id, text) VALUES (2, $1)`, strings.Repeat(marker, 1000)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM notes WHERE id = 2`)
		return err
	})
	kept := d.db.Path() + ".v1272.bak"
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	d.list[0].Was = true
	o := d.options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	box, _, err := columns.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(d.db.Path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), marker) {
			t.Errorf("the text is in %s", filepath.Base(d.db.Path()+suffix))
		}
	}
	if text, _ := d.read(box, 1); text != marker {
		t.Errorf("read %q", text)
	}
	if !strings.Contains(log.String(), kept) {
		t.Errorf("the copy is not named: %s", log.String())
	}
	log.Reset()
	if _, _, err := columns.Start(t.Context(), o); err != nil || log.Len() > 0 {
		t.Errorf("the next start rewrites it again: %v %s", err, log.String())
	}
}

// A process that ends between the encryption and the rewriting leaves that to the next.
func TestTheNextStartRewritesAFileThatWasNotRewritten(t *testing.T) {
	storetest.SQLiteOnly(t, "it reads the files of the database")
	const marker = "zq7marker5kx"
	d := newDesk(t)
	d.tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO notes (id, text) VALUES (1, $1)`, marker); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM notes`); err != nil {
			return err
		}
		return store.SetMetadata(ctx, tx, "content_keys.compact", "1")
	})
	d.start()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(d.db.Path() + suffix)
		if err != nil || strings.Contains(string(b), marker) {
			t.Errorf("the text is in %s: %v", filepath.Base(d.db.Path()+suffix), err)
		}
	}
}
