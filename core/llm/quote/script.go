package quote

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// A round is what one scripted answer does.
type round struct {
	think, say string
	calls      []core.Block
}

// act yields thinking, text and calls.
func (m *Model) act(ctx context.Context, req *llm.Request, r round, yield func(llm.Delta, error) bool) {
	words, first := int64(0), m.name
	send := func(d llm.Delta) bool {
		if err := m.wait(ctx); err != nil {
			yield(llm.Delta{}, err)
			return false
		}
		d.Model, first = first, ""
		return yield(d, nil)
	}
	for _, text := range []struct{ text, kind string }{{r.think, "thinking"}, {r.say, "text"}} {
		for rest := text.text; rest != ""; words++ {
			n := wordEnd(rest)
			d := llm.Delta{Text: rest[:n]}
			if text.kind == "thinking" {
				d = llm.Delta{Thinking: rest[:n]}
			}
			if !send(d) {
				return
			}
			rest = rest[n:]
		}
	}
	for _, c := range r.calls {
		if !send(llm.Delta{Call: &c}) {
			return
		}
		words += countWords(string(c.Input)) + 1
	}
	stop := "tool_use"
	if len(r.calls) == 0 {
		stop = "end_turn"
	}
	yield(llm.Delta{Usage: &core.Tokens{Input: input(req), Output: tokens(words)}, Stop: stop}, nil)
}

// nextRound returns the round that the conversation is at: the newest message with
// a user's text reports what is to be done, and each answer with calls behind
// it was a round. False when nothing is left to do.
func nextRound(req *llm.Request) (round, bool) {
	done, at := 0, -1
	for i := len(req.Messages) - 1; i >= 0 && at < 0; i-- {
		m := &req.Messages[i]
		switch {
		case m.Role == "assistant" && has(m.Blocks, "tool_use"):
			done++
		case m.Role == "assistant" && i == len(req.Messages)-1:
		case m.Role == "assistant":
			return round{}, false // an answer without calls ended the turn
		case !has(m.Blocks, "tool_result") && has(m.Blocks, "text"):
			at = i
		}
	}
	if at < 0 || len(req.Messages)-1 > at && req.Messages[len(req.Messages)-1].Role == "assistant" {
		return round{}, false
	}
	all := rounds(text(req.Messages[at].Blocks), req, at)
	if done >= len(all) {
		return round{}, false
	}
	return all[done], true
}

func has(blocks []core.Block, kind string) bool {
	for i := range blocks {
		if blocks[i].Type == kind {
			return true
		}
	}
	return false
}

// rounds parses the script of a message. A message without calls has none and is an
// ordinary question.
func rounds(all string, req *llm.Request, at int) []round {
	var out []round
	var r round
	n := 0
	end := func() {
		if len(r.calls) > 0 || r.think+r.say != "" {
			out = append(out, r)
		}
		r = round{}
	}
	for pos := 0; pos < len(all) && len(out) < maxRounds; {
		line, _, _ := strings.Cut(all[pos:], "\n")
		word := strings.TrimSpace(line)
		switch rest, thinks := strings.CutPrefix(word, "think: "); {
		case thinks:
			r.think = joinLines(r.think, rest)
		case strings.HasPrefix(word, "say: "):
			r.say = joinLines(r.say, strings.TrimPrefix(word, "say: "))
		case word == "then":
			end()
		default:
			name, input, ok := parseUse(line, all[pos:])
			if ok && offered(req.Tools, name) && len(r.calls) < maxUses {
				r.calls = append(r.calls, core.Block{Type: "tool_use", ID: callID(at+1, n, all), Name: name, Input: input})
				n++
			}
		}
		pos += len(line) + 1
	}
	if len(out) < maxRounds {
		end()
	}
	if n == 0 {
		return nil
	}
	return out
}

func joinLines(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// parseUse reads one line; rest begins with it.
func parseUse(line, rest string) (name string, input json.RawMessage, ok bool) {
	line, ok = strings.CutPrefix(strings.TrimLeft(line, " \t"), "use ")
	name, _, brace := strings.Cut(line, "{")
	name = strings.TrimSpace(name)
	if !ok || !brace || name == "" || strings.ContainsAny(name, " \t") {
		return "", nil, false
	}
	err := json.NewDecoder(strings.NewReader(rest[strings.Index(rest, "{"):])).Decode(&input)
	return name, input, err == nil
}

func offered(tools []llm.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// callID returns the same for the same conversation, and another for the next message.
func callID(messages, n int, text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return fmt.Sprintf("call_%d_%d_%016x", messages, n, h.Sum64())
}
