//go:build browser

package admin_test

import (
	"testing"

	"gatehouse/web/webtest"
)

// Both authors are read at their messages, on a desk and on a phone.
func TestAGroupsAuthorsAreReadOnADeskAndOnAPhone(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	id := s.world.club()
	for _, c := range []struct {
		name   string
		width  int64
		scheme string
	}{{"desk-light", 1280, "light"}, {"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}} {
		b.Look(c.width, 900, c.scheme)
		b.Open(s.url + "/admin/chats")
		live(b)
		b.Says(`#s-`+id+` td[data-label=With]`, "Allotment club")
		b.Keep("admin-group-list-"+c.name, b.Picture())
		b.Click(`#s-` + id + ` a`)
		b.Says(`.head`, "Group Allotment club")
		wellMannered(t, b, "group "+c.name)
		from := webtest.Value[[]string](b, `[...document.querySelectorAll(".said.person .from")].map((p) => p.querySelector("b").textContent + " " + p.querySelector("span").textContent)`)
		if len(from) != 2 || from[0] != "Ines Carvalho Telegram · vault" || from[1] != "Ada Okafor Telegram · sandboxed" {
			t.Errorf("%s: the messages are from %q", c.name, from)
		}
		b.Eventually(`document.title.includes("Allotment club") && !document.querySelector(".talk").textContent.includes('From "')`)
		b.Keep("admin-group-"+c.name, b.WholePicture())
	}
}
