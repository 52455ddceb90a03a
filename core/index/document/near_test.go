package document_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/store"
)

const dimensions = 128

// embed has all passages embedded by a model.
func (x *index) embed(model int64) (n int) {
	x.t.Helper()
	for {
		list, err := x.Pending(x.t.Context(), model, 20)
		if err != nil {
			x.t.Fatal(err)
		}
		if len(list) == 0 {
			return n
		}
		var vectors [][]float32
		for _, p := range list {
			vectors = append(vectors, embedtest.Vector(p.Embedded(), dimensions))
		}
		if err := x.Embed(x.t.Context(), model, list, vectors); err != nil {
			x.t.Fatal(err)
		}
		n += len(list)
	}
}

// near returns the paths of the hits, of a search by words and meaning.
func (x *index) near(r search.Reader, text string, change ...func(*search.Asked)) (out []string) {
	x.t.Helper()
	q, _ := search.Parse(text)
	q.Near = &search.Near{Model: 1, Values: embedtest.Vector(q.Text, dimensions)}
	for _, f := range change {
		f(&q)
	}
	for cursor, pages := "", 0; ; pages++ {
		hits, next, err := x.Find(x.t.Context(), q, r, 2, cursor)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, h := range hits {
			out = append(out, h.Path)
		}
		if cursor = next; cursor == "" || pages > 1000 {
			return out
		}
	}
}

func (x *index) vectors() (n int) {
	x.t.Helper()
	if err := x.db.Get(x.t.Context(), &n, `SELECT (SELECT count(*) FROM chunks WHERE embedding IS NOT NULL) + (SELECT count(*) FROM chunk_signs)`); err != nil {
		x.t.Fatal(err)
	}
	return n
}

func library(t *testing.T) *index {
	x := open(t)
	x.put("Notes/gutters.md", "The gutters were repaired and the roof was repainted.")
	x.put("Notes/tea.md", "Green tea wants water of eighty degrees.")
	x.put("Notes/bread.md", "Sourdough rises over night in the refrigerator.")
	x.put("Guests/7/mine.md", "My repairs of gutters.")
	x.put("Guests/8/other.md", "Their repairs of gutters.")
	d := x.put("Public/open.md", "Open repair of a gutter.")
	d.Open = true
	x.keep(d)
	x.embed(1)
	return x
}

func TestFind_FindsByMeaningWhatHasOtherForms(t *testing.T) {
	x := library(t)
	if got := x.near(owner, "repairing guttering"); got[0] != "Notes/gutters.md" && !strings.Contains(got[0], "mine") && !strings.Contains(got[0], "open") {
		t.Errorf("the nearest is %v", got)
	}
	if got := x.near(owner, "sourdoughs refrigerated"); got[0] != "Notes/bread.md" || slices.Contains(x.find(owner, "sourdoughs refrigerated"), "Notes/bread.md:1") {
		t.Errorf("the nearest is %v", got)
	}
	if got := x.near(owner, "green tea"); got[0] != "Notes/tea.md" {
		t.Errorf("what has the words and the meaning is not first: %v", got)
	}
	got := x.near(owner, "gutters")
	if sorted := slices.Sorted(slices.Values(got)); len(got) != 4 || len(slices.Compact(sorted)) != 4 {
		t.Errorf("over all pages each document is one hit, not %v", got)
	}
}

func TestFind_ByMeaningAddsThreeStatements(t *testing.T) {
	x := library(t)
	reads := func(search func()) int64 {
		before := x.db.Reads()
		search()
		return x.db.Reads() - before
	}
	words := reads(func() { x.find(owner, "tea") })
	both := reads(func() { x.near(owner, "tea") })
	if both-words != 3 { // the signs (16 blocks of 256 passages each time), the vectors of the candidates, the nearest
		t.Errorf("by words alone %d statements are read, by meaning too %d", words, both)
	}
}

func TestFind_ByMeaningKeepsTheReadersRights(t *testing.T) {
	x := library(t)
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: everything}
	got := slices.Sorted(slices.Values(x.near(guest, "repairs of gutters")))
	if !slices.Equal(got, []string{"Guests/7/mine.md", "Public/open.md"}) {
		t.Errorf("a guest finds %v", got)
	}
	if got := x.near(search.Reader{User: 0, Trust: core.Sandboxed, MayRead: everything}, "repairs"); !slices.Equal(got, []string{"Public/open.md"}) {
		t.Errorf("a reader without a directory finds %v", got)
	}
	if got := x.near(search.Reader{User: 7, Trust: core.Stranger, MayRead: everything}, "repairs"); got != nil {
		t.Errorf("who may read nothing finds %v", got)
	}
	closed := search.Reader{User: 1, Trust: core.Full, MayRead: func(name string) bool { return !strings.Contains(name, "gutters") }}
	if got := x.near(closed, "gutters repaired"); slices.Contains(got, "Notes/gutters.md") {
		t.Errorf("what may not be read is found: %v", got)
	}
	d := x.put("Public/open.md", "Open repair of a gutter.") // it is closed to guests
	d.Open = false
	x.keep(d)
	x.embed(1)
	if got := x.near(guest, "open repair"); !slices.Equal(got, []string{"Guests/7/mine.md"}) {
		t.Errorf("after it was closed to guests one finds %v", got)
	}
}

func TestFind_ByMeaningKeepsTheOtherConditions(t *testing.T) {
	x := library(t)
	for text, want := range map[string][]string{
		`gutters in:Guests`:             {"Guests/7/mine.md", "Guests/8/other.md"},
		`gutters -roof in:Notes`:        {"Notes/bread.md", "Notes/tea.md"},
		`"repairs of" guttering`:        {"Guests/7/mine.md", "Guests/8/other.md"},
		`gutters tag:nothing`:           nil,
		`gutters in:Notes -gutters -of`: {"Notes/bread.md"},
	} {
		if got := slices.Sorted(slices.Values(x.near(owner, text))); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	later := func(q *search.Asked) { q.After = morning.AddDate(0, 0, 1) }
	if got := x.near(owner, "gutters", later); got != nil {
		t.Errorf("nothing is so new, but %v is found", got)
	}
}

func TestPut_KeepsTheVectorsOfPassagesThatDidNotChange(t *testing.T) {
	x := open(t)
	var texts []string
	for _, word := range strings.Fields("ash beech cedar elm fir hazel larch maple oak pine rowan willow") { // more than one transaction puts
		texts = append(texts, "A tree that is called "+word)
	}
	x.put("trees.md", texts...)
	x.embed(1)
	texts[3] = "A tree that is called yew"
	x.put("trees.md", texts...)
	if n := x.embed(1); n != 1 {
		t.Errorf("%d passages are embedded again after one has changed", n)
	}
	if got := x.near(owner, "yew"); !slices.Equal(got, []string{"trees.md"}) {
		t.Errorf("found: %v", got)
	}
	if n := x.embed(2); n != 12 {
		t.Errorf("another model embeds %d passages, want all 12", n)
	}
}

func TestRemove_LeavesNoVectors(t *testing.T) {
	x := library(t)
	if err := x.Remove(t.Context(), []string{"Notes/gutters.md", "Notes/tea.md", "Notes/bread.md", "Public/open.md", "Guests/8/other.md"}); err != nil {
		t.Fatal(err)
	}
	if err := x.db.Tx(t.Context(), func(tx *store.Tx) error {
		return document.Tables{Store: x.Store}.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}})
	}); err != nil {
		t.Fatal(err)
	}
	if n := x.vectors(); n != 0 {
		t.Errorf("%d rows with vectors are left", n)
	}
	x = library(t)
	if err := x.DropVectors(t.Context(), 0); err != nil || x.vectors() != 0 {
		t.Errorf("%d rows with vectors are left, %v", x.vectors(), err)
	}
	if n := x.embed(1); n != 6 {
		t.Errorf("%d passages are embedded again, want 6", n)
	}
}

func TestEmbed_StoresNoVectorThatCannotBeCompared(t *testing.T) {
	x := open(t)
	x.put("a.md", "some text")
	list, err := x.Pending(t.Context(), 1, 10)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := x.Embed(t.Context(), 1, list, [][]float32{make([]float32, dimensions)}); err == nil || x.vectors() != 0 {
		t.Error("a vector without a direction is stored")
	}
	changed := list[0]
	changed.Text = "other text"
	if err := x.Embed(t.Context(), 1, []document.Passage{changed}, [][]float32{embedtest.Vector("x", dimensions)}); err != nil || x.vectors() != 0 {
		t.Errorf("the vector of a text that has changed is stored, %v", err)
	}
	if err := x.Embed(t.Context(), 1, list, make([][]float32, 1)); err != nil || x.embed(1) != 0 || x.vectors() != 0 {
		t.Errorf("a passage that the model refuses is pending still, %v", err)
	}
}

func TestDropVectors_LeavesNoneThoughDocumentsAreSavedMeanwhile(t *testing.T) {
	x := open(t)
	x.fill("A", 10, 100, "garden gardens gardening gardener")
	x.fill("Z", 1, 5, "note of today")
	x.embed(1)
	var all sync.WaitGroup
	stop, saved := make(chan struct{}), make(chan struct{}, 1)
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				x.fill("Z", 1, 5, "note of today")
				select {
				case saved <- struct{}{}:
				default:
				}
			}
		}
	})
	<-saved
	if err := x.DropVectors(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	close(stop)
	all.Wait()
	if n := x.vectors(); n != 0 {
		t.Errorf("%d rows with vectors are left", n)
	}
}

func TestPut_KeepsNoVectorsOfAnEarlierModel(t *testing.T) {
	x := library(t)
	if err := x.Begin(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	x.put("Notes/tea.md", "Green tea wants water of eighty degrees.")
	var n int
	if err := x.db.Get(t.Context(), &n, `SELECT count(*) FROM chunk_signs WHERE model = 1`); err != nil || n != 0 {
		t.Errorf("%d blocks of the earlier model, %v", n, err)
	}
	x.embed(2)
	x.put("Notes/tea.md", "Green tea wants water of eighty degrees.", "new")
	if n := x.embed(2); n != 1 {
		t.Errorf("%d passages are embedded again, want the new one", n)
	}
}

func TestFind_ByMeaningHoldsFewVectorsAtATime(t *testing.T) {
	x := open(t)
	x.fill("A", 6, 100, "garden")
	const wide = 4096
	for {
		list, err := x.Pending(t.Context(), 1, 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		var vectors [][]float32
		for _, p := range list {
			vectors = append(vectors, embedtest.Vector(p.Text, wide))
		}
		if err := x.Embed(t.Context(), 1, list, vectors); err != nil {
			t.Fatal(err)
		}
	}
	q, _ := search.Parse("gardening")
	q.Near = &search.Near{Model: 1, Values: embedtest.Vector("garden", wide)}
	before := x.db.Reads()
	hits, _, err := x.Find(t.Context(), q, owner, 20, "")
	if err != nil || len(hits) == 0 {
		t.Fatal(hits, err)
	}
	if reads := x.db.Reads() - before; reads < 600/64 {
		t.Errorf("600 vectors are read by %d statements", reads)
	}
}
