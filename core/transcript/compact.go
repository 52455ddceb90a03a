package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// marks are what lines record about compactions. Claude Code (2.1.197, seen by
// running it) writes a system line with subtype compact_boundary and metadata that
// names the messages that stay; then the summary, as a user line with
// isCompactSummary. The kept messages are not written again: readers hang them
// behind the summary.
type marks struct {
	boundaries map[string]boundary // by uuid
	summaries  map[string]bool     // by uuid
}

type boundary struct {
	anchor string   // the summary's uuid
	kept   []string // uuids of the messages that stay, in order
}

// markLine is a boundary or a summary on the disk.
type markLine struct {
	vault.Line
	Subtype       string        `json:"subtype,omitempty"`
	Content       string        `json:"content,omitempty"`
	Level         string        `json:"level,omitempty"`
	LogicalParent string        `json:"logicalParentUuid,omitempty"`
	Summary       bool          `json:"isCompactSummary,omitempty"`
	Hidden        bool          `json:"isVisibleInTranscriptOnly,omitempty"`
	Metadata      *markMetadata `json:"compactMetadata,omitempty"`
}

type markMetadata struct {
	Trigger   string        `json:"trigger"`
	PreTokens int           `json:"preTokens"`
	Segment   *keptSegment  `json:"preservedSegment,omitempty"`
	Messages  *keptMessages `json:"preservedMessages,omitempty"`
}

type keptSegment struct {
	Head   string `json:"headUuid"`
	Anchor string `json:"anchorUuid"`
	Tail   string `json:"tailUuid"`
}

type keptMessages struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"allUuids,omitempty"`
}

// maxMark is the longest line that is checked for marks, in bytes.
const maxMark = 1 << 20

// readMarks finds the marks among the last limit bytes of a transcript. Most
// have none: a system line without parent is the sign that it is worth a look.
func (s *Files) readMarks(name string, t *vault.Tail, limit int64) (marks, error) {
	m := marks{boundaries: map[string]boundary{}, summaries: map[string]bool{}}
	worth := false
	for i := range t.Lines {
		worth = worth || t.Lines[i].Type == "system" && t.Lines[i].ParentUUID == nil
	}
	if !worth {
		return m, nil
	}
	f, err := s.vault.Root().Open(name)
	if err != nil {
		return m, fmt.Errorf("read compactions: %w", err)
	}
	defer f.Close()
	if start := t.Info.Size() - min(limit, vault.MaxTail); start > 0 {
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return m, fmt.Errorf("read compactions: %w", err)
		}
	}
	r := bufio.NewReaderSize(f, maxMark)
	for long := false; ; {
		line, err := r.ReadSlice('\n')
		if err == nil && !long {
			m.note(line)
		}
		if long = errors.Is(err, bufio.ErrBufferFull); err != nil && !long {
			if errors.Is(err, io.EOF) {
				return m, nil
			}
			return m, fmt.Errorf("read compactions: %w", err)
		}
	}
}

// note takes one line's marks.
func (m *marks) note(raw []byte) {
	if !bytes.Contains(raw, []byte(`"compact_boundary"`)) && !bytes.Contains(raw, []byte(`"isCompactSummary"`)) {
		return
	}
	var l markLine
	if json.Unmarshal(raw, &l) != nil || l.UUID == "" {
		return
	}
	switch {
	case l.Type == "system" && l.Subtype == "compact_boundary":
		var b boundary
		if l.Metadata != nil && l.Metadata.Messages != nil {
			b.anchor, b.kept = l.Metadata.Messages.Anchor, l.Metadata.Messages.All
			if len(b.kept) == 0 {
				b.kept = l.Metadata.Messages.UUIDs
			}
		}
		m.boundaries[l.UUID] = b
	case l.Type == "user" && l.Summary:
		m.summaries[l.UUID] = true
	}
}

// compactAt is the part of a budget, in percent, from which a conversation is
// summed up; what stays takes at most half of that part.
const compactAt = 80

// A Compaction is what NeedsCompaction finds.
type Compaction struct {
	Messages []Message // to sum up: what is in front of what stays, oldest first, a valid sequence
	Keep     int       // how many of the newest messages stay as they are
	Tokens   int       // of the whole conversation, estimated
}

// NeedsCompaction reports whether the conversation takes more than 80 % of
// budget tokens (estimated as History does), and then what to sum up: of a far
// longer one, the part that a History of budget reads. An
// earlier summary is summed up with the rest. The newest turn stays, but where
// it alone is that long and waits for the model after a tool's results: then
// all of it is summed up. Else it is false while there is nothing but it.
func (c *Conversation) NeedsCompaction(budget int) (Compaction, bool, error) {
	if err := c.load(budget * bytesPerToken); err != nil {
		return Compaction{}, false, err
	}
	limit := budget * bytesPerToken * compactAt / 100
	if c.tail.size <= limit {
		return Compaction{}, false, nil
	}
	return c.split(limit, budget*bytesPerToken)
}

// Compactable returns what to sum up of a conversation that someone wants shorter
// now, of as much as budget tokens hold; false where there is nothing in front
// of the newest turns.
func (c *Conversation) Compactable(budget int) (Compaction, bool, error) {
	if err := c.load(budget * bytesPerToken); err != nil {
		return Compaction{}, false, err
	}
	return c.split(min(budget*bytesPerToken, c.tail.size), budget*bytesPerToken)
}

// split keeps the newest turns that take half of limit bytes. What is summed up takes at
// most room bytes.
func (c *Conversation) split(limit, room int) (Compaction, bool, error) {
	all, keep, size := c.tail.messages, 0, 0
	for i := len(all) - 1; i >= 0; i-- {
		if size += all[i].size(); size > limit/2 && keep > 0 {
			break
		}
		if all[i].Begins() && !all[i].Summary {
			keep = len(all) - i
		}
	}
	head := accepted(all[:len(all)-keep])
	if len(head) == 0 || len(head) == 1 && head[0].Summary { // only the newest turn is large
		if keep < 3 || all[len(all)-1].Begins() || all[len(all)-1].Role == "assistant" {
			return Compaction{}, false, nil
		}
		head, keep = accepted(all), 0
	}
	head = within(head, room)
	first := 0 // of a conversation longer than what was read, no half turn
	for first < len(head)-1 && !head[first].Begins() {
		first++
	}
	return Compaction{Messages: repaired(head[first:]), Keep: keep, Tokens: c.tail.size / bytesPerToken}, true, nil
}

// within returns the newest turns of messages that take at most room bytes, one at least,
// behind an earlier summary. Where that is still too much, the texts are shortened.
func within(messages []Message, room int) []Message {
	start, size := len(messages), 0
	for i := len(messages) - 1; i >= 0; i-- {
		if size += messages[i].size(); size > room && start < len(messages) {
			break
		}
		if messages[i].Begins() || i == 0 {
			start = i
		}
	}
	out := slices.Clone(messages[start:])
	if start > 0 && messages[0].Summary {
		out = append([]Message{messages[0]}, out...)
	}
	for most := room / 2; sizeOf(out) > room && most > 16; most /= 2 {
		for i := range out {
			out[i].Blocks = shortened(out[i].Blocks, most)
		}
	}
	return out
}

func sizeOf(messages []Message) (n int) {
	for i := range messages {
		n += messages[i].size()
	}
	return n
}

// cutText is where a text was shortened.
const cutText = "\n[… left out …]\n"

// shortened returns blocks with texts of at most about most bytes, their beginnings and
// ends, and without media.
func shortened(blocks []core.Block, most int) []core.Block {
	out := make([]core.Block, 0, len(blocks))
	for _, b := range blocks {
		b.Media = nil
		if n := len(b.Text); n > most+len(cutText) {
			b.Text = strings.ToValidUTF8(b.Text[:most/2], "") + cutText + strings.ToValidUTF8(b.Text[n-most/2:], "")
		}
		if b.Type != "media" {
			out = append(out, b)
		}
	}
	return out
}

// Tokens returns about how long the part of the conversation is that was read.
func (c *Conversation) Tokens() int { return c.tail.size / bytesPerToken }

// summaryIntro is what the model reads in front of a summary.
const summaryIntro = "This is a summary of the earlier part of the conversation, which was longer than fits:\n\n"

// Compact inserts a summary in place of everything but the newest keep messages,
// in the form that Claude Code writes and reads: a boundary and the summary,
// on the disk when Compact returns. Nothing is removed from the file, and the
// run's own lines stay its lines. Of a keep that is not a turn's beginning the
// next larger turn stays.
func (c *Conversation) Compact(summary string, keep int) error {
	if err := c.begin(); err != nil {
		return err
	}
	all := c.tail.messages
	at := max(0, len(all)-max(0, keep))
	for at > 0 && at < len(all) && !all[at].Begins() {
		at--
	}
	kept := all[at:len(all):len(all)]
	now := c.s.clock.Now()
	stamp := now.UTC().Format(lineTime)
	line := func(kind string) markLine {
		return markLine{Line: vault.Line{UserType: "external", CWD: c.cwd, SessionID: c.sess.ID, Version: c.s.version,
			Type: kind, UUID: uuid.NewString(), Timestamp: stamp}}
	}
	b, s := line("system"), line("user")
	b.Subtype, b.Content, b.Level, b.LogicalParent = "compact_boundary", "Conversation compacted", "info", c.tail.last
	b.Metadata = &markMetadata{Trigger: "auto", PreTokens: c.tail.size / bytesPerToken}
	if ids := lineIDs(kept); len(ids) > 0 {
		b.Metadata.Segment = &keptSegment{Head: ids[0], Anchor: s.UUID, Tail: ids[len(ids)-1]}
		b.Metadata.Messages = &keptMessages{Anchor: s.UUID, UUIDs: ids, All: ids}
	}
	m := Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: summaryIntro + summary}}, At: now, Summary: true, line: s.UUID}
	var err error
	if s.Message, err = m.encode(s.UUID); err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	s.ParentUUID, s.Summary, s.Hidden = &b.UUID, true, true
	if err := c.write(b, s); err != nil {
		return err
	}
	if c.appended == nil {
		c.appended = map[string]bool{}
	}
	for _, m := range all[:at] { // the run's lines stay known
		if m.Run != "" && m.Run == all[len(all)-1].Run {
			c.appended[m.line] = true
		}
	}
	t := tail{last: s.UUID, whole: true, info: c.tail.info}
	if len(kept) > 0 {
		t.last = kept[len(kept)-1].line // not a mark's behind it: the kept ones are found from here
	}
	for _, m := range append([]Message{m}, kept...) {
		t.add(m)
	}
	c.tail = t
	return nil
}

// lineIDs returns the uuids of the lines that messages were read from.
func lineIDs(messages []Message) (ids []string) {
	for i := range messages {
		ids = append(append(ids, messages[i].more...), messages[i].line)
	}
	return ids
}

// write appends marks with one write, on the disk when it returns. The open
// transcript does not see them coming, so it is closed before and opened again.
func (c *Conversation) write(lines ...markLine) (err error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return fmt.Errorf("compact transcript: %w", err)
		}
	}
	if err := errors.Join(c.file.Sync(), c.file.Close()); err != nil {
		return err
	}
	c.file = nil
	f, err := c.s.vault.Root().OpenFile(c.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	if n, err := f.Write(out.Bytes()); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(st.Size()))
		}
		return fmt.Errorf("compact transcript: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	if c.tail.info, err = f.Stat(); err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	c.file, err = c.s.vault.OpenTranscript(c.name)
	return err
}
