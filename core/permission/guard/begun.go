package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core/ask"
)

// NotBegun returns the calls of a run for which a user was asked since a time, and
// which no one has allowed: whatever ended the run, they were not made. They go
// by the model's ids, which some models use again in their next answer.
func (g *Guard) NotBegun(ctx context.Context, run string, since time.Time) (map[string]bool, error) {
	if since.IsZero() {
		return nil, nil
	}
	rows, err := g.o.Asks.OfRun(ctx, run, since)
	if err != nil {
		return nil, fmt.Errorf("what was not allowed: %w", err)
	}
	out := map[string]bool{}
	allowed := map[string]bool{}
	for _, r := range rows {
		var body ask.Payload
		if json.Unmarshal([]byte(r.Payload), &body) != nil || body.Call == "" {
			continue
		}
		allowed[body.Call] = allowed[body.Call] || r.Decision == ask.Granted
		out[body.Call] = !allowed[body.Call]
	}
	return out, nil
}
