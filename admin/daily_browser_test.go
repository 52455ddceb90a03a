//go:build browser

package admin_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/web/webtest"
)

func TestDailyAgents_AreRunAndSwitchedByKeyboard(t *testing.T) {
	s, b := atDesk(t, dailyPath)
	b.TabTo(`button[aria-label="Run now: Reflection"]`)
	b.Press(kb.Enter)
	b.Says(`#say`, "reflection is running for "+diaryDay)
	b.TabTo(`button[aria-label="Turn off Reflection"]`)
	b.Press(kb.Enter)
	b.Says(`#say`, "reflection runs only when you start it.")
	b.Visible(`button[aria-label="Turn on Reflection"]`)
	b.TabTo(`tbody a[href="/admin/daily/reflection"]`)
	b.Press(kb.Enter)
	b.Says(`h1`, "Reflection")
	b.TabTo(`input[name=force]`)
	b.Press(" ")
	b.TabTo(`form[action$="/run"] button`)
	b.Press(kb.Enter)
	b.Says(`#say`, "reflection is running for")
	if did := s.world.done(); len(did) != 3 || did[1] != "switch reflection false" {
		t.Errorf("done %q", did)
	}
}

// The buttons of a row are beside each other wherever the list is a table.
func TestDailyAgents_TheButtonsOfARowDoNotWrap(t *testing.T) {
	_, b := atDesk(t, dailyPath)
	for _, width := range []int64{1600, 1280, 1120, 1080} {
		b.Look(width, 900, "light")
		if tops := webtest.Value[int](b, `new Set([...document.querySelectorAll("tbody tr:first-child .end button")].map((e) => Math.round(e.getBoundingClientRect().top))).size`); tops != 1 {
			t.Errorf("at %d px the buttons are in %d lines", width, tops)
		}
	}
}
