//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core/memory"
)

func TestTheMemoryIsDeletedAndBroughtBackByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/memory")
	s.world.remembers()
	b.Open(s.url + "/admin/memory")
	b.TabTo(`button[value=delete]`)
	b.Press(kb.Enter)
	b.Says(`main`, "the deletion of #2")
	b.TabTo(`button[value=undo]`)
	b.Press(kb.Enter)
	b.Eventually(`!document.querySelector("button[value=undo]")`)
}

func TestAnOpenQuestionOfTheMemoryIsEditedByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/memory")
	s.world.remembers()
	b.Open(s.url + "/admin/memory")
	b.TabTo(`#open-h ~ article a[href*="edit="]`)
	b.Press(kb.Enter)
	b.Eventually(`document.activeElement.matches("article textarea")`)
	b.Press(" It is not Sydney.")
	b.TabTo(`button[value="edit-save"]`)
	b.Press(kb.Enter)
	b.Says(`main`, "It is not Sydney.")
	b.Eventually(`!document.querySelector("#open-h")`)
}

func TestTheMemoryFitsPhonesInBothColours(t *testing.T) {
	s, b := atDesk(t, "/admin/memory")
	s.world.remembers()
	edit := s.world.inForce(1)[0].ID
	open, _, err := s.world.memory.List(t.Context(), 1, memory.Filter{Cards: true})
	must(err)
	card := open[0].ID
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}, {320, "light"}} {
		b.Look(c.width, 900, c.scheme)
		for i, path := range []string{"/admin/memory", "/admin/memory?edit=" + edit, "/admin/memory?used=" + edit, "/admin/memory?edit=" + card} {
			b.Open(s.url + path)
			b.Visible(`h1`)
			b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d`, c.width))
			name := fmt.Sprintf("admin-memory-%d-%d-%s", i, c.width, c.scheme)
			wellMannered(t, b, name)
			b.Keep(name, b.Picture())
		}
	}
}
