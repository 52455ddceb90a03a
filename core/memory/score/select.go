package score

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gatehouse/core/memory/detect"
)

// An Entry is a correction as it is selected.
type Entry struct {
	Key        string // the caller's
	Text       string // as it is written in the prompt: its length is its cost
	Words      string // what it is found by
	Type       detect.Type
	Class      Class
	Confidence float64
	Importance float64
	Pinned     bool
	Everywhere bool      // it is about the form of every answer, so relevant to all
	At         time.Time // when it was last confirmed
}

// everywhere is the relevance of an entry that is about every answer.
const everywhere = .5

// prevention returns how much of a failure a type prevents.
var prevention = map[detect.Type]float64{detect.Failure: 1, detect.Factual: .8, detect.Instruction: .6, detect.Decision: .5, detect.Preference: .4}

// Limits of a query.
const (
	maxTerms = 24 // of a message, the rarest
	maxTaken = 64 // entries of one prompt
)

// Constants of BM25.
const (
	k1 = 1.2
	b  = 0.75
)

// An Index finds the corrections of one person. It is not changed after New; it may be
// used concurrently.
type Index struct {
	entries  []Entry
	size     []float64 // by entry: how long it is against the mean, as BM25 counts it
	whole    []float64 // by entry: the score of the entry against itself
	always   []int32   // entries that need no match
	postings map[string][]int32
}

// New returns an Index over entries. Each word counts once in an entry.
func New(entries []Entry) *Index {
	x := &Index{entries: entries, size: make([]float64, len(entries)), whole: make([]float64, len(entries)), postings: map[string][]int32{}}
	words, total := make([][]string, len(entries)), 0
	for i := range entries {
		words[i] = detect.Words(entries[i].Words)
		total += len(words[i])
		for _, w := range words[i] {
			x.postings[w] = append(x.postings[w], int32(i))
		}
		if entries[i].Pinned || entries[i].Everywhere {
			x.always = append(x.always, int32(i))
		}
	}
	mean := max(1, float64(total)/float64(max(1, len(entries))))
	for i := range entries {
		x.size[i] = k1 * (1 - b + b*float64(len(words[i]))/mean)
		for _, w := range words[i] {
			x.whole[i] += x.weight(w) * (k1 + 1) / (1 + x.size[i])
		}
	}
	return x
}

// weight returns the inverse document frequency of a word.
func (x *Index) weight(word string) float64 {
	n, all := float64(len(x.postings[word])), float64(len(x.entries))
	return math.Log(1 + (all-n+.5)/(n+.5))
}

// Len returns the number of entries.
func (x *Index) Len() int { return len(x.entries) }

// A Taken is an entry for a prompt.
type Taken struct {
	Key       string
	Utility   float64
	Relevance float64
	Tokens    int
}

// Select returns the entries for an answer to text, the most useful first, within a budget
// of tokens.
func (x *Index) Select(text string, now time.Time, budget int) []Taken {
	return x.SelectFrom(func(string) bool { return true }, nil, text, now, budget)
}

// SelectFrom is Select of the entries whose key in accepts. near has by key how near entries
// are to text in meaning, from 0 to 1: what is nearer than by its words counts as that relevant.
func (x *Index) SelectFrom(in func(key string) bool, near map[string]float64, text string, now time.Time, budget int) []Taken {
	found := x.candidates(in, near, text, now)
	slices.SortFunc(found, func(p, q Taken) int {
		return cmp.Or(cmp.Compare(q.Utility, p.Utility), cmp.Compare(p.Key, q.Key))
	})
	var out []Taken
	for _, t := range found {
		if t.Tokens > budget {
			continue
		}
		budget -= t.Tokens
		if out = append(out, t); len(out) == maxTaken {
			break
		}
	}
	return out
}

// candidates returns the entries that are relevant enough.
func (x *Index) candidates(in func(key string) bool, near map[string]float64, text string, now time.Time) []Taken {
	relevance, touched := x.relevance(text)
	if len(near) > 0 {
		for i := range x.entries {
			if v := min(near[x.entries[i].Key], 1); v > relevance[i] {
				if relevance[i] == 0 {
					touched = append(touched, int32(i))
				}
				relevance[i] = v
			}
		}
	}
	for _, i := range x.always {
		if relevance[i] == 0 {
			touched = append(touched, i)
		}
		if x.entries[i].Everywhere {
			relevance[i] = max(relevance[i], everywhere)
		}
	}
	out := make([]Taken, 0, len(touched))
	for _, i := range touched {
		e := &x.entries[i]
		if relevance[i] < MinRelevance && !e.Pinned || !in(e.Key) {
			continue
		}
		tokens := Tokens(e.Text)
		u, ok := Include(Use{Relevance: relevance[i], Prevention: prevention[e.Type], Importance: e.Importance, Recency: recency(now.Sub(e.At)), Confidence: e.Confidence,
			Pinned: e.Pinned, Staleness: 1 - decay(e.Class, now.Sub(e.At)), Cost: float64(tokens) / MaxTokens})
		if ok {
			out = append(out, Taken{Key: e.Key, Utility: u, Relevance: relevance[i], Tokens: tokens})
		}
	}
	return out
}

// relevance returns BM25 of all entries, as a share of the best that either side could
// reach: the message against itself, or the entry. touched are the entries above 0.
func (x *Index) relevance(text string) (out []float64, touched []int32) {
	out = make([]float64, len(x.entries))
	asked := 0.0
	words := detect.Words(text)
	for _, w := range words {
		asked += x.weight(w)
	}
	for _, w := range x.terms(words) {
		weight := x.weight(w)
		for _, i := range x.postings[w] {
			if out[i] == 0 {
				touched = append(touched, i)
			}
			out[i] += weight * (k1 + 1) / (1 + x.size[i])
		}
	}
	for _, i := range touched {
		most := min(x.whole[i], asked*(k1+1)/(1+x.size[i]))
		out[i] = min(1, out[i]/most)
	}
	return out, touched
}

// terms returns the rarest of words that some entry has.
func (x *Index) terms(words []string) []string {
	words = slices.DeleteFunc(words, func(w string) bool { return len(x.postings[w]) == 0 })
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(len(x.postings[a]), len(x.postings[b])) })
	return words[:min(len(words), maxTerms)]
}
