//go:build browser

package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/web/webtest"
)

func TestTheJournalIsReadWrittenAndTurnedByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/journal")
	b.TabTo(`.calendar a[href$="2026-01-17"]`)
	b.Press(kb.Enter)
	b.Eventually(`new URLSearchParams(location.search).get("date") === "2026-01-17"`)
	b.Says(`main`, "The lease is signed.")
	b.Open(s.url + "/admin/journal")
	b.TabTo(`a[href*="edit=abc123def456"]`)
	b.Press(kb.Enter)
	b.Focused(`#e-abc123def456 textarea`)
	b.Press(kb.End + " And tea.")
	b.TabTo(`button[value=save]`)
	b.Press(kb.Enter)
	b.Eventually(`location.hash === "#e-abc123def456" && !document.querySelector("button[value=save]")`)
	if got := s.world.diary(); !strings.Contains(got, "And tea.") {
		t.Errorf("%s", got)
	}
}

func TestTheJournalFitsPhonesInBothColours(t *testing.T) {
	s, b := atDesk(t, "/admin/journal")
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}, {320, "light"}} {
		b.Look(c.width, 900, c.scheme)
		for _, path := range []string{"/admin/journal", "/admin/journal?date=" + diaryDay + "&edit=abc123def456"} {
			b.Open(s.url + path)
			b.Visible(`h1`)
			b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d`, c.width))
			name := fmt.Sprintf("admin-%s-%d-%s", pageName(s, path), c.width, c.scheme)
			wellMannered(t, b, name)
			b.Keep(name, b.Picture())
		}
	}
	b.Look(1280, 900, "light")
	b.Open(s.url + "/admin/journal")
	b.Eventually(`document.querySelector(".photo").complete && document.querySelector(".photo").naturalWidth === 480`)
	b.Eventually(`(document.querySelector("audio").load(), document.querySelector("audio").preload = "auto", true)`)
	b.Eventually(`document.querySelector("audio").readyState >= 1`)
	if fault := webtest.Value[bool](b, `document.querySelector("audio").error !== null`); fault {
		t.Error("the recording cannot be played")
	}
}
