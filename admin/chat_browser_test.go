//go:build browser

package admin_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/transcript"
	"gatehouse/web/webtest"
)

// addTo writes messages to a conversation, now.
func (w *world) addTo(t *testing.T, id, run string, messages ...transcript.Message) {
	t.Helper()
	d, err := w.chats.Detail(t.Context(), id)
	must(err)
	c, err := w.chats.Open(t.Context(), d.Session)
	must(err)
	must(errors.Join(c.Append(run, 0, messages...), c.Sync(), c.Close()))
}

// What is typed finds a person, whose conversations the filter then holds; the address keeps what was chosen, and a conversation opens at its end.
func TestChatsAreSearchedAndFilteredInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	keyed(b)
	b.Press("f")
	b.Focused(`main input[type=search]`)
	b.Eventually(`(document.activeElement.value = "", true)`) // of the key itself, which a user's browser does not write
	b.Press("ines" + kb.Enter)
	b.Says(`.hits`, "Ines Carvalho")
	wellMannered(t, b, "what was found")
	b.Keep("admin-chats-found", b.Picture())
	b.Click(`.hits a`)
	b.Eventually(`location.search === "?state=all&user=2"`)
	b.Says(`tbody`, "Allotment meeting")
	b.Eventually(`document.querySelector(".filters [name=user]").selectedOptions[0].textContent === "Ines Carvalho"`)
	b.Eventually(`(document.querySelector(".filters [name=user]").value = "", document.querySelector(".filters [name=state]").value = "running", true)`)
	b.Click(`.filters button`)
	b.Eventually(`new URLSearchParams(location.search).get("state") === "running" && document.querySelectorAll("tbody tr").length === 1`)
	live(b)
	b.Click(`#s-` + s.world.mine + ` a`)
	b.Eventually(`location.pathname === "/admin/chats/` + s.world.mine + `" && location.hash === "#end"`)
}

// People's messages are on one side and the agent's on the other, none as wide as the
// conversation.
func TestMessagesAreBubblesOnTheirAuthorsSide(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	for _, id := range []string{s.world.ada, s.world.club()} {
		for _, w := range []struct {
			width  int64
			scheme string
		}{{1280, "light"}, {1920, "light"}, {390, "light"}, {1280, "dark"}, {390, "dark"}} {
			b.Look(w.width, 900, w.scheme)
			b.Open(s.url + "/admin/chats/" + id)
			live(b)
			where := fmt.Sprintf("%s at %d px", w.scheme, w.width)
			wellMannered(t, b, where)
			wrong := webtest.Value[[]string](b, `(() => {
				const talk = document.querySelector(".talk").getBoundingClientRect();
				return [...document.querySelectorAll(".talk > .said")].filter((m) => {
					const r = m.getBoundingClientRect(), gap = m.matches(".person") ? talk.right - r.right : r.left - talk.left;
					return gap > 1 || r.width > talk.width * 0.95;
				}).map((m) => m.textContent.slice(0, 60));
			})()`)
			if len(wrong) > 0 {
				t.Errorf("%s: on the wrong side, or too wide: %q", where, wrong)
			}
			b.Keep(fmt.Sprintf("admin-bubbles-%.4s-%s-%d", id, w.scheme, w.width), b.WholePicture())
		}
	}
}

// On a phone, nothing of the conversation shows between the field and the row of tabs.
func TestTheFieldReachesTheRowOfTabs(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	for _, scheme := range []string{"light", "dark"} {
		b.Look(390, 844, scheme)
		b.Open(s.url + "/admin/chats/" + s.world.mine)
		live(b)
		if gap := webtest.Value[string](b, `(() => {
			window.scrollTo(0, 40);
			const tabs = document.querySelector('nav[aria-label="Pages"]').getBoundingClientRect(), field = document.querySelector(".composer .box").getBoundingClientRect();
			for (let y = Math.ceil(field.bottom); y < Math.floor(tabs.top); y++) {
				const at = document.elementFromPoint(195, y);
				if (!at.closest(".composer")) return at.outerHTML.slice(0, 80) + " at " + y + ", between " + field.bottom + " and " + tabs.top;
			}
			return field.bottom > tabs.top ? "the field is below the tabs" : "";
		})()`); gap != "" {
			t.Errorf("%s: %s", scheme, gap)
		}
		b.Keep("admin-field-phone-"+scheme, b.Picture())
	}
}

// The lines between days are where the reader's days begin.
func TestDayLinesAreOfTheReadersDays(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC))
	s := newSite(t, clock, nil)
	w := s.world
	w.full() // the evening of 3 March in New York
	clock.Advance(3 * time.Hour)
	w.addTo(t, w.ada, "0192fa3c-41aa-7000-8000-0000000000d1", transcript.Message{Role: "user", Blocks: []core.Block{text("And on Sunday?")}})
	clock.Advance(time.Hour)
	w.addTo(t, w.ada, "0192fa3c-41aa-7000-8000-0000000000d2", transcript.Message{Role: "user", Blocks: []core.Block{text("Hello?")}})
	b := webtest.New(t)
	b.Zone("America/New_York")
	signIn(b, s)
	b.Open(s.url + "/admin/chats/" + w.ada)
	live(b)
	const lines = `[...document.querySelectorAll(".talk > .day")].map((d) => d.textContent + ": " + d.nextElementSibling.querySelector(".words, .md").textContent.slice(0, 12))`
	want := []string{"Tuesday, March 3, 2026: When is the ", "Wednesday, March 4, 2026: And on Sunda"}
	check := func() {
		t.Helper()
		if got := webtest.Value[[]string](b, lines); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("lines %q, want %q", got, want)
		}
	}
	check()
	w.addTo(t, w.ada, "0192fa3c-41aa-7000-8000-0000000000d3", transcript.Message{Role: "user", Blocks: []core.Block{text("Are you there?")}})
	w.ring(core.TopicApprovals)
	b.Says(`.talk > li:last-child`, "Are you there?")
	check() // also after the page took what is new
	b.Keep("admin-chat-days", b.WholePicture())
}

// The composer stands at the bottom of the window, never over the last message, and
// the tabulator goes from the text to the files and to Send.
func TestTheComposerStaysAtTheBottomAndCoversNoMessage(t *testing.T) {
	s, b := atDesk(t, "/admin/chats")
	for i := range 12 {
		s.world.addTo(t, s.world.mine, fmt.Sprintf("0192fa3c-41aa-7000-8000-00000000e0%02d", i), transcript.Message{Role: "user", Blocks: []core.Block{text(fmt.Sprintf("Message %d\nin\nseveral\nlines.", i))}})
	}
	s.world.mu.Lock()
	s.world.active = nil
	s.world.mu.Unlock()
	for _, c := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {390, "dark"}} {
		b.Look(c.width, 800, c.scheme)
		b.Open(s.url + "/admin/chats/" + s.world.mine + "?x=" + c.scheme + "#end")
		live(b)
		const clear = `document.querySelector(".talk > li:last-child").getBoundingClientRect().bottom <= document.querySelector("#composer").getBoundingClientRect().top`
		b.Eventually(clear + ` && scrollY > 100`)
		b.Keep("admin-composer-"+c.scheme, b.Picture())
		b.Eventually(`(scrollTo({ top: 0, behavior: "instant" }), scrollY === 0)`)
		free := webtest.Value[float64](b, `(document.querySelector('nav[aria-label="Pages"]').getBoundingClientRect().top > innerHeight / 2 ? document.querySelector('nav[aria-label="Pages"]').getBoundingClientRect().top : innerHeight) - document.querySelector("#composer .box").getBoundingClientRect().bottom`)
		if free < 0 || free > 20 {
			t.Errorf("%d px: the field ends %.0f px above the bottom", c.width, free)
		}
		b.Focus(`#composer textarea`)
		b.Press(kb.Tab)
		b.Focused(`#composer input[type=file]`)
		b.Press(kb.Tab)
		b.Focused(`#composer .primary`)
	}
}
