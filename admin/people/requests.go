package people

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const (
	pairingPath = "/admin/pairing"
	// maxRequests bounds the waiting list; the gate keeps at most 100 per bot.
	maxRequests = 1000
	// maxCards bounds the page: the longest waiting are decided first.
	maxCards = 18
	// maxRecent bounds where recent decisions are looked for.
	maxRecent  = 500
	maxDecided = 10
	// undoFor is how long a decided request keeps its place, and how long a denial or a
	// block can be undone; pairing enforces it.
	undoFor = 10 * time.Second
)

type pairingBody struct {
	Cards   page.Part[[]requestCard]
	More    int // that are not shown
	Lede    string
	Decided page.Part[[]core.PairingRequest]
	Bots    []core.BotState
	CSRF    string
	Filter  requestFilter
	BotsIn  []string // bots that someone waits for
	Waiting int      // requests that wait, whatever the filter
	Found   int      // requests that wait and match the filter
	Levels  []level  // what each means
	Pick    bool     // several can be decided at once
}

// A requestCard is a pending request, or one decided so recently that it can be
// undone or revoked in its place.
type requestCard struct {
	core.PairingRequest
	CSRF    string
	Pending bool
	CodeOld bool
	Levels  []level
	Ends    []end
	Left    int // seconds in which a denial or a block can be undone
	More    int // held messages behind the first
	Outcome string
	// CanRevoke is for an approval, whose answer may have been sent already.
	CanRevoke bool
	Pick      bool // it can be selected, to decide several at once
}

type end struct {
	Value, Label string
	Checked      bool
}

// ends are the choices of how long an approval is valid.
var ends = [...]struct {
	value, label string
	d            time.Duration
}{{"", "No end", 0}, {"1h", "1 hour", time.Hour}, {"24h", "24 hours", 24 * time.Hour}, {"7d", "7 days", 7 * 24 * time.Hour}}

// there reports whether the page Pairing has its sources.
func (p *gatePages) there() bool { return p.o.Requests != nil && p.o.Decisions != nil }

func (p *gatePages) routes() {
	if !p.there() {
		return
	}
	p.frame.Page("GET "+pairingPath, p.pairingPage)
	p.frame.Post("POST "+pairingPath+"/{id}/{verb}", p.decide)
	p.frame.Post("POST "+pairingPath+"/bulk", p.bulk)
	if p.o.Invites != nil {
		p.frame.Page("GET "+invitesPath, p.invitesPage)
		p.frame.Below("pairing", page.Item{Path: invitesPath, Label: "Invitations"})
		p.frame.Page("POST "+invitesPath, p.invite)
		p.frame.Post("POST "+invitesPath+"/{id}/revoke", p.revokeInvite)
	}
}

func (p *gatePages) pairingPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	all, recent := p.pending(ctx), p.recent(ctx)
	b := pairingBody{Cards: page.Part[[]requestCard]{Broken: all.Broken}, Decided: page.Part[[]core.PairingRequest]{Broken: recent.Broken},
		CSRF: page.Token(r), Filter: filterOf(r.URL.Query()), Waiting: len(all.Value)}
	now := p.frame.Clock.Now()
	found := b.Filter.of(all.Value)
	b.Found = len(found)
	p.arrange(&b, found, recent.Value, now, b.CSRF)
	b.BotsIn = botsIn(all.Value, b.Filter.Bot)
	if who, _ := page.Principal(r); !who.Viewer {
		b.Pick = true
		for i := range b.Cards.Value {
			b.Cards.Value[i].Pick = true
		}
	}
	if b.Found > 0 {
		b.Levels = p.preview(ctx)
	}
	b.Lede = pairingLede(all.Value, now)
	if len(b.Cards.Value) == 0 {
		b.Bots = p.bots()
	}
	return p.frame.Show(w, r, http.StatusOK, "pairing", page.View{Title: "Pairing", Topics: []core.Topic{core.TopicPairing, core.TopicPeople}, Body: b})
}

// arrange sorts the requests into cards and recent decisions. The oldest comes
// first, so that a new one is added at the end and moves nothing that the
// operator is about to press; what can be undone keeps its place.
func (p *gatePages) arrange(b *pairingBody, waiting, recent []core.PairingRequest, now time.Time, token string) {
	b.More = max(0, len(waiting)-maxCards)
	for _, q := range waiting[:len(waiting)-b.More] {
		b.Cards.Value = append(b.Cards.Value, p.card(q, now, token))
	}
	kept := 0
	for _, q := range recent {
		switch {
		case q.Status == "pending":
		case keepsPlace(q) && now.Sub(q.ResolvedAt) < undoFor && kept < maxCards:
			kept++
			b.Cards.Value = append(b.Cards.Value, p.card(q, now, token))
		default:
			b.Decided.Value = append(b.Decided.Value, q)
		}
	}
	core.Sort(b.Cards.Value, func(x, y requestCard) int { return earlier(x.PairingRequest, y.PairingRequest) })
	core.Sort(b.Decided.Value, func(x, y core.PairingRequest) int { return y.ResolvedAt.Compare(x.ResolvedAt) })
	b.Decided.Value = b.Decided.Value[:min(len(b.Decided.Value), maxDecided)]
}

func pairingLede(waiting []core.PairingRequest, now time.Time) string {
	if len(waiting) == 0 {
		return "No requests are pending."
	}
	oldest := slices.MinFunc(waiting, earlier)
	text := page.Count(len(waiting), "person waits", "people wait") + " for your decision"
	if d := now.Sub(oldest.CreatedAt); d >= time.Minute && len(waiting) > 1 {
		text += ", the first for " + page.Span(d)
	}
	return text + "."
}

// earlier compares requests by their time.
func earlier(a, b core.PairingRequest) int { return a.CreatedAt.Compare(b.CreatedAt) }

func (p *gatePages) card(q core.PairingRequest, now time.Time, token string) requestCard {
	c := requestCard{PairingRequest: q, CSRF: token, Pending: q.Status == "pending", More: max(0, q.Held-1)}
	c.CodeOld = c.Code == "" || now.After(q.CodeExpiresAt)
	if !c.Pending {
		c.Left = int((undoFor - now.Sub(q.ResolvedAt) + time.Second - 1) / time.Second)
		c.Outcome, c.CanRevoke = outcome(q), q.Status == "approved" && p.o.Access != nil
		return c
	}
	c.Levels = p.levels(q)
	for i, e := range ends {
		c.Ends = append(c.Ends, end{Value: e.value, Label: e.label, Checked: i == 0})
	}
	return c
}

// keepsPlace reports whether q stays for some seconds where it was decided.
func keepsPlace(q core.PairingRequest) bool {
	return (q.Status == "approved" || q.Status == "denied") && !q.Revoked
}

// outcome returns the result of a decision.
func outcome(q core.PairingRequest) string {
	switch q.Status {
	case "approved":
		return "Approved as " + q.ApprovedTrustLevel.String()
	case "denied":
		if q.Blocked {
			return "Blocked"
		}
		return "Denied"
	case "expired":
		return "Expired unanswered"
	}
	return page.Platform(q.Status)
}

// decide approves, denies or blocks a request, undoes a denial or a block, or revokes
// the access that an approval gave.
func (p *gatePages) decide(r *http.Request, by core.Actor) (page.Flash, string, error) {
	id, back := r.PathValue("id"), "/admin/pairing#r-"+url.PathEscape(r.PathValue("id"))
	ctx := r.Context()
	var (
		q    core.PairingRequest
		said string // what happened, after the name
		err  error
	)
	switch r.PathValue("verb") {
	case "approve":
		a, bad := approval(r, p.frame.Clock.Now())
		if bad != nil {
			return page.Flash{}, back, bad
		}
		q, err = p.o.Decisions.Approve(ctx, id, a, by)
		said = "may talk to " + q.Bot + " now, as " + a.Trust.String() + "."
	case "deny":
		q, err = p.o.Decisions.Deny(ctx, id, by)
		said = "receives one denial, then no answer for 7 days."
	case "block":
		q, err = p.o.Decisions.Block(ctx, id, by)
		said = "is blocked: their messages are neither kept nor answered."
	case "revoke":
		return p.revokeApproved(r, by)
	case "undo":
		q, err = p.o.Decisions.Undo(ctx, id, by)
		said = "waits for a decision again; the last one is undone."
	default:
		err = core.Errorf(core.NotFound, "there is no such decision")
	}
	if err != nil {
		return page.Flash{}, back, err
	}
	return page.Good(page.DisplayName(q.Display) + " " + said), back, nil
}

// revokeApproved revokes the access of the account that the form names.
func (p *gatePages) revokeApproved(r *http.Request, by core.Actor) (page.Flash, string, error) {
	back := "/admin/pairing#d-" + url.PathEscape(r.PathValue("id"))
	if p.o.Access == nil {
		return page.Flash{}, back, core.Errorf(core.NotFound, "there is no such decision")
	}
	f, err := revokeAccess(r, p.o.Access, by)
	return f, back, err
}

// approval reads the form. Levels above vault are refused.
func approval(r *http.Request, now time.Time) (core.Approval, error) {
	trust, err := core.ParseTrust(r.PostFormValue("trust"))
	if err != nil {
		return core.Approval{}, err
	}
	if trust > core.Vault {
		return core.Approval{}, core.Errorf(core.Invalid, "trust full cannot be granted to an account in chat; choose sandboxed or vault")
	}
	a := core.Approval{Trust: trust}
	want := r.PostFormValue("end")
	for _, e := range ends {
		if e.value == want {
			if e.d > 0 {
				a.ExpiresAt = now.Add(e.d)
			}
			return a, nil
		}
	}
	return core.Approval{}, core.Errorf(core.Invalid, "%q is not one of the offered ends", want)
}

// recent returns the newest requests in any state, and the latest denials of older ones.
func (p *gatePages) recent(ctx context.Context) page.Part[[]core.PairingRequest] {
	return page.Once(ctx, p.frame, "recent", "The list of recent decisions", func(ctx context.Context) ([]core.PairingRequest, error) {
		rows, err := p.o.Requests.Requests(ctx, "", maxRecent)
		if err != nil || len(rows) < maxRecent {
			return rows, err
		}
		old, err := p.o.Requests.Requests(ctx, "denied", maxDecided)
		newer := func(q core.PairingRequest) bool { return earlier(q, rows[maxRecent-1]) >= 0 }
		return append(rows, slices.DeleteFunc(old, newer)...), err
	})
}

// pending returns the requests that wait, the oldest first.
func (p *gatePages) pending(ctx context.Context) page.Part[[]core.PairingRequest] {
	return page.Once(ctx, p.frame, "requests", "The list of requests", func(ctx context.Context) ([]core.PairingRequest, error) {
		rows, err := p.o.Requests.Requests(ctx, "pending", maxRequests)
		core.Sort(rows, earlier)
		return rows, err
	})
}
