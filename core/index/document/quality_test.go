package document_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gatehouse/core/coretest"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embedtest"
	"gatehouse/core/store/storetest"
)

// The passages are notes that a household might keep, of sentences with a person, an
// act, a thing and a place. Each act and thing has another form and another word, for
// the questions.
type form struct{ word, other, synonym string }

var (
	persons = strings.Fields("Marta Jonas Ilse Pavel Noor Tomas Greta Amir Lucia Henrik Yara Anselm Dora Viktor Selma Ravi Ottilie Bruno Klara Matteo")
	places  = strings.Fields("Lindau Bregenz Harbour Meadow Attic Cellar Courtyard Boathouse Orchard Library Workshop Terrace Schoolhouse Station Market Riverside Vineyard Chapel Mill Balcony")
	acts    = []form{
		{"repainted", "repainting", "gave new colour to"}, {"repaired", "repairs", "fixed"}, {"measured", "measurement", "took the size of"}, {"photographed", "photographs", "took pictures of"},
		{"insured", "insurance", "signed a policy for"}, {"cleaned", "cleaning", "washed"}, {"ordered", "ordering", "bought"}, {"borrowed", "borrowing", "got on loan"},
		{"dismantled", "dismantling", "took apart"}, {"catalogued", "catalogue", "listed"}, {"inspected", "inspection", "examined"}, {"delivered", "delivery", "brought"},
		{"auctioned", "auction", "sold to the highest bidder"}, {"restored", "restoration", "brought back to its old state"}, {"lubricated", "lubrication", "oiled"}, {"transported", "transport", "moved"},
	}
	things = []form{
		{"kayak", "kayaks", "canoe"}, {"accordion", "accordions", "squeezebox"}, {"wardrobe", "wardrobes", "closet"}, {"lantern", "lanterns", "lamp"}, {"bicycle", "bicycles", "bike"},
		{"greenhouse", "greenhouses", "glass house"}, {"typewriter", "typewriters", "writing machine"}, {"barometer", "barometers", "weather glass"}, {"chandelier", "chandeliers", "ceiling light"}, {"trampoline", "trampolines", "jumping mat"},
		{"sundial", "sundials", "shadow clock"}, {"telescope", "telescopes", "spyglass"}, {"fireplace", "fireplaces", "hearth"}, {"mattress", "mattresses", "bed pad"}, {"carpet", "carpets", "rug"},
		{"generator", "generators", "power unit"}, {"hammock", "hammocks", "hanging bed"}, {"aquarium", "aquariums", "fish tank"}, {"beehive", "beehives", "home of the bees"}, {"printer", "printers", "printing device"},
	}
	whos  = strings.Fields("neighbours children guests cousins students visitors colleagues grandparents")
	dids  = strings.Fields("discussed forgot expected counted remembered mentioned doubted admired collected compared")
	whats = strings.Fields("receipts biscuits tickets umbrellas recipes postcards screws cushions blankets candles buttons envelopes napkins scarves pebbles stamps")
	whens = []string{"before the winter", "after the concert", "on a rainy afternoon", "during the holidays", "early in the morning", "at the end of the month", "when the power was out", "while the kettle boiled"}
	whys  = []string{"because nobody had written it down", "although it was late", "so that all could be left outside", "which cost a little less than we had thought", "and there was soup afterwards", "as in the year before"}
)

// filler returns a sentence that says nothing about the rest.
func filler(r *rand.Rand) string {
	one := func(list []string) string { return list[r.IntN(len(list))] }
	return fmt.Sprintf("The %s %s the %s %s, %s.", one(whos), one(dids), one(whats), one(whens), one(whys))
}

// A note is one passage, and what questions need of it.
type note struct {
	path, text, person, place, code string
	act, thing                      form
}

// notes returns n notes; of each person, act, thing and place there is one at most.
func notes(r *rand.Rand, n int) []note {
	seen := map[[4]int]bool{}
	var out []note
	for len(out) < n {
		k := [4]int{r.IntN(len(persons)), r.IntN(len(acts)), r.IntN(len(things)), r.IntN(len(places))}
		if seen[k] {
			continue
		}
		seen[k] = true
		x := note{path: fmt.Sprintf("Notes/%04d.md", len(out)), person: persons[k[0]], act: acts[k[1]], thing: things[k[2]], place: places[k[3]], code: fmt.Sprintf("%c%c%05d", 'A'+r.IntN(26), 'A'+r.IntN(26), r.IntN(100_000))}
		sentences := []string{fmt.Sprintf("%s %s the %s near the %s.", x.person, x.act.word, x.thing.word, x.place), "The number of the paper is " + x.code + "."}
		for range 10 { // some 200 tokens
			sentences = append(sentences, filler(r))
		}
		r.Shuffle(len(sentences), func(i, j int) { sentences[i], sentences[j] = sentences[j], sentences[i] })
		x.text = strings.Join(sentences, " ")
		out = append(out, x)
	}
	return out
}

// misspelt returns a word with two letters exchanged.
func misspelt(r *rand.Rand, word string) string {
	i := 1 + r.IntN(len(word)-2)
	b := []byte(word)
	b[i], b[i-1] = b[i-1], b[i]
	return string(b)
}

// The kinds of questions; half of all are the first two.
var kinds = []struct {
	name string
	n    int
	ask  func(r *rand.Rand, x note) string
}{
	{"words of the passage", 60, func(_ *rand.Rand, x note) string {
		return strings.Join([]string{x.person, x.act.word, x.thing.word, x.place}, " ")
	}},
	{"a number", 60, func(_ *rand.Rand, x note) string { return "paper " + x.code }},
	{"misspelt words", 40, func(r *rand.Rand, x note) string {
		return strings.Join([]string{x.person, misspelt(r, x.act.word), misspelt(r, x.thing.word), x.place}, " ")
	}},
	{"other forms of the words", 40, func(_ *rand.Rand, x note) string {
		return strings.Join([]string{x.act.other, "of", x.thing.other, x.place, "by", x.person}, " ")
	}},
	{"other words for half of them", 40, func(_ *rand.Rand, x note) string {
		return fmt.Sprintf("when has %s %s the %s of the %s", x.person, x.act.synonym, x.thing.word, x.place)
	}},
}

// TestHybridSearchFindsMoreThanWordsOrVectorsAlone asks 240 questions about 2,000
// passages, each of which has one answer, and holds the table of docs/search.md to the
// share of answers that are among the first ten hits.
func TestHybridSearchFindsMoreThanWordsOrVectorsAlone(t *testing.T) {
	storetest.SQLiteOnly(t, "PostgreSQL does not rank words")
	if coretest.Race {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	x := open(t)
	const dims = 384
	r := rand.New(rand.NewPCG(3, 7))
	all := notes(r, 2000)
	for _, n := range all {
		x.put(n.path, n.text)
	}
	for {
		list, err := x.Pending(t.Context(), 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		var vectors [][]float32
		for _, p := range list {
			vectors = append(vectors, embedtest.Vector(p.Text, dims))
		}
		if err := x.Embed(t.Context(), 1, list, vectors); err != nil {
			t.Fatal(err)
		}
	}
	first := func(q search.Asked, path string) int {
		hits, _, err := x.Find(t.Context(), q, owner, 10, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if h.Path == path {
				return 1
			}
		}
		return 0
	}
	var table strings.Builder
	var sum [3]int
	total := 0
	row := func(name string, n int, found [3]int) {
		share := func(i int) string { return fmt.Sprintf("%.2f", float64(found[i])/float64(n)) }
		fmt.Fprintf(&table, "| %s | %d | %s | %s | %s |\n", name, n, share(0), share(1), share(2))
	}
	for _, kind := range kinds {
		var found [3]int
		for range kind.n {
			n := all[r.IntN(len(all))]
			q, _ := search.Parse(kind.ask(r, n))
			found[0] += first(q, n.path)
			q.Near = &search.Near{Model: 1, Values: embedtest.Vector(q.Text, dims)}
			found[2] += first(q, n.path)
			q.Words.Terms = [][]string{{"~"}} // which no passage has
			found[1] += first(q, n.path)
		}
		row(kind.name, kind.n, found)
		for i := range sum {
			sum[i] += found[i]
		}
		total += kind.n
	}
	row("all", total, sum)
	better := float64(max(sum[0], sum[1])) / float64(total)
	if hybrid := float64(sum[2]) / float64(total); hybrid < better+0.05 {
		t.Errorf("hybrid finds %.3f, the better one of words and vectors %.3f", hybrid, better)
	}
	page, err := os.ReadFile("../../../docs/search.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/search.md has another table; measured is\n%s", table.String())
	}
}
