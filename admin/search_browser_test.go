//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// stood notes where everything but the search field is; moved lists what is elsewhere now.
const (
	where = `[...document.querySelectorAll("body *:not(.seek, .seek *, time)")].filter((e) => e.checkVisibility()).map((e) => { const b = e.getBoundingClientRect(); return e.localName + "." + e.className + " " + [b.x, b.y, b.width, b.height]; })`
	stood = `(window.stood = ` + where + `, true)`
	moved = where + `.filter((e) => !window.stood.includes(e))`
)

func TestSlashSearchesEverythingFromAnyPage(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, path := range []string{"/admin/pairing", "/admin/chats", "/admin/queue"} {
		b.Open(s.url + path)
		keyed(b)
		b.Press("/")
		b.Focused(`#seek`)
		b.Press("ad/?k") // typed, and no key of the page
		b.Eventually(`document.activeElement.value.endsWith("ad/?k") && !document.querySelector("dialog")`)
		b.Press(kb.Escape)
		b.Eventually(`document.activeElement === document.body`)
	}
	b.Open(s.url + "/admin/chats")
	keyed(b)
	pressWithCtrl(b, "k")
	b.Focused(`#palette input`)
	b.Press("/")
	b.Eventually(`document.activeElement.value === "/"`)
	b.Press(kb.Escape + kb.Escape)
	b.Gone(`dialog`)
	b.Press("f")
	b.Focused(`main input[type=search]`)
	b.Press("/")
	b.Eventually(`document.activeElement.value.endsWith("/") && document.activeElement.closest("main")`)
	b.Open(s.url + "/admin/queue")
	keyed(b)
	b.Press("/")
	b.Focused(`#seek`)
	b.Eventually(`(document.activeElement.value = "", true)`) // the simulated key is typed, too
	b.Press("seed potatoes" + kb.Enter)
	b.Eventually(`location.pathname === "/admin/search" && new URLSearchParams(location.search).get("q") === "seed potatoes"`)
	b.Eventually(`document.querySelector("#seek").value === "seed potatoes"`)
	b.Says(`.results mark`, "seed")
	if wash := webtest.Value[string](b, `getComputedStyle(document.querySelector(".results mark")).backgroundColor`); wash == "rgba(0, 0, 0, 0)" {
		t.Error("marked words look like any other")
	}
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("did %q", did)
	}
}

func TestASearchLeadsToTheMessageAndTheLineByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/search?q=seed+potatoes")
	b.TabTo(`.results a[href^="/admin/search/message"]`)
	b.Press(kb.Enter)
	b.Eventually(`location.pathname === "/admin/chats/` + s.world.ada + `" && document.querySelector(".said:target")`)
	b.Says(`.said:target`, "Ines brings the seed potatoes.")
	b.Keep("admin-found-message", b.Picture())
	b.Open(s.url + "/admin/search?q=seed+potatoes&type=document")
	live(b)
	b.TabTo(`.results a[href^="/admin/search/document"]`)
	b.Press(kb.Enter)
	b.Eventually(`location.pathname === "/admin/search/document" && location.hash === "#line"`)
	b.Says(`#line`, "Ines brings the seed potatoes")
	b.Eventually(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector("#line").getBoundingClientRect())`)
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {390, "dark"}, {320, "light"}} {
		b.Look(c.width, 800, c.scheme)
		b.Keep(fmt.Sprintf("admin-found-line-%d", c.width), b.Picture())
	}
	b.Look(1280, 900, "light")
	b.Click(`.way a`)
	b.Eventually(`location.pathname === "/admin/search" && location.search.includes("type=document")`)
}

func TestOnAPhoneTheSearchOpensFromItsIconAndMovesNothing(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, c := range []struct {
		width  int64
		scheme string
	}{{320, "light"}, {390, "light"}, {390, "dark"}, {1280, "light"}, {1280, "dark"}} {
		b.Look(c.width, 800, c.scheme)
		b.Open(s.url + "/admin/bots")
		live(b)
		b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d`, c.width))
		b.Eventually(stood)
		name := fmt.Sprintf("admin-seek-%d-%s", c.width, c.scheme)
		b.Keep(name+"-closed", b.Picture())
		if c.width < 800 {
			b.Click(`.seek label`)
		} else {
			b.Click(`#seek`)
		}
		b.Focused(`#seek`)
		b.Eventually(`getComputedStyle(document.querySelector("#seek")).opacity === "1" && document.querySelector("#seek").getBoundingClientRect().width > 150`)
		if list := webtest.Value[[]string](b, moved); len(list) > 0 {
			t.Errorf("at %d px the search moves %q", c.width, list)
		}
		wellMannered(t, b, name)
		b.Keep(name+"-open", b.Picture())
		b.Press("seed" + kb.Enter)
		b.Eventually(`location.pathname === "/admin/search"`)
		b.Visible(`.results mark`)
	}
}
