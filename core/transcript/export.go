package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Markdown returns a session as text: frontmatter with the row's values, then a heading
// of the third level with author and time for every message. Tool calls and results are
// below the answer that they belong to; results are cut at 4,000 bytes, and media are
// named, not shown. Text of a message can neither imitate a heading of the export nor
// hide what follows.
func Markdown(s Session, tags []string, messages []Message) string {
	var b strings.Builder
	b.WriteString("---\n")
	field := func(name string, v any) {
		if text, ok := v.(string); ok && text == "" {
			return
		}
		raw, err := marshal(v) // JSON is YAML
		if err == nil {
			fmt.Fprintf(&b, "%s: %s\n", name, raw)
		}
	}
	field("session_id", s.ID)
	field("title", s.Title)
	field("agent", s.AgentType)
	field("model", s.Model)
	field("source", s.Source)
	field("working_directory", s.WorkingDirectory)
	field("created_at", stamp(s.CreatedAt))
	field("last_accessed", stamp(s.LastAccessed))
	field("archived", s.Archived)
	field("message_count", s.MessageCount)
	field("continued_from", s.ContinuedFrom)
	if len(tags) > 0 {
		field("tags", tags)
	}
	b.WriteString("---\n")
	if title := OneLine(s.Title); title != "" {
		b.WriteString("\n# " + title + "\n")
	}
	for i := range messages {
		messages[i].markdown(&b)
	}
	return b.String()
}

// marshal returns v as JSON in one line.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// markdown appends m.
func (m *Message) markdown(b *strings.Builder) {
	if m.Role == "assistant" || m.Begins() {
		who := "User"
		switch {
		case m.Summary:
			who = "Summary"
		case m.Role == "assistant":
			who = "Assistant"
		}
		b.WriteString("\n### " + who)
		if at := stamp(m.At); at != "" {
			b.WriteString(" | " + at)
		}
		b.WriteByte('\n')
	}
	for i := range m.Blocks {
		writeBlock(b, &m.Blocks[i])
	}
}

// maxShown is how much of a call or result an export shows, in bytes.
const maxShown = 4000

func writeBlock(b *strings.Builder, k *core.Block) {
	switch k.Type {
	case "text":
		b.WriteString("\n" + contained(k.Text) + "\n")
	case "thinking":
		if text := strings.TrimSpace(k.Text); text != "" {
			b.WriteString("\n> *Thinking:* " + strings.ReplaceAll(text, "\n", "\n> ") + "\n")
		}
	case "tool_use":
		b.WriteString("\n**" + OneLine(k.Name) + "**\n\n" + fenced("json", string(k.Input)) + "\n")
	case "tool_result":
		what := "Result"
		if k.IsError {
			what = "Failed"
		}
		b.WriteString("\n" + what + ":\n\n" + fenced("", k.Text) + "\n")
	}
	for i := range k.Media {
		m := &k.Media[i]
		fmt.Fprintf(b, "\n*Attachment: %s, %d bytes*\n", OneLine(strings.NewReplacer("*", "", "`", "").Replace(m.Name+" "+m.Type)), len(m.Data))
	}
}

// fenced returns text as a code block with a fence longer than any inside.
func fenced(language, text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "\n… (cut)"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// contained returns text as Markdown that does not affect what follows: headings like
// the export's own are escaped, and an open code block or comment is closed.
func contained(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	var out []string
	fence := "" // of the code block that is open
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		bare := strings.TrimLeft(line, " ")
		mark := fenceOf(bare)
		switch {
		case len(line)-len(bare) > 3: // no fence, no heading
		case fence == "" && mark != "":
			fence = mark
		case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(bare) == mark:
			fence = ""
		case fence == "" && (strings.HasPrefix(bare, "#") || strings.HasPrefix(bare, "---") || strings.HasPrefix(bare, "===") || strings.HasPrefix(bare, "<")):
			line = `\` + bare
		}
		out = append(out, line)
	}
	if fence != "" {
		out = append(out, fence)
	}
	return strings.Join(out, "\n")
}

// fenceOf returns the fence that a line begins with, or "".
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// maxExport bounds an export, in bytes.
const maxExport = 12 << 20

// Export returns a session as Markdown: its newest 12 MB, out of the last 32 MB of
// its transcript; a last line reports omissions. Messages before a compaction are
// included. The caller checks who may see it: compare Session.User.
func (s *Files) Export(ctx context.Context, sess Session, tags []string) (string, error) {
	c, err := s.Open(sess)
	if err != nil {
		return "", err
	}
	size := int64(0)
	if st, err := s.vault.Stat(c.name); err == nil {
		size = st.Size()
	}
	leave, err := s.reads(ctx, size, func() {})
	if err != nil {
		return "", err
	}
	defer leave()
	f, err := s.vault.ReadTail(c.name, vault.MaxTail)
	if errors.Is(err, fs.ErrNotExist) {
		return Markdown(sess, tags, nil), nil
	}
	if err != nil {
		return "", err
	}
	m, err := s.readMarks(c.name, &f, vault.MaxTail)
	if err != nil {
		return "", err
	}
	t := everything(f, m)
	text := Markdown(sess, tags, t.messages)
	for len(text) > maxExport && len(t.messages) > 0 {
		t.messages, t.whole = t.messages[(len(t.messages)+3)/4:], false
		text = Markdown(sess, tags, t.messages)
	}
	if !t.whole {
		text += "\n*The session is too long for one export; its beginning is left out.*\n"
	}
	return text, nil
}
