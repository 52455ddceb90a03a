package search_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/search"
)

func TestParse_ReadsOperatorsAndTakesAllElseForWords(t *testing.T) {
	for text, want := range map[string]string{
		`roof repair`:                  `words=roof repair`,
		`"roof repair" spring`:         `words=[roof repair] spring`,
		`roof -gutter`:                 `words=roof not=gutter`,
		`roof -"old gutter"`:           `words=roof not=[old gutter]`,
		`tag:Garden tag:#tea roof`:     `words=roof tags=garden,tea`,
		`in:Notes/House roof`:          `words=roof folder=Notes/House`,
		`in:"My Notes" roof`:           `words=roof folder=My Notes`,
		`type:note TYPE:Sessions roof`: `words=roof types=document,session`,
		`in:../../etc roof`:            `words=roof folder=etc`,
		// Not an operator: words.
		`"roof repair`:      `words=roof repair`,
		`type:spaceship`:    `words=type spaceship`,
		`tag: roof`:         `words=tag roof`,
		`tag:"" roof`:       `words=tag roof`,
		`- roof --`:         `words=roof`,
		`intag:x http://a`:  `words=[intag x] [http a]`,
		`in:/ roof`:         `words=in roof`,
		`in:"a/.." roof`:    `words=in a roof`,
		`NEAR(a b) AND * (`: `words=[near a] b and`,
		``:                  ``,
		`"" -"" '`:          ``,
	} {
		t.Run(text, func(t *testing.T) {
			q, types := search.Parse(text)
			var got []string
			add := func(name string, values ...string) {
				if len(values) > 0 && values[0] != "" {
					got = append(got, name+"="+strings.Join(values, map[bool]string{true: " ", false: ","}[name == "words" || name == "not"]))
				}
			}
			add("words", terms(q.Words.Terms)...)
			add("not", terms(q.Words.Not)...)
			add("tags", q.Tags...)
			add("folder", q.Folder)
			add("types", types...)
			if got := strings.Join(got, " "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func terms(list [][]string) (out []string) {
	for _, t := range list {
		if len(t) > 1 {
			out = append(out, fmt.Sprint(t))
		} else {
			out = append(out, t[0])
		}
	}
	return out
}

// A numbered is a source of n hits, of which those in hidden may not be read.
type numbered struct {
	kind string
	n    int
	asks []int // limits
}

func (s *numbered) Find(_ context.Context, _ search.Asked, r search.Reader, limit int, cursor string) (hits []search.Hit, next string, err error) {
	s.asks = append(s.asks, limit)
	from := 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, s.kind+"%d", &from); err != nil {
			return nil, "", core.Errorf(core.Invalid, "cursor")
		}
	}
	for i := from; i < s.n && len(hits) < limit; i++ {
		id := fmt.Sprintf("%s%d", s.kind, i)
		if r.MayRead(id) {
			hits = append(hits, search.Hit{Type: s.kind, ID: id, Cursor: fmt.Sprintf("%s%d", s.kind, i+1)})
		}
	}
	if from+limit < s.n {
		next = fmt.Sprintf("%s%d", s.kind, from+limit)
	}
	return hits, next, nil
}

func TestSearch_PagesBothRankingsToTheirEndsWithoutGapOrRepeat(t *testing.T) {
	for _, n := range [][2]int{{0, 0}, {0, 7}, {7, 0}, {3, 40}, {40, 3}, {23, 23}, {10, 10}} {
		for _, limit := range []int{1, 3, 10, 100} {
			t.Run(fmt.Sprintf("%d and %d by %d", n[0], n[1], limit), func(t *testing.T) {
				sessions, documents := &numbered{kind: search.Session, n: n[0]}, &numbered{kind: search.Document, n: n[1]}
				f := search.New(search.Options{Sessions: sessions, Documents: documents, MayRead: func(core.Trust, int64, string) bool { return true }})
				var got []string
				for cursor, pages := "", 0; ; pages++ {
					page, err := f.Search(t.Context(), search.Query{Text: "tea", Limit: limit, Cursor: cursor}, search.Reader{User: 7, Trust: core.Full})
					if err != nil {
						t.Fatal(err)
					}
					if len(page.Hits) > limit {
						t.Fatalf("a page of %d hits", len(page.Hits))
					}
					for i, h := range page.Hits {
						if got = append(got, h.ID); i > 0 && h.Score > page.Hits[i-1].Score {
							t.Errorf("%s is better than the hit before", h.ID)
						}
					}
					if cursor = page.Next; cursor == "" {
						break
					}
					if pages > n[0]+n[1] {
						t.Fatal("the pages do not end")
					}
				}
				if len(got) != n[0]+n[1] || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
					t.Errorf("got %d hits of %d: %v", len(got), n[0]+n[1], got)
				}
				if n[0] == 23 && limit == 100 && (got[0] == got[1] || got[0][0] == got[1][0]) {
					t.Errorf("one source is first: %v", got[:4])
				}
			})
		}
	}
}

// The score of a hit is that of reciprocal rank fusion with k = 60, on later pages too.
func TestSearch_ScoresAreThoseOfReciprocalRankFusion(t *testing.T) {
	f := search.New(search.Options{Sessions: &numbered{kind: search.Session, n: 4}, Documents: &numbered{kind: search.Document, n: 4}, MayRead: func(core.Trust, int64, string) bool { return true }})
	byType := map[string]int{}
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := f.Search(t.Context(), search.Query{Text: "tea", Limit: 3, Cursor: cursor}, search.Reader{User: 7, Trust: core.Full})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page.Hits {
			byType[h.Type]++
			if want := 1 / float64(60+byType[h.Type]); math.Abs(h.Score-want) > 1e-12 {
				t.Errorf("number %d of %s has the score %v, want %v", byType[h.Type], h.Type, h.Score, want)
			}
		}
		cursor = page.Next
	}
	if byType[search.Session] != 4 || byType[search.Document] != 4 {
		t.Errorf("found %v", byType)
	}
}

func TestSearch_RefusesWhatIsNotValidAndNamesIt(t *testing.T) {
	source := &numbered{kind: search.Document, n: 50}
	f := search.New(search.Options{Documents: source, MayRead: func(core.Trust, int64, string) bool { return true }})
	first, err := f.Search(t.Context(), search.Query{Text: "tea"}, search.Reader{})
	if err != nil || len(first.Hits) != search.DefaultLimit || first.Next == "" {
		t.Fatalf("%d hits, next %q, %v", len(first.Hits), first.Next, err)
	}
	for name, c := range map[string]struct {
		q    search.Query
		says string
	}{
		"a limit above the largest":       {search.Query{Text: "tea", Limit: 101}, "1 to 100"},
		"a negative limit":                {search.Query{Text: "tea", Limit: -1}, "1 to 100"},
		"an unknown type":                 {search.Query{Text: "tea", Types: []string{"spaceship"}}, `"spaceship"`},
		"a text that is too long":         {search.Query{Text: strings.Repeat("a", 257)}, "256"},
		"text that is not UTF-8":          {search.Query{Text: "\xff"}, "UTF-8"},
		"a cursor that was made up":       {search.Query{Text: "tea", Cursor: "x"}, "cursor"},
		"the cursor of another search":    {search.Query{Text: "coffee", Cursor: first.Next}, "cursor"},
		"the cursor with other filters":   {search.Query{Text: "tea", Folder: "Notes", Cursor: first.Next}, "cursor"},
		"a cursor that is much too long":  {search.Query{Text: "tea", Cursor: strings.Repeat("A", 5000)}, "cursor"},
		"more tags than anybody can mean": {search.Query{Text: "tea", Tags: strings.Fields("a b c d e f g h i")}, "8 tags"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Search(t.Context(), c.q, search.Reader{})
			if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if next, err := f.Search(t.Context(), search.Query{Text: "tea", Cursor: first.Next}, search.Reader{}); err != nil || next.Hits[0].ID != "document20" {
		t.Errorf("the next page: %v, %v", next, err)
	}
}

func TestSearch_ATypeInTheTextOnlyNarrowsTheTypesAskedFor(t *testing.T) {
	f := search.New(search.Options{Sessions: &numbered{kind: search.Session, n: 1}, Documents: &numbered{kind: search.Document, n: 1},
		MayRead: func(core.Trust, int64, string) bool { return true }})
	for text, want := range map[string]string{"tea": "document0", "tea type:document": "document0", "tea type:session": "", "tea\x00 type:session type:document": "document0"} {
		page, err := f.Search(t.Context(), search.Query{Text: text, Types: []string{"document"}}, search.Reader{User: 7, Trust: core.Full})
		got := ""
		for _, h := range page.Hits {
			got += h.ID
		}
		if err != nil || got != want || page.Next != "" {
			t.Errorf("%q finds %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestSearch_AsksEachFileForItsReader(t *testing.T) {
	f := search.New(search.Options{Documents: &numbered{kind: search.Document, n: 3}, MayRead: func(trust core.Trust, user int64, name string) bool {
		return trust == core.Sandboxed && user == 7 && name != "document1"
	}})
	page, err := f.Search(t.Context(), search.Query{Text: "tea"}, search.Reader{User: 7, Trust: core.Sandboxed})
	if err != nil || len(page.Hits) != 2 || page.Hits[1].ID != "document2" {
		t.Errorf("%v, %v", page.Hits, err)
	}
	page, err = f.Search(t.Context(), search.Query{Text: "tea"}, search.Reader{User: 7, Trust: core.Sandboxed, MayRead: func(name string) bool { return name == "document1" }})
	if err != nil || len(page.Hits) != 1 || page.Hits[0].ID != "document1" {
		t.Errorf("a reader with bounds of its own: %v, %v", page.Hits, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a "b c" -d tag:e in:f type:note`, `-"`, `in:"`, "tag:\x00", `"""`, "-tag:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, types := search.Parse(text)
		if len(q.Words.Terms) > 16 || len(q.Words.Not) > 16 {
			t.Errorf("%d and %d terms", len(q.Words.Terms), len(q.Words.Not))
		}
		for _, kind := range types {
			if kind != search.Session && kind != search.Document {
				t.Errorf("type %q", kind)
			}
		}
		if strings.HasPrefix(q.Folder, "/") || slices.Contains(strings.Split(q.Folder, "/"), "..") {
			t.Errorf("folder %q", q.Folder)
		}
	})
}

// A noting source notes whether searches came with what they mean.
type noting struct {
	numbered
	near []bool
}

func (s *noting) Find(ctx context.Context, q search.Asked, r search.Reader, limit int, cursor string) ([]search.Hit, string, error) {
	s.near = append(s.near, q.Near != nil)
	return s.numbered.Find(ctx, q, r, limit, cursor)
}

func TestSearch_GoesOnByWordsWhereAPageHasNoMeaningAnyMore(t *testing.T) {
	s := &noting{numbered: numbered{kind: search.Document, n: 50}}
	var near *search.Near
	f := search.New(search.Options{Documents: s, Near: func(context.Context, int64, string) *search.Near { return near }, MayRead: func(core.Trust, int64, string) bool { return true }})
	near = &search.Near{Model: 1, Values: []float32{1}}
	q := search.Query{Text: "roof", Limit: 10}
	for _, change := range []func(){func() {}, func() { near = nil }, func() { near = &search.Near{Model: 1, Values: []float32{1}} }} {
		change()
		page, err := f.Search(t.Context(), q, search.Reader{Trust: core.Full})
		if err != nil || len(page.Hits) == 0 {
			t.Fatal(page, err)
		}
		q.Cursor = page.Next
	}
	if want := []bool{true, false, false}; !slices.Equal(s.near, want) {
		t.Errorf("the pages come with a meaning: %v, want %v", s.near, want)
	}
}
