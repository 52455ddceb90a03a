//go:build browser

package admin_test

import (
	"errors"
	"testing"

	"gatehouse/admin"
	"gatehouse/core"
	"gatehouse/web/webtest"
)

// What a page says when its source fails is accessible and fits a phone, as the page itself does.
func TestPagesWhoseSourceFailsAreAccessible(t *testing.T) {
	s := newSite(t, core.System{}, func(o *admin.Options) {
		bad := failing{errors.New("disk I/O error")}
		o.Council.Store, o.Reports.Reports = closedLedger(t), bad
		o.Chats.Traces = &brokenTraces{o.Chats.Traces, bad.err}
	})
	s.world.full()
	s.world.logged.broken = errors.New("disk I/O error")
	b := webtest.New(t)
	signIn(b, s)
	s.world.setBroken(errors.New("disk I/O error"))
	for name, path := range map[string]string{"overview": "/admin", "gateways": "/admin/gateways", "council": "/admin/council", "domains": "/admin/council/domains", "reports": "/admin/reports", "trace": "/admin/chats/trace?run=" + adaRun} {
		for _, look := range []struct {
			of     string
			width  int64
			height int64
			theme  string
		}{{"desk", 1280, 900, "light"}, {"desk", 1280, 900, "dark"}, {"phone", 390, 844, "light"}, {"phone", 390, 844, "dark"}} {
			b.Look(look.width, look.height, look.theme)
			b.Open(s.url + path)
			b.Visible(`.broken`)
			if over := webtest.Value[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s at %d px is %d px too wide", name, look.width, over)
			}
			wellMannered(t, b, name)
			b.Keep("admin-failing-"+name+"-"+look.of+"-"+look.theme, b.Picture())
		}
	}
}
