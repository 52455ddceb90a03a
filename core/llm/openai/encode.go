package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core/llm"
)

// An encoder writes the parts of a request one behind the other. The tools are most of
// a request and hardly ever change, so they are written once (toolCache); a message's
// texts are the only thing that encoding/json is asked for. Text keeps its <, > and &.
type encoder struct {
	out  bytes.Buffer
	json *json.Encoder
}

func newEncoder(size int) *encoder {
	e := &encoder{}
	e.out.Grow(size)
	e.json = json.NewEncoder(&e.out)
	e.json.SetEscapeHTML(false)
	return e
}

// raw writes JSON as it is.
func (e *encoder) raw(s string) { e.out.WriteString(s) }

// value writes v as JSON.
func (e *encoder) value(v any) error {
	if err := e.json.Encode(v); err != nil {
		return err
	}
	e.out.Truncate(e.out.Len() - 1) // the line's end that Encode adds
	return nil
}

// field writes ,"name":v; the request begins with another field.
func (e *encoder) field(name string, v any) error {
	e.raw(`,"` + name + `":`)
	return e.value(v)
}

func (e *encoder) messages(all []message) error {
	e.raw(`,"messages":[`)
	for i := range all {
		if i > 0 {
			e.raw(",")
		}
		if err := e.message(&all[i]); err != nil {
			return err
		}
	}
	e.raw("]")
	return nil
}

func (e *encoder) message(m *message) error {
	e.raw(`{"role":"` + m.Role + `"`) // one of the API's four words
	if len(m.Content) > 0 {
		e.raw(`,"content":`)
		if err := e.content(m.Content); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 {
		if err := e.field("tool_calls", m.ToolCalls); err != nil {
			return err
		}
	}
	if m.ToolCallID != "" {
		if err := e.field("tool_call_id", m.ToolCallID); err != nil {
			return err
		}
	}
	e.raw("}")
	return nil
}

// content writes a plain string where it is text only, which every server knows, else
// parts.
func (e *encoder) content(c content) error {
	var text string
	for i := range c {
		if c[i].Type != "text" {
			return e.value([]part(c))
		}
		text = joinText(text, c[i].Text)
	}
	return e.value(text)
}

// maxToolSets bounds a toolCache: agents differ in their tools, and so do people whose
// trust differs. Beyond it the oldest is forgotten.
const maxToolSets = 16

// A toolCache keeps sets of tools as the API reads them, so that one is encoded once.
type toolCache struct {
	mu   sync.Mutex
	sets []toolSet // the oldest first; at most maxToolSets
}

type toolSet struct {
	tools   []llm.Tool
	encoded []byte
}

// encode returns tools as a JSON array, which is not changed.
func (c *toolCache) encode(tools []llm.Tool) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sets {
		if slices.EqualFunc(s.tools, tools, sameTool) {
			return s.encoded, nil
		}
	}
	e := newEncoder(1 << 10 * len(tools))
	if err := e.value(apiTools(tools)); err != nil {
		return nil, err
	}
	if len(c.sets) == maxToolSets {
		c.sets = slices.Delete(c.sets, 0, 1)
	}
	c.sets = append(c.sets, toolSet{slices.Clone(tools), slices.Clip(e.out.Bytes())})
	return e.out.Bytes(), nil
}

// sameTool compares contents; those of one toolset share their memory, which makes it quick.
func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.About == b.About && bytes.Equal(a.Schema, b.Schema)
}

func apiTools(offered []llm.Tool) []api.Tool {
	out := make([]api.Tool, 0, len(offered))
	for _, t := range offered {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, api.Tool{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{
			Name: t.Name, Description: t.About, Parameters: schema,
		}})
	}
	return out
}

// request returns req in the API's words.
func (c *Client) request(model string, req *llm.Request, media llm.MediaLimits) ([]byte, error) {
	var tools []byte
	if !c.dialect.noTools.Load() && len(req.Tools) > 0 {
		var err error
		if tools, err = c.tools.encode(req.Tools); err != nil {
			return nil, err
		}
	}
	all := messages(req, media)
	size := 512 + len(tools)
	for i := range all {
		size += 64
		for _, p := range all[i].Content {
			size += len(p.Text) + len(p.Text)/16
		}
	}
	e := newEncoder(size)
	e.raw(`{"model":`)
	if err := e.value(model); err != nil {
		return nil, err
	}
	e.raw(`,"stream":true`)
	if err := e.messages(all); err != nil {
		return nil, err
	}
	if tools != nil {
		e.raw(`,"tools":`)
		e.out.Write(tools)
	}
	if err := c.settings(e, req); err != nil {
		return nil, err
	}
	e.raw("}")
	return e.out.Bytes(), nil
}

// settings writes what the server is known to take besides messages and tools.
func (c *Client) settings(e *encoder, req *llm.Request) error {
	if !c.dialect.noUsage.Load() {
		e.raw(`,"stream_options":{"include_usage":true}`)
	}
	if most := req.MaxTokens; most > 0 {
		if limit := int(c.dialect.maxTokens.Load()); limit > 0 {
			most = min(most, limit)
		}
		name := "max_tokens" // every server but OpenAI's newest models knows this name only
		if c.dialect.completionTokens.Load() {
			name = "max_completion_tokens"
		}
		e.raw(`,"` + name + `":` + strconv.Itoa(most))
	}
	if req.Temperature != nil && !c.dialect.noTemperature.Load() {
		if err := e.field("temperature", *req.Temperature); err != nil {
			return err
		}
	}
	if len(req.Stop) > 0 && !c.dialect.noStop.Load() {
		return e.field("stop", req.Stop)
	}
	return nil
}
