package bring

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

const (
	maxText  = 4 << 20       // bytes of one block; a longer text is cut, with a note
	maxInput = 1 << 20       // bytes of the input of a tool call
	assets   = "Chat/assets" // where attachments lie (core/attach); lines that name it are of messages with files
	noResult = "(The export holds no result of this call.)"
)

// A writer writes one conversation into a file that has no name yet.
type writer struct {
	b       *Bringer
	conv    *transcript.Conversation
	session string
	files   foreign.Attachments
	dry     bool // nothing is written
	draft   *vault.Draft
	buf     *bufio.Writer
	before  earlier

	ids  map[string]string // the lines of messages, by the messages' ids; "" for what was left out at the beginning
	used map[string]bool   // ids of lines
	last string            // the last line of the branch that is shown
	open []string          // its tool calls without a result

	count           int
	title           string
	model           string
	firstAt, lastAt time.Time
	notes           []string
}

// maxNotes bounds the notes of one conversation.
const maxNotes = 20

func (w *writer) note(format string, args ...any) {
	if len(w.notes) < maxNotes {
		w.notes = append(w.notes, fmt.Sprintf(format, args...))
	}
}

func (w *writer) drop() {
	if w.draft != nil {
		w.draft.Drop()
	}
}

// write writes every message of c.
func (w *writer) write(ctx context.Context, c *foreign.Conversation) (err error) {
	if !w.dry {
		if w.draft, err = w.b.o.Vault.Draft(folder(w.conv)); err != nil {
			return err
		}
		w.buf = bufio.NewWriterSize(w.draft, 64<<10)
	}
	w.before = earlier{b: w.b, name: w.conv.Name()}
	w.model = modelOf(c.Model)
	list, dropped := c.Ordered()
	if dropped > 0 {
		w.note("%d messages have no id, or the id of an earlier one: they are left out", dropped)
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.message(ctx, &list[i]); err != nil {
			return err
		}
	}
	if len(w.open) > 0 {
		if err := w.results(time.Time{}); err != nil {
			return err
		}
	}
	if w.dry {
		return nil
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	return w.draft.Sync()
}

// message writes one message.
func (w *writer) message(ctx context.Context, p *foreign.Placed) error {
	parent := w.ids[p.Parent]
	m := transcript.Message{Role: p.Role, Model: modelOf(p.Model), Blocks: w.blocks(p.Blocks)}
	if m.Role == "user" {
		m.Author = &transcript.Author{} // its text is the user's: it has no framing of the gateway to be read
	}
	e := transcript.Entry{ID: w.lineID(p.ID), Side: p.Side, At: p.At}
	if len(p.Files) > 0 {
		if err := w.attach(ctx, p, &e, &m); err != nil {
			return err
		}
	}
	if !p.Side {
		if err := w.settle(&m, p.At); err != nil {
			return err
		}
		parent = w.last
	}
	if len(m.Blocks) == 0 && e.Raw == nil {
		w.ids[p.ID] = parent
		return nil
	}
	w.ids[p.ID] = e.ID
	e.Parent, e.Message = parent, m
	if err := w.line(&e); err != nil {
		return err
	}
	if !p.Side {
		w.tell(&m, p)
		w.last = e.ID
	}
	return nil
}

// attach adds what represents the files of p: as an earlier import has it, where there was one.
func (w *writer) attach(ctx context.Context, p *foreign.Placed, e *transcript.Entry, m *transcript.Message) (err error) {
	if w.dry {
		m.Blocks = append(m.Blocks, core.Block{Type: "text", Text: "[files]"})
		return nil
	}
	if e.Raw, err = w.before.line(e.ID); err != nil || e.Raw != nil {
		return err
	}
	more, missing, err := w.files.Keep(ctx, p.Message)
	for _, name := range missing {
		w.note("%s", name)
	}
	m.Blocks = append(m.Blocks, more...)
	return err
}

// tell notes what the row has of a message of the branch that is shown.
func (w *writer) tell(m *transcript.Message, p *foreign.Placed) {
	text := strings.TrimSpace(m.Text())
	switch {
	case len(m.Blocks) > 0 && m.Begins():
		w.count++
		if w.title == "" {
			w.title = session.Title(text)
		}
	case m.Role == "assistant":
		if m.Model != "" {
			w.model = m.Model
		}
		if text != "" {
			w.count++
		}
	}
	if !p.At.IsZero() {
		if w.firstAt.IsZero() {
			w.firstAt = p.At
		}
		w.lastAt = p.At
	}
}

// settle makes m follow the open calls as every model's API requires: with a result of each, and
// with no other results.
func (w *writer) settle(m *transcript.Message, at time.Time) error {
	found := map[string]bool{}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Type != "tool_result" {
			continue
		}
		if !slices.Contains(w.open, b.ToolUseID) || found[b.ToolUseID] {
			*b = core.Block{Type: "text", Text: "[Result of a tool] " + b.Text}
			continue
		}
		found[b.ToolUseID] = true
	}
	switch {
	case len(w.open) == 0:
	case len(found) == 0:
		if err := w.results(at); err != nil {
			return err
		}
	default:
		for _, id := range w.open {
			if !found[id] {
				m.Blocks = append([]core.Block{{Type: "tool_result", ToolUseID: id, Text: noResult, IsError: true}}, m.Blocks...)
			}
		}
		core.Sort(m.Blocks, func(a, b core.Block) int { return rank(&a) - rank(&b) })
	}
	w.open = nil
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Type == "tool_use" {
			if slices.Contains(w.open, b.ID) {
				*b = core.Block{Type: "text", Text: "[Tool call] " + b.Name + " " + string(b.Input)}
				continue
			}
			w.open = append(w.open, b.ID)
		}
	}
	return nil
}

// rank moves results to the front: the API wants them first.
func rank(b *core.Block) int {
	if b.Type == "tool_result" {
		return 0
	}
	return 1
}

// results writes a line with a result of every open call.
func (w *writer) results(at time.Time) error {
	m := transcript.Message{Role: "user"}
	for _, id := range w.open {
		m.Blocks = append(m.Blocks, core.Block{Type: "tool_result", ToolUseID: id, Text: noResult, IsError: true})
	}
	e := transcript.Entry{ID: w.lineID(w.last + "/results"), Parent: w.last, At: at, Message: m}
	w.open, w.last = nil, e.ID
	return w.line(&e)
}

func (w *writer) line(e *transcript.Entry) error {
	if w.dry {
		return nil
	}
	raw, err := w.conv.Encode(e)
	if err != nil {
		return err
	}
	if len(raw) > maxLine {
		return core.Errorf(core.TooLarge, "a message takes %s, more than a transcript can hold", core.ByteSize(len(raw)))
	}
	_, err = w.buf.Write(raw)
	return err
}

// maxLine is the longest line that is read of a transcript (vault).
const maxLine = 16 << 20

// lineID returns the id of the line of a message: its own, if that is a UUID.
func (w *writer) lineID(id string) string {
	u, err := uuid.Parse(id)
	if err != nil || w.used[u.String()] || u == uuid.Nil {
		u = uuid.NewSHA1(space, []byte(w.session+" "+id))
	}
	for w.used[u.String()] { // an id that was chosen to be that of another message
		u = uuid.NewSHA1(space, u[:])
	}
	w.used[u.String()] = true
	return u.String()
}

// blocks returns blocks as a transcript may have them.
func (w *writer) blocks(list []core.Block) (out []core.Block) {
	for _, b := range list {
		b.Text = w.text(b.Text)
		switch b.Type {
		case "text", "thinking":
			if strings.TrimSpace(b.Text) == "" {
				continue
			}
			b.Signature = ""
		case "tool_use":
			b.ID, b.Name = callID(b.ID), name(b.Name)
			if b.Input = object(b.Input); len(b.Input) > maxInput {
				w.note("the input of a call of %s is larger than %s: it is left out", b.Name, core.ByteSize(maxInput))
				b.Input = json.RawMessage(`{"left_out":"too large"}`)
			}
		case "tool_result":
			b.ToolUseID = callID(b.ToolUseID)
		case "media":
		default:
			continue
		}
		out = append(out, b)
	}
	return out
}

// text returns s without control characters, and cut.
func (w *writer) text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) <= maxText {
		return s
	}
	w.note("a text of %s is cut to %s", core.ByteSize(len(s)), core.ByteSize(maxText))
	return strings.ToValidUTF8(s[:maxText], "") + "\n[cut]"
}

// modelOf returns the name of a model as rows and lists have it.
func modelOf(s string) string { return core.CutRunes(core.CleanName(s), 2*maxName) }

// maxName is the longest name and id of a call that providers take.
const maxName = 64

// name returns s as providers take names of tools: 1 to 64 of [A-Za-z0-9_-].
func name(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s)
	if clean == "" {
		return "tool"
	}
	return clean[:min(len(clean), maxName)]
}

// callID returns s as providers take ids of calls, which have the same form. Different ids
// stay different.
func callID(s string) string {
	if s != "" && name(s) == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "toolu_" + hex.EncodeToString(sum[:12])
}

// object returns raw, as an object.
func object(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return json.RawMessage("{}")
	}
	if b.Bytes()[0] == '{' {
		return b.Bytes()
	}
	return slices.Concat([]byte(`{"value":`), b.Bytes(), []byte{'}'})
}

// eachLine calls f with every line of r and its place. Lines of over maxLine are left out.
func eachLine(r io.Reader, f func(at int64, raw []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for at := int64(0); ; {
		raw, n, err := transcript.ReadLine(in)
		if err != nil || n == 0 {
			return err
		}
		f(at, raw)
		at += n
	}
}
