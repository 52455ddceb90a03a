//go:build browser

package main

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/webtest"
)

// The operator sees in the conversation why a message has no answer, presses Retry,
// and sees the answer, without leaving the page.
func TestTheOperatorSeesAFailureInTheConversationAndRetriesIt(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.AdminPassword, c.RateLimit = values.NewSecret(newPassword), values.Rate{} })
	ada := w.guest("Ada")
	model.Script(llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"))
	w.replies(ada, "How are the beans?")
	w.quiet()
	tab := webtest.New(t)
	tab.Look(1280, 860, "light")
	tab.Open("http://" + w.cfg.Addr + "/admin")
	tab.Focused(`input[name=password]`)
	tab.Press(newPassword + kb.Enter)
	tab.Visible(`nav a[href="/admin/pairing"]`)
	tab.Open("http://" + w.cfg.Addr + "/admin/chats/" + w.sessionIn(ada))
	tab.Says(`.said.failed`, "rejects the API key")
	tab.Says(`.said.failed`, "GATEHOUSE_OPENAI_API_KEY")
	for _, look := range []struct {
		name  string
		width int64
		theme string
	}{{"desk-light", 1280, "light"}, {"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}} {
		tab.Look(look.width, 860, look.theme)
		tab.Keep("failure-"+look.name, tab.Picture())
	}
	tab.Look(1280, 860, "light")
	tab.Open("http://" + w.cfg.Addr + "/admin")
	tab.Says(`#a-failing`, "openai/fake-1 refuses our key since")
	tab.Keep("failing-desk-light", tab.Picture())
	tab.Open("http://" + w.cfg.Addr + "/admin/chats/" + w.sessionIn(ada))
	model.Script(llmtest.Say("They grow."))
	tab.Click(`.said.failed button`)
	tab.Says(`#flash`, "The message is being answered again.")
	tab.Eventually(`[...document.querySelectorAll(".said.answer")].some(a => a.textContent.includes("They grow."))`)
	tab.Gone(`.said.failed button`)
	w.until("the answer arrives", func() bool {
		all := w.said(ada.DM(), 0)
		return len(all) > 0 && all[len(all)-1] == "They grow."
	})
}
