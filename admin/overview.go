package admin

import (
	"context"
	"net/http"
	"strings"

	"gatehouse/core"
)

type overviewBody struct {
	Lede  string
	Calm  bool
	Cards []answer
	Owner bool // somebody owns the bots in chat; true when not known
	Known bool
}

// An answer is one question of the overview with what holds now.
type answer struct {
	Key, Question, Answer, Path, Link string
	Tone                              string
	Detail                            []string
	Broken                            string
}

func (p *Panel) overviewPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := overviewBody{Owner: true}
	if p.o.Bots != nil {
		b.Cards = append(b.Cards, p.botsAnswer())
	}
	if p.o.Requests != nil {
		b.Cards = append(b.Cards, p.waitingAnswer(ctx))
		owned := load(ctx, p, "Whether somebody owns the bots", p.o.Requests.HasOwner)
		b.Owner = owned.Broken != "" || owned.Value
	}
	if p.o.Lanes != nil {
		b.Cards = append(b.Cards, p.queueAnswer(ctx))
	}
	b.Calm = true
	for _, c := range b.Cards {
		b.Calm = b.Calm && c.Tone == "good"
	}
	b.Lede = "All is well: the bots run, nobody waits, nothing is stuck."
	if !b.Calm {
		b.Lede = "Something wants your attention."
	}
	return p.show(w, r, http.StatusOK, "overview", view{Title: "Overview", Topics: "pairing bots queue", Body: b})
}

func (p *Panel) botsAnswer() answer {
	a := answer{Key: "bots", Question: "Is every bot well?", Path: "/admin/bots", Link: "Bots", Tone: "good"}
	states := p.states()
	ill := unwell(states)
	switch {
	case len(states) == 0:
		a.Answer, a.Tone = "No bot is set up yet.", "warn"
		a.Detail = []string{"Give the gateway a token (GATEHOUSE_TELEGRAM_TOKEN) and start it again."}
		return a
	case len(ill) == 0:
		a.Answer = "Yes. " + count(len(states), "bot runs.", "bots run.")
	default:
		a.Answer, a.Tone = "No. "+botsLede(states), "warn"
	}
	for _, s := range ill {
		_, word := phase(s.State)
		line := s.Bot + ": " + strings.ToLower(word)
		if s.Reason != "" {
			line += " – " + s.Reason
		}
		if s.State == core.FailedPhase {
			a.Tone = "bad"
		}
		a.Detail = append(a.Detail, line)
	}
	a.Detail = a.Detail[:min(len(a.Detail), 5)]
	return a
}

func (p *Panel) waitingAnswer(ctx context.Context) answer {
	a := answer{Key: "pairing", Question: "Does anyone wait?", Path: "/admin/pairing", Link: "Pairing", Tone: "good"}
	rows := p.pending(ctx)
	switch {
	case rows.Broken != "":
		a.Broken, a.Tone = rows.Broken, "warn"
	case len(rows.Value) == 0:
		a.Answer = "No. Nobody waits for a decision."
	default:
		a.Answer, a.Tone = "Yes. "+pairingLede(rows.Value, p.clock.Now()), "note"
	}
	for _, q := range rows.Value[:min(len(rows.Value), 3)] {
		a.Detail = append(a.Detail, displayName(q.Display)+" to "+q.Bot+", "+ago(p.clock.Now().Sub(q.CreatedAt)))
	}
	return a
}

func (p *Panel) queueAnswer(ctx context.Context) answer {
	a := answer{Key: "queue", Question: "Is anything stuck?", Path: "/admin/queue", Link: "Queue", Tone: "good"}
	s := p.stuck(ctx)
	v := s.Value
	switch {
	case s.Broken != "":
		a.Broken, a.Tone = s.Broken, "warn"
		return a
	case v.stuck() == 0:
		a.Answer = "No. " + flow(v)
		return a
	}
	a.Answer, a.Tone = "Yes. ", "bad"
	if v.Dead > 0 {
		a.Detail = append(a.Detail, count(int(v.Dead), "message", "messages")+" given up after several tries")
	}
	if v.Unsure > 0 {
		a.Detail = append(a.Detail, count(int(v.Unsure), "reply", "replies")+" that may not have arrived")
	}
	a.Answer += count(v.stuck(), "thing needs", "things need") + " your word."
	return a
}

// flow says how much is on its way.
func flow(s stuckness) string {
	if s.Ready+s.Open == 0 {
		return "Every message is answered."
	}
	return count(int(s.Ready), "message", "messages") + " and " + count(int(s.Open), "reply", "replies") + " on the way."
}
