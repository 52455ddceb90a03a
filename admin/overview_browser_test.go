//go:build browser

package admin_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

func TestApproveTakesNoClickFromSigningIn(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.add(pending(clock, "r1", "Ada"))
	s.world.add(pending(clock, "r2", "Bo"))
	b := webtest.New(t)
	signIn(b, s)
	const top = `document.querySelector("#r-r2 .primary").getBoundingClientRect().top`
	b.Focus(`#r-r1 .primary`)
	before := webtest.Value[float64](b, top)
	b.Press(kb.Enter)
	b.Visible(`#r-r1.settled`)
	if after := webtest.Value[float64](b, top); before != after {
		t.Errorf("the next request moved from %v to %v", before, after)
	}
	if did := s.world.done(); len(did) != 1 || did[0] != "approved r1 sandboxed" {
		t.Errorf("done %q", did)
	}
	b.Eventually(`location.pathname === "/admin" && document.getElementById("say").textContent.includes("may talk to telegram now, as sandboxed")`)
}
