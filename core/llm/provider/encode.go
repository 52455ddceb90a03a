package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"gatehouse/core/llm"
)

// An Encoder writes the parts of a request one behind the other, so that what does not
// change is written as it is and encoding/json is asked for the rest alone. Text keeps
// its <, > and &.
type Encoder struct {
	out  bytes.Buffer
	json *json.Encoder
}

// NewEncoder returns an Encoder with room for size bytes.
func NewEncoder(size int) *Encoder {
	e := &Encoder{}
	e.out.Grow(size)
	e.json = json.NewEncoder(&e.out)
	e.json.SetEscapeHTML(false)
	return e
}

// Raw writes JSON as it is.
func (e *Encoder) Raw(s string) { e.out.WriteString(s) }

// Encoded writes what is JSON already.
func (e *Encoder) Encoded(data []byte) { e.out.Write(data) }

// Value writes v as JSON.
func (e *Encoder) Value(v any) error {
	if err := e.json.Encode(v); err != nil {
		return err
	}
	e.out.Truncate(e.out.Len() - 1) // the line's end that Encode adds
	return nil
}

// Field writes ,"name":v; an object begins with another field.
func (e *Encoder) Field(name string, v any) error {
	e.out.WriteString(`,"`)
	e.out.WriteString(name)
	e.out.WriteString(`":`)
	return e.Value(v)
}

// Bytes returns what was written, until the next write.
func (e *Encoder) Bytes() []byte { return e.out.Bytes() }

// maxToolSets bounds a ToolCache: agents differ in their tools, and so do users whose
// trust differs. Beyond it the oldest is forgotten.
const maxToolSets = 16

// A ToolCache keeps sets of tools as an API reads them, so that one is encoded once:
// the tools are most of a request and hardly ever change. The zero value is ready. It is
// safe for concurrent use.
type ToolCache struct {
	mu   sync.Mutex
	sets []toolSet // the oldest first; at most maxToolSets
}

type toolSet struct {
	tools   []llm.Tool
	encoded []byte
}

// Encode returns what api returns of tools as JSON, which the caller must not change.
// api is always the same function.
func (c *ToolCache) Encode(tools []llm.Tool, api func([]llm.Tool) any) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sets {
		if slices.EqualFunc(s.tools, tools, sameTool) {
			return s.encoded, nil
		}
	}
	e := NewEncoder(1 << 10 * len(tools))
	if err := e.Value(api(tools)); err != nil {
		return nil, err
	}
	if len(c.sets) == maxToolSets {
		c.sets = slices.Delete(c.sets, 0, 1)
	}
	c.sets = append(c.sets, toolSet{slices.Clone(tools), slices.Clip(e.Bytes())})
	return e.Bytes(), nil
}

// sameTool compares contents; those of one toolset share their memory, which makes it quick.
func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.About == b.About && bytes.Equal(a.Schema, b.Schema)
}
