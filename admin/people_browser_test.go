//go:build browser

package admin_test

import (
	"slices"
	"testing"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/webtest"
)

func (w *world) didLast(t *testing.T, want ...string) {
	t.Helper()
	if did := w.done(); len(did) < len(want) || !slices.Equal(did[len(did)-len(want):], want) {
		t.Errorf("did %q, want at its end %q", did, want)
	}
}

func TestAPersonIsBlockedInABrowserAndThatUndoneInItsPlace(t *testing.T) {
	s, b := atDesk(t, "/admin/people")
	b.Click(`#k-3 summary`)
	b.Click(`#k-3 .danger`)
	b.Visible(`#u-3 form[action$=undo]`)
	b.Eventually(`document.getElementById("say").textContent.includes("Undo is offered for 10 seconds.")`)
	b.Keep("admin-people-blocked", b.Picture())
	b.Click(`#u-3 form[action$=undo] button`)
	b.Gone(`#u-3 form[action$=undo]`)
	b.Gone(`#u-3 .pill.bad`)
	s.world.didLast(t, "block * telegram 7700431189", "undo block * telegram 7700431189")
	b.Eventually(`window.sameDocument === true`)
}

func TestAccessAndBudgetAreChangedOnThePersonsPageInABrowser(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	b.Look(1280, 900, "light")
	signIn(b, s)
	b.Open(s.url + "/admin/people")
	b.Click(`#u-2 .acts a.button`)
	b.Visible(`#money-h`)
	live(b)
	b.Eventually(`window.sameDocument = true`)
	b.Click(`#c-3 summary`)
	b.Eventually(`(document.querySelector("#c-3 [name=trust]").value = "vault", document.querySelector("#c-3 [name=end]").value = "", true)`)
	b.Keep("admin-person-change", b.Picture())
	b.Click(`#c-3 .primary`)
	b.Says(`#x-3 td[data-label=Trust]`, "vault")
	b.Says(`#x-3 td[data-label=Until]`, "no end")
	b.Says(`#toast`, "Changed to vault, without end.")

	b.Click(`input[name=mode][value=own]`)
	b.Write(`input[name=amount]`, "lots")
	b.Click(`form[action$=budget] button`)
	b.Says(`#toast`, "Amount: \"lots\" is neither")
	b.Eventually(`(document.querySelector("input[name=amount]").value = "", true)`)
	b.Write(`input[name=amount]`, "$2")
	b.Write(`input[name=month]`, "5m")
	b.Click(`form[action$=budget] button`)
	b.Says(`.facts`, "$2.00, their own")
	b.Says(`.facts`, "24 % used this month")

	b.Click(`#give summary`)
	b.Eventually(`(document.querySelector("#give [name=where]").value = "telegram ", true)`)
	b.Click(`#give .primary`)
	b.Says(`#toast`, "They may talk to telegram there now")
	b.Click(`details[id^="l-discord"] summary`)
	b.Click(`details[id^="l-discord"] .danger`)
	b.Says(`#toast`, "The account on Discord has no person now")
	s.world.didLast(t, "change 3 vault ", "budget 2 $2, in a month 5m", `give 2 telegram "" sandboxed`, "unlink 2 discord")
	b.Eventually(`window.sameDocument === true`)
}

func TestAnExportAndAForgettingAreFollowedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/people/2")
	b.Click(`#export button`)
	b.Says(`#export .working`, "3 of 12 conversations")
	s.world.settle("export", 2, page.Job{Size: 1_400_000, At: s.clock.Now()})
	b.Visible(`#export a[download]`)
	b.Eventually(`document.getElementById("say").textContent.includes("The export is ready")`)
	b.Keep("admin-person-exported", b.WholePicture())

	b.Click(`#forget summary`)
	b.Write(`input[name=sure]`, "yes")
	b.Click(`#forget .danger`)
	b.Says(`#toast`, "nothing was changed")
	b.Eventually(`(document.querySelector("input[name=sure]").value = "", true)`)
	b.Write(`input[name=sure]`, "forget")
	b.Click(`#forget .danger`)
	b.Says(`#forgetting`, "3 of 12 conversations")
	b.Keep("admin-person-forgetting", b.Picture())
	s.world.settle("forget", 2, page.Job{Said: []string{"Erased: 12 conversations, 3 files, and 4 turns in groups."}})
	b.Says(`h1`, "Forgotten")
	b.Eventually(`document.getElementById("say").textContent.includes("This person is forgotten")`)
	b.Keep("admin-person-forgotten", b.Picture())
	b.Eventually(`window.sameDocument === true`)
}

// atDesk is a page of a full panel, signed in and live, in a browser as wide as
// a desk's. window.sameDocument stays true there while nothing is loaded anew.
func atDesk(t *testing.T, path string) (*site, *webtest.Tab) {
	t.Helper()
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	b.Look(1280, 900, "light")
	signIn(b, s)
	b.Open(s.url + path)
	live(b)
	b.Eventually(`window.sameDocument = true`)
	return s, b
}
