package approvals

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
)

const (
	maxCards   = 18 // of calls, on the page
	maxDecided = 10
	// maxAsks bounds the waiting list; at most 100 are open.
	maxAsks = 100
	// maxGrants bounds the list of grants on the page.
	maxGrants = 50
	// maxShown bounds the bytes of paths, commands and patterns on the page, so
	// that calls of great length don't make it heavy; one is always shown.
	maxShown = 40 << 10
	// settledFor is how long a decided call keeps its place, so that nothing
	// moves while the operator presses a button.
	settledFor = 10 * time.Second
)

type approvalsBody struct {
	Lede    string
	Asks    page.Part[[]askCard]
	More    int // that wait behind those shown
	Decided page.Part[[]settledAsk]
	Raises  page.Part[[]raiseCard]
	Grants  page.Part[[]grantRow]
	MoreGr  int
	HasGr   bool
	CSRF    string
}

// An askCard is a pending tool call, or one decided so recently that it keeps its
// place.
type askCard struct {
	ask.Waiting
	CSRF    string
	Display string // the user whose call it is
	Left    int    // seconds for the answer; of a settled one, in its place
	Settled *settledAsk
	Inline  bool // it is shown in its conversation and leads back there
	Home    bool // it is shown on the overview and leads back there
}

// What returns the exact path or command, with what can't be seen made visible.
func (c askCard) What() string { return whatOf(c.Request) }

// Brief returns What in a line's length, for screen readers.
func (c askCard) Brief() string { return core.CutRunes(c.What(), 200) }

// Wants returns what the tool would do, to precede What.
func (c askCard) Wants() string { return wants(c.Request) }

// Change returns what the call would change in its file; nil for a call that changes none.
func (c askCard) Change() *changeView { return changeOf(c.Diff, c.Request.ID) }

// Caution returns ask.Waiting's, with everything in it visible.
func (c askCard) Caution() string { return page.Exact(c.Waiting.Caution()) }

// Lines returns the simple commands of a shell, where they differ from What.
func (c askCard) Lines() []string {
	if len(c.Commands) == 1 && c.Commands[0] == c.Request.Command {
		return nil
	}
	out := make([]string, len(c.Commands))
	for i, line := range c.Commands {
		out[i] = page.Exact(line)
	}
	return out
}

type settledAsk struct {
	ID      string
	Tool    string
	Wants   string
	What    string
	Display string
	Outcome string
	Word    string // the outcome as a label
	Tone    string // good, bad, idle
	By      string
	At      time.Time
}

type grantRow struct {
	permission.GrantRow
	Display string
	CSRF    string
}

func (p *Pages) approvalsPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := approvalsBody{CSRF: page.Token(r), HasGr: p.o.Grants != nil}
	names := p.links.Names(ctx)
	raises := p.raises(ctx)
	b.Raises = p.raiseCards(raises, b.CSRF)
	waiting := p.waitingAsks(ctx)
	recent := p.recentAsks(ctx)
	b.Asks.Broken, b.Decided.Broken = waiting.Broken, recent.Broken
	shown := shownAsks(waiting.Value, maxCards, maxShown)
	b.More = len(waiting.Value) - shown
	b.Asks.Value, b.Decided.Value = p.cards(waiting.Value[:shown], recent.Value, names, b.CSRF)
	b.Lede = approvalsLede(len(waiting.Value), asking(raises.Value))
	if b.HasGr {
		p.grants(ctx, &b, names)
	}
	return p.frame.Show(w, r, http.StatusOK, "approvals", page.View{Title: "Approvals", Topics: []core.Topic{core.TopicApprovals}, Body: b})
}

// recentAsks returns the calls decided last.
func (p *Pages) recentAsks(ctx context.Context) page.Part[[]ask.Ask] {
	return page.Load(ctx, p.frame, "The list of recent decisions", func(ctx context.Context) ([]ask.Ask, error) {
		return p.o.Asks.Recent(ctx, maxDecided+maxCards)
	})
}

// cards returns the calls that wait and those that keep their place, in the order
// they were asked, and the others that were decided.
func (p *Pages) cards(waiting []ask.Waiting, recent []ask.Ask, names page.Names, csrf string) (cards []askCard, decided []settledAsk) {
	now := p.frame.Clock.Now()
	for _, q := range waiting {
		cards = append(cards, askCard{Waiting: q, CSRF: csrf, Display: names.Of(q.User), Left: page.Seconds(q.Request.ExpiresAt.Sub(now))})
	}
	for _, a := range recent {
		q, err := ask.View(a)
		if err != nil {
			continue
		}
		done := settledOf(a, q, names.Of(q.User))
		if left := settledFor - now.Sub(a.DecidedAt); left > 0 {
			cards = append(cards, askCard{Waiting: q, Display: done.Display, Left: page.Seconds(left), Settled: &done})
		} else if len(decided) < maxDecided {
			decided = append(decided, done)
		}
	}
	core.Sort(cards, func(x, y askCard) int { return x.At.Compare(y.At) })
	return cards, decided
}

// shownAsks returns how many of the calls there is room for: at most most, of at
// most bytes together.
func shownAsks(waiting []ask.Waiting, most, bytes int) int {
	size := 0
	for i, q := range waiting {
		size += len(template.HTMLEscapeString(whatOf(q.Request))) + len(template.HTMLEscapeString(page.Exact(strings.Join(q.Commands, "\n"))))
		if q.Diff != nil {
			size += page.NewDiff("", "", q.Diff.Diff).Size()
		}
		for _, g := range q.Request.SuggestedGrants {
			size += len(template.HTMLEscapeString(g.Pattern + g.Label))
		}
		if i >= most || i > 0 && size > bytes {
			return i
		}
	}
	return len(waiting)
}

// grants lists the grants.
func (p *Pages) grants(ctx context.Context, b *approvalsBody, names page.Names) {
	rows := page.Load(ctx, p.frame, "The list of grants", func(ctx context.Context) ([]permission.GrantRow, error) {
		return p.o.Grants.Grants(ctx, "", 0)
	})
	b.Grants.Broken = rows.Broken
	b.MoreGr = max(0, len(rows.Value)-maxGrants)
	for _, g := range rows.Value[:len(rows.Value)-b.MoreGr] {
		g.Pattern = page.Exact(g.Pattern)
		b.Grants.Value = append(b.Grants.Value, grantRow{g, names.Of(g.User), b.CSRF})
	}
}

// approvalsLede returns what waits: tool calls, and questions about trust.
func approvalsLede(calls, trust int) string {
	switch {
	case calls == 0 && trust == 0:
		return "No tool call waits for your approval."
	case trust == 0:
		return page.Count(calls, "tool call waits", "tool calls wait") + " for your approval."
	case calls == 0:
		return page.Count(trust, "question about trust waits", "questions about trust wait") + " for your approval."
	}
	return page.Count(calls, "tool call", "tool calls") + " and " + page.Count(trust, "question", "questions") + " about trust wait for your approval."
}

// waitingAsks returns the calls that wait for approval.
func (p *Pages) waitingAsks(ctx context.Context) page.Part[[]ask.Waiting] {
	return page.Once(ctx, p.frame, "asks", "The list of tool calls", func(ctx context.Context) ([]ask.Waiting, error) {
		return p.o.Asks.Pending(ctx, maxAsks)
	})
}

// whatOf returns exactly what r is about, a path in one line.
func whatOf(r core.PermissionRequest) string {
	if r.Command != "" {
		return page.Exact(r.Command)
	}
	if r.URL != "" {
		return page.Exact(r.URL)
	}
	return strings.ReplaceAll(page.Exact(r.Path), "\n", `\n`)
}

// wants returns the verb for what a tool would do with its path or command.
func wants(r core.PermissionRequest) string {
	switch {
	case r.Command != "":
		return "run"
	case r.Kind == "write":
		return "change"
	case r.Kind == "web":
		return "open"
	}
	return "read"
}

func settledOf(a ask.Ask, q ask.Waiting, display string) settledAsk {
	s := settledAsk{ID: a.ID, Tool: q.Request.ToolName, Wants: wants(q.Request), What: core.CutRunes(whatOf(q.Request), 200),
		Display: display, By: a.DecidedBy, At: a.DecidedAt, Tone: "idle"}
	switch a.Outcome() {
	case "granted":
		s.Outcome, s.Word, s.Tone = "Allowed", "Allowed", "good"
	case "denied":
		s.Outcome, s.Word, s.Tone = "Denied", "Denied", "bad"
	case "timeout":
		s.Outcome, s.Word = "Denied, as no one answered in time", "No answer"
	default:
		s.Outcome, s.Word = "Withdrawn, as its run ended first", "Withdrawn"
	}
	return s
}

// settleAsk allows or denies a tool call.
func (p *Pages) settleAsk(r *http.Request, by core.Actor) (page.Flash, string, error) {
	ctx, id := r.Context(), r.PathValue("id")
	back := approvalsPath + "#k-" + url.PathEscape(id)
	if chat := r.PostFormValue("chat"); chat != "" && p.links.Chat != nil {
		back = p.links.Chat(chat) + "#end"
	}
	switch r.PathValue("verb") {
	case "allow":
		pattern := r.PostFormValue("pattern")
		if err := p.o.Asks.Grant(ctx, id, pattern, by); err != nil {
			return page.Flash{}, back, err
		}
		if pattern == "" {
			return page.Good("Allowed, this call only."), back, nil
		}
		return page.Good("Allowed, and from now on in this conversation: " + page.Exact(pattern)), back, nil
	case "deny":
		return page.Good("Denied. The model continues without this call."), back, p.o.Asks.Deny(ctx, id, by)
	}
	return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such decision")
}

func (p *Pages) revokeGrant(r *http.Request, by core.Actor) (page.Flash, string, error) {
	const back = approvalsPath + "#grants-h"
	return page.Good("The grant is revoked: the next such call asks again."), back, p.o.Grants.Revoke(r.Context(), r.PathValue("id"), by)
}
