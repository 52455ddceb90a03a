package transcript

import (
	"path"
	"slices"

	"gatehouse/core/vault"
)

// Place returns the working directory that the session's lines name, and whether
// the transcript is, or would be made, where Claude Code looks for it from there.
func (c *Conversation) Place() (cwd string, here bool) {
	return c.cwd, path.Base(path.Dir(c.name)) == vault.ProjectFolder(c.cwd)
}

// After returns the messages behind the one whose line has this id, oldest first,
// and whether that line is in the transcript, of which the last vault.MaxTail
// bytes count. Where a compaction has taken the line out, they are the
// compaction's summary and what follows.
func (c *Conversation) After(line string) ([]Message, bool, error) {
	for want := 1; ; want = 4 * c.tail.Size {
		before := c.tail.Size
		if err := c.load(want); err != nil {
			return nil, false, err
		}
		for i := range c.tail.Messages {
			if c.tail.Messages[i].UUID == line {
				return slices.Clone(c.tail.Messages[i+1:]), true, nil
			}
		}
		if c.tail.Whole || want > 1 && c.tail.Size <= before {
			break
		}
	}
	if !c.existed {
		return nil, false, nil
	}
	f, err := c.s.vault.ReadTail(c.name, vault.MaxTail)
	if err != nil {
		return nil, false, err
	}
	for i := range f.Lines {
		if f.Lines[i].UUID == line {
			return slices.Clone(c.tail.Messages), true, nil
		}
	}
	return nil, false, nil
}

// Clear moves a transcript that holds no message to the trash and reports
// whether it did: Claude Code, ended before it wrote the first one, neither
// goes on with such a file nor begins another in its place. Ask after History.
func (c *Conversation) Clear() (bool, error) {
	if !c.existed || !c.loaded || !c.tail.Whole || len(c.tail.Messages) > 0 {
		return false, nil
	}
	if _, err := c.s.vault.Trash(c.name, c.s.clock.Now()); err != nil {
		return false, err
	}
	c.existed = false
	return true, nil
}
