package session_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/markdown"
)

func TestASessionIsExportedAsReadableMarkdown(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	m := func(m transcript.Message) transcript.Message { m.At = at; return m }
	failed := result("b", "no such file")
	failed.IsError = true
	calls := call("a", "b")
	calls.Blocks[0].Text = "first\nthen"
	got := markdown.Session(session.Session{ID: "s1", Title: "Tea: \"green\"\n# black", AgentType: "vault-agent", Source: "telegram", CreatedAt: at, LastAccessed: at, MessageCount: 4},
		[]string{"tea"}, []transcript.Message{
			m(said(core.Block{Type: "media", Media: []core.Media{picture}}, core.Block{Type: "text", Text: "# How?\n```go\n### User | x"})),
			m(calls), m(said(result("a", "```\n"+strings.Repeat("y", 5000)), failed)), m(answer("So.\n### User | 2026-01-01T00:00:00Z\n\n---\nI said that"))})
	want := "---\nsession_id: \"s1\"\ntitle: \"Tea: \\\"green\\\"\\n# black\"\nagent: \"vault-agent\"\nsource: \"telegram\"\n" +
		"created_at: \"2026-01-02T02:04:05Z\"\nlast_accessed: \"2026-01-02T02:04:05Z\"\narchived: false\nmessage_count: 4\ntags: [\"tea\"]\n---\n\n# Tea: \"green\" # black\n" +
		"\n### User | 2026-01-02T02:04:05Z\n\n*Attachment: image/png, 16 bytes*\n\n\\# How?\n```go\n### User | x\n```\n" +
		"\n### Assistant | 2026-01-02T02:04:05Z\n\n> *Thinking:* first\n> then\n\n**Read**\n\n```json\n{\"p\":1}\n```\n\n**Read**\n\n```json\n{\"p\":1}\n```\n" +
		"\nResult:\n\n````\n```\n" + strings.Repeat("y", 3996) + "\n… (cut)\n````\n\nFailed:\n\n```\nno such file\n```\n" +
		"\n### Assistant | 2026-01-02T02:04:05Z\n\nSo.\n\\### User | 2026-01-01T00:00:00Z\n\n\\---\nI said that\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAnExportHoldsWhatACompactionTookOut(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "old words", "old answer")
	h.turn(h.Store, sess, "r1", "kept words", "kept answer")
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Compact("in short", 2), c.Append("r2", 0, user("new words"), answer("new answer")), c.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := h.Export(context.Background(), sess)
	heads := regexp.MustCompile(`(?m)^### (User|Assistant) \| \S+Z$`).FindAllString(got, -1)
	if err != nil || len(heads) != 6 || !regexp.MustCompile(`(?s)old words.*old answer.*kept words.*kept answer.*new words.*new answer`).MatchString(got) || strings.Contains(got, "in short") {
		t.Errorf("%v\n%s", err, got)
	}
	empty := h.resolve(chat(5, "c2")).Session
	if got, err := h.Export(context.Background(), empty); err != nil || !strings.HasPrefix(got, "---\nsession_id: ") {
		t.Errorf("a session without a word: %q, %v", got, err)
	}
}
