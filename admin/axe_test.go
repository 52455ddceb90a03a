//go:build browser

package admin_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/web/webtest"
)

// axe-core looks at every page, full and at both widths, and finds nothing serious or
// critical. The file is fetched by make test-axe and named by GATEHOUSE_TEST_AXE.
func TestAxeFindsNothingSeriousOnAnyPage(t *testing.T) {
	axe := webtest.NewAxe(t)
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
			found, passed := b.Violations(axe)
			if passed < 15 {
				t.Errorf("%s: only %d rules had something to look at", pageName(s, path), passed)
			}
			for _, v := range found {
				if v.Impact == "serious" || v.Impact == "critical" {
					t.Errorf("%s at %d px: %s: %s: %s", pageName(s, path), width, v.Rule, v.Help, v.At)
				}
			}
		}
	}
}
