//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// What a helper did is opened by one press, on every screen and in both colours.
func TestAHelpersCallsOpenBelowTheTask(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	id := s.world.helped()
	b := webtest.New(t)
	signIn(b, s)
	for _, w := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {390, "light"}, {1280, "dark"}, {390, "dark"}} {
		b.Look(w.width, 900, w.scheme)
		b.Open(s.url + "/admin/chats/" + id)
		b.Click(`.helper > summary`)
		b.Visible(`.helper .call`)
		b.Click(`.helper .call > summary`)
		where := fmt.Sprintf("%s at %d px", w.scheme, w.width)
		wellMannered(t, b, where)
		if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s: %d px too wide", where, over)
		}
		b.Keep(fmt.Sprintf("admin-helper-%s-%d", w.scheme, w.width), b.WholePicture())
	}
}
