package admin_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
)

func pending(clock core.Clock, id, name string) core.PairingRequest {
	now := clock.Now()
	return core.PairingRequest{ID: id, Bot: "telegram", Platform: "telegram", PlatformUserID: "721445" + id[1:], Display: name, Scope: core.ScopeDM,
		Status: "pending", Code: "KX7PQ29M", CodeExpiresAt: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour), CreatedAt: now, FirstMessage: "hello from " + name, Held: 1}
}

// queueUp adds n requests that wait, to two bots.
func (s *site) queueUp(n int) {
	for i := range n {
		q := pending(s.clock, fmt.Sprintf("q%04d", i), fmt.Sprintf("Person %04d", i))
		q.Bot = []string{"telegram", "family"}[i%2]
		s.world.requests = append(s.world.requests, q)
	}
}

func TestPairingDecidesSeveralAtOnce(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.queueUp(6)
	s.get("/admin/pairing").has(t, `name="id" value="q0003" aria-label="Select Person 0003"`, `action="/admin/pairing/bulk"`, "All 6")
	a := s.post("/admin/pairing/bulk", url.Values{"verb": {"deny"}, "id": {"q0000", "q0003"}})
	a.has(t, "Denied 2 requests.", `action="/admin/pairing/q0003/undo"`, "All 4")
	s.post("/admin/pairing/bulk", url.Values{"verb": {"deny"}, "id": {"q0000", "q0001", "nobody"}}).has(t, "Denied 1 request. 2 were decided before.")
	s.post("/admin/pairing/bulk", url.Values{"verb": {"block"}, "id": {"q0002"}}).has(t, "Blocked 1 request.")
	s.post("/admin/pairing/bulk", url.Values{"verb": {"deny"}}).has(t, "flash note", "Nothing was selected")
	s.post("/admin/pairing/bulk", url.Values{"verb": {"approve"}, "id": {"q0004"}}).has(t, "There is no such decision")
	did := s.world.done()
	slices.Sort(did)
	if want := []string{"block 7214450002", "denied q0000 ", "denied q0001 ", "denied q0002 ", "denied q0003 "}; !slices.Equal(did, want) {
		t.Errorf("done %q, want %q", did, want)
	}
	if by := s.world.lastActor(); by.User != core.Operator || by.Via != "panel" {
		t.Errorf("by %+v", by)
	}
}

func TestPairingFindsAndDecidesAmongAThousand(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.queueUp(1000)
	a := s.get("/admin/pairing")
	a.has(t, "1000 people wait for your decision", "982 more wait", "All 1000")
	if n := len(a.body); n > 80_000 {
		t.Errorf("the page has %d bytes", n)
	}
	a = s.get("/admin/pairing?q=person+0777")
	a.has(t, `id="r-q0777"`, "All 1 found", "1000 people wait")
	if n := strings.Count(a.body, `class="card request`); n != 1 {
		t.Errorf("%d requests match, want 1", n)
	}
	s.get("/admin/pairing?bot=family").has(t, "All 500 found")
	s.get("/admin/pairing?scope=group").has(t, "No match", "None of the 1000 that wait matches.")
	a = s.post("/admin/pairing/bulk", url.Values{"verb": {"deny"}, "all": {"1"}, "bot": {"family"}, "id": {"q0000"}})
	a.has(t, "Denied 500 requests.", "500 people wait", `<option selected>family</option>`)
	if n := strings.Count(a.body, `class="card settled`); n != 18 {
		t.Errorf("%d decided requests keep their place, want 18", n)
	}
	if n := len(s.world.done()); n != 500 {
		t.Errorf("%d decisions, want 500", n)
	}
}
