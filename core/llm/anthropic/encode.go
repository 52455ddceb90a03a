package anthropic

import (
	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// An encoder writes a request as the SDK does, in a fraction of its time: the tools are
// encoded once (provider.ToolCache), and the blocks that nearly every message consists of
// (text, calls, results) field by field. What is rarer is left to the SDK.
type encoder struct{ *provider.Encoder }

// body returns p as the API reads it, with "stream". p.Tools begins with offered.
func (c *Client) body(p *api.MessageNewParams, offered []llm.Tool) ([]byte, error) {
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
	if err := e.system(p.System); err != nil {
		return nil, err
	}
	if err := e.tools(p.Tools, cached, len(offered)); err != nil {
		return nil, err
	}
	if err := e.messages(p.Messages); err != nil {
		return nil, err
	}
	e.Raw("}")
	return e.Bytes(), nil
}

// unmarked returns offered, or none where p marks their last one as the end of a cached
// prompt, which no other request's tools do.
func unmarked(p *api.MessageNewParams, offered []llm.Tool) []llm.Tool {
	if len(offered) == 0 || len(p.Tools) < len(offered) || p.Tools[len(offered)-1].OfTool.CacheControl.Type != "" {
		return nil
	}
	return offered
}

// sizeOf returns about how many bytes the texts of p take.
func sizeOf(p *api.MessageNewParams) (n int) {
	for i := range p.System {
		n += len(p.System[i].Text)
	}
	for i := range p.Messages {
		for _, b := range p.Messages[i].Content {
			n += 64
			switch {
			case b.OfText != nil:
				n += len(b.OfText.Text)
			case b.OfImage != nil && b.OfImage.Source.OfBase64 != nil:
				n += len(b.OfImage.Source.OfBase64.Data)
			}
		}
	}
	return n + n/16
}

func (e encoder) settings(p *api.MessageNewParams) error {
	for _, f := range []struct {
		name  string
		there bool
		value any
	}{
		{"model", true, p.Model},
		{"max_tokens", true, p.MaxTokens},
		{"thinking", p.Thinking.OfAdaptive != nil, p.Thinking.OfAdaptive},
		{"temperature", p.Temperature.Valid(), p.Temperature.Value},
		{"stop_sequences", len(p.StopSequences) > 0, p.StopSequences},
		{"tool_choice", p.ToolChoice.OfNone != nil, p.ToolChoice.OfNone},
	} {
		if !f.there {
			continue
		}
		if err := e.Field(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

func (e encoder) system(blocks []api.TextBlockParam) error {
	for i := range blocks {
		e.open(`,"system":[`, i)
		if err := e.text(&blocks[i]); err != nil {
			return err
		}
	}
	e.close("]", len(blocks))
	return nil
}

// tools writes cached, an array of the first n tools, and the others behind it.
func (e encoder) tools(all []api.ToolUnionParam, cached []byte, n int) error {
	if n > 0 {
		e.Raw(`,"tools":`)
		e.Encoded(cached[:len(cached)-1])
	}
	for i := n; i < len(all); i++ {
		e.open(`,"tools":[`, i)
		if err := e.Value(all[i]); err != nil {
			return err
		}
	}
	e.close("]", len(all))
	return nil
}

func (e encoder) messages(all []api.MessageParam) error {
	for i := range all {
		e.open(`,"messages":[`, i)
		e.Raw(`{"role":"` + string(all[i].Role) + `"`) // one of the API's two words
		for j := range all[i].Content {
			e.open(`,"content":[`, j)
			if err := e.block(&all[i].Content[j]); err != nil {
				return err
			}
		}
		e.close("]", len(all[i].Content))
		e.Raw("}")
	}
	e.close("]", len(all))
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
func (e encoder) close(end string, n int) {
	if n > 0 {
		e.Raw(end)
	}
}

func (e encoder) block(b *api.ContentBlockParamUnion) error {
	switch {
	case b.OfText != nil:
		return e.text(b.OfText)
	case b.OfToolUse != nil && plainCall(b.OfToolUse):
		return e.call(b.OfToolUse)
	case b.OfToolResult != nil:
		return e.result(b.OfToolResult)
	}
	return e.Value(b)
}

func (e encoder) text(b *api.TextBlockParam) error {
	if len(b.Citations) > 0 {
		return e.Value(b)
	}
	e.Raw(`{"type":"text"`)
	if err := e.Field("text", b.Text); err != nil {
		return err
	}
	return e.end(&b.CacheControl)
}

func plainCall(b *api.ToolUseBlockParam) bool {
	return !b.ToolsetName.Valid() && param.IsOmitted(b.Caller)
}

func (e encoder) call(b *api.ToolUseBlockParam) error {
	e.Raw(`{"type":"tool_use"`)
	if err := e.Field("id", b.ID); err != nil {
		return err
	}
	if err := e.Field("name", b.Name); err != nil {
		return err
	}
	if err := e.Field("input", b.Input); err != nil {
		return err
	}
	return e.end(&b.CacheControl)
}

func (e encoder) result(b *api.ToolResultBlockParam) error {
	e.Raw(`{"type":"tool_result"`)
	if err := e.Field("tool_use_id", b.ToolUseID); err != nil {
		return err
	}
	if b.IsError.Valid() {
		if err := e.Field("is_error", b.IsError.Value); err != nil {
			return err
		}
	}
	for i := range b.Content {
		e.open(`,"content":[`, i)
		if text := b.Content[i].OfText; text != nil {
			if err := e.text(text); err != nil {
				return err
			}
		} else if err := e.Value(b.Content[i]); err != nil {
			return err
		}
	}
	e.close("]", len(b.Content))
	return e.end(&b.CacheControl)
}

// end writes where the prompt is cached up to, if it is here, and ends a block.
func (e encoder) end(c *api.CacheControlEphemeralParam) error {
	if c.Type != "" {
		if err := e.Field("cache_control", c); err != nil {
			return err
		}
	}
	e.Raw("}")
	return nil
}
