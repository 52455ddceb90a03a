package transcript

import (
	"encoding/json"
	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// lineSpace is the namespace of line ids for runs without a UUID.
var lineSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("gatehouse:run"))

// LineID returns the transcript line id of a run's n-th line, UUIDv5(run, n): the
// same for every attempt.
func LineID(run string, n int) string {
	space, err := uuid.Parse(run)
	if err != nil {
		space = uuid.NewSHA1(lineSpace, []byte(run))
	}
	return uuid.NewSHA1(space, []byte(strconv.Itoa(n))).String()
}

// line makes the transcript line of m.
func (c *Conversation) line(run, id, parent string, m *Message, now time.Time) (vault.Line, error) {
	body, err := m.Encode(id)
	if err != nil {
		return vault.Line{}, err
	}
	l := vault.Line{
		UserType: "external", CWD: c.cwd, SessionID: c.sess.ID, Version: c.s.version, Type: m.Role,
		Message: body, RequestID: run, UUID: id, Timestamp: now.UTC().Format(lines.TimeFormat),
	}
	if m.Author != nil {
		if l.Author, err = json.Marshal(m.Author); err != nil {
			return vault.Line{}, err
		}
	}
	if parent != "" {
		l.ParentUUID = &parent
	}
	return l, nil
}

// Open returns the run's tool calls that have no result in the transcript, in
// their order: their outcome is unknown. Ask after HasRun, which reads as far
// as the run goes. A call with effects is not made again for them.
func (c *Conversation) Open(run string) []core.Block {
	var open []core.Block
	for i := range c.tail.Messages {
		m := &c.tail.Messages[i]
		for j := range m.Blocks {
			switch b := m.Blocks[j]; {
			case b.Type == "tool_use" && m.Run == run:
				open = append(open, b)
			case b.Type == "tool_result":
				for k := range open {
					if open[k].ID == b.ToolUseID {
						open = append(open[:k:k], open[k+1:]...)
						break
					}
				}
			}
		}
	}
	return open
}

// CalledAt returns when the run's newest answer with calls was written; only within
// one answer are the ids of calls unique. Zero where no one knows.
func (c *Conversation) CalledAt(run string) (at time.Time) {
	for i := range c.tail.Messages {
		if m := &c.tail.Messages[i]; m.Run == run && slices.ContainsFunc(m.Blocks, func(b core.Block) bool { return b.Type == "tool_use" }) {
			at = m.At
		}
	}
	return at
}
