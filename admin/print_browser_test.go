//go:build browser

package admin_test

import (
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// controls are what can be pressed or filled in on the page and is shown.
const controls = `[...document.querySelectorAll("button, .button, input, select, textarea, nav, .bar, #toast")].filter((x) => x.checkVisibility() && x.getClientRects().length > 0)
	.map((x) => x.tagName.toLowerCase() + "." + x.className + " " + (x.name || x.innerText || "").slice(0, 40))`

// Paper has what a page says, dark on white whatever the reader's colours, and nothing to press.
func TestPagesPrintWithoutTheirControls(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, path := range []string{"/admin", "/admin/pairing", "/admin/approvals", "/admin/people", "/admin/people/2", "/admin/chats", "/admin/chats/" + s.world.ada, "/admin/bots", "/admin/queue", "/admin/models", "/admin/audit"} {
		b.Look(1120, 900, "dark")
		b.Open(s.url + path)
		live(b)
		if n := webtest.Value[int](b, `(window.read = [...document.querySelectorAll("main :is(h1, .card h2, tbody th, tbody td:not(.end), dd)")].filter((x) => x.checkVisibility() && x.innerText)).length`); n == 0 {
			t.Errorf("%s shows nothing", path)
		}
		b.Print("dark")
		for _, c := range webtest.Value[[]string](b, controls) {
			t.Errorf("%s prints %s", path, c)
		}
		b.Keep("admin-print"+strings.ReplaceAll(path, "/", "-"), b.WholePicture())
		if got := webtest.Value[string](b, `getComputedStyle(document.body).backgroundColor + " " + getComputedStyle(document.body).color + " " + getComputedStyle(document.documentElement).colorScheme`); got != "rgb(255, 255, 255) rgb(0, 0, 0) light" {
			t.Errorf("%s prints in %s", path, got)
		}
		for _, lost := range webtest.Value[[]string](b, `window.read.filter((x) => !x.checkVisibility()).map((x) => x.innerText)`) {
			t.Errorf("%s does not print %q", path, lost)
		}
	}
}
