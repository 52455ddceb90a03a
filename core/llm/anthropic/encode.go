package anthropic

import (
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// An encoder writes a request. The tools are encoded once (provider.ToolCache), and the
// blocks field by field.
type encoder struct{ *provider.Encoder }

// body returns p as the API reads it, with "stream". p.tools begins with offered.
func (c *Client) body(p *request, offered []llm.Tool) ([]byte, error) {
	var cached []byte
	if offered = unmarked(p, offered); len(offered) > 0 {
		var err error
		if cached, err = c.tools.Encode(offered, func(t []llm.Tool) any { return tools(t) }); err != nil {
			return nil, err
		}
	}
	e := encoder{provider.NewEncoder(1<<10 + len(cached) + sizeOf(p))}
	e.Raw(`{"stream":true`)
	if err := e.settings(p); err != nil {
		return nil, err
	}
	if err := e.list("system", p.system); err != nil {
		return nil, err
	}
	if err := e.tools(p.tools, cached, len(offered)); err != nil {
		return nil, err
	}
	if err := e.messages(p.messages); err != nil {
		return nil, err
	}
	e.Raw("}")
	return e.Bytes(), nil
}

// unmarked returns offered, or none where p marks their last one as the end of a cached
// prompt, which no other request's tools do.
func unmarked(p *request, offered []llm.Tool) []llm.Tool {
	if len(offered) == 0 || len(p.tools) < len(offered) || p.tools[len(offered)-1].Cached != nil {
		return nil
	}
	return offered
}

// sizeOf returns about how many bytes the texts of p take.
func sizeOf(p *request) (n int) {
	for i := range p.system {
		n += len(p.system[i].text)
	}
	for i := range p.messages {
		for j := range p.messages[i].content {
			b := &p.messages[i].content[j]
			n += 64 + len(b.text) + len(b.data) + len(b.raw)
			for k := range b.content {
				n += 64 + len(b.content[k].text) + len(b.content[k].data)
			}
		}
	}
	return n + n/16
}

func (e encoder) settings(p *request) error {
	if err := e.fields(
		field{"model", true, p.model},
		field{"max_tokens", true, p.maxTokens},
		field{"temperature", p.temperature != nil, p.temperature},
		field{"stop_sequences", len(p.stop) > 0, p.stop},
	); err != nil {
		return err
	}
	if p.format != nil { // https://platform.claude.com/docs/en/build-with-claude/structured-outputs
		e.Raw(`,"output_config":{"format":{"type":"json_schema"`)
		if err := e.Field("schema", p.format); err != nil {
			return err
		}
		e.Raw("}}")
	}
	if p.thinks {
		e.Raw(`,"thinking":{"type":"adaptive","display":"summarized"}`)
	}
	if p.noCalls {
		e.Raw(`,"tool_choice":{"type":"none"}`)
	}
	return nil
}

// A field is one of an object, which is written where it is there.
type field struct {
	name  string
	there bool
	value any
}

func (e encoder) fields(all ...field) error {
	for _, f := range all {
		if !f.there {
			continue
		}
		if err := e.Field(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// tools writes cached, an array of the first n tools, and the others behind it.
func (e encoder) tools(all []tool, cached []byte, n int) error {
	if n > 0 {
		e.Raw(`,"tools":`)
		e.Encoded(cached[:len(cached)-1])
	}
	for i := n; i < len(all); i++ {
		e.open(`,"tools":[`, i)
		if err := e.Value(&all[i]); err != nil {
			return err
		}
	}
	e.close(len(all))
	return nil
}

func (e encoder) messages(all []turn) error {
	for i := range all {
		e.open(`,"messages":[`, i)
		e.Raw(`{"role":"` + all[i].role + `"`) // one of the API's two words
		if err := e.list("content", all[i].content); err != nil {
			return err
		}
		e.Raw("}")
	}
	e.close(len(all))
	return nil
}

// list writes a field of blocks, and nothing where there are none.
func (e encoder) list(name string, all []block) error {
	for i := range all {
		e.open(`,"`+name+`":[`, i)
		if err := e.block(&all[i]); err != nil {
			return err
		}
	}
	e.close(len(all))
	return nil
}

// open writes what precedes element i of a list: its beginning or a comma.
func (e encoder) open(begin string, i int) {
	if i > 0 {
		begin = ","
	}
	e.Raw(begin)
}

// close ends a list of n elements; an empty one was not begun.
func (e encoder) close(n int) {
	if n > 0 {
		e.Raw("]")
	}
}

func (e encoder) block(b *block) error {
	if b.kind == "" {
		e.Encoded(b.raw)
		return nil
	}
	e.Raw(`{"type":"` + b.kind + `"`)
	if err := e.inside(b); err != nil {
		return err
	}
	if b.cached {
		e.Raw(`,"cache_control":{"type":"ephemeral"}`)
	}
	e.Raw("}")
	return nil
}

// inside writes the fields of b's kind.
func (e encoder) inside(b *block) error {
	switch b.kind {
	case "text":
		return e.Field("text", b.text)
	case "thinking":
		return e.fields(field{"thinking", true, b.text}, field{"signature", true, b.signature})
	case "redacted_thinking":
		return e.Field("data", b.data)
	case "tool_use":
		return e.fields(field{"id", true, b.id}, field{"name", true, b.name}, field{"input", true, b.input})
	case "image":
		return e.source(b.mime, b.data)
	case "document":
		if err := e.source("application/pdf", b.data); err != nil {
			return err
		}
		return e.fields(field{"title", b.name != "", b.name})
	}
	if err := e.fields(field{"tool_use_id", true, b.id}, field{"is_error", true, b.failed}); err != nil {
		return err
	}
	return e.list("content", b.content)
}

func (e encoder) source(mime, data string) error {
	e.Raw(`,"source":{"type":"base64"`)
	err := e.fields(field{"media_type", true, mime}, field{"data", true, data})
	e.Raw("}")
	return err
}
