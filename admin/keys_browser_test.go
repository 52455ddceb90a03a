//go:build browser

package admin_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// keyed waits until the page follows and its keys work.
func keyed(b *webtest.Tab) {
	live(b)
	b.Eventually(`document.documentElement.dataset.keys === "on"`)
}

// pressWithCtrl presses a key with the control key down, where the focus is.
func pressWithCtrl(b *webtest.Tab, key string) {
	b.Eventually(`(document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "` + key + `", ctrlKey: true, bubbles: true, cancelable: true})), true)`)
}

func TestKeysDecideInLists(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	for _, q := range []string{"r1", "r2", "r3"} {
		s.world.add(pending(clock, q, "Person "+q))
	}
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/pairing")
	keyed(b)
	b.Press("j")
	b.Focused(`#r-r1`)
	b.Press("j")
	b.Focused(`#r-r2`)
	b.Press("k")
	b.Focused(`#r-r1`)
	b.Press("a")
	b.Visible(`#r-r1.settled`)
	b.Focused(`#r-r1`)
	b.Press("j")
	b.Focused(`#r-r2`)
	b.Press("d")
	b.Visible(`#r-r2.settled`)
	b.Press("j")
	b.Focused(`#r-r3`)
	b.Press("x")
	b.Eventually(`document.querySelector("#r-r3 .mark-it").checked`)
	b.Press("f")
	b.Focused(`main input[type=search]`)
	b.Press("ad?") // typed, and decides nothing
	b.Eventually(`document.activeElement.value.endsWith("ad?") && !document.querySelector("dialog")`)
	if did := s.world.done(); len(did) != 2 || did[0] != "approved r1 sandboxed" || did[1] != "denied r2 " {
		t.Errorf("done %q", did)
	}
}

// Who dictates types letters by chance: switched off, none of them does anything (WCAG 2.1.4).
func TestKeysOfOneLetterDoNothingWhenSwitchedOff(t *testing.T) {
	clock := core.System{}
	s := newSite(t, clock, nil)
	s.world.add(pending(clock, "r1", "Person r1"))
	b := webtest.New(t)
	signIn(b, s)
	b.Look(390, 844, "light")
	b.Open(s.url + "/admin/pairing")
	keyed(b)
	b.Focus(`#account summary`)
	b.Press(kb.Enter)
	wellMannered(t, b, "the menu behind the name")
	b.Keep("admin-state-letters-phone", b.Picture())
	b.Look(1280, 800, "dark")
	b.Keep("admin-state-letters", b.Picture())
	b.Focus(`button[name=letters][value=off]`)
	b.Press(kb.Enter)
	b.Eventually(`document.documentElement.dataset.letters === "off" && location.pathname === "/admin/pairing"`)
	keyed(b)
	b.Press("jad?/f")
	pressWithCtrl(b, "k") // comes behind them, and works
	b.Focused(`#palette input`)
	b.Press(kb.Escape)
	b.Gone(`dialog`)
	if did := s.world.done(); len(did) != 0 {
		t.Errorf("done %q", did)
	}
	b.Focus(`#account summary`)
	b.Press(kb.Enter)
	b.Focus(`button[name=letters][value=""]`)
	b.Press(kb.Enter)
	b.Eventually(`document.documentElement.dataset.letters === undefined`)
	keyed(b)
	b.Press("j")
	b.Focused(`#r-r1`)
}

func TestKeysAreListedAndThePaletteFindsPagesAndPeople(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	keyed(b)
	b.Press("?")
	b.Says(`#keys`, "go to a page, a setting, a person, a group or a chat")
	wellMannered(t, b, "the keys")
	b.Keep("admin-state-keys", b.Picture())
	b.Press(kb.Escape)
	b.Gone(`dialog`)
	pressWithCtrl(b, "k")
	b.Focused(`#palette input`)
	b.Says(`#found`, "Queue")
	b.Press("ines")
	b.Says(`#found [aria-selected="true"]`, "Ines Carvalho")
	wellMannered(t, b, "the palette")
	b.Keep("admin-state-palette", b.Picture())
	b.Press(kb.Enter)
	b.Eventually(`location.pathname === "/admin/people/2"`)
	b.Says(`h1`, "Ines Carvalho")
	keyed(b)
	pressWithCtrl(b, "k")
	b.Focused(`#palette input`)
	b.Press("que" + kb.Enter)
	b.Eventually(`location.pathname === "/admin/queue"`)
}

// A phone has no Ctrl-K: a button in its bar opens the palette, by touch and by keys, and
// has the focus again when it closes.
func TestAButtonOpensThePaletteOnAPhone(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	b.Look(1280, 800, "light")
	keyed(b)
	if webtest.Value[bool](b, `document.querySelector("#goto").checkVisibility()`) {
		t.Error("the button is shown where there are keys")
	}
	for _, look := range []struct {
		width int64
		theme string
	}{{320, "light"}, {390, "dark"}, {390, "light"}} {
		b.Look(look.width, 700, look.theme)
		b.Open(s.url + "/admin")
		keyed(b)
		b.Visible(`#goto`)
		if over := webtest.Value[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("at %d px the page is %d px too wide", look.width, over)
		}
		const box = `(({width, height, right}) => [width, height, right].map(Math.round))(document.querySelector("#goto").getBoundingClientRect())`
		if at := webtest.Value[[]int64](b, box); at[0] < 44 || at[1] < 40 || at[2] > look.width {
			t.Errorf("at %d px the button is %d by %d px, to %d", look.width, at[0], at[1], at[2])
		}
		if at := webtest.Value[[]int64](b, `["#account summary", ".bar"].flatMap((s) => (({right, height}) => [right, height].map(Math.round))(document.querySelector(s).getBoundingClientRect()))`); at[0] > look.width || at[3] > 64 {
			t.Errorf("at %d px the account ends at %d px, and the bar is %d px high", look.width, at[0], at[3])
		}
		wellMannered(t, b, "the bar of a phone")
		b.Keep(fmt.Sprintf("admin-goto-%d-%s", look.width, look.theme), b.Picture())
	}
	b.Click(`#goto`)
	b.Focused(`#palette input`)
	b.Press("ines")
	b.Says(`#found [aria-selected="true"]`, "Ines Carvalho")
	b.Press(kb.Escape)
	b.Press(kb.Escape)
	b.Gone(`#palette`)
	b.Focused(`#goto`)
	b.Press(kb.Enter)
	b.Focused(`#palette input`)
	b.Press("ines")
	b.Says(`#found [aria-selected="true"]`, "Ines Carvalho")
	b.Press(kb.Enter)
	b.Eventually(`location.pathname === "/admin/people/2"`)
}

func TestThemeIsChosenAndKept(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	b := webtest.New(t)
	signIn(b, s)
	b.Look(1280, 800, "light")
	const paper = `getComputedStyle(document.body).backgroundColor`
	light := webtest.Value[string](b, paper)
	choose := func(theme string) {
		b.Open(s.url + "/admin/people")
		live(b)
		b.Focus(`#account summary`)
		b.Press(kb.Enter)
		b.Focus(`.themes button[value="` + theme + `"]`)
		b.Press(kb.Enter)
		b.Eventually(`document.documentElement.dataset.theme === ` + map[string]string{"": "undefined", "dark": `"dark"`}[theme] + ` && location.pathname === "/admin/people"`)
	}
	choose("dark")
	b.Open(s.url + "/admin/queue")
	dark := webtest.Value[string](b, paper)
	if dark == light {
		t.Errorf("dark is %s, as light is", dark)
	}
	choose("")
	if now := webtest.Value[string](b, paper); now != light {
		t.Errorf("the system's colours are %s, want %s", now, light)
	}
}

func TestWideWindowsAreUsed(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	b.Look(1920, 1000, "light")
	b.Open(s.url + "/admin/people")
	b.Visible(`.people`)
	if w := webtest.Value[int](b, `document.querySelector(".people").getBoundingClientRect().width`); w < 1300 {
		t.Errorf("the list is %d px wide of 1920", w)
	}
	b.Keep("admin-people-1920", b.Picture())
	b.Open(s.url + "/admin")
	b.Visible(`h1`)
	b.Keep("admin-overview-1920", b.Picture())
}

// goTo opens the palette, types text and follows what is selected.
func goTo(b *webtest.Tab, text, selected string) {
	keyed(b)
	pressWithCtrl(b, "k")
	b.Focused(`#palette input`)
	b.Press(text)
	b.Says(`#found [aria-selected="true"]`, selected)
	b.Press(kb.Enter)
	b.Gone(`#palette`)
}

func TestThePaletteFindsSettingsAndFocusesTheirField(t *testing.T) {
	_, b := atDesk(t, "/admin")
	for _, c := range []struct{ name, typed, selected, path, focused string }{
		{"variable", "gatehouse_budget_day", "Budget of all together", "/admin/settings/models", `#BUDGET_DAY`},
		{"variable on the same page", "TITLE_MODEL", "Model for titles", "/admin/settings/models", `#TITLE_MODEL`},
		{"label", "level preset for gr", "Level preset for groups", "/admin/settings/access", `#GROUP_TRUST`},
		{"words of its help", "globs such as", "Files that sandboxed people are quoted", "/admin/settings/access", `#GUEST_READ`},
		{"read at start", "folder of plain files", "GATEHOUSE_VAULT_PATH", "/admin/settings/backups", `#v-VAULT_PATH`},
		{"section", "access and k", "Access and keys", "/admin/settings/access", `body`},
		{"what can be done", "add a b", "Add a bot", "/admin/settings/bots/add", `body`},
	} {
		t.Run(c.name, func(t *testing.T) {
			goTo(b, c.typed, c.selected)
			b.Eventually(`location.pathname === "` + c.path + `"`)
			b.Focused(c.focused)
		})
	}
	keyed(b)
	pressWithCtrl(b, "k")
	b.Focused(`#palette input`)
	b.Press("budget")
	b.Says(`#found`, "Settings · BUDGET_DAY")
	wellMannered(t, b, "the palette with settings")
	for _, look := range []struct {
		name  string
		width int64
		theme string
	}{{"desk-light", 1280, "light"}, {"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}} {
		b.Look(look.width, 800, look.theme)
		b.Keep("admin-palette-"+look.name, b.Picture())
	}
	b.Press(" zz")
	b.Says(`#palette [role=status]`, "Nothing found.")
}

func TestThePaletteFindsGroupsChatsAndPagesBelowOthers(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	goTo(b, "allotment", "Allotment 14")
	b.Eventually(`location.pathname === "/admin/chats" && location.search.includes("place=-1001882734410")`)
	b.Open(s.url + "/admin/chats")
	title := webtest.Value[string](b, `[...document.querySelectorAll('tr[id^="s-"] th a')].map((a) => a.textContent).find((title) => title !== "Untitled")`)
	goTo(b, title, title)
	b.Eventually(`/^.admin.chats.[0-9a-f-]+$/.test(location.pathname)`)
	goTo(b, "invitat", "Invitations")
	b.Eventually(`location.pathname === "/admin/pairing/invites"`)
	goTo(b, "accounts", "Accounts")
	b.Eventually(`location.pathname === "/admin/accounts"`)
}
