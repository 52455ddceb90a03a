package crawl_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/index/crawl"
	"gatehouse/core/index/document"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

const childArg = "crawl-child"

// child is a process that indexes a vault until it is killed or done.
func child(dir string) error {
	t := &quiet{}
	clock := coretest.NewClock(time.Now().Add(time.Hour))
	v, err := vault.Open(filepath.Join(dir, "vault"))
	if err != nil {
		return err
	}
	docs := document.New(storetest.OpenAt(t, filepath.Join(dir, "test.db"), clock), func(context.Context, store.Queryer, int64) (bool, error) { return true, nil })
	c := crawl.New(crawl.Options{Files: v.FS(), Path: v.Path(), Library: docs, Clock: clock, Log: slog.New(slog.DiscardHandler),
		MayRead: func(string) bool { return true }, Open: func(string) bool { return true }})
	fmt.Println("ready")
	return c.Pass(context.Background())
}

// quiet is a test that has no end.
type quiet struct{ testing.TB }

func (*quiet) Helper()           {}
func (*quiet) Cleanup(func())    {}
func (*quiet) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Killed at random moments while files are added, changed and deleted, the index has in the end of
// each file what is in it, once, and nothing else.
func TestKilledAtAnyMomentTheIndexIsCompletedByTheNextPass(t *testing.T) {
	storetest.SQLiteOnly(t, "a process of its own opens the file")
	kills := 25
	if testing.Short() {
		kills = 8
	}
	dir := t.TempDir()
	storetest.Seed(t, filepath.Join(dir, "test.db"))
	path := func(i int) string { return filepath.Join(dir, "vault", "Notes", fmt.Sprintf("n%03d.md", i)) }
	if err := os.MkdirAll(filepath.Dir(path(0)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "vault", ".parachute"), 0o700); err != nil {
		t.Fatal(err)
	}
	passages := 0
	files := map[int]int{} // the number of passages of each
	for n := range kills + 1 {
		for range 40 {
			i := rand.IntN(200)
			if n > 0 && rand.IntN(4) == 0 {
				passages -= files[i]
				delete(files, i)
				_ = os.Remove(path(i))
				continue
			}
			var text strings.Builder
			parts := 1 + rand.IntN(40) // one transaction, or several
			for p := range parts {
				fmt.Fprintf(&text, "# Part %d of round %d\n\nwords of file %d\n\n", p, n, i)
			}
			if err := os.WriteFile(path(i), []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			passages += 2*parts - files[i]
			files[i] = 2 * parts // a heading is a passage, too
		}
		cmd := exec.Command(os.Args[0], childArg, dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if n < kills {
			_, _ = out.Read(make([]byte, 8)) // it works from now on
			<-time.After(time.Duration(rand.IntN(60_000)) * time.Microsecond)
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil && n == kills {
			t.Fatal(err)
		}
	}
	db := storetest.OpenAt(t, filepath.Join(dir, "test.db"), coretest.NewClock(time.Time{}))
	count := func(query string) (n int) {
		t.Helper()
		if err := db.Get(t.Context(), &n, query); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM index_manifest`:                                                         len(files),
		`SELECT count(*) FROM index_manifest WHERE content_hash = ''`:                                 0,
		`SELECT count(*) FROM chunks`:                                                                 passages,
		`SELECT count(*) FROM document_words`:                                                         passages,
		`SELECT count(*) FROM guest_words`:                                                            passages,
		`SELECT count(*) FROM chunks WHERE content_id NOT IN (SELECT content_id FROM index_manifest)`: 0,
	} {
		if got := count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	for i, n := range files {
		if got := count(fmt.Sprintf(`SELECT count(*) FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE m.source_path = 'Notes/n%03d.md'`, i)); got != n {
			t.Errorf("file %d has %d passages, want %d", i, got, n)
		}
	}
}
