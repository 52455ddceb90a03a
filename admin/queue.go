package admin

import (
	"context"
	"net/http"
	"time"

	"gatehouse/admin/page"
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
	Depths page.Part[[]queue.Depth]
	Lanes  page.Part[[]laneView]
	Dead   page.Part[[]queue.DeadRow]
	Sends  page.Part[[]queue.SendRow]
	Stalls page.Part[[]stepView] // held or limited
	Has    struct{ Lanes, Dead, Sends bool }
	Limits struct{ Dead, Sends, Lanes int }
}

type laneView struct {
	queue.LaneRow
	Held  bool // somebody works on it
	Waits bool // not before a time to come
}

func (p *Panel) queuePage(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), p.frame.Clock.Now()
	b := queueBody{CSRF: page.Token(r)}
	b.Limits.Dead, b.Limits.Sends, b.Limits.Lanes = maxDead, maxSends, maxLanes
	if p.o.Lanes != nil {
		b.Has.Lanes = true
		b.Depths = page.Load(ctx, p.frame, "What waits for each bot", p.o.Lanes.Depths)
		b.Lanes = page.Load(ctx, p.frame, "The list of lanes", func(ctx context.Context) ([]laneView, error) {
			rows, err := p.o.Lanes.Lanes(ctx, maxLanes)
			out := make([]laneView, 0, len(rows))
			for _, l := range rows {
				out = append(out, laneView{l, l.Owner != "", l.Owner == "" && l.NotBefore.After(now)})
			}
			return out, err
		})
	}
	if p.o.Stalled != nil {
		b.Stalls = page.Load(ctx, p.frame, "The list of held messages", func(ctx context.Context) (out []stepView, err error) {
			rows, err := p.o.Stalled(ctx, maxStalled)
			for _, s := range rows {
				out = append(out, p.stepView(s))
			}
			return out, err
		})
	}
	if p.o.Dead != nil {
		b.Has.Dead = true
		b.Dead = page.Load(ctx, p.frame, "The list of messages given up", func(ctx context.Context) ([]queue.DeadRow, error) {
			return p.o.Dead.Dead(ctx, maxDead)
		})
	}
	if p.o.Sends != nil {
		b.Has.Sends = true
		b.Sends = page.Load(ctx, p.frame, "The list of unsure replies", func(ctx context.Context) ([]queue.SendRow, error) {
			return p.o.Sends.Unsure(ctx, maxSends)
		})
	}
	b.Lede = queueLede(b)
	return p.frame.Show(w, r, http.StatusOK, "queue", page.View{Title: "Queue", Topics: "queue", Every: 3, Body: b})
}

func queueLede(b queueBody) string {
	dead, unsure := len(b.Dead.Value), len(b.Sends.Value)
	switch {
	case b.Dead.Broken != "" || b.Sends.Broken != "" || b.Depths.Broken != "":
		return "Part of the queue can’t be read right now."
	case dead > 0 && unsure > 0:
		return page.Count(dead, "message was", "messages were") + " given up, and " + page.Count(unsure, "reply needs", "replies need") + " your word."
	case dead > 0:
		return page.Count(dead, "message was", "messages were") + " given up after several tries."
	case unsure > 0:
		return page.Count(unsure, "reply needs", "replies need") + " your word."
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

func (p *Panel) stuck(ctx context.Context) page.Part[stuckness] {
	return page.Load(ctx, p.frame, "The queue", func(ctx context.Context) (stuckness, error) {
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

func (p *Panel) deadAction(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = "/admin/queue"
	seq, err := page.Number(r, "seq")
	if err != nil {
		return page.Flash{}, back, err
	}
	switch r.PathValue("verb") {
	case "retry":
		return page.Good("The message is in its lane again and is being answered."), back, p.o.Dead.Retry(r.Context(), seq, by)
	case "dismiss":
		return page.Good("The message is dismissed: it stays unanswered."), back, p.o.Dead.Dismiss(r.Context(), seq, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "a message can be retried or dismissed")
}

func (p *Panel) sendAction(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = "/admin/queue"
	seq, err := page.Number(r, "seq")
	if err != nil {
		return page.Flash{}, back, err
	}
	switch r.PathValue("verb") {
	case "again":
		return page.Good("The reply is on its way again."), back, p.o.Sends.SendAgain(r.Context(), seq, by)
	case "settle":
		return page.Good("Settled: the reply is left as it is."), back, p.o.Sends.Settle(r.Context(), seq, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "a reply can be sent again or settled")
}
