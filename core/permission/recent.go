package permission

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
)

// Recent are the asks of tool calls that were settled within the last day, the
// newest first, at most limit.
func (g *Guard) Recent(ctx context.Context, limit int) ([]Ask, error) {
	var rows []row
	err := g.o.DB.Select(ctx, &rows, askColumns+` WHERE kind = 'permission' AND state <> 'open' AND decided_at > $1
		ORDER BY decided_at DESC, id LIMIT $2`, core.Stamp(g.o.Clock.Now().Add(-24*time.Hour)), max(0, min(limit, maxOpen)))
	if err != nil {
		return nil, fmt.Errorf("recent asks: %w", err)
	}
	out := make([]Ask, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.ask())
	}
	return out, nil
}

// Outcome is what became of a permission: "granted", "denied", "timeout", or
// "withdrawn" when its run ended before an answer; "" while it waits.
func (a Ask) Outcome() string {
	switch {
	case a.State == Open:
		return ""
	case a.State == Expired:
		return decisionTimeout
	case a.State == Closed:
		return "withdrawn"
	case a.Decision == decisionGranted:
		return decisionGranted
	}
	return decisionDenied
}
