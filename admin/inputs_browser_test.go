//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

func TestTheTableOfAnInputFitsEveryWindow(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	id := s.world.mcpTalk()
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/chats/" + id)
	b.Click(`.call summary`)
	b.Visible(`.call .fields`)
	for _, w := range windows {
		b.Look(w.width, 800, w.scheme)
		b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, w.width, w.scheme))
		if over := webtest.Value[int](b, `(() => { const f = document.querySelector(".fields"); return Math.max(f.scrollWidth - f.parentElement.clientWidth, document.documentElement.scrollWidth - document.documentElement.clientWidth) })()`); over > 0 {
			t.Errorf("%s at %d px: %d px too wide", w.scheme, w.width, over)
		}
		if webtest.Shots() != "" {
			b.Keep(fmt.Sprintf("inputs-%s-%d", w.scheme, w.width), b.WholePicture())
		}
	}
}
