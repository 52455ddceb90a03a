package library

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/core/index/document"
)

// A Rebuilt is what Rebuild has indexed.
type Rebuilt struct {
	Conversations int   `json:"conversations"`
	Documents     int64 `json:"documents"`
	Entries       int64 `json:"entries"` // of journals
	Passages      int64 `json:"passages"`
	Faults        int64 `json:"not_indexed"` // files that are found by their names alone
}

// String returns r for users.
func (r Rebuilt) String() string {
	return fmt.Sprintf("Indexed: conversations %d, documents %d, entries of journals %d, passages %d; found by their names alone: files %d.", r.Conversations, r.Documents, r.Entries, r.Passages, r.Faults)
}

// How often and how wide the progress is shown.
const (
	every = 200 * time.Millisecond
	width = 30 // characters of the bar
)

// Rebuild deletes all that the search knows of conversations and documents, and indexes
// it again; what clients have added to documents is deleted too. progress gets a line with
// a bar. It may run while others search: until it ends they find less.
func (l *Library) Rebuild(ctx context.Context, progress func(string)) (out Rebuilt, err error) {
	if err := l.o.Sessions.Empty(ctx); err != nil {
		return out, err
	}
	for {
		n, err := l.o.Sessions.Fill(ctx)
		if err != nil {
			return out, err
		}
		if n == 0 {
			break
		}
		out.Conversations += n
		progress(fmt.Sprintf("indexing: %d conversations", out.Conversations))
	}
	if !l.o.On {
		return out, nil
	}
	before, err := l.Documents.Count(ctx)
	if err != nil {
		return out, err
	}
	if err := l.Documents.Clear(ctx); err != nil {
		return out, err
	}
	if err := l.fill(ctx, before, progress); err != nil {
		return out, err
	}
	c, err := l.Documents.Count(ctx)
	out.Documents, out.Entries, out.Passages, out.Faults = c.Documents, c.Entries, c.Chunks, c.Faults
	return out, err
}

// fill indexes the vault, and shows how far it is by what was indexed before.
func (l *Library) fill(ctx context.Context, before document.Counts, progress func(string)) error {
	done := make(chan error, 1)
	go func() { done <- l.Crawler.Pass(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-l.o.Clock.After(every):
			progress(bar(int64(l.Crawler.Status().Seen), before.Documents+before.Faults))
		}
	}
}

// bar shows a progress: "indexing: [#########---------------------] 300 of 1000 files",
// or "indexing: 300 files" where it is not known how many there are.
func bar(done, all int64) string {
	if all == 0 {
		return fmt.Sprintf("indexing: %d files", done)
	}
	all = max(done, all)
	full := int(done * width / all)
	return fmt.Sprintf("indexing: [%s%s] %d of %d files", strings.Repeat("#", full), strings.Repeat("-", width-full), done, all)
}
