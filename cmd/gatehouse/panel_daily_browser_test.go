//go:build browser

package main

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/webtest"
)

// The operator adds a sample, runs it, and sees without a reload that it has written.
func TestTheOperatorRunsADailyAgentAndSeesItEnd(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.AdminPassword = values.NewSecret(newPassword) })
	w.put("Daily/.agents/broken.md", "---\nschedule: \"25:99\"\n---\nx")
	tab := webtest.New(t)
	tab.Look(1280, 860, "light")
	tab.Open("http://" + w.cfg.Addr + "/admin")
	tab.Focused(`input[name=password]`)
	tab.Press(newPassword + kb.Enter)
	tab.Visible(`nav a[href="/admin/pairing"]`)
	tab.Open("http://" + w.cfg.Addr + "/admin/daily")
	tab.Click(`form[action="/admin/daily/reflection/add"] button`)
	tab.Says(`#flash`, "reflection.md is written")
	tab.Click(`form[action="/admin/daily/content-scout/add"] button`)
	tab.Says(`#flash`, "content-scout.md is written")
	model.Script(llmtest.Reply{Calls: []llmtest.Call{{ID: "a", Name: "WriteOutput", Fragments: []string{`{"content":"A day."}`}}}, Pause: 100 * time.Millisecond}, llmtest.Say("Done."))
	tab.Click(`form[action="/admin/daily/reflection/run"] button`)
	tab.Says(`#flash`, "is running for")
	tab.Eventually(`document.body.textContent.includes("Written")`)
	shots := func(name string) {
		for _, look := range []struct {
			name  string
			width int64
			theme string
		}{{"desk-light", 1280, "light"}, {"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}} {
			tab.Look(look.width, 860, look.theme)
			tab.Keep(name+"-"+look.name, tab.Picture())
		}
	}
	shots("daily")
	tab.Open("http://" + w.cfg.Addr + "/admin/daily/reflection")
	tab.Says(`h1`, "Reflection")
	shots("daily-one")
}
