//go:build browser

package admin_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

func TestSavedContexts_AreMadeChosenAndDeletedByKeyboard(t *testing.T) {
	s, b := atDesk(t, contextsPath)
	b.Away() // browsers log a refusal
	b.TabTo(`a[href="/admin/contexts/edit"]`)
	b.Press(kb.Enter)
	b.Focused(`input[name=name]`)
	b.Press("shed" + kb.Tab + "The shed" + kb.Tab + "Allotment" + kb.Enter + "Tools/")
	b.TabTo(`#context .primary`)
	b.Press(kb.Enter)
	b.Says(`#flash`, "shed is saved. Not in the vault now: Tools.")
	fits(t, b, "contexts-saved")
	b.Open(s.url + contextsPath + "/edit")
	b.Write(`input[name=name]`, "garden"+kb.Enter)
	b.Says(`#fault`, "There is a saved context garden")
	b.Eventually(`document.querySelector("input[name=name]").getAttribute("aria-describedby").includes("fault")`)
	fits(t, b, "contexts-fault")
	b.Open(s.url + "/admin/chats/" + s.world.mine)
	live(b)
	b.TabTo(`#settings summary`)
	b.Press(kb.Enter)
	b.TabTo(`form[action$="/context"] select`)
	b.Press("shed")
	b.TabTo(`form[action$="/context"] button`)
	b.Press(kb.Enter)
	b.Says(`#toast`, "It is about shed from the next turn on.")
	b.Says(`#say`, "It is about shed from the next turn on.")
	b.Says(`#settings .facts`, "Tools")
	fits(t, b, "contexts-chosen")
	b.Open(s.url + contextsPath)
	live(b)
	b.TabTo(`#del-shed summary`)
	b.Press(kb.Enter)
	fits(t, b, "contexts-delete")
	b.Press(kb.Escape) // nothing is deleted without the second button
	b.Eventually(`!document.querySelector("#del-shed").open && document.activeElement.matches("#del-shed summary")`)
	b.Press(kb.Enter)
	b.TabTo(`#del-shed .danger`)
	b.Press(kb.Enter)
	b.Says(`#say`, "shed is deleted.")
	b.Gone(`#c-shed`)
	if did := strings.Join(s.world.done(), "; "); did != "context.save shed; update "+s.world.mine+"; context.delete shed" {
		t.Errorf("done %s", did)
	}
}
