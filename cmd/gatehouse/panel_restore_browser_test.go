//go:build browser

package main

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/web/webtest"
)

// Without a reload the page of a browser waits while the gateway is away, and shows the
// outcome, or the sign-in where the backup does not have the session.
func TestThePageComesBackAfterARestore(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	name := h.panel(p).backsUp()
	b := webtest.New(t)
	b.Away()
	at := "http://" + p.addr()
	signIn := func() {
		b.Write(`input[name=password]`, cliPassword+kb.Enter)
		b.Visible(`nav`)
	}
	b.Open(at + "/admin/login")
	signIn()
	b.Open(at + backupsPage)
	b.Visible(`#live`)
	b.Click(`[id="b-` + name + `"] form[action$="/restore"] button`)
	b.Says(`#restoring`, "Everything since then will be as it was then")
	b.Visible(`input[name=password]`) // the session is younger than the backup
	if next := webtest.Value[string](b, `location.search`); next != "?next="+url.QueryEscape(backupsPage) {
		t.Errorf("it does not lead back: %s", next)
	}
	signIn()
	b.Says(`#restoring`, "Restored "+name)

	newest := h.panel(p).backsUp() // this one has the session
	b.Open(at + backupsPage)
	b.Visible(`#live`)
	b.Eventually(`(window.sameDocument = true)`)
	b.Click(`[id="b-` + newest + `"] form[action$="/restore"] button`)
	b.Says(`#restoring`, "Restored "+newest)
	b.Eventually(`window.sameDocument === true`)
}
