package provider

import (
	"strconv"

	"gatehouse/core"
)

// windows finds the size of a model's window in a refusal. Seen are: Anthropic "prompt is
// too long: 208310 tokens > 200000 maximum" and "input length and `max_tokens` exceed
// context limit: 190000 + 16000 > 200000"; OpenAI, vLLM, DeepSeek and OpenRouter "maximum
// context length is 8192 tokens"; OpenAI "configured limit of 272000 tokens" and, for one
// minute, "Limit 30000, Requested 40000"; llama.cpp "available context size (4096
// tokens)"; Mistral "model with 32768 maximum context length"; Gemini "maximum number of
// tokens allowed (1048576)"; xAI "maximum prompt length is 131072".
var windows = core.Pattern(`(?i)(?:maximum (?:context|prompt) length (?:is|of)|configured limit of|context window of|` +
	`context size \(|tokens allowed \(|tokens? >|\d \+ \d+ >|\(tpm\): limit) ?(\d{3,8})\b|\b(\d{3,8}) maximum context length`)

// windowIn returns the window that a refusal names, in tokens; 0 if it names none.
func windowIn(said string) int {
	m := windows().FindStringSubmatch(said)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1] + m[2]) // digits: one of the two is empty
	return n
}

// Window returns how many tokens the model takes: configured, or less if its provider has
// refused more; 0 if neither is known.
func (l *Link) Window(configured int) int {
	if learnt := int(l.window.Load()); learnt > 0 && (configured == 0 || learnt < configured) {
		return learnt
	}
	return configured
}
