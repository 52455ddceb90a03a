//go:build browser

package admin_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/core"
	"gatehouse/web/auth"
	"gatehouse/web/webtest"
)

// What a page has said and says no more goes from above a form without taking
// along what somebody has written there, or has opened.
func TestARefreshKeepsWhatWasWrittenAndOpened(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/bots")
	b.Click(`#policy-family summary`)
	b.Write(`#policy-family [name=allowed_users]`, "123")
	b.Eventually(`(main => { main.prepend(" ", Object.assign(document.createElement("p"), {className: "gone", textContent: "Said before."})); return true; })(document.querySelector("main"))`)
	s.world.ring(core.TopicBots)
	b.Gone(`main > p.gone`)
	b.Eventually(`document.querySelector("#policy-family").open && document.querySelector("#policy-family [name=allowed_users]").value === "123"`)
	b.Eventually(`window.sameDocument === true`)
}

// clickThrough is Click that counts: docs/admin.md promises how many clicks a task takes.
type clickThrough struct {
	*webtest.Tab
	t      *testing.T
	clicks int
}

func (c *clickThrough) Click(sel string) {
	c.clicks++
	c.Tab.Click(sel)
}

func TestAModelIsChangedInThreeClicksFromTheOverview(t *testing.T) {
	for name, width := range map[string]int64{"desk": 1280, "phone": 390} {
		t.Run(name, func(t *testing.T) {
			s, b := atDesk(t, "/admin")
			b.Look(width, 800, "light")
			c, menu := &clickThrough{Tab: b}, `nav[aria-label=Pages] li:not(.more) > a[href="/admin/settings"]`
			if name == "phone" {
				c.Click(`#more summary`)
				c.clicks-- // the menu of a phone
				menu = `#more a[href="/admin/settings"]`
			}
			c.Click(menu)
			c.Click(`a[href="/admin/settings/models#MODEL"]`)
			b.Focused(`#MODEL`) // an address of a setting focuses its field
			b.Keep("admin-settings-focus-"+name, b.Picture())
			b.Write(`#MODEL`, "openai/fake")
			c.Click(`#knobs .primary`)
			b.Says(`#toast`, "1 setting is changed")
			b.Says(`#knob-MODEL .pill`, "panel")
			s.world.didLast(t, "set MODEL openai/fake")
			if c.clicks > 3 {
				t.Errorf("%d clicks, want at most 3", c.clicks)
			}
		})
	}
}

func TestASettingIsFoundBySearchInABrowser(t *testing.T) {
	_, b := atDesk(t, "/admin/settings/bots")
	b.Press("f")
	b.Focused(`main input[type=search]`)
	b.Eventually(`(document.activeElement.value = "", true)`) // the test's key leaves its letter
	b.Write(`main input[type=search]`, "budget all together"+kb.Enter)
	b.Says(`#found-h`, "1 place found")
	b.Keep("admin-settings-found", b.Picture())
	b.Open(strings.TrimSuffix(webtest.Value[string](b, `location.origin`), "/") + "/admin/settings?q=model")
	if n := webtest.Value[int](b, `new Set([...document.querySelectorAll(".hits .card")].map((c) => Math.round(c.getBoundingClientRect().width))).size`); n != 1 {
		t.Errorf("what is found has %d widths, want one", n)
	}
	b.Keep("admin-settings-found-many", b.WholePicture())
	b.Open(strings.TrimSuffix(webtest.Value[string](b, `location.origin`), "/") + "/admin/settings?q=budget+all+together")
	b.Click(`.hits a`)
	b.Focused(`#BUDGET_DAY`)
	b.Open(strings.TrimSuffix(webtest.Value[string](b, `location.origin`), "/") + "/admin/settings?q=vault_path")
	b.Click(`.hits a`)
	b.Eventually(`document.querySelector("tr:target")?.id === "v-VAULT_PATH"`)
	b.Keep("admin-settings-marked", b.Picture())
}

// A section that is refused keeps what was typed and focuses the field; other sections are
// not touched.
func TestASectionIsSavedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/models")
	b.Eventually(`(document.querySelector("#BUDGET_DAY").value = "lots", document.querySelector("#MODEL_FALLBACKS").value = "openai/fake", true)`)
	b.Click(`#knobs .primary`)
	b.Says(`#BUDGET_DAY-fault`, "BUDGET_DAY: \"lots\" is neither")
	b.Focused(`#BUDGET_DAY`)
	b.Keep("admin-settings-fault", b.Picture())
	b.Eventually(`document.querySelector("#BUDGET_DAY").value === "lots" && document.querySelector("#MODEL_FALLBACKS").value === "openai/fake"`)
	b.Eventually(`(document.querySelector("#BUDGET_DAY").value = "$30", true)`)
	b.Click(`#knobs .primary`)
	b.Says(`#toast`, "2 settings are changed")
	b.Says(`#knob-BUDGET_DAY .pill`, "panel")
	b.Gone(`#BUDGET_DAY-fault`)
	b.Eventually(`(document.querySelector("#GUEST_MODEL").value = "half written", true)`)
	b.Click(`button[name=reset][value=BUDGET_DAY]`)
	b.Says(`#toast`, "Budget of all together is as configured again: $20.")
	b.Eventually(`document.querySelector("#BUDGET_DAY").value === "$20" && document.querySelector("#GUEST_MODEL").value === "half written"`)
	s.world.didLast(t, "set BUDGET_DAY $30", "set MODEL_FALLBACKS openai/fake", "set BUDGET_DAY $20")
	b.Eventually(`window.sameDocument === true`)
	b.Open(s.url + "/admin/settings/access")
	live(b)
	b.Eventually(`(document.querySelector("#DM_TRUST").value = "vault", true)`)
	b.Click(`#knobs .primary`)
	b.Says(`#knob-DM_TRUST .pill`, "panel")
	b.Click(`button[name=reset][value=DM_TRUST]`)
	b.Eventually(`document.querySelector("#DM_TRUST").value === "sandboxed"`)
	b.Says(`#knob-DM_TRUST .pill`, "default")
}

func TestABotIsChangedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/bots")
	b.Click(`#policy-family summary`)
	b.Eventually(`(document.querySelector("#policy-family [name=dm_policy]").value = "allowlist", true)`)
	b.Write(`#policy-family [name=allowed_users]`, "123, 456")
	b.Keep("admin-settings-policy", b.Picture())
	b.Click(`#policy-family .primary`)
	b.Says(`#bot-family .facts`, "allowlist")
	b.Click(`#policy-family button[value=configured]`)
	b.Says(`#bot-family .facts`, "pairing")

	b.Click(`#token-family summary`)
	b.Write(`#token-family [name=token_file]`, "/run/secrets/new")
	b.Click(`#token-family .primary`)
	b.Says(`#bot-family .id p`, "in the file /run/secrets/new")
	b.Click(`#off-family summary`)
	b.Click(`#off-family .danger`)
	b.Says(`#toast`, "family is stopped")
	s.world.didLast(t, "policy family allowlist|123,456|sandboxed|sandboxed", "policy family as configured", `token family "/run/secrets/new"`, "stop family")
	b.Eventually(`window.sameDocument === true`)
}

func TestABackupIsFollowedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/backups")
	b.Click(`#backup .primary`)
	b.Says(`#backup .working`, "1204 entries")
	b.Keep("admin-settings-backing", b.Picture())
	const name = "gatehouse-20260102-030405.tar.gz"
	s.world.made(name)
	b.Says(`#backup`, "The backup is made.")
	b.Hears("The backup is made")
	b.Visible(`a[download][href$="` + name + `"]`)
	b.Keep("admin-settings-backed", b.WholePicture())
	b.Click(`[id="d-` + name + `"] summary`)
	b.Click(`[id="d-` + name + `"] .danger`)
	b.Gone(`[id="b-` + name + `"]`)
	s.world.didLast(t, "backup", "delete "+name)
	b.Eventually(`window.sameDocument === true`)
}

// At a desk and on a phone a text is seen before it is said; a fault keeps what
// was written.
func TestATextIsWrittenAgainInABrowser(t *testing.T) {
	for name, width := range map[string]int64{"desk": 1280, "phone": 360} {
		t.Run(name, func(t *testing.T) {
			s, b := atDesk(t, "/admin/settings/bots")
			b.Look(width, 780, "light")
			b.Click(`#says-family a`)
			b.Says(`#text-code .bubble`, "Hello Ada! This is our family's bot. Your code is K7M2Q9XT.")
			b.Click(`#text-approved a.button`)
			b.Says(`h1`, "Welcome: approved")
			b.Eventually(`(document.querySelector("textarea").value = "Avanti, {{.Nome}}!", true)`)
			b.Click(`button[value=preview]`)
			b.Says(`#fault`, "Line 1: there is no field {{.Nome}}; there is {{.Name}} and {{.Bot}}")
			b.Eventually(`document.querySelector("textarea").value === "Avanti, {{.Nome}}!"`)
			b.Keep("admin-text-fault-"+name, b.WholePicture())
			b.Eventually(`(document.querySelector("textarea").value = "Avanti, {{.Name}}!", true)`)
			b.Click(`button[value=preview]`)
			b.Says(`#preview .bubble`, "Avanti, Ada!")
			b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
			b.Keep("admin-text-preview-"+name, b.WholePicture())
			b.Click(`button[value=save]`)
			b.Says(`#text-approved .bubble`, "Avanti, Ada!")
			b.Says(`#text-approved .pill`, "panel")
			b.Click(`#text-approved a.button`)
			b.Click(`button[value=default]`)
			b.Says(`#text-approved .pill`, "default")
			s.world.didLast(t, `text family approved "Avanti, {{.Name}}!"`, `text family approved ""`)
		})
	}
}

func TestAKeyIsChangedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/access")
	secret, row, err := s.world.keys.Create(t.Context(), auth.NewKey{Label: "alerts", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSend}}, core.Actor{})
	must(err)
	b.Look(390, 780, "light")
	b.Open(s.url + "/admin/settings/access")
	live(b)
	form := `#kc-` + row.ID
	b.Click(form + ` summary`)
	b.Click(form + ` [name=scope][value=read]`)
	b.Eventually(`(document.querySelector("` + form + ` [name=label]").value = "alerts of db1", true)`)
	b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	b.Keep("admin-settings-key-phone", b.Picture())
	b.Click(form + ` .primary`)
	b.Says(`#key-`+row.ID+` th`, "alerts of db1")
	b.Says(`#key-`+row.ID, "read, send")
	if found, ok, err := s.world.keys.Find(t.Context(), secret); err != nil || !ok || found.Label != "alerts of db1" || len(found.Scopes) != 2 {
		t.Errorf("the same secret opens %+v, %v", found, err)
	}
}

func TestAKeyGetsANewSecretInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings/access")
	old, row, err := s.world.keys.Create(t.Context(), auth.NewKey{Label: "alerts", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSend}}, core.Actor{})
	must(err)
	b.Look(390, 780, "light")
	b.Open(s.url + "/admin/settings/access")
	live(b)
	b.Click(`#kn-` + row.ID + ` summary`)
	b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	b.Keep("admin-settings-rotate-phone", b.Picture())
	b.Open(s.url + "/admin")
	c := &clickThrough{Tab: b}
	b.Click(`#more summary`) // the menu of a phone
	c.Click(`#more a[href="/admin/settings"]`)
	c.Click(`a[href*="open=secrets"]`)
	b.Visible(`#key-` + row.ID + ` form.row`)
	b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	b.Keep("admin-settings-secrets-phone", b.Picture())
	c.Click(`#key-` + row.ID + ` form.row .primary`)
	if c.clicks > 3 {
		t.Errorf("%d clicks from the overview, want at most 3", c.clicks)
	}
	b.Says(`#secret h2`, "The key “alerts” has a new secret")
	b.Says(`#secret pre`, auth.KeyPrefix)
	b.Keep("admin-settings-rotated-phone", b.Picture())
	if _, ok, err := s.world.keys.Find(t.Context(), old); err != nil || ok {
		t.Errorf("the old secret still opens, %v", err)
	}
}
