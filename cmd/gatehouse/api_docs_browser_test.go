//go:build browser

package main

import (
	"fmt"
	"testing"

	"gatehouse/web"
	"gatehouse/web/webtest"
)

// faint is what of a page's words has too little contrast (WCAG 2.2, 1.4.3): the
// colour of each element with text against the first ground behind it.
const faint = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return {r: m[0], g: m[1], b: m[2], a: m[3] ?? 1}; };
	const light = ({r, g, b}) => { const f = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) return c; } return matchMedia("(prefers-color-scheme: dark)").matches ? {r: 18, g: 18, b: 18} : {r: 255, g: 255, b: 255}; };
	const bad = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const s = getComputedStyle(e), a = light(parse(s.color)), b = light(ground(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < (parseFloat(s.fontSize) >= 24 ? 3 : 4.5)) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
	}
	return [...bad];
})()`

// The API's pages are readable in every window and in both colours: nothing wider
// than the window, no faint words, and the list of endpoints is narrowed by typing.
func TestTheAPIsPagesAreReadableInEveryWindow(t *testing.T) {
	w := newWorld(t, nil)
	at, b := "http://"+w.cfg.Addr, webtest.New(t)
	for _, path := range []string{"/docs", "/docs/problems", web.TooManyRequests.Type()} {
		b.Open(at + path)
		b.Visible("h1")
		for _, w := range []struct {
			width  int64
			scheme string
		}{{1280, "light"}, {1280, "dark"}, {768, "light"}, {390, "light"}, {390, "dark"}, {320, "light"}} {
			b.Look(w.width, 800, w.scheme)
			b.Eventually(fmt.Sprintf(`document.documentElement.clientWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, w.width, w.scheme))
			if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s at %d px: %d px too wide", path, w.width, over)
			}
			for _, e := range webtest.Value[[]string](b, faint) {
				t.Errorf("%s at %d px, %s: faint: %s", path, w.width, w.scheme, e)
			}
			if webtest.Shots() != "" {
				b.Keep(fmt.Sprintf("api-%d-%d-%s", len(path), w.width, w.scheme), b.Picture())
			}
		}
	}
	b.Look(1280, 800, "light")
	b.Open(at + "/docs")
	b.Write("#find", "post abort")
	b.Eventually(`[...document.querySelectorAll("[data-find]")].filter((e) => e.checkVisibility()).length === 1`)
}
