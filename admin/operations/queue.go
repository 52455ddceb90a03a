package operations

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/queue/inspect"
)

const (
	queuePath  = "/admin/queue"
	maxDead    = 15
	maxSends   = 15
	maxLanes   = 20
	maxStalled = 20 // held, and the same number of limited ones
)

type queueBody struct {
	CSRF   string
	Lede   string
	Depths page.Part[[]inspect.Depth]
	Lanes  page.Part[[]laneView]
	Dead   page.Part[[]inspect.DeadRow]
	Sends  page.Part[[]inspect.SendRow]
	Tries  page.Part[[]inspect.SendRow] // that wait for their next try
	Stalls page.Part[[]stepView]        // held or limited
	Has    struct{ Lanes, Dead, Sends bool }
	Limits struct{ Dead, Sends, Lanes int }
}

// A stepView is an update that is held or rate-limited.
type stepView struct {
	inspect.Step
	Tone, Word string
}

func stepOf(s inspect.Step) stepView {
	v := stepView{Step: s}
	v.Tone, v.Word = page.Step(s.State)
	return v
}

type laneView struct {
	inspect.LaneRow
	Held  bool // a worker has its lease
	Waits bool // not before a time to come
}

// there reports whether the page Queue has any source.
func (p *queuePages) there() bool { return p.o.Lanes != nil || p.o.Dead != nil || p.o.Sends != nil }

func (p *queuePages) routes() {
	if p.there() {
		p.frame.Page("GET "+queuePath, p.queuePage)
	}
	if p.o.Dead != nil {
		p.frame.Post("POST "+queuePath+"/dead/{seq}/{verb}", p.deadAction)
	}
	if p.o.Sends != nil {
		p.frame.Post("POST "+queuePath+"/send/{seq}/{verb}", p.sendAction)
	}
}

func (p *queuePages) queuePage(w http.ResponseWriter, r *http.Request) error {
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
				out = append(out, stepOf(s))
			}
			return out, err
		})
	}
	if p.o.Dead != nil && p.o.Lanes != nil {
		b.Has.Dead = true
		b.Dead = page.Load(ctx, p.frame, "The list of messages given up", func(ctx context.Context) ([]inspect.DeadRow, error) {
			return p.o.Lanes.Dead(ctx, maxDead)
		})
	}
	if p.o.Sends != nil && p.o.Lanes != nil {
		b.Has.Sends = true
		b.Sends = page.Load(ctx, p.frame, "The list of unsure replies", func(ctx context.Context) ([]inspect.SendRow, error) {
			return p.o.Lanes.Unsure(ctx, maxSends)
		})
	}
	if p.o.Sends != nil && p.o.Retrying != nil {
		b.Tries = page.Load(ctx, p.frame, "The list of replies that are retried", func(ctx context.Context) ([]inspect.SendRow, error) {
			return p.o.Retrying(ctx, maxSends)
		})
	}
	b.Lede = queueLede(b)
	return p.frame.Show(w, r, http.StatusOK, "queue", page.View{Title: "Queue", Topics: []core.Topic{core.TopicQueue}, Every: 3, Body: b})
}

// queueLede counts all that is stuck, and not only what is listed.
func queueLede(b queueBody) string {
	all := sum(b.Depths.Value)
	dead, unsure := max(len(b.Dead.Value), int(all.Dead)), max(len(b.Sends.Value), int(all.Unsure))
	switch {
	case b.Dead.Broken != "" || b.Sends.Broken != "" || b.Depths.Broken != "":
		return "Part of the queue can’t be read right now."
	case dead > 0 && unsure > 0:
		return page.Count(dead, "message was", "messages were") + " given up, and " + page.Count(unsure, "reply needs", "replies need") + " your decision."
	case dead > 0:
		return page.Count(dead, "message was", "messages were") + " given up after several tries."
	case unsure > 0:
		return page.Count(unsure, "reply needs", "replies need") + " your decision."
	}
	if n := len(b.Tries.Value); n > 0 {
		return "Nothing is stuck; " + page.Count(n, "reply is", "replies are") + " being retried."
	}
	return "Nothing is stuck."
}

// A stuckness is the sums over all bots' queues.
type stuckness struct {
	Ready, Held, Open int64
	Dead, Unsure      int64
	Oldest            time.Duration
}

func (s stuckness) stuck() int { return int(s.Dead + s.Unsure) }

func (p *queuePages) stuck(ctx context.Context) page.Part[stuckness] {
	return page.Once(ctx, p.frame, "stuck", "The queue", func(ctx context.Context) (stuckness, error) {
		rows, err := p.o.Lanes.Depths(ctx)
		return sum(rows), err
	})
}

func sum(rows []inspect.Depth) (s stuckness) {
	for _, d := range rows {
		s.Ready += d.Ready + d.Limited
		s.Held += d.Held
		s.Open += d.OutboxOpen
		s.Dead += d.Dead
		s.Unsure += d.OutboxUnknown + d.OutboxFailed
		s.Oldest = max(s.Oldest, d.OldestReady, d.OutboxOldest)
	}
	return s
}

func (p *queuePages) deadAction(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = queuePath
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

func (p *queuePages) sendAction(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = queuePath
	seq, err := page.Number(r, "seq")
	if err != nil {
		return page.Flash{}, back, err
	}
	switch r.PathValue("verb") {
	case "again":
		return page.Good("The reply is on its way again."), back, p.o.Sends.SendAgain(r.Context(), seq, by)
	case "settle":
		return page.Good("Settled: the reply is left as it is."), back, p.o.Sends.Settle(r.Context(), seq, by)
	case "retry":
		return page.Good("The reply is tried again now."), back, p.o.Sends.RetryNow(r.Context(), seq, by)
	case "give-up":
		return page.Good("The reply is given up. You can still send it again."), back, p.o.Sends.GiveUp(r.Context(), seq, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "a reply can be sent again, settled, retried or given up")
}

func (p *queuePages) answer(ctx context.Context) page.Answer {
	a := page.Answer{Key: "queue", Question: "What is stuck", Path: queuePath, Link: "Queue", Tone: "good"}
	s := p.stuck(ctx)
	v := s.Value
	switch {
	case s.Broken != "":
		a.Broken, a.Tone, a.Short = s.Broken, "warn", "the queue can’t be read"
		return a
	case v.stuck() == 0:
		a.Answer = "Nothing. " + flow(v)
		return a
	}
	a.Tone, a.Short = "bad", page.Count(v.stuck(), "thing is", "things are")+" stuck"
	if v.Dead > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: page.Count(int(v.Dead), "message", "messages") + " given up after several tries"})
	}
	if v.Unsure > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: page.Count(int(v.Unsure), "reply", "replies") + " that may not have arrived"})
	}
	a.Answer = page.Count(v.stuck(), "thing needs", "things need") + " your decision."
	p.stuckDetails(ctx, &a)
	return a
}

// inboxStuck bounds the messages and the replies that the overview shows.
const inboxStuck = 3

// stuckDetails adds what is stuck, each with what can be done about it.
func (p *queuePages) stuckDetails(ctx context.Context, a *page.Answer) {
	if p.o.Dead != nil {
		dead := page.Load(ctx, p.frame, "The list of messages given up", func(ctx context.Context) ([]inspect.DeadRow, error) { return p.o.Lanes.Dead(ctx, inboxStuck) })
		for _, d := range dead.Value {
			at := queuePath + "/dead/" + strconv.FormatInt(d.Seq, 10)
			a.Detail = append(a.Detail, page.Detail{ID: "dead-" + strconv.FormatInt(d.Seq, 10), Who: page.DisplayName(d.Name), Text: " to " + d.Bot + " got no answer", Quote: core.CutRunes(d.Text, inboxQuote), Reason: d.Error,
				Acts: []page.Act{{Path: at + "/retry", Label: "Retry", Main: true}, {Path: at + "/dismiss", Label: "Dismiss"}}})
		}
	}
	if p.o.Sends != nil {
		sends := page.Load(ctx, p.frame, "The list of unsure replies", func(ctx context.Context) ([]inspect.SendRow, error) { return p.o.Lanes.Unsure(ctx, inboxStuck) })
		for _, s := range sends.Value {
			at := queuePath + "/send/" + strconv.FormatInt(s.Seq, 10)
			d := page.Detail{ID: "send-" + strconv.FormatInt(s.Seq, 10), Who: s.Bot, Text: ": a reply may not have arrived", Quote: core.CutRunes(s.Text, inboxQuote), Reason: s.Error,
				Acts: []page.Act{{Path: at + "/again", Label: "Send again"}, {Path: at + "/settle", Label: "It did arrive"}}}
			if s.State == "failed" {
				d.Text, d.Acts[0].Main, d.Acts[1].Label = ": a reply was not delivered", true, "Dismiss"
			}
			a.Detail = append(a.Detail, d)
		}
	}
}

// inboxQuote is how much of a message the overview shows, in characters.
const inboxQuote = 160

// flow returns how much is in progress.
func flow(s stuckness) string {
	var parts []string
	if s.Ready > 0 {
		parts = append(parts, page.Count(int(s.Ready), "message", "messages"))
	}
	if s.Open > 0 {
		parts = append(parts, page.Count(int(s.Open), "reply", "replies"))
	}
	if len(parts) == 0 {
		return "Every message is answered."
	}
	return strings.Join(parts, " and ") + " on the way."
}
