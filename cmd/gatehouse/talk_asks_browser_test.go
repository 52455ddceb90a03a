//go:build browser

package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/web/webtest"
)

const wantsTea = `use AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black","description":"stronger"}]}]}`

// talks opens the page Chat and says something there.
func (v *visit) talks(text string) {
	v.t.Helper()
	v.panel.Open("http://" + v.cfg.Addr + "/admin/talk")
	v.panel.Write(`#composer textarea`, text+kb.Enter)
	v.panel.Eventually(`location.pathname.startsWith("/admin/chats/")`)
	v.following()
}

// answered waits until the answer stands in the conversation, with this in it.
func (v *visit) answered(part string) {
	v.t.Helper()
	v.panel.Gone(`#stream`)
	v.panel.Eventually(`[...document.querySelectorAll(".said.answer:not(.stream)")].at(-1)?.textContent.includes(` + strconv.Quote(part) + `)`)
}

// looks takes a picture on a desk and on a phone, in both schemes, of what sel names.
func (v *visit) looks(name, sel string) {
	if webtest.Shots() == "" {
		return
	}
	for _, c := range []struct {
		as     string
		width  int64
		scheme string
	}{{"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}, {"desk-light", 1280, "light"}} {
		v.panel.Look(c.width, 860, c.scheme)
		v.panel.Eventually(`(document.querySelector("` + sel + `").scrollIntoView({block: "center", behavior: "instant"}), true)`)
		v.panel.Keep("talk-"+name+"-"+c.as, v.panel.Picture())
	}
}

// The model asks while the operator looks: they answer by a button, in their own
// words, and in the field that they write messages in. What is half written
// stays when the page brings itself up to date.
func TestAQuestionOnTheChatPageIsAnsweredByButtonAndInOnesOwnWords(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.talks(wantsTea)
	v.panel.Says(`.question legend`, "Which tea?")
	v.panel.Hears("asks you something", "waits for your answer") // the second where the page came with the question
	v.panel.Eventually(`Number(document.querySelector(".question .left").textContent.split(" ")[0]) < 300`)
	v.panel.Eventually(`document.querySelector(".question .own input").getBoundingClientRect().width > 300`) // room for words
	v.looks("question", ".question")
	v.panel.Click(`.question input[value=Black]`)
	v.panel.Click(`.question .primary`)
	v.panel.Gone(`.question`)
	v.answered("Black")
	v.panel.Eventually(`window.sameDocument === true`)

	v.talks(wantsTea)
	v.panel.Visible(`.question`)
	v.panel.Write(`.question .own input`, "Neither, ")
	v.panel.Eventually(`(window.seen = document.querySelector(".question .left"), true)`)
	v.panel.Eventually(`(document.querySelector("header.head p").textContent = "stale", true)`) // the next refresh puts it right
	v.panel.Eventually(`document.querySelector("header.head p").textContent !== "stale"`)
	v.panel.Eventually(`document.activeElement.matches(".question .own input") && document.activeElement.value === "Neither, "`)
	v.panel.Press("coffee please" + kb.Enter)
	v.panel.Gone(`.question`)
	v.answered("Neither, coffee please")
	v.panel.Eventually(`window.sameDocument === true`)

	v.talks(wantsTea)
	v.panel.Visible(`.question`)
	v.panel.Write(`#composer textarea`, "Whatever is left"+kb.Enter)
	v.answered("Whatever is left")
	if n := v.count(`SELECT count(*) FROM runs`); n != 3 {
		t.Errorf("%d turns for three messages and three answers", n)
	}
}

// A tool call of the operator's conversation waits in it, and is allowed or
// refused there.
func TestAToolCallIsDecidedInItsConversationOnTheChatPage(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	_, toWrite, _ := strings.Cut(wantsToWrite, "\n") // of one line: Enter sends
	v.talks("hello")
	v.panel.Gone(`#stream`)
	v.panel.Visible(`.said.answer:not(.stream)`)
	id := strings.TrimPrefix(webtest.Value[string](v.panel, `location.pathname`), "/admin/chats/")
	if code, body, _ := v.asked("PATCH", "/api/chat/"+id, map[string]any{"metadata": map[string]any{"permissions": map[string]any{"trust_mode": false}}}, http.Header{"If-Match": {"*"}}); code != 200 {
		t.Fatalf("%d %v", code, body)
	}
	v.panel.Write(`#composer textarea`, toWrite+kb.Enter)
	v.panel.Says(`#asks .request`, "Write wants to change")
	v.following()
	v.panel.Says(`#asks .request pre`, "Notes/plan.md")
	v.looks("ask", "#asks")
	v.panel.Click(`#asks .request button[formaction$=deny]`)
	v.panel.Gone(`#asks`)
	v.answered("Denied by operator via panel")
	if v.note() != "" {
		t.Errorf("after the refusal: %q", v.note())
	}
	v.panel.Eventually(`window.sameDocument === true && location.pathname === "/admin/chats/` + id + `"`)

	v.panel.Write(`#composer textarea`, toWrite+kb.Enter)
	v.panel.Visible(`#asks .request`)
	v.following()
	v.panel.TabTo(`#asks .request input[name=pattern]`)
	v.panel.Press(kb.Enter) // the form's first button: allow
	v.panel.Gone(`#asks`)
	v.panel.Gone(`#stream`)
	v.panel.Eventually(`document.querySelectorAll(".said.answer:not(.stream)").length >= 3`)
	if v.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", v.note())
	}
	v.panel.Eventually(`window.sameDocument === true`)
}
