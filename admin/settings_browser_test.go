//go:build browser

package admin_test

import (
	"testing"
)

func TestSettingsAreChangedInABrowser(t *testing.T) {
	s, b := atDesk(t, "/admin/settings")
	b.Eventually(`(document.querySelector("[name=DM_TRUST]").value = "vault", document.querySelector("[name=BUDGET_DAY]").value = "lots", true)`)
	b.Click(`form[action$="/change"] .primary`)
	b.Says(`#toast`, "BUDGET_DAY: \"lots\" is neither")
	b.Eventually(`document.querySelector("[name=BUDGET_DAY]").value === "lots"`) // what was written is not lost
	b.Eventually(`(document.querySelector("[name=BUDGET_DAY]").value = "$30", true)`)
	b.Click(`form[action$="/change"] .primary`)
	b.Says(`#toast`, "2 settings are changed")
	b.Says(`#knob-BUDGET_DAY .pill`, "panel")

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
	s.world.didLast(t, "set BUDGET_DAY $30", "set DM_TRUST vault", "policy family allowlist|123,456|sandboxed|sandboxed", "policy family as configured", `token family "/run/secrets/new"`, "stop family")
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
