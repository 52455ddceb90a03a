package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// mostTokens parses the limit in "max_tokens is too large: 50000. This model supports at
// most 32768 completion tokens, whereas you provided 50000."
var mostTokens = core.Pattern(`supports at most (\d{1,8}) completion tokens`)

// Learn checks whether a refusal is about a part of the request that can be
// left out or written differently, and remembers it; true means: ask again.
func (r *reply) Learn(f *provider.Failure) bool {
	if f.Fault.Err == nil {
		return false
	}
	text := strings.ToLower(f.Fault.Err.Error())
	if r.learnMedia(f.Fault.Status, text) {
		return true
	}
	if f.Fault.Status != 400 && f.Fault.Status != 422 || f.Fault.Code == llm.CodeTooLong {
		return false
	}
	d := &r.c.dialect
	if m := mostTokens().FindStringSubmatch(text); m != nil {
		most, _ := strconv.ParseInt(m[1], 10, 64) // digits
		old := d.maxTokens.Load()
		return most > 0 && (old == 0 || most < old) && d.maxTokens.CompareAndSwap(old, most)
	}
	switch {
	case strings.Contains(text, "stream_options") || strings.Contains(text, "include_usage"):
		return d.noUsage.CompareAndSwap(false, true)
	case strings.Contains(text, "max_completion_tokens") && strings.Contains(text, "max_tokens"):
		// OpenAI: 'max_tokens' is not supported with this model. Use
		// 'max_completion_tokens' instead.
		return d.completionTokens.CompareAndSwap(false, true)
	case strings.Contains(text, "max_completion_tokens"):
		return d.completionTokens.CompareAndSwap(true, false)
	case strings.Contains(text, "'temperature'") && !d.noTemperature.Load():
		// OpenAI: Unsupported value: 'temperature' does not support 0.2 with this model.
		// Only the default (1) value is supported.
		return r.req.Temperature != nil && d.noTemperature.CompareAndSwap(false, true)
	case strings.Contains(text, "'stop'"):
		// OpenAI: Unsupported parameter: 'stop' is not supported with this model.
		return len(r.req.Stop) > 0 && d.noStop.CompareAndSwap(false, true)
	case strings.Contains(text, "response_format") || strings.Contains(text, "json_schema"):
		return r.req.Format != nil && d.noFormat.CompareAndSwap(false, true)
	case strings.Contains(text, "does not support tools"): // Ollama
		return d.noTools.CompareAndSwap(false, true)
	}
	return false
}

// A message is one message of a request.
type message struct {
	Role       string
	Content    content
	ToolCalls  []api.ToolCall
	ToolCallID string
}

// The words that are where the API wants some and the history has none.
const (
	lostResult  = "interrupted, outcome unknown" // of a call whose result never came
	earlierCall = "Result of an earlier tool call: "
	showsBelow  = "(What this shows follows in the next message.)"
	shownBy     = "Shown by the tool call "
)

// A history is put together so that the API takes it: every tool call is
// followed by exactly one tool message, in the order of the calls; results of
// unknown calls become plain text; thinking of other models is left out;
// empty messages vanish. A tool message holds text only, so what a tool shows
// comes in a user message behind the results.
type history struct {
	media llm.Choice // the pictures and documents that are sent
	out   []message
	open  []string // calls of the last assistant message without result
}

func messages(req *llm.Request, limits llm.MediaLimits) []message {
	h := history{media: limits.Choose(req.Messages), out: make([]message, 0, len(req.Messages)+2)}
	if req.System != "" {
		h.put(api.ChatMessageRoleSystem, content{{Type: "text", Text: req.System}})
	}
	for _, m := range req.Messages {
		if m.Role != "assistant" {
			results, rest := h.user(m)
			h.put(api.ChatMessageRoleUser, append(h.settle(results), rest...))
			continue
		}
		h.put(api.ChatMessageRoleUser, h.settle(nil))
		msg := assistant(m)
		for _, call := range msg.ToolCalls {
			h.open = append(h.open, call.ID)
		}
		if len(msg.Content) > 0 || len(msg.ToolCalls) > 0 {
			h.out = append(h.out, msg)
		}
	}
	h.put(api.ChatMessageRoleUser, h.settle(nil))
	return h.out
}

func (h *history) put(role string, c content) {
	if len(c) > 0 {
		h.out = append(h.out, message{Role: role, Content: c})
	}
}

// settle gives every open call its result, or means that none came. It returns
// what the results show.
func (h *history) settle(results map[string]*core.Block) (shown content) {
	for _, id := range h.open {
		text := lostResult
		if b := results[id]; b != nil {
			text = resultText(*b)
			if len(b.Media) > 0 {
				text = joinText(text, showsBelow)
				shown.text(shownBy + id + ":")
				shown.media(h.media, b)
			}
		}
		h.out = append(h.out, message{Role: api.ChatMessageRoleTool, ToolCallID: id, Content: content{{Type: "text", Text: text}}})
	}
	h.open = nil
	return shown
}

func assistant(m llm.Message) message {
	msg := message{Role: api.ChatMessageRoleAssistant}
	for _, b := range m.Blocks {
		switch b.Type {
		case "text":
			msg.Content.text(b.Text)
		case "tool_use":
			msg.ToolCalls = append(msg.ToolCalls, api.ToolCall{ID: b.ID, Type: api.ToolTypeFunction,
				Function: api.FunctionCall{Name: b.Name, Arguments: arguments(b.Input)}})
		}
	}
	return msg
}

// arguments returns a call's input as the API wants it: a JSON object as a string.
func arguments(input json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, input) != nil || buf.Len() == 0 || buf.Bytes()[0] != '{' {
		return "{}"
	}
	return buf.String()
}

// user splits a user message into the results of open calls and the rest.
func (h *history) user(m llm.Message) (results map[string]*core.Block, rest content) {
	results = map[string]*core.Block{}
	waiting := map[string]bool{}
	for _, id := range h.open {
		waiting[id] = true
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch {
		case b.Type == "tool_result" && waiting[b.ToolUseID]:
			results[b.ToolUseID] = b
			delete(waiting, b.ToolUseID)
		case b.Type == "tool_result":
			rest.text(earlierCall + resultText(*b))
			rest.media(h.media, b)
		case b.Type == "text":
			rest.text(b.Text)
		case b.Type == "media":
			rest.media(h.media, b)
		}
	}
	return results, rest
}

func resultText(b core.Block) string {
	text := b.Text
	if text == "" {
		text = "(no output)"
	}
	if b.IsError {
		text = "Error: " + text
	}
	return text
}

func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}
