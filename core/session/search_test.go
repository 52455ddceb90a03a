package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
)

// says is a turn from its first line to its commit, as the orchestrator does it.
func (h *house) says(sess session.Session, run, q, a string) {
	h.t.Helper()
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append(run, 0, user(q), answer(a)), c.Sync()); err != nil {
		h.t.Fatal(err)
	}
	h.finish(sess.ID, session.Finish{Messages: 2, Title: q, At: h.clock.Now(), Words: h.Words(context.Background(), c)})
	if err := c.Close(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) search(f session.Filter) ([]session.Found, string) {
	h.t.Helper()
	found, next, err := h.Search(context.Background(), f)
	if err != nil {
		h.t.Fatalf("%q: %v", f.Search, err)
	}
	return found, next
}

// finds is what user's search shows, as "session's name in: excerpt".
func (h *house) finds(user int64, asked string, names map[string]string) (out []string) {
	h.t.Helper()
	found, _ := h.search(session.Filter{User: user, Search: asked})
	for _, f := range found {
		out = append(out, names[f.ID]+" "+f.Hit.In+": "+f.Hit.Excerpt)
	}
	return out
}

func (h *house) fill() {
	h.t.Helper()
	for {
		n, err := h.Fill(context.Background())
		if err != nil {
			h.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func TestASessionIsFoundByTitleTagAndText(t *testing.T) {
	h := open(t)
	a, b, c := h.resolve(chat(5, "c1")).Session, h.resolve(chat(5, "c2")).Session, h.resolve(chat(6, "c3")).Session
	names := map[string]string{a.ID: "a", b.ID: "b", c.ID: "c"}
	h.says(a, "r1", "Where is the café?", "In Lisbon, near the river.\nIt has green tea.")
	h.says(b, "r2", "Write a sonnet", "Shall I compare thee to a summer's day?")
	h.says(c, "r3", "Somebody else's green tea", "a secret")
	for asked, want := range map[string][]string{
		"cafe":                     {"a title: Where is the café?"},
		"GREEN tea":                {"a text: In Lisbon, near the river. It has green tea."},
		"lisbon":                   {"a text: In Lisbon, near the river. It has green tea."},
		"summer's":                 {"b text: Shall I compare thee to a summer's day?"},
		"lisbon sonnet":            nil,
		"secret":                   nil,
		"somebody":                 nil,
		"compa":                    {"b text: Shall I compare thee to a summer's day?"}, // nothing is called that, so it is a beginning
		"so":                       {"b title: Write a sonnet"},
		"co":                       nil,
		"":                         nil,
		"u6":                       nil,
		"\x00 \" ' * ( XOR(":       nil,
		`words:tea OR keys : "u6"`: nil,
	} {
		if asked == "" {
			continue
		}
		if got := h.finds(5, asked, names); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", asked, got, want)
		}
	}
	found, _ := h.search(session.Filter{User: 5, Search: "lisbon"})
	page, err := h.Page(context.Background(), found[0].Session, transcript.PageQuery{Limit: 10})
	if err != nil || found[0].Hit.Role != "assistant" || found[0].Hit.Message != page.Messages[1].Line() || !found[0].Hit.At.Equal(page.Messages[1].At) {
		t.Errorf("%+v %v", found, err)
	}
	if found, _ := h.search(session.Filter{All: true, Search: "green tea"}); len(found) != 2 || found[0].ID != c.ID {
		t.Errorf("everybody's: %+v", found)
	}
	title := "Portugal"
	if _, err := h.update(a.ID, session.Change{Title: &title, AddTags: []string{"Travel plans"}}); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string][]string{
		"portugal": {"a title: Portugal"}, "travel": {"a tag: travel plans"}, "port tra": nil, "portugal tra": {"a tag: travel plans"},
		"where": {"a text: Where is the café?"}, // the message still says it, the title no more
	} {
		if got := h.finds(5, asked, names); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", asked, got, want)
		}
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := h.SetTitle(ctx, tx, b.ID, "Verses", session.TitleModel)
		return err
	})
	if got := h.finds(5, "verses", names); !slices.Equal(got, []string{"b title: Verses"}) {
		t.Errorf("%q", got)
	}
}

func TestWhatIsDeletedIsNotFound(t *testing.T) {
	h := open(t)
	a, b := h.resolve(chat(5, "c1")).Session, h.resolve(chat(6, "c2")).Session
	h.says(a, "r1", "first secret", "told")
	h.says(b, "r2", "second secret", "told")
	h.tx(func(ctx context.Context, tx *store.Tx) error { return h.Delete(ctx, tx, a.ID, core.Actor{User: 5}) })
	if found, _ := h.search(session.Filter{All: true, Search: "secret"}); len(found) != 1 || found[0].ID != b.ID {
		t.Errorf("%+v", found)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := h.Forget(ctx, tx, core.Person{User: 6})
		return err
	})
	if found, _ := h.search(session.Filter{All: true, Search: "secret"}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if n := h.number(`SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM index_manifest) + (SELECT count(*) FROM session_words)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if storetest.Postgres() {
		return // the words are an ordinary table's there
	}
	// Nothing that the index was given stays in the file's bytes.
	c := h.resolve(chat(7, "c3")).Session
	h.says(c, "r3", "hello", "xylophonist")
	const blocks = `SELECT count(*) FROM session_words_data WHERE instr(block, CAST('xylophonist' AS BLOB)) > 0`
	if n := h.number(blocks); n == 0 {
		t.Error("the test looks for the word in another way than it is kept")
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := h.Forget(ctx, tx, core.Person{User: 7})
		return err
	})
	if err := h.PurgeWords(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := h.number(blocks); n != 0 {
		t.Errorf("the word is in %d blocks of the index", n)
	}
}

func (h *house) number(query string, args ...any) (n int) {
	h.t.Helper()
	if err := h.db.Get(context.Background(), &n, query, args...); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// A turn that does not commit leaves nothing to be found; its next attempt does.
func TestWordsAreFoundWhenTheirTurnIsCommitted(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("r1", 0, user("green tea"), answer("here")), c.Sync()); err != nil {
		t.Fatal(err)
	}
	w := h.Words(context.Background(), c)
	boom := errors.New("boom")
	err := h.try(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(h.Finish(ctx, tx, sess.ID, session.Finish{Words: w, At: h.clock.Now()}), boom)
	})
	if found, _ := h.search(session.Filter{User: 5, Search: "tea"}); !errors.Is(err, boom) || len(found) != 0 {
		t.Errorf("%v %+v", err, found)
	}
	for range 2 { // the second is one that another attempt has been before
		h.finish(sess.ID, session.Finish{Words: w, At: h.clock.Now()})
		h.fill()
		if found, _ := h.search(session.Filter{User: 5, Search: "tea"}); len(found) != 1 {
			t.Errorf("%+v", found)
		}
		if n := h.number(`SELECT count(*) FROM session_words`); n != 2 {
			t.Errorf("%d rows for two messages", n)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasThereBeforeTheIndexIsFoundLater(t *testing.T) {
	h := open(t)
	var all []session.Session
	for i := range 3 {
		s := h.resolve(chat(5, fmt.Sprint("c", i))).Session
		h.turn(h.Store, s, fmt.Sprint("r", i), fmt.Sprint("old words ", i), strings.Repeat("many many words ", 20_000)+"at last")
		all = append(all, s)
	}
	if found, _ := h.search(session.Filter{User: 5, Search: "old"}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	h.fill()
	if found, _ := h.search(session.Filter{User: 5, Search: "old words"}); len(found) != 3 {
		t.Errorf("%+v", found)
	}
	before := h.db.Commits()
	if h.fill(); h.db.Commits() != before {
		t.Error("upkeep writes with nothing to do")
	}
	// What others write into the file is found with the next turn.
	c := h.open(h.Store, all[0])
	f, err := os.OpenFile(c.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"uuid":"x1","parentUuid":null,"type":"user","sessionId":"` + all[0].ID + `","message":{"role":"user","content":"said in the CLI"}}` + "\n" +
		`{"uuid":"x2","parentUuid":null,"isSidechain":true,"type":"user","message":{"role":"user","content":"said to a helper"}}` + "\n" +
		`{"uuid":"x3","parentUuid":null,"isCompactSummary":true,"type":"user","message":{"role":"user","content":"summed up"}}` + "\nbroken \"text\"\n")
	if err := errors.Join(err, f.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	h.says(all[0], "r9", "next", "ok")
	for asked, want := range map[string]int{"said in the cli": 1, "helper": 0, "summed": 0, "broken": 0, "next": 1} {
		if found, _ := h.search(session.Filter{User: 5, Search: asked}); len(found) != want {
			t.Errorf("%q: %+v", asked, found)
		}
	}
}

// Those that wait for the index are counted, whether the index knows them or not.
func TestConversationsThatWaitForTheIndexAreCounted(t *testing.T) {
	h := open(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(h.UnindexedGauge())
	want := func(when string, n int64) {
		t.Helper()
		got, err := h.Unindexed(t.Context())
		if err != nil || got != n {
			t.Errorf("%s: %d, %v, want %d", when, got, err, n)
		}
		text := fmt.Sprintf("# HELP gatehouse_index_conversations_pending Conversations of which something is to be indexed; -1 if they cannot be counted.\n# TYPE gatehouse_index_conversations_pending gauge\ngatehouse_index_conversations_pending %d\n", n)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	want("of none", 0)
	var last session.Session
	for i := range 3 {
		last = h.resolve(chat(5, fmt.Sprint("c", i))).Session
		h.turn(h.Store, last, fmt.Sprint("r", i), "old words", "an answer")
	}
	want("before the first fill", 3)
	h.fill()
	want("after it", 0)
	if err := h.db.Tx(t.Context(), func(tx *store.Tx) error { return h.Reread(t.Context(), tx, last.ID) }); err != nil {
		t.Fatal(err)
	}
	want("of one that is read again", 1)
	h.fill()
	want("at the end", 0)
	if err := h.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("of an index that was emptied", 3)
}

// A transcript that somebody has changed is not quoted from memory.
func TestWhatIsFoundIsReadInTheTranscript(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.says(sess, "r1", "hello", "green tea")
	path := filepath.Join(h.vault.Path(), h.transcriptOf(sess.ID))
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "green tea", "black cat")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := h.search(session.Filter{User: 5, Search: "tea"}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	h.fill()
	if found, _ := h.search(session.Filter{User: 5, Search: "cat"}); len(found) != 1 || found[0].Hit.Excerpt != "black cat" {
		t.Errorf("%+v", found)
	}
	moved := filepath.Join(h.vault.Path(), ".claude/projects/elsewhere")
	if err := errors.Join(os.MkdirAll(moved, 0o700), os.Rename(path, filepath.Join(moved, filepath.Base(path)))); err != nil {
		t.Fatal(err)
	}
	if found, _ := h.search(session.Filter{User: 5, Search: "cat"}); len(found) != 1 {
		t.Errorf("after a move: %+v", found)
	}
}

func TestASearchIsPagedWithoutGapOrRepeat(t *testing.T) {
	h := open(t)
	var all []session.Session
	for i := range 12 {
		all = append(all, h.resolve(chat(5, fmt.Sprint("c", i))).Session)
	}
	for round := range 3 {
		for i, s := range all {
			h.says(s, fmt.Sprint("r", round, "-", i), "tea again", fmt.Sprint("tea number ", i))
		}
	}
	yes := true
	if _, err := h.update(all[3].ID, session.Change{Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	no := false
	for _, limit := range []int{1, 3, 5, 12, 50} {
		f := session.Filter{User: 5, Search: "tea", Limit: limit, Archived: &no}
		var got []string
		for pages := 0; pages < 20; pages++ {
			found, next := h.search(f)
			for _, s := range found {
				got = append(got, s.ID)
			}
			if pages == 0 && limit == 3 { // one that is still to come is found anew meanwhile
				h.says(all[1], "late", "tea", "tea")
			}
			if f.Cursor = next; next == "" {
				break
			}
		}
		var want []string
		for i := len(all) - 1; i >= 0; i-- {
			if i != 3 {
				want = append(want, all[i].ID)
			}
		}
		if limit > 3 { // the late one is the newest now
			i := slices.Index(want, all[1].ID)
			want = append([]string{all[1].ID}, slices.Delete(want, i, i+1)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", limit, got, want)
		}
	}
	for _, bad := range []string{"x", "MjAyNi0wMS0wMlQwMzowNDowNS4wMDAwMDBaIGE", "cyAxIDIgMw", "cyAwIDAgMA"} {
		if _, _, err := h.Search(context.Background(), session.Filter{User: 5, Search: "tea", Cursor: bad}); core.KindOf(err) != core.Invalid {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	if _, _, err := h.Search(context.Background(), session.Filter{User: 5, Search: "tea", Offset: 1}); core.KindOf(err) != core.Invalid {
		t.Errorf("offset: %v", err)
	}
}

// Whatever is said, and asked for: what is found is in the transcript, what is
// said can be found by its own words, and by its own person alone.
func TestWhatIsFoundIsInTheTranscriptAndTheOtherWayRound(t *testing.T) {
	h := open(t)
	people := map[int64]session.Session{5: h.resolve(chat(5, "c5")).Session, 51: h.resolve(chat(51, "c6")).Session}
	vocabulary := []string{"tea", "Tea", "café", "cafe", "绿茶", "茶", "OR", "NEAR", "\"x\"", "a*", "u5", "s1", "foo-bar", "\x00", "ß", "ﬁ", "x_y%", "x", "1x"}
	said := map[int64][]string{}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		who := rapid.SampledFrom([]int64{5, 51}).Draw(rt, "who")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 6).Draw(rt, "text"), " ")
		run++
		h.says(people[who], fmt.Sprint("r", run), text, "…")
		said[who] = append(said[who], strings.ToLower(text))
		asked := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 3).Draw(rt, "asked"), " ")
		for user, own := range people {
			found, _ := h.search(session.Filter{User: user, Search: asked})
			for _, f := range found {
				if f.ID != own.ID {
					rt.Fatalf("%d finds %q in somebody else's", user, asked)
				}
			}
			exact := slices.ContainsFunc(said[user], func(s string) bool {
				for _, w := range strings.Fields(strings.ToLower(asked)) {
					if !slices.Contains(strings.Fields(s), w) {
						return false
					}
				}
				return true
			})
			if exact && asked != "\x00" && strings.Trim(asked, "\x00 ") != "" && len(found) != 1 {
				rt.Fatalf("%d does not find %q", user, asked)
			}
		}
	})
}

func TestAnEmptyDatabaseFindsWhatTheVaultHas(t *testing.T) {
	h := open(t)
	a := h.resolve(chat(5, "c1")).Session
	h.says(a, "r1", "buy green tea", "done")
	if _, err := h.update(a.ID, session.Change{AddTags: []string{"shopping"}}); err != nil {
		t.Fatal(err)
	}
	n := h.emptied()
	if done := n.reindex(everyone); done.Searchable != 1 {
		t.Errorf("%+v", done)
	}
	for _, again := range []bool{false, true} {
		if again {
			n.reindex(everyone)
		}
		for _, asked := range []string{"green tea", "shopping", "done"} {
			if found, _ := n.search(session.Filter{User: 5, Search: asked}); len(found) != 1 || found[0].ID != a.ID {
				t.Errorf("%q: %+v", asked, found)
			}
		}
	}
}

// FuzzSearch: whatever is typed, and whatever cursor is sent, is no fault of
// the database's, and finds nobody else's.
func FuzzSearch(f *testing.F) {
	for _, typed := range []string{`"`, `tea" OR "x`, `tea*`, `NEAR(tea x, 3)`, `{keys} : "u6"`, "\x00", "^tea", "-tea", "tea AND", "u6", "茶", strings.Repeat("a ", 500)} {
		f.Add(typed, "")
	}
	f.Add("tea", "cyAyIDIgMA")
	h := open(f)
	for user, id := range map[int64]string{5: "c1", 6: "c2"} {
		h.says(h.resolve(chat(user, id)).Session, uuid.NewString(), "green tea u5 u6 s1", "绿茶 or near")
	}
	f.Fuzz(func(t *testing.T, typed, cursor string) {
		found, _, err := h.Search(context.Background(), session.Filter{User: 5, Search: typed, Cursor: cursor})
		if err != nil && core.KindOf(err) != core.Invalid {
			t.Fatalf("%q: %v", typed, err)
		}
		for _, s := range found {
			if s.User != 5 {
				t.Fatalf("%q finds somebody else's", typed)
			}
		}
	})
}

// The index of a large database is not written anew while everybody waits.
func TestWordsArePurgedInShortTransactions(t *testing.T) {
	storetest.SQLiteOnly(t, "its index")
	h := open(t)
	const docs = 40_000
	sess := h.resolve(chat(5, "c1")).Session
	h.says(sess, "r1", "hello", "told")
	for from := 0; from < docs; from += 2000 {
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO session_words (rowid, words, starts, keys)
				WITH RECURSIVE c(n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM c WHERE n < $1 + 1999)
				SELECT 1000000 + n, 'xyzzy' || n || ' some more words that were said on a day like ' || (n % 100) || ' others', '', 's1 u5wx' || n FROM c`, from)
			return err
		})
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM session_words WHERE rowid >= 1000000 AND rowid % 2 = 0`)
		return err
	})
	before := h.db.Commits()
	if err := h.PurgeWords(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := h.db.Commits() - before; n < 4 {
		t.Errorf("%d transactions", n)
	}
	if n := h.number(`SELECT count(DISTINCT segid) FROM session_words_idx`); n != 1 { // all of it was written anew
		t.Errorf("%d segments", n)
	}
	if n := h.number(`SELECT count(*) FROM session_words WHERE session_words MATCH 'xyzzy20000 OR xyzzy20001'`); n != 1 {
		t.Errorf("%d of two are found", n)
	}
	if found, _ := h.search(session.Filter{All: true, Search: "told"}); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
