//go:build browser

package admin_test

import (
	"os"
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// axe-core looks at every page, full and at both widths, and finds nothing serious or
// critical. The file is fetched by make test-axe and named by GATEHOUSE_TEST_AXE.
func TestAxeFindsNothingSeriousOnAnyPage(t *testing.T) {
	file := os.Getenv("GATEHOUSE_TEST_AXE")
	if file == "" {
		t.Skip("GATEHOUSE_TEST_AXE names no axe.min.js: make test-axe fetches it")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, width := range []int64{1280, 390} {
		b.Look(width, 900, map[int64]string{1280: "light", 390: "dark"}[width])
		for _, path := range s.pages() {
			b.Open(s.url + path)
			b.Visible(`h1`)
			live(b)
			webtest.Value[bool](b, string(axe)+"\n;Boolean(window.axe)")
			b.Eventually(`(window.found === undefined && (window.found = null, axe.run(document, {resultTypes: ["violations"]}).then((r) => { window.found = r.violations; window.passed = r.passes.length; })), window.found !== null && window.found !== undefined)`)
			if n := webtest.Value[int](b, `window.passed`); n < 15 {
				t.Errorf("%s: only %d rules had something to look at", pageName(s, path), n)
			}
			for _, f := range webtest.Value[[]string](b, `window.found.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.help + ": " + v.nodes[0].html.slice(0, 160))`) {
				t.Errorf("%s at %d px: %s", pageName(s, path), width, f)
			}
		}
	}
}
