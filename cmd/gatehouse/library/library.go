// Package library builds the search over conversations, documents and journals, and what
// keeps its index of the vault up to date.
package library

import (
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/index/crawl"
	"gatehouse/core/index/document"
	"gatehouse/core/index/embedding"
	"gatehouse/core/index/meaning"
	"gatehouse/core/index/search"
	"gatehouse/core/index/vector"
	"gatehouse/core/llm/embed"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/session/found"
	"gatehouse/core/store"
)

// Options for New. All but PDF and Busy are needed.
type Options struct {
	On        bool // documents are indexed; else none is found
	WordsOnly bool // they are found by their words alone, and have no vectors
	Embed     Embed
	MaxMB     int // of them in all, in megabytes; 0: no limit
	DB        *store.DB
	Files     fs.FS  // the vault
	Path      string // of it
	Sessions  *session.Store
	Known     document.Known
	MayRead   func(trust core.Trust, user int64, name string) bool // files of the vault
	Forget    func()                                               // drops what MayRead remembers of .parachuteignore
	PDF       func(ctx context.Context, data []byte) (text string, read, pages int, err error)
	Busy      func() bool
	Clock     core.Clock
	Log       *slog.Logger
	Registry  prometheus.Registerer
}

// A Library is what a search needs.
type Library struct {
	Documents *document.Store
	Finder    *search.Finder
	Crawler   *crawl.Crawler
	Embedder  *embedding.Embedder // nil: documents are found by their words alone
	Meaning   *meaning.Comparer   // compares texts that are not in the index; nil without an Embedder
	embed     *embed.Client
	close     func() error
	o         Options
}

// DropVectors removes what is stored of the meaning of chunks that are deleted.
func DropVectors(ctx context.Context, tx *store.Tx, chunks []int64) error {
	return vector.Drop(ctx, tx, chunks)
}

// New returns the library of a database and a vault.
func New(o Options) (*Library, error) {
	l := &Library{Documents: document.New(o.DB, o.Known), o: o}
	l.Documents.Pause(func(ctx context.Context) { // while messages are answered, up to a second
		for n := 0; o.Busy != nil && n < 20 && o.Busy() && ctx.Err() == nil; n++ {
			core.Sleep(ctx, o.Clock, 50*time.Millisecond)
		}
	})
	near, err := l.openEmbedder(o)
	if err != nil {
		return nil, err
	}
	sources := search.Options{Near: near, Sessions: found.Source{Sessions: o.Sessions}, MayRead: o.MayRead}
	if o.On {
		sources.Documents = l.Documents
	}
	if l.Embedder != nil {
		sources.Meaning = found.Meaning{Sessions: o.Sessions, DB: o.DB}
	}
	l.Finder = search.New(sources)
	l.Crawler = crawl.New(crawl.Options{
		Files: o.Files, Path: o.Path, Library: noticed{l.Documents, l.Embedder}, Rules: permission.IgnoreFile, Forget: o.Forget,
		MayRead: func(name string) bool { return o.MayRead(core.Vault, core.Operator, name) },
		Open:    func(name string) bool { return o.MayRead(core.Sandboxed, 0, name) }, // 0: any guest
		PDF:     o.PDF, Journal: days{}, MaxBytes: int64(o.MaxMB) << 20, Busy: o.Busy, Clock: o.Clock, Log: o.Log, Registry: o.Registry,
	})
	if o.Registry != nil {
		o.Registry.MustRegister(o.Sessions.UnindexedGauge())
	}
	return l, nil
}

// Unindexed returns how many conversations are yet to be indexed, wholly or in part.
func (l *Library) Unindexed(ctx context.Context) (int64, error) { return l.o.Sessions.Unindexed(ctx) }

// Run keeps the index of documents up to date until ctx ends, or empties it, or removes
// its vectors, where that is switched off.
func (l *Library) Run(ctx context.Context) {
	if l.o.On {
		var all sync.WaitGroup
		all.Go(func() { l.Crawler.Run(ctx) })
		if l.Embedder != nil {
			all.Go(func() { l.Embedder.Run(ctx) })
		} else if l.o.WordsOnly {
			all.Go(func() { l.dropVectors(ctx) })
		}
		all.Wait()
		return
	}
	if err := l.clear(ctx); err != nil && ctx.Err() == nil {
		l.o.Log.Error("the index of documents could not be emptied", "err", err)
	}
}

func (l *Library) dropVectors(ctx context.Context) {
	if err := l.Documents.DropVectors(ctx, 0); err != nil && ctx.Err() == nil {
		l.o.Log.Error("the vectors of documents could not be removed", "err", err)
	}
}

// clear deletes what is indexed, also from the file of the database as far as later
// writes would leave it there.
func (l *Library) clear(ctx context.Context) error {
	if err := l.Documents.DropVectors(ctx, 0); err != nil { // those of conversations
		return err
	}
	c, err := l.Documents.Count(ctx)
	if err != nil || c == (document.Counts{}) {
		return err
	}
	if err := l.Documents.Clear(ctx); err != nil {
		return err
	}
	return l.o.DB.MergeWords(ctx)
}
