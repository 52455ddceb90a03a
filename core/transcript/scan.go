package transcript

import (
	"errors"
	"gatehouse/core/transcript/lines"
	"io/fs"
)

// Newest returns the messages in the last limit bytes of the transcript as it
// is on the disk now, those in front of a compaction too. It may be called
// next to Append.
func (c *Conversation) Newest(limit int64) ([]Message, error) {
	f, err := c.s.vault.ReadTail(c.name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := lines.ReadMarks(c.s.vault.Root(), c.name, &f, limit)
	if err != nil {
		return nil, err
	}
	return lines.All(f, m).Messages, nil
}
