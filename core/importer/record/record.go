// Package record reads conversations that are written down as Markdown: those of the first
// generation, in agent-chats and agent-sessions, and those that the gateway exports.
package record

import (
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/agent/frontmatter"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/transcript/record"
)

// Source is the source of the sessions, as their rows name it.
const Source = "parachute"

// Folders are the directories of a vault of the first generation that have records.
var Folders = []string{"agent-chats", "agent-sessions"}

// MaxSize is the largest record that is read, in bytes.
const MaxSize = 16 << 20

// A header is the frontmatter of a record. Values of other types are no values.
type header struct {
	Session  any `yaml:"session_id"`
	Camel    any `yaml:"sessionId"`
	SDK      any `yaml:"sdk_session_id"`
	ID       any `yaml:"id"`
	Title    any `yaml:"title"`
	Model    any `yaml:"model"`
	Created  any `yaml:"created_at"`
	Accessed any `yaml:"last_accessed"`
	Archived any `yaml:"archived"`
	Count    any `yaml:"message_count"` // the gateway's exports have it
	Scope    any `yaml:"scope"`         // of a group's, in the gateway's exports
	User     any `yaml:"user_id"`       // of another user's than the operator's, in the gateway's exports
}

// A Head is what a record's frontmatter states.
type Head struct {
	IDs      []string // under which it may be asked for, the session's own first
	Title    string
	Model    string
	Created  time.Time
	Accessed time.Time
	Archived bool
	exported bool // by the gateway: what could be taken for headings is escaped, or in a code block that ends
	group    bool
	user     int64
}

// ReadHead reads the frontmatter that text begins with, and returns the text behind it; false where
// there is none that names a session.
func ReadHead(text string) (h Head, body string, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	text, ok = strings.CutPrefix(text, "---\n")
	if !ok {
		return h, "", false
	}
	front, body, ok := strings.Cut(text, "\n---\n")
	var f header
	if !ok || len(front) > maxHead {
		return h, "", false
	}
	read, fault := frontmatter.Read("", front, 1)
	if fault != nil || read.DecodeKnown(&f) != nil {
		return h, "", false
	}
	for _, v := range []any{f.Session, f.Camel, f.SDK, f.ID} {
		if id := str(v); id != "" && len(id) <= 200 && !strings.HasPrefix(id, "[object") {
			h.IDs = append(h.IDs, id)
		}
	}
	h.Title, h.Model, h.Created, h.Accessed = str(f.Title), str(f.Model), at(f.Created), at(f.Accessed)
	h.Archived, h.exported = str(f.Archived) == "true", f.Count != nil
	if h.exported { // others may mean something else by these
		h.group = str(f.Scope) == string(core.ScopeGroup)
		h.user, _ = strconv.ParseInt(str(f.User), 10, 64) // what is no number is 0, of no one
	}
	return h, body, len(h.IDs) > 0
}

// maxHead bounds the frontmatter, in bytes.
const maxHead = 16 << 10

// str returns a scalar of YAML as text.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	return ""
}

func at(v any) time.Time {
	if t, ok := v.(time.Time); ok {
		return t
	}
	text := str(v)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil { // without a zone it counts as UTC; what is no time is zero
		t, _ = time.Parse("2006-01-02T15:04:05", text)
	}
	return t
}

// heading begins a message: "### User | 2025-12-07T04:39:47.485Z", with a paragraph's id in front in
// some versions. A heading without a time is part of a message.
var heading = core.Pattern(`^### (?:para:[a-z0-9]+\s+)?(.{1,100}?) \| (\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)\s*$`)

// Parse returns the conversation of a record; core.Invalid where text is none.
func Parse(text string) (*foreign.Conversation, error) {
	h, body, ok := ReadHead(text)
	if !ok {
		return nil, core.Errorf(core.Invalid, "its frontmatter names no session (session_id)")
	}
	c := &foreign.Conversation{Source: Source, ID: h.IDs[0], Title: h.Title, Model: h.Model, Created: h.Created, Updated: h.Accessed, Archived: h.Archived, Others: h.group, User: h.user}
	var part strings.Builder
	role, other, when := "", "", time.Time{}
	end := func() {
		if text := strings.TrimSpace(part.String()); text != "" && role != "" {
			n := len(c.Messages)
			if other != "" {
				text, c.Others = agent.Quoted{Name: other, Text: text}.String(), true
			}
			m := foreign.Message{ID: strconv.Itoa(n + 1), Role: role, At: when, Blocks: []core.Block{{Type: "text", Text: text}}}
			if n > 0 {
				m.Parent = strconv.Itoa(n)
			}
			c.Messages = append(c.Messages, m)
		}
		part.Reset()
	}
	fence := "" // of the code block that is open
	for line := range strings.Lines(strings.ToValidUTF8(body, "\ufffd")) {
		if m := heading().FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && fence == "" {
			end()
			if role, other = roleOf(m[1]); strings.EqualFold(other, summary) {
				other = ""
				part.WriteString(summed)
			}
			when = at(m[2])
			continue
		}
		if h.exported {
			fence = record.Fence(fence, line)
		}
		if h.exported && fence == "" && strings.HasPrefix(line, `\`) && len(line) > 1 && strings.ContainsRune("#-=<", rune(line[1])) {
			line = line[1:]
		}
		part.WriteString(line)
	}
	end()
	if len(c.Messages) == 0 {
		return nil, core.Errorf(core.Invalid, "it has no messages: each begins with a heading such as '### User | 2025-01-02T03:04:05Z'")
	}
	return c, nil
}

// summary is the heading of a model's text about what was left out in front of it, which the
// model reads as a message of the user; summed is in front of that.
const (
	summary = "Summary"
	summed  = "A model has summed up what was written before:\n"
)

// roleOf returns the role of a message whose heading has this name, and the name if it is of
// none: another person wrote it. The role is "" for notes of the system, which are left out.
func roleOf(name string) (role, other string) {
	switch strings.ToLower(name) {
	case "assistant":
		return "assistant", ""
	case "system":
		return "", ""
	case "user", "human":
		return "user", ""
	}
	return "user", name
}
