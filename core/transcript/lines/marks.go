package lines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"gatehouse/core/vault/line"
	"io"
	"os"
)

// Marks are what lines record about compactions. Claude Code (2.1.197, seen by
// running it) writes a system line with subtype compact_boundary and metadata that
// names the messages that stay; then the summary, as a user line with
// isCompactSummary. The kept messages are not written again: readers hang them
// behind the summary.
type Marks struct {
	boundaries map[string]boundary // by uuid
	summaries  map[string]bool     // by uuid
}

type boundary struct {
	anchor string   // the summary's uuid
	kept   []string // uuids of the messages that stay, in order
}

// A Mark is a boundary or a summary on the disk.
type Mark struct {
	line.Line
	Subtype       string        `json:"subtype,omitempty"`
	Content       string        `json:"content,omitempty"`
	Level         string        `json:"level,omitempty"`
	LogicalParent string        `json:"logicalParentUuid,omitempty"`
	Summary       bool          `json:"isCompactSummary,omitempty"`
	Hidden        bool          `json:"isVisibleInTranscriptOnly,omitempty"`
	Metadata      *MarkMetadata `json:"compactMetadata,omitempty"`
}

// MarkMetadata is what a boundary states about its compaction.
type MarkMetadata struct {
	Trigger   string   `json:"trigger"`
	PreTokens int      `json:"preTokens"`
	Segment   *Segment `json:"preservedSegment,omitempty"`
	Messages  *Kept    `json:"preservedMessages,omitempty"`
}

// A Segment names the first and the last of the messages that stay.
type Segment struct {
	Head   string `json:"headUuid"`
	Anchor string `json:"anchorUuid"`
	Tail   string `json:"tailUuid"`
}

// Kept names all of them.
type Kept struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"allUuids,omitempty"`
}

// maxMark is the longest line that is checked for marks, in bytes.
const maxMark = 1 << 20

// ReadMarks finds the marks among the last limit bytes of a transcript. Most
// have none: a system line without parent is the sign that it is worth a look.
func ReadMarks(root *os.Root, name string, t *line.Tail, limit int64) (Marks, error) {
	m := Marks{boundaries: map[string]boundary{}, summaries: map[string]bool{}}
	worth := false
	for i := range t.Lines {
		worth = worth || t.Lines[i].Type == "system" && t.Lines[i].ParentUUID == nil
	}
	if !worth {
		return m, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return m, fmt.Errorf("read compactions: %w", err)
	}
	defer f.Close()
	if start := t.Info.Size() - limit; start > 0 {
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return m, fmt.Errorf("read compactions: %w", err)
		}
	}
	r := bufio.NewReaderSize(f, maxMark)
	for long := false; ; {
		raw, err := r.ReadSlice('\n')
		if err == nil && !long {
			m.note(raw)
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
func (m *Marks) note(raw []byte) {
	if !bytes.Contains(raw, []byte(`"compact_boundary"`)) && !bytes.Contains(raw, []byte(`"isCompactSummary"`)) {
		return
	}
	var l Mark
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

// UUIDs returns the uuids of the lines that messages were read from.
func UUIDs(messages []Message) (ids []string) {
	for i := range messages {
		ids = append(append(ids, messages[i].Earlier...), messages[i].UUID)
	}
	return ids
}
