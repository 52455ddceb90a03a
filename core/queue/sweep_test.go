package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A user's messages among thousands of others are found concurrently with the
// writer and emptied in short transactions. Those that arrive before the last
// transaction are emptied in it. No other user loses anything.
func TestASweepAndTheRestOfForgettingFindEveryMessageOnce(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	tx := func(do func(*store.Tx) error) {
		t.Helper()
		if err := f.db.Tx(ctx, do); err != nil {
			t.Fatal(err)
		}
	}
	put := func(from, n int) {
		t.Helper()
		tx(func(tx *store.Tx) error {
			for i := from; i < from+n; i++ {
				chat, sender, request, body := "c-other", "other", "", "{}"
				switch i % 4 {
				case 1:
					chat = "c-zeb"
				case 2:
					sender, body = "zeb", fmt.Sprintf(`{"files":[{"path":"file-%d"}]}`, i)
				case 3:
					request = "r-zeb"
				}
				if _, err := tx.Exec(ctx, `INSERT INTO inbox (bot, update_id, chat, lane, kind, sender, state, request, payload, received_at) VALUES ('bot', $1, $2, 'l', 'message', $3, 'dead', $4, $5, '')`, fmt.Sprint(i), chat, sender, request, body); err != nil {
					return err
				}
				text := map[bool]string{true: `{"text":"Zebulon said"}`, false: `{"text":"nothing"}`}[i%3 == 0]
				if _, err := tx.Exec(ctx, `INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) VALUES ('bot', $1, $2, 1, $3, 'sent', '')`, chat, fmt.Sprint("k", i), text); err != nil {
					return err
				}
			}
			return nil
		})
	}
	p := core.Person{User: 7, Names: []string{"Zebulon"}, Requests: []string{"r-zeb"},
		Identities: []core.Identity{{Platform: "p", ID: "zeb", Bots: []string{"bot"}}}, Chats: []core.Address{{Bot: "bot", Chat: "c-zeb"}}}
	const early, late = 5000, 40
	put(0, early)
	var files []string
	before := f.db.Commits()
	swept, err := f.tables().Sweep(ctx, p, func(_ *store.Tx, found []string) error { files = append(files, found...); return nil })
	if err != nil || len(files) != early/4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if n := f.db.Commits() - before; n < early/4*3/200 {
		t.Errorf("%d transactions", n)
	}
	put(early, late)
	tx(func(tx *store.Tx) error {
		r := core.Removal{Person: p, Last: true, Swept: swept}
		err := f.tables().Forget(ctx, tx, &r)
		files = append(files, r.Files...)
		return err
	})
	slices.Sort(files)
	if n := len(slices.Compact(files)); n != (early+late)/4 || n != len(files) {
		t.Errorf("%d files of %d", n, len(files))
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM inbox`: early + late,
		`SELECT count(*) FROM inbox WHERE sender = 'zeb' OR chat = 'c-zeb' OR request <> ''`:      0,
		`SELECT count(*) FROM inbox WHERE payload IS NULL AND state = 'refused'`:                  (early + late) / 2,
		`SELECT count(*) FROM inbox WHERE sender = 'other' AND payload = '{}' AND state = 'dead'`: (early + late) / 2,
		`SELECT count(*) FROM outbox`:                             (early + late) * 3 / 4,
		`SELECT count(*) FROM outbox WHERE body LIKE '%Zebulon%'`: 0,
	} {
		var n int
		if err := f.db.Get(context.Background(), &n, query); err != nil || n != want {
			t.Errorf("%s: %d, want %d, %v", query, n, want, err)
		}
	}
}

// What could not be sent is kept longer than what was.
func TestForgettingReachesRepliesToOthersThatWereNotSentAndTheKeysOfNotices(t *testing.T) {
	p := core.Person{User: 7, Names: []string{"Zebulon"}, Identities: []core.Identity{{Platform: "p", ID: "4711", Bots: []string{"bot"}}}}
	for name, forget := range map[string]func(*fixture) error{
		"in one transaction": func(f *fixture) error {
			return f.db.Tx(t.Context(), func(tx *store.Tx) error {
				return f.tables().Forget(t.Context(), tx, &core.Removal{Person: p, Last: true})
			})
		},
		"by sweeping": func(f *fixture) error {
			_, err := f.tables().Sweep(t.Context(), p, func(*store.Tx, []string) error { return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
				for key, row := range map[string][2]string{
					"a": {"failed", "Zebulon left"}, "b": {"unknown", "Zebulon left"}, "c": {"sent", "Zebulon left"}, "d": {"ready", "an answer to Zebulon"}, "e": {"failed", "nothing"},
					"notice:rate:bot:c:4711:2026": {"sent", "slowly"}, "notice:standing:bot:4711:x": {"failed", "gone"}, "notice:rate:bot:c:47110:2026": {"sent", "slowly"},
				} {
					if _, err := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) VALUES ('bot', 'c-other', $1, 1, $2, $3, '')`, key, `{"text":"`+row[1]+`"}`, row[0]); err != nil {
						return err
					}
				}
				return nil
			})
			if err := errors.Join(err, forget(f)); err != nil {
				t.Fatal(err)
			}
			var left []string
			if err := f.db.Select(t.Context(), &left, `SELECT key || ' ' || body FROM outbox ORDER BY key`); err != nil {
				t.Fatal(err)
			}
			want := []string{`c {}`, `d {"text":"an answer to Zebulon"}`, `e {"text":"nothing"}`, `notice:rate:bot:c:47110:2026 {"text":"slowly"}`}
			if !slices.Equal(left, want) {
				t.Errorf("left %q", left)
			}
		})
	}
}

func TestRepliesThatCouldNotBeSentAreBounded(t *testing.T) {
	f := newFixture(t, nil)
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10007)
			INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) SELECT 'bot', 'c', 'k' || i, 1, '{}', CASE WHEN i % 2 = 0 THEN 'failed' ELSE 'unknown' END, '' FROM n`)
		return err
	})
	n, pruneErr := f.tables().Chores()[0].Run(t.Context())
	if err := errors.Join(err, pruneErr); err != nil || n != 7 {
		t.Errorf("%d rows pruned, want 7, %v", n, err)
	}
	var oldest string
	if err := f.db.Get(t.Context(), &oldest, `SELECT key FROM outbox ORDER BY seq LIMIT 1`); err != nil || oldest != "k8" {
		t.Errorf("the oldest is %s, %v", oldest, err)
	}
}
