//go:build browser

package phones_test

import (
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/web/webtest"
)

// axe-core finds nothing on the page of phones, with messages, buttons and an open form, in
// both themes and at both widths.
func TestAxeFindsNothingOnThePhones(t *testing.T) {
	axe := webtest.NewAxe(t)
	stage := serve(t, phones.Options{Claim: func() string { return "K7WM3QXD" }, Panel: "http://127.0.0.1:3333/admin"})
	asking(t, stage)
	s := &scene{t, stage, webtest.New(t)}
	ada := stage.telegram.Users()[0]
	cleo := "#phone-discord-" + stage.discord.Users()[0].ID().String() + " "
	look := func(name string, width int64, scheme string) {
		t.Helper()
		found, passed := s.tab.Violations(axe)
		if passed < 15 {
			t.Errorf("%s at %d px: only %d rules had something to look at", name, width, passed)
		}
		for _, v := range found {
			t.Errorf("%s at %d px, %s: %s: %s: %s: %s", name, width, scheme, v.Impact, v.Rule, v.Help, v.At)
		}
	}
	for width, scheme := range map[int64]string{1280: "light", 390: "dark"} {
		s.tab.Look(width, 860, scheme)
		s.tab.Open(stage.web.URL)
		s.tab.Write("#phone-telegram-"+jsonOf(ada.ID())+" textarea", "Hello\r")
		s.tab.Visible("#phone-telegram-" + jsonOf(ada.ID()) + " .own .text")
		s.say("sendMessage", map[string]any{"chat_id": ada.ID(), "text": "Which one?",
			"reply_markup": map[string]any{"inline_keyboard": [][]map[string]string{{{"text": "This", "callback_data": "a"}, {"text": "That", "callback_data": "b"}}}}})
		s.tab.Visible("#phone-telegram-" + jsonOf(ada.ID()) + " .key")
		look("Telegram", width, scheme)
		s.tab.Eventually(`(document.querySelector('.switch [data-show="discord"]').click(), true)`)
		s.tab.Eventually(`document.querySelectorAll("` + cleo + `.menu option").length === 7`)
		look("Discord", width, scheme)
		s.tab.Eventually(`(document.querySelector("` + cleo + `.key").click(), true)`)
		s.tab.Eventually(`document.querySelector("dialog.form[open] h2")?.textContent === "Your answer"`)
		look("a form", width, scheme)
	}
}
