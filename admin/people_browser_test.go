//go:build browser

package admin_test

import (
	"fmt"
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
	b.Click(`#m-3 > summary`)
	b.Click(`#k-3 summary`)
	b.Click(`#k-3 .danger`)
	b.Visible(`#u-3 form[action$=undo]`)
	b.Hears("Undo is offered for 10 seconds.")
	b.Keep("admin-people-blocked", b.Picture())
	b.Click(`#u-3 form[action$=undo] button`)
	b.Gone(`#u-3 form[action$=undo]`)
	b.Gone(`#u-3 .pill.bad`)
	s.world.didLast(t, "block * telegram 7700431189", "undo block * telegram 7700431189")
	b.Eventually(`window.sameDocument === true`)
}

// Rows are opened, marked by key and by the page's box, and blocked after a question; each
// block is undone in its row.
func TestSeveralPeopleAreMarkedBlockedAndUndoneInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/people")
	b.Eventually(`document.documentElement.dataset.keys === "on"`)
	b.Eventually(`!document.querySelector("#u-2 .num").checkVisibility()`) // ids on demand
	b.Press("jj")
	b.Focused(`#u-3`)
	b.Press("x")
	b.Eventually(`document.querySelector("#u-3 .mark-it").checked`)
	b.Click(`[data-mark-all]`)
	b.Eventually(`[...document.querySelectorAll(".mark-it")].length === 3 && [...document.querySelectorAll(".mark-it")].every((m) => m.checked)`)
	b.Click(`#u-4 .mark-it`)
	b.Click(`#m-2 > summary`)
	b.Visible(`#u-2 .num`)
	s.world.ring(core.TopicPeople)
	b.Eventually(`document.querySelector("#m-2").open && document.querySelector("#u-3 .mark-it").checked && !document.querySelector("#u-4 .mark-it").checked`)
	for _, w := range windows {
		b.Look(w.width, 900, w.scheme)
		wellMannered(t, b, fmt.Sprintf("people at %d px", w.width))
		b.Keep(fmt.Sprintf("admin-people-open-%d-%s", w.width, w.scheme), b.WholePicture())
	}
	b.Look(1280, 900, "light")
	b.Click(`#bulk button[value=block]`)
	b.Says(`h1`, "Block 2 people?")
	b.Keep("admin-people-several", b.Picture())
	b.Click(`main .danger`)
	b.Visible(`#u-3 form[action$=undo]`)
	b.Visible(`#u-2 form[action$=undo]`)
	b.Keep("admin-people-several-blocked", b.Picture())
	live(b)
	b.Click(`#u-3 form[action$=undo] button`)
	b.Gone(`#u-3`) // it is not blocked, and so not in this list
	s.world.didLast(t, "undo block * telegram 7700431189")
}

func TestAccessAndBudgetAreChangedOnThePersonsPageInABrowser(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	b.Look(1280, 900, "light")
	signIn(b, s)
	b.Open(s.url + "/admin/people")
	b.Click(`#u-2 h2 a`)
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
	b.Hears("The export is ready")
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
	b.Hears("This person is forgotten")
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

// TestASelectionOutlivesANewPage: what was marked stays marked when the page renews
// itself, which it does whenever somebody else writes to a bot.
func TestASelectionOutlivesANewPage(t *testing.T) {
	s, b := atDesk(t, "/admin/pairing")
	live(b)
	b.Click(`#bulk [name=all]`)
	b.Click(`#requests .mark-it`)
	b.Eventually(`(main => { main.prepend(" ", Object.assign(document.createElement("p"), {className: "gone", textContent: "Said before."})); return true; })(document.querySelector("main"))`)
	s.world.ring(core.TopicPairing)
	b.Gone(`main > p.gone`)
	b.Eventually(`document.querySelector("#bulk [name=all]").checked && document.querySelector("#requests .mark-it").checked`)
}

// The lists of groups and blocks are turned in place: the page leads back to the list that
// was turned, and keeps the page of the other.
func TestGroupsAndBlocksAreTurnedInABrowser(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	w := s.world
	w.full()
	for i := range 40 {
		g, x := w.places[i%2], w.blocks[0]
		g.Place, x.PlatformUserID = fmt.Sprint("-100", 100+i), fmt.Sprint(100+i)
		w.places, w.blocks = append(w.places, g), append(w.blocks, x)
	}
	b := webtest.New(t)
	b.Look(1280, 900, "light")
	signIn(b, s)
	b.Open(s.url + "/admin/people")
	b.Click(`nav[aria-label="Pages of blocks"] [rel=next]`)
	b.Says(`nav[aria-label="Pages of blocks"]`, "Page 2")
	b.Click(`nav[aria-label="Pages of groups"] [rel=next]`)
	b.Says(`nav[aria-label="Pages of groups"]`, "Page 2")
	b.Says(`nav[aria-label="Pages of blocks"]`, "Page 2")
	b.Eventually(`document.querySelector("#groups-h").getBoundingClientRect().top >= 0 && document.querySelector("#groups-h").getBoundingClientRect().top < innerHeight / 2`)
	b.Click(`#block-by-id summary`)
	for _, win := range windows {
		b.Look(win.width, 900, win.scheme)
		wellMannered(t, b, fmt.Sprintf("groups and blocks at %d px", win.width))
		b.Keep(fmt.Sprintf("admin-people-turned-%d-%s", win.width, win.scheme), b.WholePicture())
	}
	b.Look(1280, 900, "light")
	b.Write(`#block-by-id [name=user]`, "139")
	b.Click(`#block-by-id [formaction$=unblock]`)
	b.Says(`#toast`, "Unblocked.")
	w.didLast(t, "unblock * telegram 139")
}
