package sessions

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// MaxExports bounds the exports that one caller reads at once.
const MaxExports = 2

// export serves GET /api/chat/{id}/export.md.
func (a *API) export(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.Finder.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	release, ok := a.exports.Take(p.Caller())
	if !ok {
		return &web.Problem{Fault: web.TooManyRequests, RetryAfter: web.RetrySoon, Detail: fmt.Sprintf("at most %d exports may be read at once per key", MaxExports)}
	}
	defer release()
	text, err := a.Reader.Export(r.Context(), d.Session)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="session-`+d.ID+`.md"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(text)) // the client may be gone
	return nil
}

// transcript serves GET /api/chat/{id}/transcript. A reader that takes nothing for
// as long as any other answer may take is cut off.
func (a *API) transcript(w http.ResponseWriter, r *http.Request) error {
	_, d, err := a.Finder.Found(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	file, size, err := a.Transcripts.Transcript(r.Context(), d.Session)
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="`+d.ID+`.jsonl"`)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	for size > 0 {
		if err := web.Hurry(w); err != nil {
			return fmt.Errorf("send transcript: %w", err)
		}
		n, err := io.CopyN(w, file, min(size, 1<<20))
		if size -= n; err != nil {
			return nil // the client is gone, or the file has become shorter
		}
	}
	return nil
}

type (
	messagePage struct {
		Messages  []message `json:"messages"`
		HasMore   bool      `json:"has_more"`
		Truncated bool      `json:"truncated"`
	}
	message struct {
		ID      string    `json:"id"`
		Role    string    `json:"role"`
		At      time.Time `json:"at,omitzero"`
		Model   string    `json:"model,omitempty"`
		Run     string    `json:"run_id,omitempty"`
		Summary bool      `json:"summary,omitempty"`
		Author  *author   `json:"author,omitempty"`
		Content []block   `json:"content"`
	}
	block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
		Media     []medium        `json:"media,omitempty"`
		Quote     *quote          `json:"quote,omitempty"`
		Helper    []message       `json:"helper,omitempty"`
	}
	author struct {
		Name     string `json:"name"`
		Platform string `json:"platform,omitempty"`
		Trust    string `json:"trust,omitempty"`
		Group    string `json:"group,omitempty"`
	}
	quote struct {
		Name      string `json:"name,omitempty"`
		Text      string `json:"text,omitempty"`
		Own       bool   `json:"own,omitempty"`
		Forwarded bool   `json:"forwarded,omitempty"`
	}
	medium struct {
		Type  string `json:"type"`
		Name  string `json:"name,omitempty"`
		Bytes int    `json:"bytes"`
	}
)

// pageOf returns messages as users read them; group: of a group's conversation.
func pageOf(p transcript.Page, group bool) messagePage {
	out := messagePage{Messages: make([]message, 0, len(p.Messages)), HasMore: p.More, Truncated: p.Cut}
	for i := range p.Messages {
		out.Messages = append(out.Messages, messageOf(&p.Messages[i], group))
	}
	return out
}

func messageOf(m *transcript.Message, group bool) message {
	one := message{ID: m.Line(), Role: m.Role, At: m.At, Model: m.Model, Run: m.Run, Summary: m.Summary, Content: make([]block, 0, len(m.Blocks))}
	by, blocks := m.Shown(group)
	if by.Name != "" {
		one.Author = &author{Name: by.Name, Platform: by.Platform, Group: by.Place}
		if by.Trust != core.Stranger {
			one.Author.Trust = by.Trust.String()
		}
	}
	for _, b := range blocks {
		if b.Type == core.Redacted {
			continue // no one but its provider reads it
		}
		k := block{Type: b.Type, Text: b.Text, ID: b.ID, Name: b.Name, Input: b.Input, ToolUseID: b.ToolUseID, IsError: b.IsError}
		for _, f := range b.Media {
			k.Media = append(k.Media, medium{f.Type, f.Name, len(f.Data)})
		}
		for j := range m.Helpers[b.ID] {
			k.Helper = append(k.Helper, messageOf(&m.Helpers[b.ID][j], false))
		}
		if q := b.Quote; q != nil {
			k.Quote = &quote{q.Name, q.Text, q.Ours, q.Forwarded}
		}
		one.Content = append(one.Content, k)
	}
	return one
}

// messages serves GET /api/chat/{id}/messages.
func (a *API) messages(w http.ResponseWriter, r *http.Request) error {
	_, d, err := a.Finder.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	v := r.URL.Query()
	q := transcript.PageQuery{Before: v.Get("before"), After: v.Get("after")}
	if v.Has("before") && v.Has("after") {
		return core.Errorf(core.Invalid, "give before or after, not both")
	}
	if v.Has("before") && q.Before == "" || v.Has("after") && q.After == "" || len(q.Before)+len(q.After) > 128 {
		return core.Errorf(core.Invalid, "before and after are ids of messages")
	}
	if q.Limit, err = web.QueryNumber(v, "limit", 50, 1, 200); err != nil {
		return err
	}
	page, err := a.Reader.Page(r.Context(), d.Session, q)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, pageOf(page, d.User == core.Operator))
}
