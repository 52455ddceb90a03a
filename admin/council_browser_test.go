//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// The options stand beside each other where there is room, and below each other on a phone.
func TestTheOptionsOfADisputeAreComparedAndPickedByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/council/queries/"+disputed)
	const edges = `[...document.querySelectorAll(".options > li")].map((e) => e.getBoundingClientRect())`
	for _, c := range []struct {
		width  int64
		scheme string
		beside bool
	}{{1280, "light", true}, {1280, "dark", true}, {390, "light", false}, {390, "dark", false}, {320, "light", false}} {
		where := fmt.Sprint(c.width, " ", c.scheme)
		b.Look(c.width, 900, c.scheme)
		if got := webtest.Value[bool](b, edges+`.every((e, i, all) => i === 0 || e.top === all[0].top && e.left >= all[0].right)`); got != c.beside {
			t.Errorf("%s: the options are beside each other: %v", where, got)
		}
		if webtest.Value[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`) {
			t.Errorf("%s: the page is wider than the screen", where)
		}
		wellMannered(t, b, where)
		b.Keep(fmt.Sprintf("council-%d-%s", c.width, c.scheme), b.WholePicture())
	}
	b.Look(1280, 900, "light")
	b.TabTo(`button[value="two/beta"]`)
	b.Press(kb.Enter)
	b.Hears("You picked the answer of two/beta.")
	b.Visible(`.options .pill.good`)
	b.Gone(`.options button`)
	b.Focused(`#answer-2`)
	b.Keep("council-picked", b.WholePicture())
	id := s.world.councilChat(core.Operator)
	b.Open(s.url + "/admin/chats/" + id)
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {390, "dark"}} {
		b.Look(c.width, 900, c.scheme)
		wellMannered(t, b, "the chat")
		b.Keep(fmt.Sprintf("council-chat-%d-%s", c.width, c.scheme), b.WholePicture())
	}
	b.TabTo(`.said a[href*="/admin/council/"]`)
	b.Press(kb.Enter)
	b.Eventually(`location.pathname.endsWith("` + councilRun + `") && location.hash === "#options"`)
}
