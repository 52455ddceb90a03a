package approvals

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/permission/raise"
)

// raisesPath is where the forms of trust for a time go.
const raisesPath = approvalsPath + "/raises"

// A raiseCard is trust full that is asked for, or held.
type raiseCard struct {
	raise.Raise
	CSRF  string
	Left  int  // seconds
	Home  bool // it is shown on the overview and leads back there
	Times []timeChoice
}

// Held reports whether it is in effect.
func (c raiseCard) Held() bool { return c.State == raise.Held }

// Asked returns the time that was asked for.
func (c raiseCard) Asked() string { return hours(c.For) }

type timeChoice struct {
	Minutes int
	Label   string
	Checked bool
}

// raises returns those that wait or are in effect.
func (p *Pages) raises(ctx context.Context) page.Part[[]raise.Raise] {
	if p.o.Raises == nil {
		return page.Part[[]raise.Raise]{}
	}
	return page.Once(ctx, p.frame, "raises", "The list of trust for a time", p.o.Raises.Raises)
}

func (p *Pages) raiseCards(rows page.Part[[]raise.Raise], csrf string) (out page.Part[[]raiseCard]) {
	out.Broken = rows.Broken
	for _, r := range rows.Value {
		out.Value = append(out.Value, raiseCard{Raise: r, CSRF: csrf, Left: page.Seconds(r.Ends.Sub(p.frame.Clock.Now())), Times: times(r.For)})
	}
	return out
}

// times returns what may be confirmed: what was asked for, and usual times.
func times(asked time.Duration) (out []timeChoice) {
	list := []int{5, 15, 30, 60, 240, int((asked + time.Minute - 1) / time.Minute)}
	slices.Sort(list)
	for _, m := range slices.Compact(list) {
		d := time.Duration(m) * time.Minute
		out = append(out, timeChoice{m, hours(d), d == (asked + time.Minute - 1).Truncate(time.Minute)})
	}
	return out
}

// hours returns a duration in hours and minutes.
func hours(d time.Duration) string {
	h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
	switch {
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

// asking returns how many of them wait for approval.
func asking(rows []raise.Raise) (n int) {
	for _, r := range rows {
		if r.State == raise.Asked {
			n++
		}
	}
	return n
}

// decideRaise confirms, denies or ends one.
func (p *Pages) decideRaise(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = approvalsPath + "#raises-h"
	ctx, id := r.Context(), r.PathValue("id")
	switch r.PathValue("verb") {
	case "confirm":
		minutes, err := strconv.Atoi(r.PostFormValue("minutes"))
		if err != nil || minutes <= 0 || minutes > int(raise.Max/time.Minute) {
			return page.Flash{}, back, core.Errorf(core.Invalid, "for: choose how long trust full holds, at most %s", hours(raise.Max))
		}
		given, err := p.o.Raises.Confirm(ctx, id, time.Duration(minutes)*time.Minute, by)
		return page.Good(fmt.Sprintf("Confirmed: trust full for %s in that conversation, for the owner’s own messages.", hours(given.For))), back, err
	case "deny":
		return page.Good("Denied. Nothing has changed; the chat is notified."), back, p.o.Raises.Deny(ctx, id, by)
	case "end":
		return page.Good("Trust full is over there: the next tool call is at the level from before."), back, p.o.Raises.End(ctx, id, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such decision")
}
