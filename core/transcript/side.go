package transcript

import (
	"encoding/json"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
)

// Bounds of the lines of helpers.
const (
	maxSideText = 16 << 10 // bytes of one text, result or input; a longer text is shortened
	maxSide     = 1 << 20  // of all of one helper; what follows is left out, with a line that reports it
	maxSides    = 4 << 20  // the same of all helpers in the part of a transcript that a turn reads
)

// A Side writes what the helper of one call of Task did into the session's transcript, in
// the form of Claude Code's side chains: the lines hang behind each other and no other
// line hangs behind them. Users read them with the call; they are no part of the
// conversation, so History does not return them. One goroutine at a time may use a Side
// or its Conversation.
type Side struct {
	c         *Conversation
	run, call string
	last      string // uuid of the last line
	n, size   int
	full      bool
}

// Side returns a new Side of the run for the call with this id.
func (c *Conversation) Side(run, call string) *Side { return &Side{c: c, run: run, call: call} }

// Append writes m as the next line. Media are left out.
func (s *Side) Append(m Message) error {
	if s.full {
		return nil
	}
	c := s.c
	if err := c.begin(); err != nil {
		return err
	}
	m.Blocks = lines.Shortened(m.Blocks, maxSideText)
	for i := range m.Blocks {
		if n := len(m.Blocks[i].Input); n > maxSideText {
			m.Blocks[i].Input, _ = json.Marshal(map[string]string{"left_out": core.ByteSize(n)}) // strings always encode
		}
	}
	if s.size += m.Bytes(); s.size > maxSide || c.tail.Side > maxSides {
		s.full = true
		m = Message{Role: m.Role, Blocks: []core.Block{{Type: "text", Text: "(The rest is left out: the helper did more than is kept.)"}}}
		if s.size <= maxSide {
			m.Blocks[0].Text = "(The rest is left out: the helpers of this conversation did more than is kept.)"
		}
	}
	if len(m.Blocks) == 0 {
		return nil
	}
	id := LineID(s.run+"/"+s.call, s.n)
	l, err := c.line(s.run, id, s.last, &m, c.s.clock.Now())
	if err != nil {
		return fmt.Errorf("append to transcript: %w", err)
	}
	l.IsSidechain, l.ParentCall = true, s.call
	from := c.file.Size()
	if err := c.file.Append(l); err != nil {
		return err
	}
	c.said.skip(from, c.file.Size())
	c.tail.Side += int(c.file.Size() - from)
	s.last, s.n = id, s.n+1
	c.tail.Info, err = c.file.Stat()
	return err
}
