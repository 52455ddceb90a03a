package admin

import (
	"context"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

const (
	maxDead    = 20
	maxSends   = 20
	maxLanes   = 20
	maxStalled = 20 // held, and as many limited
)

type queueBody struct {
	CSRF   string
	Lede   string
	Depths part[[]queue.Depth]
	Lanes  part[[]laneView]
	Dead   part[[]queue.DeadRow]
	Sends  part[[]queue.SendRow]
	Stalls part[[]stepView] // held or limited
	Has    struct{ Lanes, Dead, Sends bool }
	Limits struct{ Dead, Sends, Lanes int }
}

type laneView struct {
	queue.LaneRow
	Held  bool // somebody works on it
	Waits bool // not before a time to come
}

func (p *Panel) queuePage(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), p.clock.Now()
	b := queueBody{CSRF: p.token(r)}
	b.Limits.Dead, b.Limits.Sends, b.Limits.Lanes = maxDead, maxSends, maxLanes
	if p.o.Lanes != nil {
		b.Has.Lanes = true
		b.Depths = load(ctx, p, "What waits for each bot", p.o.Lanes.Depths)
		b.Lanes = load(ctx, p, "The list of lanes", func(ctx context.Context) ([]laneView, error) {
			rows, err := p.o.Lanes.Lanes(ctx, maxLanes)
			out := make([]laneView, 0, len(rows))
			for _, l := range rows {
				out = append(out, laneView{l, l.Owner != "", l.Owner == "" && l.NotBefore.After(now)})
			}
			return out, err
		})
	}
	if p.o.Stalled != nil {
		b.Stalls = load(ctx, p, "The list of held messages", func(ctx context.Context) (out []stepView, err error) {
			rows, err := p.o.Stalled(ctx, maxStalled)
			for _, s := range rows {
				out = append(out, p.stepView(s))
			}
			return out, err
		})
	}
	if p.o.Dead != nil {
		b.Has.Dead = true
		b.Dead = load(ctx, p, "The list of messages given up", func(ctx context.Context) ([]queue.DeadRow, error) {
			return p.o.Dead.Dead(ctx, maxDead)
		})
	}
	if p.o.Sends != nil {
		b.Has.Sends = true
		b.Sends = load(ctx, p, "The list of unsure replies", func(ctx context.Context) ([]queue.SendRow, error) {
			return p.o.Sends.Unsure(ctx, maxSends)
		})
	}
	b.Lede = queueLede(b)
	return p.show(w, r, http.StatusOK, "queue", view{Title: "Queue", Topics: "queue", Every: 3, Body: b})
}

func queueLede(b queueBody) string {
	dead, unsure := len(b.Dead.Value), len(b.Sends.Value)
	switch {
	case b.Dead.Broken != "" || b.Sends.Broken != "" || b.Depths.Broken != "":
		return "Part of the queue can’t be read right now."
	case dead > 0 && unsure > 0:
		return count(dead, "message was", "messages were") + " given up, and " + count(unsure, "reply needs", "replies need") + " your word."
	case dead > 0:
		return count(dead, "message was", "messages were") + " given up after several tries."
	case unsure > 0:
		return count(unsure, "reply needs", "replies need") + " your word."
	}
	return "Nothing is stuck."
}

// A stuckness is what the overview says about the queue.
type stuckness struct {
	Ready, Held, Open int64
	Dead, Unsure      int64
	Oldest            time.Duration
}

func (s stuckness) stuck() int { return int(s.Dead + s.Unsure) }

func (p *Panel) stuck(ctx context.Context) part[stuckness] {
	return load(ctx, p, "The queue", func(ctx context.Context) (stuckness, error) {
		var s stuckness
		rows, err := p.o.Lanes.Depths(ctx)
		for _, d := range rows {
			s.Ready += d.Ready + d.Limited
			s.Held += d.Held
			s.Open += d.OutboxOpen
			s.Dead += d.Dead
			s.Unsure += d.OutboxUnknown + d.OutboxFailed
			s.Oldest = max(s.Oldest, d.OldestReady, d.OutboxOldest)
		}
		return s, err
	})
}

func (p *Panel) deadAction(r *http.Request, by core.Actor) (flash, string, error) {
	const back = "/admin/queue"
	seq, err := number(r, "seq")
	if err != nil {
		return flash{}, back, err
	}
	switch r.PathValue("verb") {
	case "retry":
		return good("The message is in its lane again and is being answered."), back, p.o.Dead.Retry(r.Context(), seq, by)
	case "dismiss":
		return good("The message is dismissed: it stays unanswered."), back, p.o.Dead.Dismiss(r.Context(), seq, by)
	}
	return flash{}, back, core.Errorf(core.NotFound, "a message can be retried or dismissed")
}

func (p *Panel) sendAction(r *http.Request, by core.Actor) (flash, string, error) {
	const back = "/admin/queue"
	seq, err := number(r, "seq")
	if err != nil {
		return flash{}, back, err
	}
	switch r.PathValue("verb") {
	case "again":
		return good("The reply is on its way again."), back, p.o.Sends.SendAgain(r.Context(), seq, by)
	case "settle":
		return good("Settled: the reply is left as it is."), back, p.o.Sends.Settle(r.Context(), seq, by)
	}
	return flash{}, back, core.Errorf(core.NotFound, "a reply can be sent again or settled")
}
