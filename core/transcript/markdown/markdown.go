// Package markdown writes conversations as Markdown, for readers.
package markdown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/record"
)

// Session returns a session as text: frontmatter with the row's values, then a heading
// of the third level with author and time for every message. Tool calls and results are
// below the answer that they belong to; results are cut at 4,000 bytes, and media are
// named, not shown. Text of a message can neither imitate a heading of the export nor
// hide what follows.
func Session(s transcript.Session, tags []string, messages []transcript.Message) string {
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
	if s.Scope == core.ScopeGroup {
		field("scope", s.Scope)
	}
	if s.User > core.Operator {
		field("user_id", s.User)
	}
	if len(tags) > 0 {
		field("tags", tags)
	}
	b.WriteString("---\n")
	if title := transcript.OneLine(s.Title); title != "" {
		b.WriteString("\n# " + title + "\n")
	}
	for i := range messages {
		writeMessage(&b, &messages[i], s.User == core.Operator)
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

func writeMessage(b *strings.Builder, m *transcript.Message, group bool) {
	author, blocks := m.Shown(group)
	if m.Role == "assistant" || m.Begins() {
		who := "User"
		if author.Name != "" && (author.Place != "" || m.Author == nil) { // in a group
			who = nameOf(&author)
		}
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
	for i := range blocks {
		if q := blocks[i].Quote; q != nil {
			b.WriteString("\n" + contained(about(q)) + "\n")
		}
		writeBlock(b, &blocks[i].Block)
		if blocks[i].Type == "tool_use" {
			writeHelper(b, m.Helpers[blocks[i].ID])
		}
	}
}

// nameOf returns the name of a group's member as a heading, which is none of the export's own.
func nameOf(a *transcript.Author) string {
	name := strings.ReplaceAll(transcript.OneLine(a.Name), "|", "/")
	switch strings.ToLower(name) {
	case "user", "human", "assistant", "system", "summary":
		return "“" + name + "”"
	}
	return name
}

// maxHelperCall is how much of the input of a helper's call an export shows, in bytes.
const maxHelperCall = 200

// writeHelper lists the tool calls of a helper.
func writeHelper(b *strings.Builder, did []transcript.Message) {
	head := "\nThe helper used:\n\n"
	for i := range did {
		for j := range did[i].Blocks {
			k := &did[i].Blocks[j]
			if k.Type != "tool_use" {
				continue
			}
			input := strings.ReplaceAll(transcript.OneLine(core.CutRunes(string(k.Input), maxHelperCall)), "`", "'")
			b.WriteString(head + "- " + transcript.OneLine(k.Name) + " `" + input + "`\n")
			head = ""
		}
	}
}

// about returns what a message refers to, as a quotation.
func about(q *core.Quote) string {
	who := transcript.OneLine(q.Name)
	switch {
	case q.Ours:
		who = "the assistant"
	case who == "":
		who = "someone"
	}
	if q.Forwarded {
		return "> Forwarded from " + who
	}
	return "> About this from " + who + ":\n> " + strings.ReplaceAll(q.Text, "\n", "\n> ")
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
		b.WriteString("\n**" + transcript.OneLine(k.Name) + "**\n\n" + fenced("json", string(k.Input)) + "\n")
	case "tool_result":
		what := "Result"
		if k.IsError {
			what = "Failed"
		}
		b.WriteString("\n" + what + ":\n\n" + fenced("", k.Text) + "\n")
	}
	for i := range k.Media {
		m := &k.Media[i]
		fmt.Fprintf(b, "\n*Attachment: %s, %d bytes*\n", transcript.OneLine(strings.NewReplacer("*", "", "`", "").Replace(m.Name+" "+m.Type)), len(m.Data))
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
		bare, was := strings.TrimLeft(line, " "), fence
		fence = record.Fence(fence, line)
		if was == "" && fence == "" && len(line)-len(bare) <= 3 &&
			(strings.HasPrefix(bare, "#") || strings.HasPrefix(bare, "---") || strings.HasPrefix(bare, "===") || strings.HasPrefix(bare, "<")) {
			line = `\` + bare
		}
		out = append(out, line)
	}
	if fence != "" {
		out = append(out, fence)
	}
	return strings.Join(out, "\n")
}

// maxExport bounds an export, in bytes.
const maxExport = 12 << 20

// Bounded returns what Session does with the newest messages that take at most 12 MB.
// If messages are missing, because of that limit or before (whole is false), the last
// line reports it.
func Bounded(s transcript.Session, tags []string, messages []transcript.Message, whole bool) string {
	text := Session(s, tags, messages)
	for len(text) > maxExport && len(messages) > 0 {
		messages, whole = messages[(len(messages)+3)/4:], false
		text = Session(s, tags, messages)
	}
	if !whole {
		text += "\n*The session is too long for one export; its beginning is left out.*\n"
	}
	return text
}
