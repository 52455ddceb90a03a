package transcript

import (
	"slices"

	"gatehouse/core/transcript/lines"
)

// Behind returns how many of the newest messages are behind the one with this id, and how
// many tokens they take, estimated; false where it is not among those that a History of
// budget tokens reads, is in the middle of a turn, or was taken out by a compaction.
func (c *Conversation) Behind(line string, budget int) (n, tokens int, ok bool, err error) {
	if err := c.load(budget * lines.BytesPerToken); err != nil {
		return 0, 0, false, err
	}
	all, size := c.tail.Messages, 0
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].UUID == line || slices.Contains(all[i].Earlier, line) {
			n = len(all) - 1 - i
			return n, size / lines.BytesPerToken, n == 0 || all[i+1].Begins(), nil
		}
		size += all[i].Size()
	}
	return 0, 0, false, nil
}
