//go:build browser

package main

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The operator writes in the panel; the words of the answer appear as they are
// made, then the answer stands in the conversation, and what it cost below it.
func TestTheOperatorTalksInTheBrowserAndSeesTheAnswerGrow(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.Open("http://" + v.cfg.Addr + "/admin/talk")
	v.panel.Write(`#composer textarea`, "What is in this vault, and what can you do for me?"+kb.Enter)
	v.panel.Eventually(`location.pathname.startsWith("/admin/chats/")`)
	v.panel.Visible(`#stream`)
	v.following()
	v.panel.Eventually(`document.querySelector("#stream .words").textContent.length > 0`)
	v.panel.Says(`.said.person`, "What is in this vault")
	v.panel.Gone(`#stream`) // the answer is whole, and stands in the list
	v.panel.Eventually(`document.querySelector(".said.answer:not(.stream) .md").textContent.length > 20`)
	v.panel.Says(`#runs .pill`, "Answered")
	v.panel.Eventually(`window.sameDocument === true`)

	v.panel.Write(`#composer textarea`, "And what else?"+kb.Enter)
	v.panel.Eventually(`document.querySelectorAll(".said.person").length === 2`)
	v.panel.Eventually(`document.querySelectorAll(".said.answer:not(.stream)").length === 2`)
	if n := v.count(`SELECT count(*) FROM sessions WHERE user_id = 1`); n != 1 {
		t.Errorf("the two messages are in %d conversations", n)
	}
	// A file goes with the next one, and stands in the conversation.
	v.panel.Eventually(`(() => {
		const all = new DataTransfer();
		all.items.add(new File(["Sow the beans on Monday."], "plan.txt", { type: "text/plain" }));
		document.querySelector("[data-files]").files = all.files;
		return true;
	})()`)
	v.panel.Write(`#composer textarea`, "What does the plan say?"+kb.Enter)
	v.panel.Eventually(`document.querySelectorAll(".said.person").length === 3`)
	v.panel.Eventually(`[...document.querySelectorAll(".said.person")].at(-1).textContent.includes("Sow the beans on Monday.")`)
	v.panel.Eventually(`document.querySelectorAll(".said.answer:not(.stream)").length === 3`)
	v.panel.Keep("talk-desk-light", v.panel.Picture())
}
