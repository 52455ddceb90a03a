//go:build browser

package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// The change that is approved is readable in both themes and on a phone: signs next to
// the colours, long lines inside their box, and what is folded opens by keyboard and
// stays open while the page changes.
func TestWhatACallWouldChangeIsReadableInEveryWindow(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	after := "Buy green tea and " + strings.Repeat("a very long line of words ", 12) + "end.\n" + strings.Repeat("Another line.\n", 90)
	s.world.asks[0] = changing(s.world.asks[0], "Buy tea and "+strings.Repeat("a very long line of words ", 12)+"end.\n", after)
	s.world.renew()
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/approvals")
	b.Visible(`#k-q1 .diff`)
	live(b)
	for _, w := range windows {
		b.Look(w.width, 800, w.scheme)
		b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, w.width, w.scheme))
		where := fmt.Sprintf("%s at %d px", w.scheme, w.width)
		if signs := webtest.Value[string](b, `[...document.querySelectorAll("#k-q1 .diff span")].slice(0, 3).map((l) => l.textContent[0]).join("")`); signs != "-++" {
			t.Errorf("%s: the lines begin with %q", where, signs)
		}
		if marked := webtest.Value[string](b, `document.querySelector("#k-q1 .diff b").textContent`); marked != "green " {
			t.Errorf("%s: marked is %q", where, marked)
		}
		if over := webtest.Value[int](b, `(() => { const d = document.querySelector("#k-q1 .diff"); return Math.max(d.scrollWidth - d.clientWidth, document.documentElement.scrollWidth - document.documentElement.clientWidth) })()`); over > 0 {
			t.Errorf("%s: %d px are out of sight", where, over)
		}
		if webtest.Shots() != "" {
			b.Keep(fmt.Sprintf("change-%s-%d", w.scheme, w.width), b.Picture())
		}
	}
	b.Focus(`#more-q1 > summary`)
	b.Press("\r")
	b.Eventually(`document.querySelector("#more-q1").open`)
	if err := (askWorld{s.world}).Deny(t.Context(), "q2", core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	b.Says(`#k-q2`, "Denied by operator via chat")
	if !webtest.Value[bool](b, `document.querySelector("#more-q1").open`) {
		t.Error("the folded lines closed when another call was decided")
	}
}
