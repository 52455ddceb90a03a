//go:build browser

package main

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// From the overview it takes three clicks besides typing. The platform is asked who the token
// is; the bot runs at once.
func TestABotIsAddedInThreeClicksInABrowser(t *testing.T) {
	t.Parallel()
	for name, width := range map[string]int64{"desk": 1280, "phone": 390} {
		t.Run(name, func(t *testing.T) {
			p, token := newSupport(t, nil)
			b := webtest.New(t)
			b.Look(width, 860, "light")
			b.Open("http://" + p.cfg.Addr + "/admin/login")
			b.Write(`input[name=password]`, worldPassword+kb.Enter)
			b.Visible(`nav`)
			b.Eventually(`document.querySelector("#live span")?.textContent === "Live"`)
			clicks, menu := 0, `nav[aria-label=Pages] li:not(.more) > a[href="/admin/settings"]`
			click := func(sel string) { clicks++; b.Click(sel) }
			if name == "phone" {
				b.Click(`#more summary`) // the menu of a phone
				menu = `#more a[href="/admin/settings"]`
			}
			click(menu)
			click(`a[href="/admin/settings/bots/add"]`)
			b.Visible(`#addbot`)
			if webtest.Shots() != "" {
				b.Keep("settings-addbot-"+name, b.WholePicture())
				b.Look(width, 860, "dark")
				b.Keep("settings-addbot-dark-"+name, b.WholePicture())
				b.Look(width, 860, "light")
			}
			b.Write(`[name=name]`, "support")
			b.Write(`[name=token]`, token)
			click(`#addbot .primary`)
			b.Says(`#flash`, "The token is @further1_bot’s. support is starting.")
			b.Says(`#bot-support .id p`, "token set in the panel, never shown")
			b.Says(`#bot-support .pill`, "Running")
			b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
			b.Keep("settings-addbot-added-"+name, b.WholePicture())
			if clicks > 3 {
				t.Errorf("%d clicks, want at most 3", clicks)
			}
			p.awaits("support", core.Running)
			b.Click(`#remove-support summary`)
			b.Click(`#remove-support .danger`)
			b.Says(`#toast`, "support is removed and its token deleted.")
			b.Gone(`#bot-support`)
		})
	}
}
