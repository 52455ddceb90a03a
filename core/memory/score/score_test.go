package score

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gatehouse/core/memory/detect"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-4 }

// Values computed by hand from the formula.
func TestStoreUtilityGoldenValues(t *testing.T) {
	for _, c := range []struct {
		w       Worth
		want    float64
		verdict Verdict
	}{
		{Worth{}, 0, Discard},
		{Worth{Strength: 1}, .30, Discard},
		{Worth{Reuse: 1}, .25, Discard},
		{Worth{Project: 1}, .20, Discard},
		{Worth{Explicit: 1}, .15, Discard},
		{Worth{Severity: 1}, .10, Discard},
		{Worth{Ambiguity: 1}, 0, Discard},
		{Worth{Strength: 1, Reuse: 1, Project: 1, Explicit: 1, Severity: 1}, 1, Save},
		{Worth{Strength: 1, Reuse: 1, Project: 1, Explicit: 1, Severity: 1, Ambiguity: 1}, .80, Review},
		{Worth{Strength: 1, Reuse: 1, Project: 1, Explicit: 1}, .90, Save},
		{Worth{Strength: 1, Reuse: 1, Project: .5, Explicit: 1, Severity: .5}, .85, Save},
		{Worth{Strength: 1, Reuse: 1, Project: 1, Severity: 1}, .85, Save},
		{Worth{Strength: 1, Reuse: 1, Project: 1, Severity: .95}, .845, Review},
		{Worth{Strength: 1, Reuse: 1, Severity: .49}, .599, Discard},
		{Worth{Strength: .9, Reuse: .6, Project: 1, Explicit: .5, Severity: .5}, .745, Review},
		{Worth{Strength: .9, Reuse: .6, Project: 1, Explicit: .5, Severity: .5, Ambiguity: 1}, .545, Discard},
		{Worth{Strength: .9, Reuse: .9, Project: .5, Explicit: .5, Severity: .5}, .72, Review},
		{Worth{Strength: .5, Reuse: .5, Project: .5, Explicit: .5, Severity: .5, Ambiguity: .5}, .40, Discard},
		{Worth{Strength: .6, Reuse: .8, Project: .5, Explicit: .5, Severity: .45}, .60, Review},
		{Worth{Strength: 5, Reuse: 5, Project: 5, Explicit: 5, Severity: 5}, 1, Save},
		{Worth{Strength: math.NaN(), Reuse: 1}, .25, Discard},
		{Worth{Strength: -1, Reuse: 1, Ambiguity: -3}, .25, Discard},
	} {
		u := Store(c.w)
		if !near(u, c.want) || Decide(u) != c.verdict {
			t.Errorf("Store(%+v) = %.4f, %d, want %.4f, %d", c.w, u, Decide(u), c.want, c.verdict)
		}
	}
}

func TestIncludeUtilityGoldenValues(t *testing.T) {
	for _, c := range []struct {
		u    Use
		want float64
		ok   bool
	}{
		{Use{}, 0, false},
		{Use{Relevance: 1}, .30, true},
		{Use{Relevance: .25}, .075, true},
		{Use{Relevance: .2499}, .07497, false},
		{Use{Pinned: true}, .05, true},
		{Use{Relevance: 1, Prevention: 1, Importance: 1, Recency: 1, Confidence: 1, Pinned: true}, 1, true},
		{Use{Relevance: 1, Prevention: 1, Importance: 1, Recency: 1, Confidence: 1, Pinned: true, Staleness: 1, Cost: 1}, .65, true},
		{Use{Relevance: .5, Prevention: .6, Importance: .8, Recency: 1, Confidence: .85}, .645, true},
		{Use{Relevance: .5, Prevention: .6, Importance: .8, Recency: 1, Confidence: .85, Cost: .1}, .63, true},
		{Use{Relevance: .5, Prevention: .8, Importance: .5, Recency: .5, Confidence: .8, Staleness: .5}, .48, true},
		{Use{Relevance: .3, Staleness: 1}, 0, true},
		{Use{Relevance: .3, Prevention: .4, Cost: 1}, .04, true},
		{Use{Prevention: 1, Importance: 1, Recency: 1, Confidence: 1}, .65, false},
		{Use{Relevance: 2, Cost: 7}, .15, true},
	} {
		u, ok := Include(c.u)
		if !near(u, c.want) || ok != c.ok {
			t.Errorf("Include(%+v) = %.4f, %v, want %.4f, %v", c.u, u, ok, c.want, c.ok)
		}
	}
}

func TestDecayGoldenValues(t *testing.T) {
	for _, c := range []struct {
		class Class
		years float64
		want  float64
	}{
		{Never, 100, 1}, {Slow, 0, 1}, {Slow, 10, .5}, {Slow, 20, .25}, {Slow, 5, .7071}, {Fast, 3, .5}, {Fast, 6, .25}, {Fast, 12, .0625}, {Fast, 15, .0313}, {Fast, -1, 1},
	} {
		if got := decay(c.class, time.Duration(c.years*float64(year))); !near(got, c.want) {
			t.Errorf("Decay(%s, %v years) = %.4f, want %.4f", c.class, c.years, got, c.want)
		}
	}
	for class, years := range map[Class]float64{Slow: 43.219, Fast: 12.966, Never: 0} { // log2(20) = 4.3219
		if got := float64(PrunedAfter(class)) / float64(year); math.Abs(got-years) > .01 {
			t.Errorf("class %s is pruned after %.3f years, want %.3f", class, got, years)
		}
	}
	for days, want := range map[int]float64{0: 1, 30: .5, 60: .25, 15: .7071} {
		if got := recency(time.Duration(days) * 24 * time.Hour); !near(got, want) {
			t.Errorf("Recency(%d days) = %.4f, want %.4f", days, got, want)
		}
	}
}

func TestClassOfTypeAndDomain(t *testing.T) {
	for _, c := range []struct {
		typ    detect.Type
		domain string
		want   Class
	}{
		{detect.Preference, "code", Never}, {detect.Instruction, "general", Never}, {detect.Decision, "code", Slow}, {detect.Factual, "history", Slow},
		{detect.Factual, "code", Fast}, {detect.Factual, "medical", Fast}, {detect.Factual, "legal", Fast}, {detect.Factual, "finance", Fast}, {detect.Failure, "general", Slow}, {detect.Failure, "code", Fast},
	} {
		if got := ClassOf(c.typ, c.domain); got != c.want {
			t.Errorf("ClassOf(%s, %s) = %s, want %s", c.typ, c.domain, got, c.want)
		}
	}
}

func TestBudgetIs600TokensOr3PercentOfTheWindow(t *testing.T) {
	for window, want := range map[int]int{0: 600, -1: 600, 200_000: 600, 20_000: 600, 8_000: 240, 1_000: 30} {
		if got := Budget(window); got != want {
			t.Errorf("Budget(%d) = %d, want %d", window, got, want)
		}
	}
}

func TestSimilarityOfKeys(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"australia capital", "australia capital", 1}, {"australia capital", "austria capital", .5}, {"", "capital", 0},
		{"australia capital city", "australia capital", .8}, {"eiffel tower height", "louvre entrance fee", 0},
	} {
		if got := Similarity(c.a, c.b); !near(got, c.want) {
			t.Errorf("Similarity(%q, %q) = %.3f, want %.3f", c.a, c.b, got, c.want)
		}
	}
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSelectTakesTheUsefulWithinTheBudget(t *testing.T) {
	x := New([]Entry{
		{Key: "capital", Text: "The capital of Australia is Canberra.", Words: "capital Australia Canberra", Type: detect.Factual, Class: Slow, Confidence: .85, Importance: .5, At: at},
		{Key: "metric", Text: "Always use metric units.", Words: "metric units", Type: detect.Instruction, Class: Never, Confidence: .85, Importance: .8, Everywhere: true, At: at},
		{Key: "pinned", Text: "I live in Vienna.", Words: "live Vienna", Type: detect.Instruction, Class: Never, Confidence: .85, Importance: .8, Pinned: true, At: at},
		{Key: "other", Text: "The launch is in March.", Words: "launch March", Type: detect.Decision, Class: Slow, Confidence: .8, Importance: .6, At: at},
	})
	keys := func(text string, budget int) string {
		s := ""
		for _, e := range x.Select(text, at, budget) {
			s += e.Key + " "
		}
		return s
	}
	for _, c := range []struct {
		text   string
		budget int
		want   string
	}{
		{"What is the capital of Australia?", 600, "capital metric pinned "},
		{"How tall is the Eiffel tower?", 600, "metric pinned "},
		{"When is the launch?", 600, "other metric pinned "},
		{"When is the launch?", 13, "other metric "}, // 6 + 6 tokens
		{"When is the launch?", 2, ""},
	} {
		if got := keys(c.text, c.budget); got != c.want {
			t.Errorf("%q within %d tokens: %q, want %q", c.text, c.budget, got, c.want)
		}
	}
}

func TestSelectTakesWhatIsNearInMeaningAsThatRelevant(t *testing.T) {
	x := New([]Entry{
		{Key: "capital", Text: "The capital of Australia is Canberra.", Words: "capital Australia Canberra", Type: detect.Factual, Class: Slow, At: at},
		{Key: "metric", Text: "Always use metric units.", Words: "metric units", Type: detect.Instruction, Class: Never, Everywhere: true, At: at},
		{Key: "launch", Text: "The launch is in March.", Words: "launch March", Type: detect.Decision, Class: Slow, At: at},
	})
	all := func(string) bool { return true }
	for _, c := range []struct {
		in   func(string) bool
		near map[string]float64
		want string
	}{
		{all, nil, "metric 0.50, "},
		{all, map[string]float64{"capital": MinRelevance - .01}, "metric 0.50, "},
		{all, map[string]float64{"capital": MinRelevance}, "metric 0.50, capital 0.25, "},
		{all, map[string]float64{"capital": .8, "launch": math.NaN(), "gone": 1}, "capital 0.80, metric 0.50, "},
		{all, map[string]float64{"metric": 7}, "metric 1.00, "},
		{func(k string) bool { return k != "capital" }, map[string]float64{"capital": .8}, "metric 0.50, "},
	} {
		got := ""
		for _, e := range x.SelectFrom(c.in, c.near, "Where does its parliament sit?", at, 600) {
			got += fmt.Sprintf("%s %.2f, ", e.Key, e.Relevance)
		}
		if got != c.want {
			t.Errorf("near %v: %q, want %q", c.near, got, c.want)
		}
	}
	if got := x.SelectFrom(all, map[string]float64{"capital": .1}, "capital Australia Canberra", at, 600); len(got) != 2 || got[0].Relevance < .9 {
		t.Errorf("its words are nearer than its meaning: %+v", got)
	}
}

func TestShorterAndFresherEntriesComeFirstAndAtMost64(t *testing.T) {
	entry := func(key, text string, age time.Duration) Entry {
		return Entry{Key: key, Text: text, Words: "launch rocket", Type: detect.Decision, Class: Never, At: at.Add(-age)}
	}
	first := func(a, b Entry) string { return New([]Entry{a, b}).Select("launch rocket", at, 600)[0].Key }
	if got := first(entry("a long", strings.Repeat("long ", 200), 0), entry("b short", "short", 0)); got != "b short" {
		t.Errorf("of the same use, %s is first", got)
	}
	if got := first(entry("a old", "text", 60*24*time.Hour), entry("b new", "text", 0)); got != "b new" {
		t.Errorf("of the same use, %s is first", got)
	}
	var many []Entry
	for i := range 100 {
		many = append(many, entry(fmt.Sprint(i), "x", 0))
	}
	if got := New(many).Select("launch rocket", at, 600); len(got) != 64 {
		t.Errorf("%d entries", len(got))
	}
}

// The rarest words are looked for first; what a long message has besides is not.
func TestALongMessageIsReadByItsRarestWords(t *testing.T) {
	entries, message := []Entry{{Key: "rare", Words: "zirconium", Type: detect.Decision, Class: Never, At: at}}, "zirconium"
	for i := range 60 {
		entries = append(entries, Entry{Key: fmt.Sprint(i), Words: fmt.Sprintf("word%d other%d", i, i)}, Entry{Key: fmt.Sprint("again", i), Words: fmt.Sprintf("word%d", i)})
		message += fmt.Sprintf(" word%d", i)
	}
	x := New(entries)
	terms := x.terms(detect.Words(message))
	if len(terms) != maxTerms || terms[0] != "zirconium" {
		t.Errorf("%d terms, the first %s", len(terms), terms[0])
	}
}

func TestOneSharedWordOfALongMessageIsNotEnough(t *testing.T) {
	entries := []Entry{{Key: "x", Text: "x", Words: "launch rocket booster stage separation fairing recovery ship", Type: detect.Decision, Class: Slow, At: at}}
	for i := range 50 {
		entries = append(entries, Entry{Key: fmt.Sprint(i), Words: fmt.Sprintf("topic%d thing%d", i, i), Type: detect.Decision, Class: Slow, At: at})
	}
	if got := New(entries).Select("please describe how a large container ship crosses northern waters during winter storms", at, 600); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// thousands returns n corrections that share words as those of one person do.
func thousands(n int) []Entry {
	topics := []string{"garden", "server", "invoice", "holiday", "python", "launch", "doctor", "budget", "kitchen", "train"}
	out := make([]Entry, n)
	for i := range out {
		words := fmt.Sprintf("%s %s detail%d note%d value%d", topics[i%10], topics[i/10%10], i%97, i%1013, i)
		out[i] = Entry{Key: fmt.Sprint(i), Text: "Use " + words + " for this.", Words: words, Type: detect.Instruction, Class: Never, Confidence: .85, Importance: .5,
			Pinned: i%500 == 0, Everywhere: i%100 == 0, At: at.Add(-time.Duration(i) * time.Hour)}
	}
	return out
}

// How long it takes is BenchmarkSelect's; what makes it fast is that it reads the
// entries that share a word, once, and allocates a fixed number of times.
func TestSelectionOf10000ReadsOnlyWhatSharesAWord(t *testing.T) {
	x := New(thousands(10_000))
	if _, touched := x.relevance("what about detail5 in the new house"); len(touched) > 120 {
		t.Errorf("%d entries were read", len(touched))
	}
	n := testing.AllocsPerRun(5, func() { x.Select("the garden server needs an invoice for the holiday in python", at, 600) })
	if n > 200 {
		t.Errorf("%.0f allocations", n)
	}
	used := 0
	for _, e := range x.Select("the garden server needs an invoice for the holiday in python", at, 600) {
		used += e.Tokens
	}
	if used == 0 || used > 600 {
		t.Errorf("%d tokens", used)
	}
}

func BenchmarkSelect(b *testing.B) {
	x := New(thousands(10_000))
	for b.Loop() {
		x.Select("the garden server needs an invoice for the holiday in python, and detail5", at, 600)
	}
}

func FuzzSelect(f *testing.F) {
	f.Add("a b c", "b c d", 600)
	f.Fuzz(func(t *testing.T, words, text string, budget int) {
		x := New([]Entry{{Key: "a", Text: words, Words: words, Class: Fast, Type: detect.Factual, At: at}, {Key: "b", Words: "b", Pinned: true, At: at}})
		used := 0
		for _, e := range x.Select(text, at, budget) {
			if used += e.Tokens; math.IsNaN(e.Utility) || e.Utility < 0 || e.Utility > 1 || e.Relevance < 0 || e.Relevance > 1 {
				t.Errorf("%+v", e)
			}
		}
		if used > max(0, budget) {
			t.Errorf("%d tokens of %d", used, budget)
		}
	})
}
