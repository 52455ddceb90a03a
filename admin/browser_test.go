//go:build browser

package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// live waits until the page follows.
func live(b *webtest.Tab) {
	b.Eventually(`document.querySelector("#live span")?.textContent === "Live"`)
}

// signIn is the sign-in of somebody who has an own password.
func signIn(b *webtest.Tab, s *site) {
	b.Open(s.url + "/admin/login")
	b.Write(`input[name=password]`, password+kb.Enter)
	b.Visible(`nav`)
	live(b)
}

// signInFirst goes the way of the first start: one-time password, then an own one.
func signInFirst(b *webtest.Tab, s *site) {
	oneTime := s.oneTime()
	b.Open(s.url + "/admin")
	b.Write(`input[name=password]`, oneTime+kb.Enter)
	// the page focuses this field itself; typing before that goes astray
	b.Eventually(`document.readyState === "complete" && document.activeElement.name === "new"`)
	b.Write(`input[name=new]`, password)
	b.Write(`input[name=again]`, password+kb.Enter)
	b.Visible(`#flash.good`)
	live(b)
}

func TestARequestAppearsWithoutReloadAndIsApprovedByKeyboardAndRevoked(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running, Username: "gatehouse_bot"}}
	b := webtest.New(t)
	signInFirst(b, s)
	b.Open(s.url + "/admin/pairing")
	b.Visible(`#none`)
	live(b)
	b.Eventually(`window.sameDocument = true`)
	s.world.add(pending(clock, "r1", "Ada <b>Okafor</b>"))
	b.Visible(`#r-r1`)
	b.Hears("New request: Ada <b>Okafor</b> on Telegram")
	b.Eventually(`document.title.startsWith("(1) ")`)
	// A choice half made, with the focus in it, outlives the next news.
	b.Focus(`#r-r1 input[value=sandboxed]`)
	b.Press(kb.ArrowRight)
	b.Eventually(`document.querySelector("#r-r1 input[value=vault]").checked`)
	s.world.add(pending(clock, "r2", "Bo"))
	b.Visible(`#r-r2`)
	b.Eventually(`document.activeElement.value === "vault" && document.activeElement.checked`)
	b.Eventually(`document.querySelectorAll("#requests > li")[0].id === "r-r1"`) // news stands below
	b.Press(kb.Enter)                                                            // the form's first button: approve
	b.Visible(`#r-r1.settled`)
	b.Eventually(`document.activeElement.id === "r-r1"`)
	b.Hears("may talk to telegram now, as vault")
	b.Eventually(`document.querySelector("#r-r1 form").getBoundingClientRect().bottom <= innerHeight`) // in sight
	b.Press(kb.Tab)                                                                                    // to Revoke
	b.Press(kb.Enter)
	b.Hears("Revoked: 1 access on telegram")
	b.Eventually(`window.sameDocument === true`)
	if did := strings.Join(s.world.done(), "; "); did != "approved r1 vault; revoke telegram 7214451" {
		t.Errorf("did %q", did)
	}
	b.Click(`#r-r2 button[formaction$=deny]`)
	b.Visible(`#r-r2.settled`)
	b.Gone(`#r-r2`) // ten seconds later it has moved to those decided
	b.Visible(`#d-r2`)
}

func TestADecisionMadeElsewhereMovesNothingUnderTheFinger(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.add(pending(clock, "r1", "Ada"))
	s.world.add(pending(clock, "r2", "Bo"))
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/pairing")
	live(b)
	const top = `document.querySelector("#r-r2 .primary").getBoundingClientRect().top`
	before := webtest.Value[float64](b, top)
	if _, err := s.world.Approve(t.Context(), "r1", core.Approval{Trust: core.Sandboxed}, core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	b.Visible(`#r-r1.settled`)
	b.Eventually(`document.querySelector("#r-r1 .said").textContent.includes("Approved as sandboxed by operator via chat")`)
	if after := webtest.Value[float64](b, top); before != after {
		t.Errorf("the other card's button moved from %v to %v", before, after)
	}
}

func TestTimesStandInTheReadersZoneWithUTCOnHover(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.world.bots[0].Since = at
	b := webtest.New(t)
	b.Zone("America/New_York")
	signIn(b, s)
	b.Open(s.url + "/admin/bots")
	b.Eventually(`!document.querySelector("#bot-family time").textContent.includes("UTC")`)
	text := webtest.Value[string](b, `document.querySelector("#bot-family time").textContent`)
	title := webtest.Value[string](b, `document.querySelector("#bot-family time").title`)
	if !strings.Contains(text, "10:04") || title != "2026-01-02 03:04:05 UTC" {
		t.Errorf("text %q, title %q", text, title)
	}
}

func TestChartsHaveTheReadersTimes(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	b.Zone("Asia/Kolkata")
	signIn(b, s)
	b.Open(s.url + "/admin/models")
	b.Eventually(`document.querySelector(".graphs")?.dataset.zone === "Asia/Kolkata" || document.querySelector(".graphs")?.dataset.zone === "Asia/Calcutta"`)
	live(b)
	if first := webtest.Value[string](b, `document.querySelector("#g-received rect title").textContent`); !strings.Contains(first, ":30, ") {
		t.Errorf("half an hour from the full hours of UTC a bar is of %q", first)
	}
	b.Zone("UTC")
	b.Open(s.url + "/admin/models")
	b.Eventually(`document.querySelector(".graphs")?.dataset.zone === "UTC"`)
}

// It takes a picture of every page, too, where GATEHOUSE_TEST_SHOTS asks for any.
func TestEveryPageFitsItsWindowAndKeepsItsManners(t *testing.T) {
	empty := newSite(t, core.System{}, nil)
	full := newSite(t, core.System{}, nil)
	full.world.full()
	for _, c := range []struct {
		name string
		s    *site
	}{{"empty", empty}, {"full", full}} {
		b := webtest.New(t)
		look := func(name string) { // at the page as it stands, in every window and in both colours
			for _, w := range windows {
				b.Look(w.width, 800, w.scheme)
				b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, w.width, w.scheme))
				wellMannered(t, b, fmt.Sprintf("%s %s %s at %d px", c.name, name, w.scheme, w.width))
				if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
					t.Errorf("%s %s at %d px: %d px too wide", c.name, name, w.width, over)
				}
				if webtest.Shots() != "" {
					b.Keep("admin-"+name+"-"+c.name+"-"+map[int64]string{1280: "desk", 1080: "least", 880: "small", 660: "slim", 390: "phone", 320: "tiny"}[w.width]+"-"+w.scheme, b.WholePicture())
				}
			}
		}
		b.Open(c.s.url + "/admin/login")
		b.Visible(`h1`)
		look("login")
		signIn(b, c.s)
		for _, path := range c.s.pages() {
			b.Open(c.s.url + path)
			b.Visible(`h1`)
			live(b)
			look(pageName(c.s, path))
		}
	}
}

// windows are those that every page is looked at in: colours don't depend on the
// width. In 1080 px tables have the least room in which they are such, in 880 px
// the menu has, in which it stands beside the page.
var windows = []struct {
	width  int64
	scheme string
}{{1280, "light"}, {1080, "light"}, {880, "light"}, {660, "light"}, {390, "light"}, {320, "light"}, {1280, "dark"}, {390, "dark"}}

// TestShotsOfWhatAPressShows takes pictures of what shows only after a press,
// where GATEHOUSE_TEST_SHOTS asks for any.
func TestShotsOfWhatAPressShows(t *testing.T) {
	if webtest.Shots() == "" {
		t.Skip("GATEHOUSE_TEST_SHOTS names no folder")
	}
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, c := range []struct {
		name  string
		width int64
		dark  string
	}{{"desk-light", 1280, "light"}, {"phone-dark", 390, "dark"}} {
		b.Look(c.width, 900, c.dark)
		snap := func(name string) {
			b.Keep("admin-state-"+name+"-"+c.name, b.Picture())
		}
		b.Open(s.url + "/admin/pairing")
		b.Visible(`.request`)
		b.Click(`.preview details:nth-child(2) summary`)
		b.Click(`.request .confirm summary`)
		snap("block")
		b.Click(`h1`)
		b.Click(`.request .primary`)
		b.Visible(`.settled`)
		snap("settled")
		b.Click(`.settled button`)
		b.Gone(`.settled`)
		snap("undone")
		b.Open(s.url + editNotes)
		b.Eventually(`(document.querySelector("textarea").value += "Be kind.\n", true)`)
		b.Click(`button[value=preview]`)
		b.Visible(`.diff .added`)
		snap("agent-preview")
		b.Open(s.url + "/admin/people")
		b.Click(`#m-3 > summary`)
		b.Click(`#k-3 summary`)
		snap("revoke")
		s.world.setBroken(errors.New("disk I/O error"))
		b.Open(s.url + "/admin/queue")
		b.Visible(`.broken`)
		snap("broken")
		s.world.setBroken(nil)
		b.Open(s.url + "/admin/pairing")
		b.Click(`#account summary`)
		snap("account")
	}
}

func TestAnInvitationIsReadOnAPhoneAndOnADesk(t *testing.T) {
	s, _, _, _ := withGate(t)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running}}
	b := webtest.New(t)
	b.Open(s.url + "/admin/login")
	b.Write(`input[name=password]`, password+kb.Enter)
	b.Visible(`nav`)
	for _, c := range []struct {
		name   string
		width  int64
		scheme string
	}{{"desk-light", 1280, "light"}, {"phone-dark", 320, "dark"}} {
		b.Look(c.width, 800, c.scheme)
		b.Open(s.url + "/admin/pairing/invites")
		b.Click(`form.card .primary`)
		b.Visible(`#made pre`)
		wellMannered(t, b, "invitations "+c.name)
		if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s: %d px too wide", c.name, over)
		}
		b.Keep("admin-invites-"+c.name, b.WholePicture())
	}
}
