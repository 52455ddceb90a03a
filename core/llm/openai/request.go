package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core/llm"
)

// request is req in the API's words.
func (c *Client) request(model string, req *llm.Request) ([]byte, error) {
	r := api.ChatCompletionRequest{Model: model, Stream: true, Messages: messages(req)}
	if !c.dialect.noUsage.Load() {
		r.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	if c.dialect.completionTokens.Load() {
		r.MaxCompletionTokens = req.MaxTokens
	} else {
		//lint:ignore SA1019 every other server but OpenAI's newest models knows this name only
		r.MaxTokens = req.MaxTokens
	}
	if !c.dialect.noTools.Load() {
		r.Tools = tools(req.Tools)
	}
	return json.Marshal(r)
}

// learn looks whether a refusal is about a part of the request that can be
// left out or said differently, and remembers it; true means: ask again.
func (c *Client) learn(f *failure) bool {
	if f.fault.Status != 400 && f.fault.Status != 422 || f.fault.Err == nil {
		return false
	}
	text := strings.ToLower(f.fault.Err.Error())
	d := &c.dialect
	switch {
	case strings.Contains(text, "stream_options") || strings.Contains(text, "include_usage"):
		return d.noUsage.CompareAndSwap(false, true)
	case strings.Contains(text, "max_completion_tokens") && strings.Contains(text, "max_tokens"):
		// OpenAI: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.
		return d.completionTokens.CompareAndSwap(false, true)
	case strings.Contains(text, "max_completion_tokens"):
		return d.completionTokens.CompareAndSwap(true, false)
	case strings.Contains(text, "does not support tools"): // Ollama
		return d.noTools.CompareAndSwap(false, true)
	}
	return false
}

func tools(offered []llm.Tool) []api.Tool {
	var out []api.Tool
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

// lostResult stands for a tool result that never came: the API refuses a
// history with an open call.
const lostResult = "interrupted, outcome unknown"

// messages flattens the history. Every tool call is followed by exactly one
// tool message, in the order of the calls; results of unknown calls become
// plain text; thinking of other models is left out; empty messages vanish.
func messages(req *llm.Request) []api.ChatCompletionMessage {
	var out []api.ChatCompletionMessage
	if req.System != "" {
		out = append(out, api.ChatCompletionMessage{Role: api.ChatMessageRoleSystem, Content: req.System})
	}
	var open []string // calls of the last assistant message without result
	settle := func(results map[string]string) {
		for _, id := range open {
			text, ok := results[id]
			if !ok {
				text = lostResult
			}
			out = append(out, api.ChatCompletionMessage{Role: api.ChatMessageRoleTool, ToolCallID: id, Content: text})
		}
		open = nil
	}
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			settle(nil)
			msg := assistant(m)
			for _, call := range msg.ToolCalls {
				open = append(open, call.ID)
			}
			if msg.Content != "" || len(msg.ToolCalls) > 0 {
				out = append(out, msg)
			}
			continue
		}
		results, text := user(m, open)
		settle(results)
		if text != "" {
			out = append(out, api.ChatCompletionMessage{Role: api.ChatMessageRoleUser, Content: text})
		}
	}
	settle(nil)
	return out
}

func assistant(m llm.Message) api.ChatCompletionMessage {
	msg := api.ChatCompletionMessage{Role: api.ChatMessageRoleAssistant}
	for _, b := range m.Blocks {
		switch b.Type {
		case "text":
			msg.Content = joinText(msg.Content, b.Text)
		case "tool_use":
			msg.ToolCalls = append(msg.ToolCalls, api.ToolCall{ID: b.ID, Type: api.ToolTypeFunction,
				Function: api.FunctionCall{Name: b.Name, Arguments: arguments(b.Input)}})
		}
	}
	return msg
}

// arguments is a call's input as the API wants it: a JSON object as a string.
func arguments(input json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, input) != nil || buf.Len() == 0 || buf.Bytes()[0] != '{' {
		return "{}"
	}
	return buf.String()
}

// user splits a user message into the results of open calls and the rest as text.
func user(m llm.Message, open []string) (results map[string]string, text string) {
	results = map[string]string{}
	waiting := map[string]bool{}
	for _, id := range open {
		waiting[id] = true
	}
	for _, b := range m.Blocks {
		switch {
		case b.Type == "tool_result" && waiting[b.ToolUseID]:
			results[b.ToolUseID] = resultText(b)
			delete(waiting, b.ToolUseID)
		case b.Type == "tool_result":
			text = joinText(text, "Result of an earlier tool call: "+resultText(b))
		case b.Type == "text":
			text = joinText(text, b.Text)
		}
	}
	return results, text
}

func resultText(b llm.Block) string {
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
