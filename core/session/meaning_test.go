package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	documents "gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/session"
	"gatehouse/core/session/found"
	"gatehouse/core/store"
)

const (
	dimensions = 256
	model      = 1
)

// A library is a house whose conversations have vectors.
type library struct {
	*house
	docs   *documents.Store
	finder *search.Finder
	read   []string // what the model has got
}

func talking(t *testing.T) *library {
	h := open(t)
	w := &library{house: h, docs: documents.New(h.db, func(context.Context, store.Queryer, int64) (bool, error) { return true, nil })}
	w.finder = search.New(search.Options{
		Sessions: found.Source{Sessions: h.Store}, Meaning: found.Meaning{Sessions: h.Store, DB: h.db}, Documents: w.docs,
		MayRead: func(core.Trust, int64, string) bool { return true },
		Near: func(_ context.Context, _ int64, text string) *search.Near {
			return &search.Near{Model: model, Values: embedtest.Vector(text, dimensions)}
		},
	})
	return w
}

// pending returns what the model has to read.
func (w *library) pending() []documents.Passage {
	w.t.Helper()
	list, err := found.Library{Store: w.docs, Texts: w.Store}.PendingAfter(context.Background(), model, documents.Passage{}, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// embed has the model read all passages.
func (w *library) embed() {
	w.t.Helper()
	w.store(w.pending())
}

func (w *library) store(list []documents.Passage) {
	w.t.Helper()
	vectors := make([][]float32, len(list))
	for i, p := range list {
		w.read = append(w.read, p.Embedded())
		vectors[i] = embedtest.Vector(p.Embedded(), dimensions)
	}
	if err := w.docs.Embed(context.Background(), model, list, vectors); err != nil {
		w.t.Fatal(err)
	}
}

// meant returns what a search finds, all pages of it.
func (w *library) meant(r search.Reader, q search.Query) (hits []search.Hit) {
	w.t.Helper()
	for range 50 {
		page, err := w.finder.Search(context.Background(), q, r)
		if err != nil {
			w.t.Fatal(err)
		}
		hits = append(hits, page.Hits...)
		if q.Cursor = page.Next; q.Cursor == "" {
			return hits
		}
	}
	w.t.Fatal("the pages do not end")
	return nil
}

func (w *library) ids(r search.Reader, text string) (ids []string) {
	w.t.Helper()
	for _, h := range w.meant(r, search.Query{Text: text}) {
		ids = append(ids, h.ID)
	}
	return ids
}

var five = search.Reader{User: 5, Trust: core.Full}

func TestAConversationIsFoundByItsMeaning(t *testing.T) {
	w := talking(t)
	roof, tea := w.resolve(chat(5, "c1")).Session, w.resolve(chat(5, "c2")).Session
	w.says(roof, "r1", "What happened at the house?", "The gutters were repaired and the roof was repainted.")
	w.says(tea, "r2", "How do I brew it?", "Green tea wants water of eighty degrees.")
	if got := w.ids(five, "repairing guttering"); len(got) != 0 {
		t.Fatalf("before they have vectors: %v", got)
	}
	w.embed()
	hits := w.meant(five, search.Query{Text: "repairing guttering"})
	if len(hits) == 0 || hits[0].ID != roof.ID {
		t.Fatalf("%+v", hits)
	}
	if h := hits[0]; h.Type != search.Session || h.In != "text" || h.Role != "assistant" || h.Message == "" || h.Excerpt != "The gutters were repaired and the roof was repainted." {
		t.Errorf("the hit does not lead to its message: %+v", h)
	}
	if hits := w.meant(five, search.Query{Text: `"repairing" guttering`}); len(hits) != 0 {
		t.Errorf("without the quoted word: %+v", hits)
	}
	if hits := w.meant(five, search.Query{Text: `repairing guttering -roof`}); slices.ContainsFunc(hits, func(h search.Hit) bool { return h.ID == roof.ID }) {
		t.Errorf("with the excluded word: %+v", hits)
	}
	if hits := w.meant(five, search.Query{Text: "repairing guttering tag:house"}); len(hits) != 0 {
		t.Errorf("without the tag: %+v", hits)
	}
	if _, err := w.update(roof.ID, session.Change{AddTags: []string{"house"}}); err != nil {
		t.Fatal(err)
	}
	if hits := w.meant(five, search.Query{Text: "repairing guttering tag:house"}); len(hits) != 1 {
		t.Errorf("with the tag: %+v", hits)
	}
}

func TestATitleIsFoundByItsMeaning(t *testing.T) {
	w := talking(t)
	sess := w.resolve(chat(5, "c1")).Session
	w.says(sess, "r1", "hello", "hello to you")
	title := "Repainting the garden fences"
	if _, err := w.update(sess.ID, session.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	w.embed()
	if hits := w.meant(five, search.Query{Text: "repainted fence"}); len(hits) != 1 || hits[0].In != "title" || hits[0].Excerpt != title {
		t.Errorf("%+v", hits)
	}
}

func TestTheMeaningOfALongMessageIsFoundInEachOfItsPieces(t *testing.T) {
	w := talking(t)
	sess := w.resolve(chat(5, "c1")).Session
	filler := strings.Repeat("Nothing of note was said about anything on that day. ", 60)
	w.says(sess, "r1", "Tell me all", filler+"The gutters were repaired and the roof was repainted. "+filler)
	w.embed()
	if len(w.read) < 5 || slices.ContainsFunc(w.read, func(s string) bool { return len(s) > 1600 }) {
		t.Errorf("%d pieces", len(w.read))
	}
	if hits := w.meant(five, search.Query{Text: "gutters roof repainted"}); len(hits) != 1 || !strings.Contains(hits[0].Excerpt, "roof was repainted") {
		t.Errorf("%+v", hits)
	}
}

func TestMeaningKeepsTheRightsOfConversations(t *testing.T) {
	w := talking(t)
	mine, high := w.resolve(chat(5, "c1")).Session, w.resolve(api(5, "high")).Session
	theirs := w.resolve(chat(51, "c2")).Session
	for i, s := range []session.Session{mine, high, theirs} {
		w.says(s, fmt.Sprint("r", i), "gutters", "The gutters were repaired.")
	}
	w.embed()
	for name, c := range map[string]struct {
		r    search.Reader
		want []string
	}{
		"of their own, up to their trust": {search.Reader{User: 5, Trust: core.Sandboxed}, []string{mine.ID}},
		"of any trust":                    {search.Reader{User: 5, Trust: core.Sandboxed, AnyTrust: true}, []string{mine.ID, high.ID}},
		"of everyone":                     {search.Reader{User: 1, Everyone: true}, []string{mine.ID, high.ID, theirs.ID}},
		"of another":                      {search.Reader{User: 51, Trust: core.Full}, []string{theirs.ID}},
		"in a group":                      {search.Reader{User: 5, Trust: core.Full, NoSessions: true}, nil},
		"of no one":                       {search.Reader{Trust: core.Full}, nil},
		"of someone without any":          {search.Reader{User: 52, Trust: core.Full}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.ids(c.r, "repairing guttering")
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
	// The rights as they are now count, and not those when it was embedded.
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sessions SET trust_level = 'full' WHERE id = $1`, mine.ID)
		return err
	})
	if got := w.ids(search.Reader{User: 5, Trust: core.Sandboxed}, "repairing guttering"); len(got) != 0 {
		t.Errorf("after the trust was raised: %v", got)
	}
}

// What documents do, count and delete does not reach conversations.
func TestTheIndexOfDocumentsKnowsNoConversations(t *testing.T) {
	w := talking(t)
	ctx := context.Background()
	sess := w.resolve(chat(5, "c1")).Session
	w.says(sess, "r1", "gutters", "The gutters were repaired.")
	w.embed()
	if c, err := w.docs.Count(ctx); err != nil || c != (documents.Counts{}) {
		t.Errorf("counted: %+v, %v", c, err)
	}
	_, err := w.docs.Chunks(ctx, sess.ID, "", "", 10)
	_, pathErr := w.docs.Path(ctx, sess.ID)
	for name, err := range map[string]error{
		"chunks": err, "path": pathErr, "add": w.docs.Add(ctx, sess.ID, []documents.Stored{{Field: "summary", Text: "x"}}), "purge": w.docs.Purge(ctx, sess.ID),
	} {
		if core.KindOf(err) != core.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	everything := search.Reader{User: 5, Trust: core.Full, MayRead: func(string) bool { return true }}
	for _, text := range []string{"gutters", "repairing guttering", "-roof", "tag:x", "in:Chat gutters", ""} {
		q, _ := search.Parse(text)
		q.Near = &search.Near{Model: model, Values: embedtest.Vector("repairing guttering", dimensions)}
		if hits, _, err := w.docs.Find(ctx, q, everything, 10, ""); err != nil || len(hits) != 0 {
			t.Errorf("%q finds %+v, %v", text, hits, err)
		}
	}
	if err := w.docs.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.ids(five, "repairing guttering"); !slices.Equal(got, []string{sess.ID}) {
		t.Errorf("after the documents are cleared: %v", got)
	}
}

// rows is what is kept of conversations besides their transcripts.
const rows = `SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM index_manifest) + (SELECT count(*) FROM session_words) + (SELECT count(*) FROM chunk_signs)`

func TestWhatIsDeletedLeavesNoChunkAndNoVector(t *testing.T) {
	ctx := context.Background()
	for name, remove := range map[string]func(w *library, id string) error{
		"a conversation": func(w *library, id string) error {
			return w.try(func(ctx context.Context, tx *store.Tx) error { return w.Delete(ctx, tx, id, core.Actor{User: 5}) })
		},
		"a long one first in short transactions": func(w *library, id string) error {
			return errors.Join(w.Shed(ctx, id), w.try(func(ctx context.Context, tx *store.Tx) error { return w.Delete(ctx, tx, id, core.Actor{User: 5}) }))
		},
		"a person": func(w *library, _ string) error {
			return w.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := w.Forget(ctx, tx, core.Person{User: 5})
				return err
			})
		},
		"a person, step by step": func(w *library, _ string) error {
			more := true
			for more {
				err := w.try(func(ctx context.Context, tx *store.Tx) (err error) {
					_, more, err = w.ForgetSome(ctx, tx, 5, 2)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
		"archived ones by upkeep": func(w *library, id string) error {
			yes := true
			if _, err := w.update(id, session.Change{Archived: &yes}); err != nil {
				return err
			}
			return w.try(func(ctx context.Context, tx *store.Tx) error {
				if _, err := tx.Exec(ctx, `UPDATE sessions SET last_accessed = '2020-01-01T00:00:00.000000Z'`); err != nil {
					return err
				}
				_, err := w.Cleanup(ctx, tx, []string{id}, 1, core.Actor{}, nil)
				return err
			})
		},
		"the index, to be made again": func(w *library, _ string) error { return w.Empty(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			w := talking(t)
			sess := w.resolve(chat(5, "c1")).Session
			for i := range 5 {
				w.says(sess, fmt.Sprint("r", i), "gutters", "The gutters were repaired.")
			}
			if w.embed(); w.number(rows) == 0 {
				t.Fatal("there is nothing to delete")
			}
			if err := remove(w, sess.ID); err != nil {
				t.Fatal(err)
			}
			if n := w.number(rows); n != 0 {
				t.Errorf("%d rows are left", n)
			}
		})
	}
}

func TestTheDatabaseKeepsNoTextOfMessages(t *testing.T) {
	w := talking(t)
	sess := w.resolve(chat(5, "c1")).Session
	w.says(sess, "r1", "hello", "The xylophonist repaired the gutters.")
	w.embed()
	if n := w.number(`SELECT count(*) FROM chunks WHERE chunk_text <> ''`); n != 0 {
		t.Errorf("%d chunks have a text", n)
	}
	if n := w.number(`SELECT count(*) FROM chunks WHERE embedding IS NOT NULL`); n != 3 {
		t.Errorf("%d of a title and two messages have vectors", n)
	}
}

// A model may take its time: what was rewritten or deleted meanwhile gets no vector of what
// it was, though another chunk has its number.
func TestAVectorOfATextThatWasDeletedIsNotStored(t *testing.T) {
	w := talking(t)
	sess := w.resolve(chat(5, "c1")).Session
	w.says(sess, "r1", "hello", "The gutters were repaired.")
	list := w.pending()
	w.clock.Advance(1)
	w.tx(func(ctx context.Context, tx *store.Tx) error { return w.Reword(ctx, tx, sess.ID) })
	w.clock.Advance(1_000_000)
	w.fill()
	w.store(list)
	if n := w.number(`SELECT (SELECT count(*) FROM chunk_signs) + (SELECT count(*) FROM chunks WHERE embedding IS NOT NULL)`); n != 0 {
		t.Errorf("%d vectors are of what was there before", n)
	}
}

// What a merge of two persons, or a transcript that others have changed, leads to is read again.
func TestAfterAMergeTheOtherPersonFindsByMeaning(t *testing.T) {
	w := talking(t)
	sess := w.resolve(chat(5, "c1")).Session
	w.says(sess, "r1", "hello", "The gutters were repaired.")
	w.embed()
	w.tx(func(ctx context.Context, tx *store.Tx) error { return w.Give(ctx, tx, 5, 6) })
	if got := w.ids(five, "repairing guttering"); len(got) != 0 {
		t.Errorf("the former person finds %v", got)
	}
	w.fill()
	w.embed()
	if got := w.ids(search.Reader{User: 6, Trust: core.Full}, "repairing guttering"); !slices.Equal(got, []string{sess.ID}) {
		t.Errorf("the other finds %v", got)
	}
}

func TestPagesByWordsAndMeaningRepeatAndSkipNoConversation(t *testing.T) {
	for _, limit := range []int{1, 3, 7, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			w := talking(t)
			var all []session.Session
			for i := range 30 {
				s := w.resolve(chat(5, fmt.Sprint("c", i))).Session
				if i%3 == 0 {
					w.says(s, fmt.Sprint("r", i), "x", "Someone repaired gutters.") // the other words
				} else {
					w.says(s, fmt.Sprint("r", i), "x", fmt.Sprint("repairing guttering, number ", i))
				}
				all = append(all, s)
			}
			w.embed()
			q, seen := search.Query{Text: "repairing guttering", Limit: limit}, map[string]int{}
			for pages := 0; pages < 100; pages++ {
				page, err := w.finder.Search(context.Background(), q, five)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Next) > 1024 {
					t.Fatalf("the cursor has %d bytes", len(page.Next))
				}
				for _, h := range page.Hits {
					seen[h.ID]++
				}
				if q.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			worded := 0
			for i, s := range all {
				if seen[s.ID] > 1 {
					t.Errorf("conversation %d is shown %d times", i, seen[s.ID])
				}
				if i%3 != 0 && seen[s.ID] == 1 {
					worded++
				}
			}
			if worded != 20 {
				t.Errorf("%d of the 20 with the words are shown", worded)
			}
		})
	}
}

// A database of before has its conversations indexed in the background: the last used ones
// first, and in the order that they had, also with messages that arrive meanwhile.
func TestWhatIsIndexedLaterIsInTheOrderOfItsUse(t *testing.T) {
	w := talking(t)
	var all []session.Session
	for i := range 20 {
		w.clock.Advance(1_000_000_000)
		s := w.resolve(chat(5, fmt.Sprint("c", i))).Session
		w.says(s, fmt.Sprint("r", i), "tea", strings.Repeat("many words of tea ", 100*(i%4)*(i%4)))
		all = append(all, s)
	}
	order := func() (got []int) {
		hits, _ := w.search(session.Filter{User: 5, Search: "tea", Limit: 200})
		for _, h := range hits {
			got = append(got, slices.IndexFunc(all, func(s session.Session) bool { return s.ID == h.ID }))
		}
		return got
	}
	want := order()
	if len(want) != 20 || want[0] != 19 || want[19] != 0 {
		t.Fatalf("%v", want)
	}
	for round := range 2 { // also a second time
		if err := w.Empty(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(1_000_000_000)
		w.says(all[3], fmt.Sprint("late", round), "tea", "arrives before it is indexed again")
		want = append([]int{3}, slices.DeleteFunc(want, func(i int) bool { return i == 3 })...)
		if w.fill(); !slices.Equal(order(), want) {
			t.Errorf("after it was made again: %v, want %v", order(), want)
		}
		w.clock.Advance(1_000_000_000)
		w.says(all[5], fmt.Sprint("new", round), "tea", "a new message")
		want = append([]int{5}, slices.DeleteFunc(want, func(i int) bool { return i == 5 })...)
		if got := order(); !slices.Equal(got, want) {
			t.Errorf("after a new message: %v, want %v", got, want)
		}
	}
	w.embed()
	if got := w.ids(five, "many wordy teas"); len(got) == 0 {
		t.Error("what was indexed later is not found by its meaning")
	}
	if err := w.Empty(context.Background()); err != nil || w.number(rows) != 0 {
		t.Errorf("%d rows are left, %v", w.number(rows), err)
	}
}
