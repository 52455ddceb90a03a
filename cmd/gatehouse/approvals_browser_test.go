//go:build browser

package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/web/webtest"
)

// keep takes a picture of the panel on a desk and on a phone, in both schemes,
// where any are asked for.
func (v *visit) keep(name string) {
	if webtest.Shots() == "" {
		return
	}
	for _, c := range []struct {
		as     string
		width  int64
		scheme string
	}{{"desk-dark", 1280, "dark"}, {"phone-light", 390, "light"}, {"phone-dark", 390, "dark"}, {"desk-light", 1280, "light"}} {
		v.panel.Look(c.width, 860, c.scheme)
		v.panel.Keep("approvals-"+name+"-"+c.as, v.panel.Picture())
	}
}

// A tool call appears on the page while it is looked at, is allowed for a
// folder by keyboard, the file is changed, and the grant is taken back.
func TestAToolCallIsAllowedInABrowserAndTheGrantRevoked(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	v.panel.Click(`nav a[href="/admin/approvals"]`)
	v.panel.Visible(`#none`)
	v.following()

	ada := v.lend()
	run := ada.says(wantsToWrite, "")
	run.until("permission_request")
	v.panel.Says(`.request`, "Write wants to change")
	v.panel.Says(`.request pre`, "Notes/plan.md")
	v.panel.Says(`.request .change`, "A new file: 1 line, 9 bytes.")
	v.panel.Says(`.request .diff .added`, "+ Buy tea.")
	v.panel.Says(`.request .picks`, "This file in this conversation")
	v.panel.Says(`.request .top`, "Ada")
	v.panel.Hears("Write wants to change Notes/plan.md, for Ada at trust vault")
	v.panel.Eventually(`document.title.startsWith("(1) ")`)
	v.panel.Eventually(`/^1?\d?\d s$/.test(document.querySelector(".request .left").textContent)`)
	v.panel.Eventually(`Number(document.querySelector(".request .left").textContent.split(" ")[0]) < 119`) // it runs
	v.keep("asked")

	v.panel.TabTo(`.request input[name=pattern]`)
	v.panel.Press(kb.ArrowDown + kb.ArrowDown)
	v.panel.Eventually(`document.activeElement.value === "Notes/*" && document.activeElement.checked`)
	v.panel.Press(kb.Enter) // the form's first button: allow
	if end := run.until("permission_resolved").Data; end["decision"] != "granted" || end["by"] != "operator via panel" {
		t.Errorf("%v", end)
	}
	run.until("message_stop")
	if v.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", v.note())
	}
	v.panel.Says(`.settled .said`, "Allowed by operator via panel")
	v.panel.Eventually(`document.activeElement.matches(".settled")`) // the focus stays where it was
	v.panel.Hears("from now on in this conversation: Notes/*")
	v.panel.Says(`tr[id^=grant-]`, "Notes/*")
	v.keep("allowed")
	v.panel.Gone(`.settled`) // ten seconds later it is among those decided
	v.panel.Says(`tr[id^=d-]`, "Allowed")

	session := run.all[0].Data["id"].(string)
	again := ada.says(strings.Replace(wantsToWrite, "Buy tea.", "Buy milk.", 1), session)
	again.until("message_stop")
	if v.note() != "Buy milk.\n" {
		t.Errorf("what was granted asks again: %v", types(again.all))
	}
	v.panel.Click(`tr[id^=grant-] summary`)
	v.panel.Click(`tr[id^=grant-] .danger`)
	v.panel.Gone(`tr[id^=grant-]`)

	third := ada.says(strings.Replace(wantsToWrite, "Buy tea.", "Buy bread.", 1), session)
	third.until("permission_request")
	v.panel.Visible(`.request`)
	v.panel.Click(`.request button[formaction$=deny]`)
	third.until("message_stop")
	v.panel.Says(`.settled .said`, "Denied by operator via panel")
	if v.note() != "Buy milk.\n" {
		t.Errorf("after the refusal: %q", v.note())
	}
	v.panel.Eventually(`window.sameDocument === true`)
}

// Somebody decides elsewhere: the page says who, and nothing moves.
func TestADecisionOverTheAPIShowsInABrowserAtOnce(t *testing.T) {
	t.Parallel()
	v := newVisit(t)
	v.signIn()
	ada := v.lend()
	first, second := ada.says(wantsToWrite, ""), ada.says(strings.Replace(wantsToWrite, "plan.md", "other.md", 1), "")
	id := first.until("permission_request").Data["id"].(string)
	other := second.until("permission_request").Data["id"].(string)
	v.panel.Eventually(`document.querySelector("nav a[href='/admin/approvals'] .badge")?.firstChild.data === "2"`) // on whatever page
	v.panel.Click(`nav a[href="/admin/approvals"]`)
	v.panel.Visible("#k-" + id)
	v.panel.Visible("#k-" + other)
	v.following()
	top := `document.querySelector("#k-` + other + ` .primary").getBoundingClientRect().top`
	before := webtest.Value[float64](v.panel, top)
	if code, body := v.call("POST", "/api/permissions/"+id+"/deny", nil); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	v.panel.Says("#k-"+id+" .said", "Denied by operator via api")
	if after := webtest.Value[float64](v.panel, top); before != after {
		t.Errorf("the other card's button moved from %v to %v", before, after)
	}
	v.panel.Hears("Denied by operator via api")
	first.until("message_stop")
	v.call("POST", "/api/permissions/"+other+"/deny", nil)
	second.until("message_stop")
	v.panel.Eventually(`window.sameDocument === true`)
}
