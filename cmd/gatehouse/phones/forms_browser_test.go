//go:build browser

package phones_test

import (
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/web/webtest"
)

func TestAMenuIsChosenFromAndAFormFilledInTheBrowser(t *testing.T) {
	stage := serve(t, phones.Options{})
	store := asking(t, stage)
	s := &scene{t, stage, webtest.New(t)}
	cleo := "#phone-discord-" + stage.discord.Users()[0].ID().String() + " "
	s.tab.Look(1280, 860, "light")
	s.tab.Open(stage.web.URL)
	s.tab.Eventually(`document.querySelectorAll("` + cleo + `.menu option").length === 7`)
	s.shot("menu-desk-light", 1280, 860, "light")
	s.shot("menu-phone-dark", 390, 844, "dark")
	s.tab.Look(1280, 860, "light")
	s.tab.Eventually(`(() => { const m = document.querySelector("` + cleo + `.menu"); m.value = "aaaabbbbccccdddd:Mint"; m.dispatchEvent(new Event("change")); return true; })()`)
	if in := store.Await(t, 2)[1]; in.Callback == nil || in.Callback.Data != "aaaabbbbccccdddd:Mint" {
		t.Errorf("chosen: %+v", in)
	}
	s.tab.Click(cleo + ".key")
	s.tab.Eventually(`document.querySelector("dialog.form[open] h2")?.textContent === "Your answer"`)
	s.shot("form-desk-light", 1280, 860, "light")
	s.shot("form-phone-dark", 390, 844, "dark")
	s.shot("form-phone-light", 390, 844, "light")
	s.shot("form-desk-dark", 1280, 860, "dark")
	s.tab.Write("dialog.form textarea", "fresh <b>mint</b>")
	s.tab.Click("dialog.form .send")
	s.tab.Eventually(`!document.querySelector("dialog.form")`)
	if in := store.Await(t, 3)[2]; in.Callback == nil || len(in.Callback.Fields) != 1 || in.Callback.Fields[0] != "fresh <b>mint</b>" {
		t.Errorf("written: %+v", in)
	}
}
