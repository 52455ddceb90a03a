package openai

import (
	"encoding/json"
	"strconv"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// An encoder writes a request. Its tools are encoded once (provider.ToolCache), and a
// message's texts are the only thing that encoding/json is asked for.
type encoder struct{ *provider.Encoder }

func (e encoder) messages(all []message) error {
	e.Raw(`,"messages":[`)
	for i := range all {
		if i > 0 {
			e.Raw(",")
		}
		if err := e.message(&all[i]); err != nil {
			return err
		}
	}
	e.Raw("]")
	return nil
}

func (e encoder) message(m *message) error {
	e.Raw(`{"role":"` + m.Role + `"`) // one of the API's four words
	if len(m.Content) > 0 {
		e.Raw(`,"content":`)
		if err := e.content(m.Content); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 {
		if err := e.Field("tool_calls", m.ToolCalls); err != nil {
			return err
		}
	}
	if m.ToolCallID != "" {
		if err := e.Field("tool_call_id", m.ToolCallID); err != nil {
			return err
		}
	}
	e.Raw("}")
	return nil
}

// content writes a plain string where it is text only, which every server knows, else
// parts.
func (e encoder) content(c content) error {
	var text string
	for i := range c {
		if c[i].Type != "text" {
			return e.Value([]part(c))
		}
		text = joinText(text, c[i].Text)
	}
	return e.Value(text)
}

func apiTools(offered []llm.Tool) any {
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
		if tools, err = c.tools.Encode(req.Tools, apiTools); err != nil {
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
	e := encoder{provider.NewEncoder(size)}
	e.Raw(`{"model":`)
	if err := e.Value(model); err != nil {
		return nil, err
	}
	e.Raw(`,"stream":true`)
	if err := e.messages(all); err != nil {
		return nil, err
	}
	if tools != nil {
		e.Raw(`,"tools":`)
		e.Encoded(tools)
	}
	if err := c.settings(e, req); err != nil {
		return nil, err
	}
	e.Raw("}")
	return e.Bytes(), nil
}

// settings writes what the server is known to take in addition to messages and tools.
func (c *Client) settings(e encoder, req *llm.Request) error {
	if !c.dialect.noUsage.Load() {
		e.Raw(`,"stream_options":{"include_usage":true}`)
	}
	if most := req.MaxTokens; most > 0 {
		if limit := int(c.dialect.maxTokens.Load()); limit > 0 {
			most = min(most, limit)
		}
		name := "max_tokens" // every server but OpenAI's newest models knows this name only
		if c.dialect.completionTokens.Load() {
			name = "max_completion_tokens"
		}
		e.Raw(`,"` + name + `":` + strconv.Itoa(most))
	}
	if req.Temperature != nil && !c.dialect.noTemperature.Load() {
		if err := e.Field("temperature", *req.Temperature); err != nil {
			return err
		}
	}
	if len(req.Stop) > 0 && !c.dialect.noStop.Load() {
		if err := e.Field("stop", req.Stop); err != nil {
			return err
		}
	}
	if f := req.Format; f != nil && !c.dialect.noFormat.Load() {
		return e.Field("response_format", responseFormat{"json_schema", jsonSchema{f.Name, true, f.Schema}})
	}
	return nil
}

// A responseFormat has the server answer with JSON
// (https://platform.openai.com/docs/guides/structured-outputs).
type responseFormat struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}
