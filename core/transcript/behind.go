package transcript

import "gatehouse/core/transcript/lines"

// Behind returns how many of the newest messages are behind the one with this id, and how
// many tokens they take, estimated; false where it is not among those that a History of
// budget tokens reads, is in the middle of a turn, or was taken out by a compaction.
func (c *Conversation) Behind(line string, budget int) (n, tokens int, ok bool, err error) {
	if err := c.load(budget * lines.BytesPerToken); err != nil {
		return 0, 0, false, err
	}
	n, tokens, ok = lines.Behind(c.tail.Messages, line)
	return n, tokens, ok, nil
}
