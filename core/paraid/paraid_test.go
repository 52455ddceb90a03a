package paraid_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

var morning = time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC)

type fixture struct {
	*paraid.Registry
	t     *testing.T
	db    *store.DB
	vault *vault.Vault
	log   bytes.Buffer
}

func open(t *testing.T) *fixture { return openAt(t, t.TempDir()) }

// openAt opens a registry with a new database in the vault dir.
func openAt(t *testing.T, dir string) *fixture {
	t.Helper()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	f := &fixture{t: t, db: storetest.Open(t, coretest.NewClock(morning)), vault: v}
	f.Registry = paraid.New(f.db, v, slog.New(slog.NewTextHandler(&f.log, nil)))
	f.load()
	return f
}

func (f *fixture) load() {
	f.t.Helper()
	if err := f.Load(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tx(do func(tx *store.Tx) error) {
	f.t.Helper()
	if err := f.db.Tx(f.t.Context(), do); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) mint(e paraid.Entry) (got paraid.Entry) {
	f.t.Helper()
	f.tx(func(tx *store.Tx) (err error) {
		got, err = f.Mint(f.t.Context(), tx, e)
		return err
	})
	return got
}

func (f *fixture) flush() {
	f.t.Helper()
	if _, err := f.Flush(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// file returns the registry's file.
func (f *fixture) file() string {
	f.t.Helper()
	b, err := f.vault.Root().ReadFile(paraid.File)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func TestNewIDsHaveTwelveCharactersEachAsFrequentAsAnother(t *testing.T) {
	t.Parallel()
	const n = 30_000
	count, seen := map[rune]int{}, map[string]bool{}
	for range n {
		id := paraid.Random()
		if len(id) != 12 || !paraid.Valid(id) || seen[id] {
			t.Fatalf("id %q, seen before: %v", id, seen[id])
		}
		seen[id] = true
		for _, c := range id {
			count[c]++
		}
	}
	const want = n * 12 / 36
	for c, got := range count {
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%q occurs %d times, want about %d", c, got, want)
		}
	}
	if len(count) != 36 {
		t.Errorf("%d characters, want 36", len(count))
	}
}

func TestValidTakesOlderLengthsAndNothingElse(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"abc123def456": true, "abc123": true, "abc12345": true, "000000000000": true,
		"": false, "abc12": false, "abc1234": false, "abc123def4567": false, "ABC123def456": false, "abc123def45é": false, "abc123def45\n": false, "../abc/../ab": false,
	} {
		if got := paraid.Valid(id); got != want {
			t.Errorf("Valid(%q) = %v", id, got)
		}
	}
}

func TestAnIDIsUniqueOverAllTypes(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.mint(paraid.Entry{Type: paraid.Journal, Path: "Daily/2026-01-28.md", User: core.Operator})
	f.tx(func(tx *store.Tx) error {
		holder, err := f.Claim(t.Context(), tx, paraid.Entry{ID: e.ID, Type: paraid.ChatLog, Path: "Daily/chat-log/2026-01-28.md", User: 7})
		if holder != e {
			t.Errorf("claimed twice: %+v, want %+v", holder, e)
		}
		return err
	})
	if got, err := f.Find(t.Context(), f.db, e.ID); err != nil || got != e {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := f.Find(t.Context(), f.db, "nonesuch"); core.KindOf(err) != core.NotFound {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestClaimRefusesWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	good := paraid.Entry{ID: "abc123def456", Type: paraid.Journal, Path: "a.md", User: 1}
	for name, change := range map[string]func(*paraid.Entry){
		"id": func(e *paraid.Entry) { e.ID = "ABC" }, "type": func(e *paraid.Entry) { e.Type = "" }, "path": func(e *paraid.Entry) { e.Path = "" },
		"long path": func(e *paraid.Entry) { e.Path = strings.Repeat("a", 2000) }, "user": func(e *paraid.Entry) { e.User = -2 },
	} {
		e := good
		change(&e)
		err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := f.Claim(t.Context(), tx, e)
			return err
		})
		if core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAConversationKeepsTheIDThatItHas(t *testing.T) {
	t.Parallel()
	f := open(t)
	var first, again, other string
	f.tx(func(tx *store.Tx) (err error) {
		if first, err = f.ForChat(t.Context(), tx, "session-1", 7); err != nil {
			return err
		}
		if again, err = f.ForChat(t.Context(), tx, "session-1", 7); err != nil {
			return err
		}
		other, err = f.ForChat(t.Context(), tx, "session-2", 7)
		return err
	})
	if first == "" || again != first || other == first {
		t.Errorf("%q, %q, %q", first, again, other)
	}
}

func TestNoIDIsRegisteredWhenTheTransactionFails(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.flush()
	broken := errors.New("broken")
	var e paraid.Entry
	err := f.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		e, err = f.Mint(t.Context(), tx, paraid.Entry{Type: paraid.Journal, Path: "a.md", User: 1})
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	f.flush()
	if _, err := f.Find(t.Context(), f.db, e.ID); core.KindOf(err) != core.NotFound || strings.Contains(f.file(), e.ID) {
		t.Errorf("%v, file %s", err, f.file())
	}
}

func TestAfterTheLossOfTheDatabaseTheIDsAreThose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openAt(t, dir)
	f.flush()
	a := f.mint(paraid.Entry{Type: paraid.Journal, Path: "Daily/2026-01-28.md", User: 1})
	b := f.mint(paraid.Entry{Type: paraid.Chat, Path: "session <1>", User: 7})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`{"id":%q,"type":"journal","path":"Daily/2026-01-28.md","created_at":"2026-01-28T10:30:00.000000Z","user_id":1}`, a.ID); !strings.Contains(f.file(), want+"\n") {
		t.Errorf("the file has %s, want %s", f.file(), want)
	}
	next := openAt(t, dir)
	for _, want := range []paraid.Entry{a, b} {
		if got, err := next.Find(t.Context(), next.db, want.ID); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

func TestLinesThatAreNoneDoNotStopTheOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, filepath.FromSlash(paraid.File))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "no JSON\n" + `{"id":"BAD","type":"chat","path":"s","created_at":"","user_id":1}` + "\n" +
		`{"id":"abc123","type":"journal","path":"Daily/2020-01-01.md","created_at":"2020-01-01T08:00:00Z","user_id":1}` + "\n" +
		`{"id":"abc123","type":"chat","path":"a second one","created_at":"2020-01-01T08:00:00Z","user_id":1}` + "\n" + `{"id":"torn`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openAt(t, dir)
	if e, err := f.Find(t.Context(), f.db, "abc123"); err != nil || e.Path != "Daily/2020-01-01.md" {
		t.Errorf("%+v, %v", e, err)
	}
	if !strings.Contains(f.log.String(), "invalid_lines=3") {
		t.Errorf("log: %s", f.log.String())
	}
	f.flush()
	if got := f.file(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "abc123") {
		t.Errorf("the file afterwards: %s", got)
	}
}

func TestTheFileIsWrittenAgainWhenItIsGone(t *testing.T) {
	t.Parallel()
	f := open(t)
	a := f.mint(paraid.Entry{Type: paraid.Journal, Path: "a.md", User: 1})
	f.flush()
	if err := f.vault.Root().Remove(paraid.File); err != nil {
		t.Fatal(err)
	}
	b := f.mint(paraid.Entry{Type: paraid.Journal, Path: "b.md", User: 1})
	f.flush()
	if got := f.file(); !strings.Contains(got, a.ID) || !strings.Contains(got, b.ID) {
		t.Errorf("%s", got)
	}
}

func TestForgottenIDsLeaveTheTableAndTheFile(t *testing.T) {
	t.Parallel()
	f := open(t)
	mine := f.mint(paraid.Entry{Type: paraid.Journal, Path: "a.md", User: 1})
	var theirs []paraid.Entry
	for i := range 5 {
		theirs = append(theirs, f.mint(paraid.Entry{Type: paraid.Chat, Path: fmt.Sprint("session-", i), User: 7}))
	}
	f.flush()
	tables := paraid.Tables{Registry: f.Registry}
	forget := func(rows int, last bool) (left int) {
		r := core.Removal{Person: core.Person{User: 7}, Rows: rows, Last: last}
		f.tx(func(tx *store.Tx) error { return tables.Forget(t.Context(), tx, &r) })
		return r.Rows
	}
	if left := forget(3, false); left != 0 {
		t.Errorf("%d rows left of a step that may go on", left)
	}
	forget(0, true)
	f.flush()
	for _, e := range theirs {
		if _, err := f.Find(t.Context(), f.db, e.ID); core.KindOf(err) != core.NotFound || strings.Contains(f.file(), e.ID) {
			t.Errorf("%s is kept: %v", e.ID, err)
		}
	}
	if _, err := f.Find(t.Context(), f.db, mine.ID); err != nil || !strings.Contains(f.file(), mine.ID) {
		t.Errorf("another's is gone: %v", err)
	}
}

func TestIDsOfLinkedAccountsAreTheOtherUsers(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.mint(paraid.Entry{Type: paraid.Chat, Path: "s", User: 7})
	f.tx(func(tx *store.Tx) error { return paraid.Tables{Registry: f.Registry}.Merge(t.Context(), tx, 7, 8) })
	if got, err := f.Find(t.Context(), f.db, e.ID); err != nil || got.User != 8 {
		t.Errorf("%+v, %v", got, err)
	}
	f.flush()
	if !strings.Contains(f.file(), `"user_id":8`) {
		t.Errorf("%s", f.file())
	}
}

func TestIDsOfDeletedConversationsAreRemovedAfterTheTrash(t *testing.T) {
	t.Parallel()
	f := open(t)
	old := f.mint(paraid.Entry{Type: paraid.Chat, Path: "gone", User: 1, Created: morning.AddDate(0, 0, -61)})
	fresh := f.mint(paraid.Entry{Type: paraid.Chat, Path: "gone too", User: 1, Created: morning.AddDate(0, 0, -59)})
	entry := f.mint(paraid.Entry{Type: paraid.Journal, Path: "a.md", User: 1, Created: morning.AddDate(0, 0, -61)})
	if n, err := f.Prune(t.Context()); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	for _, e := range []paraid.Entry{fresh, entry} {
		if _, err := f.Find(t.Context(), f.db, e.ID); err != nil {
			t.Errorf("%s: %v", e.Path, err)
		}
	}
	if _, err := f.Find(t.Context(), f.db, old.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("the old one: %v", err)
	}
}

// lines returns n lines of the registry's file.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"a%05d","type":"journal","path":"Daily/2026-01-28.md","created_at":"2026-01-28T10:30:00.000000Z","user_id":1}`+"\n", i)
	}
	return b.String()
}

func put(t *testing.T, dir, text string) (name string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(paraid.File))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// A line that is too long costs no other, and the file is kept beside the new one.
func TestALongLineIsSkippedAndTheFileIsKeptBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := lines(10) + strings.Repeat("\x00", 9000) + "\n" + strings.Replace(lines(10), `"a`, `"b`, 10) + strings.Repeat("x", 20_000)
	put(t, dir, text)
	f := openAt(t, dir)
	f.flush()
	if n := strings.Count(f.file(), "\n"); n != 20 || !strings.Contains(f.log.String(), "invalid_lines=2") {
		t.Errorf("%d lines are left; the log: %s", n, f.log.String())
	}
	if kept, err := f.vault.Root().ReadFile(paraid.Unread); err != nil || string(kept) != text {
		t.Errorf("the old file: %d bytes, %v", len(kept), err)
	}
}

// A start that is killed while it reads the file loses none of its ids.
func TestAFileThatWasReadHalfIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, lines(1000))
	f := openAt(t, dir)
	f.tx(func(tx *store.Tx) error { // as after a kill behind the first page
		_, err := tx.Exec(t.Context(), `DELETE FROM metadata WHERE key = 'para_ids_loaded'`)
		return err
	})
	put(t, dir, lines(2500))
	f.load()
	f.flush()
	if n := strings.Count(f.file(), "\n"); n != 2500 {
		t.Errorf("%d ids are left of 2500", n)
	}
}

func TestAFileThatCannotBeReadStaysAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := put(t, dir, "")
	other := filepath.Join(dir, "elsewhere.jsonl")
	if err := errors.Join(os.WriteFile(other, []byte(lines(5)), 0o600), os.Remove(name), os.Symlink(other, name)); err != nil {
		t.Skip(err)
	}
	f := openAt(t, dir)
	f.mint(paraid.Entry{Type: paraid.Journal, Path: "a.md", User: 1})
	f.flush()
	if at, err := os.Readlink(name); err != nil || at != other {
		t.Errorf("%q, %v", at, err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != lines(5) {
		t.Errorf("%q, %v", text, err)
	}
}
