package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"gatehouse/core/vault"
)

// Imported is the version that lines of a conversation from another system name. A
// transcript that ends with such a line was not continued since.
const Imported = "gatehouse-import"

// An Entry is a line of a conversation from another system, with the id, the parent and the
// time that it has there.
type Entry struct {
	ID      string // a UUID, unique in the transcript
	Parent  string // "" begins the conversation
	Side    bool   // of another branch: users and models do not read it
	At      time.Time
	Message Message
	Raw     json.RawMessage // in place of the content of Message, as an earlier line has it
}

// Encode returns the line of e in the transcript c, with its newline. Nothing is written.
func (c *Conversation) Encode(e *Entry) ([]byte, error) {
	l, err := c.line("", e.ID, e.Parent, &e.Message, e.At)
	if err != nil {
		return nil, fmt.Errorf("encode transcript line: %w", err)
	}
	l.IsSidechain, l.Version = e.Side, Imported
	if e.Raw != nil {
		l.Message = e.Raw
	}
	if e.At.IsZero() {
		l.Timestamp = ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&l); err != nil {
		return nil, fmt.Errorf("encode transcript line: %w", err)
	}
	return b.Bytes(), nil
}

// Name returns where in the vault the transcript is, or will be: a slash path.
func (c *Conversation) Name() string { return c.name }

// Exists reports whether the transcript existed when c was opened.
func (c *Conversation) Exists() bool { return c.existed }

// Continued reports whether anything was added to the imported transcript name since it was
// imported, by the gateway or by Claude Code. A missing or empty file was not continued.
func (s *Files) Continued(name string) (bool, error) {
	for limit := int64(firstRead); ; limit *= 4 {
		t, err := s.vault.ReadTail(name, limit)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if n := len(t.Lines); n > 0 {
			return t.Lines[n-1].Version != Imported, nil
		}
		if t.Whole || limit >= vault.MaxTail {
			return !t.Whole, nil // what cannot be read is left as it is
		}
	}
}
