package transcript

import (
	"slices"

	"github.com/google/uuid"

	"gatehouse/core"
)

// Refuse marks the run's newest messages, those after the last answer, as refused by the
// model's provider: History leaves them out from then on, and users still see them. The
// mark is a line of its own, in the form in which Claude Code notes an error of the API,
// which names them; text is what it states. Without such a message nothing is written.
func (c *Conversation) Refuse(run, text string) error {
	if err := c.begin(); err != nil {
		return err
	}
	all := slices.Clone(c.tail.Messages) // others may hold the same ones
	var ids []string
	for i := len(all) - 1; i >= 0 && all[i].Role == "user" && all[i].Run == run && !all[i].Summary; i-- {
		ids = append(append(ids, all[i].Earlier...), all[i].UUID)
		c.tail.Size -= all[i].Size()
		all[i].Refused = true
		c.tail.Size += all[i].Size()
	}
	if len(ids) == 0 {
		return nil
	}
	id, now := uuid.NewString(), c.s.clock.Now()
	m := Message{Role: "assistant", Model: "<synthetic>", Stop: "stop_sequence", Blocks: []core.Block{{Type: "text", Text: text}}}
	l, err := c.line("", id, c.tail.Last, &m, now)
	if err != nil {
		return err
	}
	l.IsAPIError, l.Refused = true, ids
	if err := c.file.Append(l); err != nil {
		return err
	}
	c.tail.Messages, c.tail.Last = all, id
	c.tail.Info, err = c.file.Stat()
	return err
}

// Refused reports whether the run's newest message is marked by Refuse.
func (c *Conversation) Refused(run string) bool {
	n := len(c.tail.Messages)
	return n > 0 && c.tail.Messages[n-1].Run == run && c.tail.Messages[n-1].Refused
}
