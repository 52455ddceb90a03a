// Package index measures the search index in process: how fast it is filled, how long
// searches by words and by meaning too take, and the memory that it keeps.
package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"gatehouse/cmd/loadgen/report"
	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
)

const (
	perDocument = 10  // passages
	perPassage  = 200 // words
	dimensions  = 384 // of vectors
	model       = 1
	batch       = 32 // vectors that are stored at a time
)

// ranks are the words of searches, by how frequent they are: the most frequent first.
var ranks = [...][2]int{{0, 20}, {100, 1000}, {2000, 20_000}}

// Measure fills an index in dir with passages, rounded to whole documents, and searches
// it for words of three frequencies, searches times each, by words alone and with meaning.
// The text is random, with words as frequent as in a language.
func Measure(ctx context.Context, dir string, passages, searches int) (f report.IndexFigures, err error) {
	path := filepath.Join(dir, "index.db")
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return f, err
	}
	defer db.Close()
	before, err := own()
	if err != nil {
		return f, err
	}
	b := &bench{s: document.New(db, func(context.Context, store.Queryer, int64) (bool, error) { return true, nil }), r: rand.New(rand.NewPCG(1, 2))}
	for i := range 50_000 {
		b.words = append(b.words, fmt.Sprintf("w%x", i*2654435761%(1<<28)))
	}
	b.zipf = rand.NewZipf(b.r, 1.1, 8, uint64(len(b.words)-1))
	if err := b.fill(ctx, passages/perDocument, &f); err != nil {
		return f, err
	}
	if err := b.embed(ctx, &f); err != nil {
		return f, err
	}
	if f.Words, err = b.search(ctx, searches, false); err != nil {
		return f, err
	}
	if f.Hybrid, err = b.search(ctx, searches, true); err != nil {
		return f, err
	}
	b.words, b.zipf = nil, nil
	if err := db.Rest(ctx); err != nil { // as the gateway does half a minute later
		return f, err
	}
	after, err := own()
	f.Grown = after - before
	if st, serr := os.Stat(path); serr == nil {
		f.Bytes = st.Size()
	}
	return f, err
}

type bench struct {
	s     *document.Store
	r     *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func (b *bench) fill(ctx context.Context, documents int, f *report.IndexFigures) error {
	var took time.Duration
	for i := range documents {
		d := document.Document{File: document.File{Path: fmt.Sprintf("n/%06d.md", i), Hash: "h", Modified: time.Unix(int64(i), 0)}, Title: "note"}
		for k := range perDocument {
			d.Chunks = append(d.Chunks, chunk.Chunk{Text: b.text(), Line: k + 1})
		}
		began := time.Now()
		if err := b.s.Put(ctx, d); err != nil {
			return err
		}
		took += time.Since(began)
	}
	f.Passages = documents * perDocument
	f.Filled = float64(f.Passages) / took.Seconds()
	return nil
}

func (b *bench) text() string {
	var t strings.Builder
	for range perPassage {
		t.WriteString(b.words[b.zipf.Uint64()] + " ")
	}
	return t.String()
}

func (b *bench) embed(ctx context.Context, f *report.IndexFigures) error {
	var took time.Duration
	for {
		list, err := b.s.Pending(ctx, model, batch)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			f.Vectors = float64(f.Passages) / took.Seconds()
			return nil
		}
		vectors := make([][]float32, len(list))
		for i := range vectors {
			vectors[i] = b.vector()
		}
		began := time.Now()
		if err := b.s.Embed(ctx, model, list, vectors); err != nil {
			return err
		}
		took += time.Since(began)
	}
}

func (b *bench) vector() []float32 {
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = float32(b.r.NormFloat64())
	}
	return v
}

// search returns how long searches for two words of each kind took.
func (b *bench) search(ctx context.Context, searches int, meaning bool) (took []time.Duration, err error) {
	reader := search.Reader{User: core.Operator, Trust: core.Full, MayRead: func(string) bool { return true }}
	for _, r := range ranks {
		word := func() string { return b.words[r[0]+b.r.IntN(r[1]-r[0])] }
		for range searches {
			q, _ := search.Parse(word() + " " + word())
			if meaning {
				q.Near = &search.Near{Model: model, Values: b.vector()}
			}
			began := time.Now()
			if _, _, err := b.s.Find(ctx, q, reader, 10, ""); err != nil {
				return nil, err
			}
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}

// own returns the memory of this process that is no page of a file, in MiB, after what is
// not used was given back.
func own() (mib float64, err error) {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	var kib float64
	_, err = fmt.Sscanf(rest, "%f", &kib)
	return kib / 1024, err
}
