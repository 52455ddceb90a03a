//go:build browser

package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/core/transcript"
	"gatehouse/web/webtest"
)

// Code is copied with the keyboard alone, which is announced; what is wide scrolls
// inside its box on a phone.
func TestCodeInAnAnswerIsCopiedAndScrollsInItsBox(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	id := s.world.rich()
	for _, c := range []struct {
		name   string
		width  int64
		scheme string
	}{{"desk-light", 1280, "light"}, {"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}} {
		b.Look(c.width, 900, c.scheme)
		b.Open(s.url + "/admin/chats/" + id)
		live(b)
		b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
		wellMannered(t, b, "rendered "+c.name)
		b.Keep("admin-markdown-"+c.name, b.WholePicture())
	}
	b.Eventually(`(p => p.scrollWidth > p.clientWidth + 100)(document.querySelector(".md pre"))`)
	b.Eventually(`(globalThis.copied = [], document.addEventListener("copy", () => copied.push(getSelection().toString())), navigator.clipboard.writeText = async (text) => { copied.push(text); }, true)`)
	b.TabTo(`[data-copy]`)
	b.Press(kb.Enter)
	b.Says(`[data-copy]`, "Copied")
	b.Says(`#say`, "The code is copied")
	want := longLine + "\necho \"<b>done</b>\""
	if got := webtest.Value[[]string](b, `copied`); len(got) != 1 || got[0] != want {
		t.Errorf("copied %q, want %q", got, want)
	}
	b.Says(`[data-copy]`, "Copy the code") // again, after a while
	// Over plain HTTP a browser has no clipboard for scripts.
	b.Eventually(`(navigator.clipboard.writeText = async () => { throw new Error("not allowed"); }, document.querySelector("#say").textContent = "", true)`)
	b.Press(kb.Enter)
	b.Eventually(`copied.length === 2 || document.querySelector("#say").textContent.includes("The code is selected")`)
	b.Press(kb.Tab)
	b.Focused(`.md pre`) // the arrow keys scroll it
	b.Press(kb.ArrowRight)
	b.Eventually(`document.activeElement.scrollLeft > 0`)
}

// The words of an answer that is being made are plain; the rendered answer takes
// their place without moving the line that is being read.
func TestTheRenderedAnswerTakesThePlaceOfTheStreamedOneWhereItIsRead(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	w := s.world
	var long strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "## Step %d\n\nWater the **bed number %d** and look after the snails there.\n\n- one\n- two\n\n", i, i)
	}
	answer := long.String()
	b.Open(s.url + "/admin/chats/" + w.mine)
	b.Visible(`#stream`)
	live(b)
	b.Eventually(fmt.Sprintf(`(document.querySelector("#stream .words").textContent = %q, true)`, answer)) // as the events do
	b.Eventually(`(scrollTo({ top: document.querySelector("#stream").getBoundingClientRect().top + scrollY + 2500, behavior: "instant" }), true)`)
	line := func(sel string) float64 { // where the marked text is
		return webtest.Value[float64](b, fmt.Sprintf(`(() => {
			const walk = document.createTreeWalker(document.querySelector(%q), NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) {
				const at = walk.currentNode.data.indexOf(globalThis.mark);
				if (at < 0) continue;
				const r = document.createRange();
				r.setStart(walk.currentNode, at);
				r.setEnd(walk.currentNode, at + 1);
				return r.getBoundingClientRect().top;
			}
			return -1e6;
		})()`, sel))
	}
	b.Eventually(`(() => {
		const words = document.querySelector("#stream .words");
		const at = document.caretPositionFromPoint(words.getBoundingClientRect().left + 2, innerHeight / 2).offset;
		globalThis.mark = words.textContent.slice(at).match(/bed number \d+/)[0];
		return true;
	})()`)
	before := line("#stream .words")
	d, err := w.chats.Detail(t.Context(), w.mine)
	must(err)
	c, err := w.chats.Open(t.Context(), d.Session)
	must(err)
	must(errors.Join(c.Append(opRun, 1, transcript.Message{Role: "assistant", Blocks: []core.Block{text(answer)}}), c.Sync(), c.Close()))
	w.mu.Lock()
	w.active = nil
	w.mu.Unlock()
	w.ring(core.TopicApprovals)
	b.Gone(`#stream`)
	b.Visible(`.said.answer .md h4`)
	after := line(".said.answer:last-child")
	if moved := after - before; moved < -60 || moved > 60 {
		t.Errorf("%s was at %.0f px and is at %.0f px", webtest.Value[string](b, `mark`), before, after)
	}
}

func TestTheViewOfAnAgentFileIsSwitchedByKeyboard(t *testing.T) {
	s, b := atDesk(t, "/admin/agents")
	for _, c := range []struct {
		name   string
		width  int64
		scheme string
	}{{"desk-light", 1280, "light"}, {"phone-dark", 390, "dark"}} {
		b.Look(c.width, 900, c.scheme)
		b.Open(s.url + "/admin/agents")
		b.Click(`a[href="` + editNotes + `&view=rendered"]`)
		b.Says(`#rendered .md`, "You keep notes. Be brief.")
		b.Visible(`#rendered`)
		b.Eventually(`!document.querySelector("textarea").checkVisibility()`)
		b.Keep("admin-agent-rendered-"+c.name, b.WholePicture())
		b.Focus(`#view-rendered`)
		b.Press(kb.ArrowLeft)
		b.Visible(`textarea`)
		b.Eventually(`!document.querySelector("#rendered").checkVisibility()`)
	}
}
