package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gatehouse/cmd/gatehouse/library"
	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/llm/embed"
	"gatehouse/core/queue"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// databaseID distinguishes the database from any other, and a file from its copies.
func databaseID(path string) string {
	if store.OnServer(path) {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	st, err := os.Stat(path)
	if err != nil {
		return path
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s %d:%d", path, sys.Dev, sys.Ino)
	}
	return path
}

// storedEvents is the event store as the bus reads it.
type storedEvents struct{ *runs.Store }

func (s storedEvents) entries(ctx context.Context, run string, attempt, n int) ([]bus.Entry, error) {
	pieces, err := s.Load(ctx, run, attempt, n)
	if err != nil {
		return nil, err
	}
	out := make([]bus.Entry, len(pieces))
	for i, p := range pieces {
		out[i] = bus.Entry{Run: run, Attempt: attempt, N: p.N, Type: core.EncodedType(p.Data), Data: p.Data}
	}
	return out, nil
}

// giveWay lets messages come first before upkeep goes on: while some are answered it waits
// up to a second, and else a few milliseconds. Without a queue there are none.
func giveWay(ctx context.Context, clock core.Clock, q *queue.Queue) {
	core.Sleep(ctx, clock, 3*time.Millisecond)
	for n := 0; n < 20 && q != nil && q.Running() > 0 && ctx.Err() == nil; n++ {
		core.Sleep(ctx, clock, 50*time.Millisecond)
	}
}

// openLibrary builds the search.
func (a *app) openLibrary() error {
	pdf, err := pdfs()
	if err != nil {
		return err
	}
	key := a.cfg.EmbedAPIKey.Reveal()
	if key == "" && a.cfg.SameServer(a.cfg.EmbedURL) {
		key = a.cfg.OpenaiAPIKey.Reveal()
	}
	a.library, err = library.New(library.Options{
		Known: func(ctx context.Context, q store.Queryer, user int64) (bool, error) {
			return a.pairing.People.Remembered(ctx, q, user)
		},
		On: a.cfg.Index != "off", WordsOnly: a.cfg.Index == "words", MaxMB: a.cfg.IndexMaxMB, DB: a.db, Files: a.vault.FS(), Path: a.vault.Path(), Sessions: a.sessions, MayRead: a.readable.mayRead, Forget: a.readable.forget, PDF: pdf,
		Busy: func() bool { return a.queue.Running() > 0 }, Clock: a.clock, Log: a.log, Registry: a.reg,
		Embed: library.Embed{
			Options: embed.Options{URL: a.cfg.EmbedURL, Model: a.cfg.EmbedModel, Key: key, Dimensions: a.cfg.EmbedDimensions}, Prefixes: a.cfg.EmbedPrefixes,
			Ledger: func() *usage.Ledger { return a.usage }, Cost: func(model string, u core.Tokens) (int64, bool) { return a.spending.cost(model, u) },
		},
	})
	if err == nil {
		a.closing(a.library.Close)
	}
	return err
}
