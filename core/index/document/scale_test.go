package document_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/store/storetest"
)

// vocabulary returns n words; text draws the frequent ones more often, as languages do.
func vocabulary(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("w%x", i*2654435761%(1<<28))
	}
	return words
}

func text(zipf *rand.Zipf, words []string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(words[zipf.Uint64()] + " ")
	}
	return b.String()
}

// randomVector has 384 dimensions.
func randomVector(r *rand.Rand) []float32 {
	v := make([]float32, 384)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// embedAll gives all passages random vectors.
func embedAll(b *testing.B, s *document.Store, r *rand.Rand) {
	began, n := time.Now(), 0
	for {
		list, err := s.Pending(b.Context(), 1, 32)
		if err != nil {
			b.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		vectors := make([][]float32, len(list))
		for i := range vectors {
			vectors[i] = randomVector(r)
		}
		if err := s.Embed(b.Context(), 1, list, vectors); err != nil {
			b.Fatal(err)
		}
		n += len(list)
	}
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "vectors/s")
}

// BenchmarkFind measures filling, and searches for two words, by words alone and by
// meaning too, also of a guest. It takes
// a minute for 100,000 passages and ten for 1,000,000: -bench 'Find/^100000_'.
func BenchmarkFind(b *testing.B) {
	for _, documents := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("%d passages", 10*documents), func(b *testing.B) { measure(b, documents) })
	}
}

func measure(b *testing.B, documents int) {
	db := storetest.Open(b, core.System{})
	s := document.New(db, everyone)
	r := rand.New(rand.NewPCG(1, 2))
	words := vocabulary(50_000)
	zipf := rand.NewZipf(r, 1.1, 8, uint64(len(words)-1))
	began := time.Now()
	for i := range documents {
		d := document.Document{File: document.File{Path: fmt.Sprintf("n/%06d.md", i), Hash: "h", Modified: began, Open: i%10 == 0}, Title: "note"}
		for k := range 10 {
			d.Chunks = append(d.Chunks, chunk.Chunk{Text: text(zipf, words, 200), Line: k + 1})
		}
		if err := s.Put(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(10*documents)/time.Since(began).Seconds(), "passages/s")
	embedAll(b, s, r)
	for name, reader := range map[string]search.Reader{
		"owner": {User: 1, Trust: core.Full, MayRead: everything}, "guest": {User: 7, Trust: core.Sandboxed, MayRead: everything},
	} {
		for from, ranks := range map[string][2]int{"frequent": {0, 20}, "middle": {100, 1000}, "rare": {2000, 20000}} {
			var took, hybrid []time.Duration
			for range 200 {
				q, _ := search.Parse(words[ranks[0]+r.IntN(ranks[1]-ranks[0])] + " " + words[ranks[0]+r.IntN(ranks[1]-ranks[0])])
				at := time.Now()
				if _, _, err := s.Find(b.Context(), q, reader, 10, ""); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
				q.Near = &search.Near{Model: 1, Values: randomVector(r)}
				at = time.Now()
				if _, _, err := s.Find(b.Context(), q, reader, 10, ""); err != nil {
					b.Fatal(err)
				}
				hybrid = append(hybrid, time.Since(at))
			}
			report := func(how string, took []time.Duration) {
				slices.Sort(took)
				b.ReportMetric(float64(took[100].Microseconds())/1000, name+"-"+from+how+"-p50-ms")
				b.ReportMetric(float64(took[198].Microseconds())/1000, name+"-"+from+how+"-p99-ms")
			}
			report("", took)
			report("-hybrid", hybrid)
		}
	}
}
