//go:build browser

package admin_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// What a page has said and says no more goes from above a form without taking
// along what somebody has written there, or has opened.
func TestARefreshKeepsWhatWasWrittenAndOpened(t *testing.T) {
	s, b := atDesk(t, "/admin/settings")
	b.Eventually(`(document.querySelector("[name=BUDGET_DAY]").value = "lots", true)`)
	b.Click(`#policy-family summary`)
	b.Write(`#policy-family [name=allowed_users]`, "123")
	b.Eventually(`(main => { main.prepend(" ", Object.assign(document.createElement("p"), {className: "gone", textContent: "Said before."})); return true; })(document.querySelector("main"))`)
	s.world.ring("bots")
	b.Gone(`main > p.gone`)
	b.Eventually(`document.querySelector("[name=BUDGET_DAY]").value === "lots" && document.querySelector("#policy-family").open && document.querySelector("#policy-family [name=allowed_users]").value === "123"`)
	b.Eventually(`window.sameDocument === true`)
}

func TestSettingsAreChangedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings")
	b.Eventually(`(document.querySelector("[name=DM_TRUST]").value = "vault", document.querySelector("[name=BUDGET_DAY]").value = "lots", true)`)
	b.Click(`form[action$="/settings/change"].card .primary`)
	b.Says(`#toast`, "BUDGET_DAY: \"lots\" is neither")
	b.Eventually(`document.querySelector("[name=BUDGET_DAY]").value === "lots"`) // what was written is not lost
	b.Eventually(`(document.querySelector("[name=BUDGET_DAY]").value = "$30", true)`)
	b.Click(`form[action$="/settings/change"].card .primary`)
	b.Says(`#toast`, "2 settings are changed")
	b.Says(`#knob-BUDGET_DAY .pill`, "panel")
	b.Click(`button[name=reset][value=DM_TRUST]`)
	b.Says(`#toast`, "Level preset for direct messages is as configured again: sandboxed.")
	b.Says(`#knob-DM_TRUST .pill`, "default")
	b.Eventually(`document.querySelector("[name=DM_TRUST]").value === "sandboxed"`)

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
	b.Eventually(`(document.querySelector("[name=MODEL]").value = "openai/nope", true)`)
	b.Click(`form[action$="/settings/change"].card .primary`)
	b.Says(`#toast`, "MODEL: openai/nope does not answer")
	b.Eventually(`document.querySelector("[name=MODEL]").value === "openai/nope"`)
	s.world.didLast(t, "set BUDGET_DAY $30", "set DM_TRUST vault", "set DM_TRUST sandboxed", "policy family allowlist|123,456|sandboxed|sandboxed", "policy family as configured", `token family "/run/secrets/new"`, "stop family")
	b.Eventually(`window.sameDocument === true`)
}

func TestABackupIsFollowedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings")
	b.Click(`#backup .primary`)
	b.Says(`#backup .working`, "1204 entries")
	b.Keep("admin-settings-backing", b.Picture())
	const name = "gatehouse-20260102-030405.tar.gz"
	s.world.made(name)
	b.Says(`#backup`, "The backup is made.")
	b.Eventually(`document.getElementById("say").textContent.includes("The backup is made")`)
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
			s, b := atDesk(t, "/admin/settings")
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
	s, b := atDesk(t, "/admin/settings")
	secret, row, err := s.world.keys.Create(t.Context(), auth.NewKey{Label: "alerts", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSend}}, core.Actor{})
	must(err)
	b.Look(390, 780, "light")
	b.Open(s.url + "/admin/settings")
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
	s, b := atDesk(t, "/admin/settings")
	old, row, err := s.world.keys.Create(t.Context(), auth.NewKey{Label: "alerts", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSend}}, core.Actor{})
	must(err)
	b.Look(390, 780, "light")
	b.Open(s.url + "/admin/settings")
	live(b)
	form := `#kn-` + row.ID
	b.Click(form + ` summary`)
	b.Eventually(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	b.Keep("admin-settings-rotate-phone", b.Picture())
	b.Click(form + ` .primary`)
	b.Says(`#secret h2`, "The key “alerts” has a new secret")
	b.Says(`#secret pre`, auth.KeyPrefix)
	b.Keep("admin-settings-rotated-phone", b.Picture())
	if _, ok, err := s.world.keys.Find(t.Context(), old); err != nil || ok {
		t.Errorf("the old secret still opens, %v", err)
	}
}
