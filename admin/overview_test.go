package admin_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
)

func TestOverviewOffersEachDecisionInPlace(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin").has(t, `action="/admin/pairing/r1/approve"`, `formaction="/admin/pairing/r1/deny"`, `formaction="/admin/pairing/r1/block"`,
		`action="/admin/approvals/q1/allow"`, `action="/admin/approvals/raises/f2/confirm"`, `action="/admin/queue/dead/8812/retry"`, `action="/admin/queue/send/5521/again"`,
		`action="/admin/bots/workshop/start"`, `action="/admin/bots/telegram/test"`)
	s.get("/admin").lacks(t, `raises/f1/end`) // trust full that is in effect waits for no decision
	for _, c := range []struct {
		path string
		form url.Values
		did  string
		gone string
	}{
		{"/admin/pairing/r1/approve", url.Values{"trust": {"vault"}, "end": {""}}, "approved r1 vault", `action="/admin/pairing/r1/approve"`},
		{"/admin/pairing/r2/deny", nil, "denied r2 ", `action="/admin/pairing/r2/approve"`},
		{"/admin/approvals/raises/f2/confirm", url.Values{"minutes": {"20"}}, "raise f2: confirm for 20m0s", "raises/f2/"},
		{"/admin/queue/dead/8812/retry", nil, "retry 8812", "dead/8812"},
		{"/admin/queue/send/5530/settle", nil, "settle 5530", "send/5530"},
		{"/admin/bots/workshop/start", nil, "start workshop", "send/5530"},
	} {
		form := url.Values{"to": {"overview"}}
		for k, v := range c.form {
			form[k] = v
		}
		a := s.post(c.path, form)
		a.has(t, "<h1>Overview</h1>", `class="flash good"`)
		a.lacks(t, c.gone)
		if did := s.world.done(); !slices.Contains(did, c.did) {
			t.Errorf("%s: done %q, want %q", c.path, did, c.did)
		}
	}
	// What was decided keeps its place, so that the next button does not move under a finger.
	a := s.get("/admin")
	a.has(t, `<li class="card settled brief approved" id="r-r1"`, `action="/admin/pairing/r2/undo"`)
	s.post("/admin/pairing/r2/undo", url.Values{"to": {"overview"}}).has(t, "<h1>Overview</h1>", `action="/admin/pairing/r2/approve"`)
}

func TestOverviewShowsTheLastDaysFiguresAndTheNewestActivity(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.audit(core.Actor{User: 3, Via: "chat"}, "bot.stop", "workshop")
	s.world.audit(core.Actor{User: 1, Via: "panel"}, "session.update", s.world.ada)
	a := s.get("/admin")
	a.has(t, "of <bdi>the conversation “Allotment meeting”</bdi>", "Messages</span>", "Answers</span>", "Went wrong</span>", "Cost</span>", "Jun-ho Park with a name that goes on", "stopped the bot workshop")
	if n := strings.Count(a.body, "/admin/models?span=24h#g-"); n != 4 {
		t.Errorf("%d sparklines, want 4", n)
	}
}

func TestOverviewStaysSmallWithManyWaiting(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.crowd()
	a := s.get("/admin")
	a.has(t, "146 more wait")
	if n := strings.Count(a.body, `class="card request brief"`); n != 6 {
		t.Errorf("%d requests on the overview, want 6", n)
	}
}

// A bot can be added in the panel, and then answers without a restart.
func TestOverviewWithoutABotLeadsToWhereOneIsAdded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	a := s.get("/admin")
	a.has(t, "No bot is set up yet.", "The page Bots shows how to add one.", `href="/admin/bots"`)
	a.lacks(t, "restart")
	s.get("/admin/bots").has(t, `href="/admin/settings/bots/add"`, "without a restart")
}
