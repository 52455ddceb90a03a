package registry

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// Try asks m for one token. It returns when the first part of the answer came
// and what the call used; nil if the provider does not count. What a provider
// refuses is an *llm.Fault.
func Try(ctx context.Context, m llm.Model, clock core.Clock) (first time.Duration, used *core.Tokens, err error) {
	request := &llm.Request{Messages: []llm.Message{{Role: "user", Blocks: []core.Block{{Type: "text", Text: "Say: ok"}}}}, MaxTokens: 1, Sender: llm.Sender{User: core.Operator, Trust: core.Sandboxed}}
	begun, first := clock.Now(), time.Duration(-1)
	for d, err := range m.Reply(ctx, request) {
		if err != nil {
			return 0, nil, err
		}
		if first < 0 {
			first = clock.Now().Sub(begun)
		}
		if d.Usage != nil {
			used = d.Usage
		}
	}
	return max(0, first), used, nil
}
