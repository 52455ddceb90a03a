//go:build browser

package admin_test

import (
	"errors"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/inspect"
	"gatehouse/web/webtest"
)

// manners are what every page keeps, asked of the page as it stands: ids are
// unique, every control has a name, and text stands out from what is behind it
// by 4.5 to 1 (WCAG 2.2, 1.4.3). The answer lists what is wrong.
const manners = `(() => {
	const wrong = [];
	const ids = new Set();
	for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) wrong.push("id twice: " + e.id); ids.add(e.id); }
	for (const e of document.querySelectorAll("input:not([type=hidden]), select, button, a, summary")) {
		const name = e.textContent.trim() || e.ariaLabel || [...(e.labels || [])].map((l) => l.textContent.trim()).join("");
		if (!name) wrong.push("no name: " + e.outerHTML.slice(0, 80));
	}
	const rgb = (s) => { const m = s.match(/[\d.]+/g).map(Number); return { c: m.slice(0, 3), a: m[3] ?? 1 }; };
	const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const known = new Map(); // how light it is behind an element
	const behind = (e) => {
		if (!e) return 1;
		if (!known.has(e)) { const b = rgb(getComputedStyle(e).backgroundColor); known.set(e, b.a === 1 ? light(b.c) : behind(e.parentElement)); }
		return known.get(e);
	};
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility({ visibilityProperty: true }) || e.closest(".unseen, .skip, noscript, svg")) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color).c), behind(e)];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) wrong.push(ratio.toFixed(2) + " to 1: " + e.textContent.trim().slice(0, 40));
	}
	return wrong;
})()`

func wellMannered(t *testing.T, b *webtest.Tab, where string) {
	t.Helper()
	for _, w := range webtest.Value[[]string](b, manners) {
		t.Errorf("%s: %s", where, w)
	}
}

func TestAPageWhoseSourceFailsDoesNotReloadInCircles(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/pairing")
	live(b)
	b.Eventually(`window.sameDocument = true`)
	s.world.setBroken(errors.New("disk I/O error"))
	s.world.ring(core.TopicPairing)
	b.Visible(`.broken`)
	s.world.setBroken(nil)
	s.world.add(pending(s.clock, "r1", "Ada"))
	b.Visible(`#r-r1`)
	b.Gone(`.broken`)
	b.Eventually(`window.sameDocument === true`)
}

func TestWhatAPageCameToSayOutlivesTheFirstNews(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	b := webtest.New(t)
	signInFirst(b, s)
	s.world.add(pending(s.clock, "r1", "Ada"))
	b.Says(`#a-pairing`, "1 person waits")
	b.Eventually(`document.querySelector("#flash.good").checkVisibility()`)
}

func TestTheQueuePageFollowsWithoutARing(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/queue")
	live(b)
	b.Eventually(`window.sameDocument = true`)
	s.world.mu.Lock()
	s.world.dead = []inspect.DeadRow{{Seq: 7, Bot: "telegram", Name: "Ada", Error: "no model answered"}}
	s.world.mu.Unlock()
	b.Visible(`#dead-7`)
	b.Eventually(`window.sameDocument === true && document.getElementById("say").textContent.includes("1 message was given up")`)
}

func TestTwoTabsShareOneStreamAndBothFollow(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	first := webtest.New(t)
	signIn(first, s)
	first.Open(s.url + "/admin/pairing")
	live(first)
	second := first.Tab()
	second.Open(s.url + "/admin/pairing")
	live(second)
	ears := func() int {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		return len(s.world.ears)
	}
	for end := time.Now().Add(10 * time.Second); ears() != 1; time.Sleep(10 * time.Millisecond) { // that of the page after the sign-in may still be ending
		if time.Now().After(end) {
			t.Fatalf("%d streams are open for two tabs, want 1", ears())
		}
	}
	s.world.add(pending(s.clock, "r1", "Ada"))
	first.Visible(`#r-r1`)
	second.Visible(`#r-r1`)
}

// Fields of a form take the place of its properties: one that is named action, method or id
// must not change where the form goes, or that it goes without a new page.
func TestAFormWhoseFieldsAreNamedLikePropertiesIsStillSentInPlace(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.add(pending(s.clock, "r1", "Ada"))
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/pairing")
	live(b)
	b.Eventually(`window.sameDocument = true`)
	// In one step: a page that renews itself takes away what is not the server's.
	if !webtest.Value[bool](b, `(() => {
		const button = document.querySelector("#r-r1 button.primary"), form = button.form;
		form.append(...["action", "method", "id"].map((name) => Object.assign(document.createElement("input"), { type: "hidden", name, value: "x" })));
		button.click();
		return form.action.value === "x" && form.method.value === "x" && form.id.value === "x";
	})()`) {
		t.Fatal("the fields do not take the place of the form's properties")
	}
	b.Visible(`#r-r1.settled`)
	b.Eventually(`document.readyState === "complete"`)
	if !webtest.Value[bool](b, `window.sameDocument === true`) {
		t.Error("the form was sent with a new page")
	}
	if did := s.world.done(); len(did) != 1 || did[0] != "approved r1 sandboxed" {
		t.Errorf("done %q", did)
	}
}

// "All" is of those who waited when it was decided: who comes next is not selected.
func TestABulkDecisionClearsAll(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	for _, q := range []string{"r1", "r2"} {
		s.world.add(pending(s.clock, q, "Person "+q))
	}
	b := webtest.New(t)
	signIn(b, s)
	b.Open(s.url + "/admin/pairing")
	live(b)
	b.Click(`#bulk input[name=all]`)
	b.Click(`#bulk button[value=deny]`)
	b.Visible(`#r-r2.settled`)
	s.world.add(pending(s.clock, "r3", "Ada"))
	b.Visible(`#r-r3.request`)
	b.Eventually(`document.querySelector("#bulk input[name=all]").checked === false`)
}
