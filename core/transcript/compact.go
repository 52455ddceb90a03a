package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

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
	if err := c.load(budget * lines.BytesPerToken); err != nil {
		return Compaction{}, false, err
	}
	limit := budget * lines.BytesPerToken * compactAt / 100
	if c.tail.Size <= limit {
		return Compaction{}, false, nil
	}
	return c.split(limit, budget*lines.BytesPerToken)
}

// Compactable returns what to sum up of a conversation that someone wants shorter
// now, of as much as budget tokens hold; false where there is nothing in front
// of the newest turns.
func (c *Conversation) Compactable(budget int) (Compaction, bool, error) {
	if err := c.load(budget * lines.BytesPerToken); err != nil {
		return Compaction{}, false, err
	}
	return c.split(min(budget*lines.BytesPerToken, c.tail.Size), budget*lines.BytesPerToken)
}

// split keeps the newest turns that take half of limit bytes. What is summed up takes at
// most room bytes.
func (c *Conversation) split(limit, room int) (Compaction, bool, error) {
	all, keep, size := c.tail.Messages, 0, 0
	for i := len(all) - 1; i >= 0; i-- {
		if size += all[i].Size(); size > limit/2 && keep > 0 {
			break
		}
		if all[i].Begins() && !all[i].Summary {
			keep = len(all) - i
		}
	}
	head := lines.Accepted(all[:len(all)-keep])
	if len(head) == 0 || len(head) == 1 && head[0].Summary { // only the newest turn is large
		if keep < 3 || all[len(all)-1].Begins() || all[len(all)-1].Role == "assistant" {
			return Compaction{}, false, nil
		}
		head, keep = lines.Accepted(all), 0
	}
	head = lines.Within(head, room)
	first := 0 // of a conversation longer than what was read, no half turn
	for first < len(head)-1 && !head[first].Begins() {
		first++
	}
	return Compaction{Messages: lines.Repaired(head[first:]), Keep: keep, Tokens: c.tail.Size / lines.BytesPerToken}, true, nil
}

// Tokens returns about how long the part of the conversation is that was read.
func (c *Conversation) Tokens() int { return c.tail.Size / lines.BytesPerToken }

// Compact inserts a summary in place of everything but the newest keep messages,
// in the form that Claude Code writes and reads: a boundary and the summary,
// on the disk when Compact returns. Nothing is removed from the file, and the
// run's own lines stay its lines. Of a keep that is not a turn's beginning the
// next larger turn stays.
func (c *Conversation) Compact(summary string, keep int) error {
	if err := c.begin(); err != nil {
		return err
	}
	all := c.tail.Messages
	at := max(0, len(all)-max(0, keep))
	for at > 0 && at < len(all) && !all[at].Begins() {
		at--
	}
	kept := all[at:len(all):len(all)]
	now := c.s.clock.Now()
	stamp := now.UTC().Format(lines.TimeFormat)
	line := func(kind string) lines.Mark {
		return lines.Mark{Line: vault.Line{UserType: "external", CWD: c.cwd, SessionID: c.sess.ID, Version: c.s.version,
			Type: kind, UUID: uuid.NewString(), Timestamp: stamp}}
	}
	b, s := line("system"), line("user")
	b.Subtype, b.Content, b.Level, b.LogicalParent = "compact_boundary", "Conversation compacted", "info", c.tail.Last
	b.Metadata = &lines.MarkMetadata{Trigger: "auto", PreTokens: c.tail.Size / lines.BytesPerToken}
	if ids := lines.UUIDs(kept); len(ids) > 0 {
		b.Metadata.Segment = &lines.Segment{Head: ids[0], Anchor: s.UUID, Tail: ids[len(ids)-1]}
		b.Metadata.Messages = &lines.Kept{Anchor: s.UUID, UUIDs: ids, All: ids}
	}
	m := Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: lines.SummaryIntro + summary}}, At: now, Summary: true, UUID: s.UUID}
	var err error
	if s.Message, err = m.Encode(s.UUID); err != nil {
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
			c.appended[m.UUID] = true
		}
	}
	t := tail{Part: lines.Part{Last: s.UUID, Whole: true, Info: c.tail.Info}}
	if len(kept) > 0 {
		t.Last = kept[len(kept)-1].UUID // not a mark's behind it: the kept ones are found from here
	}
	for _, m := range append([]Message{m}, kept...) {
		t.add(m)
	}
	c.tail = t
	return nil
}

// write appends marks with one write, on the disk when it returns. The open
// transcript does not see them coming, so it is closed before and opened again.
func (c *Conversation) write(lines ...lines.Mark) (err error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return fmt.Errorf("compact transcript: %w", err)
		}
	}
	if err := c.s.vault.Fenced(); err != nil {
		return fmt.Errorf("compact transcript: %w", err)
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
	if c.tail.Info, err = f.Stat(); err != nil {
		return fmt.Errorf("compact transcript: %w", err)
	}
	c.file, err = c.s.vault.OpenTranscript(c.name)
	return err
}
