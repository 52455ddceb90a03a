package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type searchIn struct {
	Query  string   `json:"query" jsonschema:"words that must all occur; \"two words\" for a phrase, -word to exclude one, in:FOLDER, tag:NAME"`
	Type   string   `json:"type,omitempty" jsonschema:"only this type: session (conversations) or document (notes)"`
	Folder string   `json:"folder,omitempty" jsonschema:"only notes in this folder of the vault and below it"`
	Tags   []string `json:"tags,omitempty" jsonschema:"only what has all of these tags"`
	After  string   `json:"after,omitempty" jsonschema:"only what is not older than this time (RFC 3339) or date"`
	Before string   `json:"before,omitempty" jsonschema:"only what is older than this time (RFC 3339) or date"`
	Limit  int      `json:"limit,omitempty" jsonschema:"how many hits at most, 1 to 50; 10 by default"`
	Cursor string   `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type searchOut struct {
	Notice string `json:"notice"`
	Hits   []hit  `json:"hits"`
	Next   string `json:"next_cursor,omitempty" jsonschema:"pass it as cursor for more; absent on the last page"`
}

type hit struct {
	Type    string    `json:"type" jsonschema:"session or document"`
	Title   string    `json:"title"`
	Path    string    `json:"path,omitempty" jsonschema:"of a document, for read_note"`
	Line    int       `json:"line,omitempty" jsonschema:"of the passage in the document"`
	Session string    `json:"session_id,omitempty" jsonschema:"of a conversation, for session_read"`
	Message string    `json:"message_id,omitempty"`
	Role    string    `json:"role,omitempty"`
	Excerpt string    `json:"excerpt"`
	At      time.Time `json:"at,omitzero"`
}

func (s *Server) search(ctx context.Context, _ *call, in searchIn) (string, searchOut, error) {
	out := searchOut{Notice: notice}
	q := url.Values{"q": {in.Query}, "limit": {strconv.Itoa(cmp.Or(in.Limit, 10))}, "tag": in.Tags}
	for name, value := range map[string]string{"type": in.Type, "folder": in.Folder, "after": in.After, "before": in.Before, "cursor": in.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var page struct {
		Hits []hit  `json:"hits"`
		Next string `json:"next"`
	}
	if err := s.ask(ctx, question{method: http.MethodGet, path: []string{"api", "search"}, query: q}, &page); err != nil {
		return "", out, err
	}
	out.Hits, out.Next = page.Hits, page.Next
	return shownHits(&out), out, nil
}

func shownHits(out *searchOut) string {
	var b strings.Builder
	for i := range out.Hits {
		h := &out.Hits[i]
		h.Title, h.Excerpt = line(h.Title, 120), line(h.Excerpt, 400)
		at := fmt.Sprintf("%s:%d", h.Path, h.Line)
		if h.Session != "" {
			at = fmt.Sprintf("conversation %q, session_id %s", h.Title, h.Session)
		}
		if !h.At.IsZero() {
			at += ", " + h.At.UTC().Format(time.DateOnly)
		}
		b.WriteString(line(at, 600) + "\n   " + h.Excerpt + "\n")
	}
	if len(out.Hits) == 0 {
		b.WriteString("Nothing was found on this page.\n")
	}
	text := quoted("documents and conversations", b.String())
	if out.Next != "" {
		text += fmt.Sprintf("There may be more: call search again with cursor %q.\n", out.Next)
	} else if len(out.Hits) == 0 {
		text = "Nothing was found. Try fewer or other words. A note that was just written may not be in the index yet.\n"
	}
	return text
}
