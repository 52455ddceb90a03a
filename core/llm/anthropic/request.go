package anthropic

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// defaultTokens bounds an answer where the request does not: the API wants a
// bound with every request.
const defaultTokens = 16_000

// params returns the request in the API's form.
func (r *reply) params(model string) request {
	d := &r.c.dialect
	p := request{model: model, maxTokens: int64(r.req.MaxTokens), tools: tools(r.req.Tools), thinks: r.c.thinks(model) && !r.direct}
	if p.maxTokens < 1 {
		p.maxTokens = defaultTokens
	}
	if most := d.maxTokens.Load(); most > 0 {
		p.maxTokens = min(p.maxTokens, most)
	}
	// With thinking the API takes no temperature but 1, and never one above it.
	if t := r.req.Temperature; t != nil && !p.thinks && !d.noTemperature.Load() {
		within := min(1, max(0, *t))
		p.temperature = &within
	}
	if f := r.req.Format; f != nil && !d.noFormat.Load() {
		p.format = f.Schema
	}
	for _, s := range r.req.Stop {
		if strings.TrimSpace(s) != "" { // the API refuses white space alone
			p.stop = append(p.stop, s)
		}
	}
	if strings.TrimSpace(r.req.System) != "" {
		p.system = []block{textBlock(r.req.System)}
	}
	h := history{thinking: !r.unsigned, media: r.media().Choose(r.req.Messages), out: make([]turn, 0, len(r.req.Messages)), ids: map[string]string{}, taken: map[string]bool{}}
	for i := range r.req.Messages {
		h.add(&r.req.Messages[i])
	}
	p.messages = h.end()
	if len(p.tools) == 0 && len(h.named) > 0 {
		// The API refuses a history with calls where no tools are named.
		p.tools, p.noCalls = tools(h.named), true
	}
	if !d.noCache.Load() {
		mark(&p)
	}
	r.withSearch(&p) // behind what is cached
	return p
}

// mark sets the two points up to which the prompt is cached: behind what stays
// the same for a conversation (tools and system prompt), and behind the
// history, which the next turn begins with
// (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
func mark(p *request) {
	switch {
	case len(p.system) > 0:
		p.system[0].cached = true
	case len(p.tools) > 0:
		p.tools[len(p.tools)-1].Cached = &ephemeral
	}
	last := p.messages[len(p.messages)-1].content
	last[len(last)-1].cached = true // a user's: a text, a result, a picture or a document
}

var badName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxName is the longest name of a tool that the API takes.
const maxName = 128

// plainName returns name in the characters that the API takes for tools and calls.
func plainName(name string) string {
	name = badName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

func tools(offered []llm.Tool) []tool {
	var out []tool
	for _, t := range offered {
		schema := t.Schema
		if len(schema) == 0 {
			schema = noParameters
		}
		out = append(out, tool{Name: t.Name, About: t.About, Schema: schema})
	}
	return out
}

// Texts for places where the API requires some and the history has none.
const (
	lostResult  = "interrupted, outcome unknown" // of a call without a result
	noOutput    = "(no output)"
	leftOut     = "(earlier messages are left out)"
	pleaseGoOn  = "(go on)"
	earlierCall = "Result of an earlier tool call: "
)

// A history is built as the API requires it: roles alternate and the
// first is a user's, every call is followed by exactly one result in the
// next message, results come first there, results of unknown calls become
// plain text, and empty texts vanish. Thinking goes back only with a
// signature, which other providers' thinking does not have, unchanged and in its place
// among the calls: what precedes calls whose results are sent must be as it was given
// (https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows).
type history struct {
	thinking bool       // send signed thinking
	media    llm.Choice // the pictures and documents that are sent
	out      []turn
	open     []string // calls of the last message without result, as the API knows them
	ids      map[string]string
	taken    map[string]bool
	named    []llm.Tool // the tools that were called
}

func (h *history) add(m *llm.Message) {
	if m.Role == "assistant" {
		h.put(assistant, h.assistant(m))
		return
	}
	results, rest := h.user(m)
	h.put(user, append(h.settle(results), rest...))
}

// put appends blocks, to the last message if it has the same role.
func (h *history) put(role string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	last := len(h.out) - 1
	switch {
	case last >= 0 && h.out[last].role == role:
		h.out[last].content = append(h.out[last].content, blocks...)
		return
	case last < 0 && role == assistant:
		h.out = append(h.out, turn{user, []block{textBlock(leftOut)}})
	}
	h.out = append(h.out, turn{role, blocks})
}

// end completes the history: no call stays open, and the last message is not the
// model's, which would be taken for the beginning of its answer.
func (h *history) end() []turn {
	h.put(user, h.settle(nil))
	if last := len(h.out) - 1; last < 0 || h.out[last].role == assistant {
		h.put(user, []block{textBlock(pleaseGoOn)})
	}
	return h.out
}

// assistant returns the model's message. A call that is still open from the message
// in front is settled first.
func (h *history) assistant(m *llm.Message) []block {
	h.put(user, h.settle(nil))
	var out []block
	sent := 0 // up to the last block that is no thinking: the API wants none at the end
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Type == "thinking" && b.Signature != "" && h.thinking:
			out = append(out, block{kind: "thinking", text: b.Text, signature: b.Signature})
			continue
		case b.Type == core.Redacted && b.Signature != "" && h.thinking:
			out = append(out, block{kind: b.Type, data: b.Signature})
			continue
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			out = append(out, textBlock(b.Text))
		case b.Type == "tool_use":
			out = append(out, block{kind: "tool_use", id: h.call(b), input: object(b.Input), name: h.tool(b.Name)})
		default:
			continue
		}
		sent = len(out)
	}
	return out[:sent]
}

// call opens a call under an id that the API takes and that is used only once.
func (h *history) call(b *core.Block) string {
	id := plainName(b.ID)
	for n := 2; id == "" || h.taken[id]; n++ {
		id = plainName("call" + strconv.Itoa(n) + "_" + b.ID)
	}
	h.taken[id] = true
	h.ids[b.ID] = id
	h.open = append(h.open, id)
	return id
}

// tool notes that a tool was called.
func (h *history) tool(name string) string {
	if name = plainName(name); name == "" {
		name = "unknown"
	}
	for _, t := range h.named {
		if t.Name == name {
			return name
		}
	}
	h.named = append(h.named, llm.Tool{Name: name, About: "Not available at present."})
	return name
}

// object returns a call's input as the API wants it: a JSON object.
func object(input json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, input) != nil || buf.Len() == 0 || buf.Bytes()[0] != '{' {
		return json.RawMessage("{}")
	}
	return buf.Bytes()
}

// user splits a user message into the results of open calls and the rest.
func (h *history) user(m *llm.Message) (results map[string]*core.Block, rest []block) {
	results = map[string]*core.Block{}
	waiting := map[string]bool{}
	for _, id := range h.open {
		waiting[id] = true
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		id := h.ids[b.ToolUseID]
		switch {
		case b.Type == "tool_result" && waiting[id]:
			results[id] = b
			delete(waiting, id)
		case b.Type == "tool_result":
			rest = append(rest, textBlock(earlierCall+resultText(b)))
			rest = append(rest, h.shown(b)...)
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			rest = append(rest, textBlock(b.Text))
		case b.Type == "media":
			rest = append(rest, h.shown(b)...)
		}
	}
	return results, rest
}

// settle gives every open call its result, or means that none came. What a
// failed call shows comes behind the results: the API takes text only there.
func (h *history) settle(results map[string]*core.Block) []block {
	var out, behind []block
	for _, id := range h.open {
		b := results[id]
		if b == nil {
			out = append(out, resultBlock(id, lostResult, true))
			continue
		}
		result, shown := resultBlock(id, resultText(b), b.IsError), h.shown(b)
		if b.IsError {
			behind = append(behind, shown...)
		} else {
			result.content = append(result.content, shown...)
		}
		out = append(out, result)
	}
	h.open = nil
	return append(out, behind...)
}

func resultBlock(id, text string, failed bool) block {
	return block{kind: "tool_result", id: id, failed: failed, content: []block{textBlock(text)}}
}

func resultText(b *core.Block) string {
	if strings.TrimSpace(b.Text) == "" {
		return noOutput
	}
	return b.Text
}
