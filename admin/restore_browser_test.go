//go:build browser

package admin_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/web/webtest"
)

// The page counts down, keeps what it shows while the gateway is away, and shows the
// outcome when it is back.
func TestARestoreIsFollowedInABrowser(t *testing.T) {
	s := newSite(t, core.System{}, nil)
	s.world.full()
	b := webtest.New(t)
	signIn(b, s)
	for _, w := range windows {
		b.Look(w.width, 900, w.scheme)
		shot := func(state string) {
			if over := webtest.Value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s: %d px too wide at %d", state, over, w.width)
			}
			wellMannered(t, b, state)
			if webtest.Shots() != "" {
				b.Keep(fmt.Sprintf("restore-%s-%s-%d", state, w.scheme, w.width), b.WholePicture())
			}
		}
		s.world.setRestoring(settings.Restoring{})
		b.Open(s.url + backupsPath)
		live(b)
		shot("list")
		b.Click(`#list form[action$="/restore"] button`)
		b.Says(`#restoring`, "Everything since then will be as it was then")
		b.Says(`#restoring .left`, "9 s") // counted by the page: the server says 10
		shot("waits")
		s.world.setRestoring(settings.Restoring{State: settings.RestoreDone, Backup: backupOne, Of: time.Date(2026, 1, 1, 3, 4, 5, 0, time.UTC), Before: "gatehouse-20260102-000000-before-restore.tar.gz", Messages: 2, Sends: 1})
		b.Says(`#restoring`, "What was there before is the backup")
		shot("done")
		b.Click(`#restoring button`)
		b.Gone(`#restoring`)
		s.world.setRestoring(settings.Restoring{State: settings.RestoreFailed, Backup: backupOne, Reason: "the disk is full: it needs room for a backup of what is there, and for what is restored"})
		b.Open(s.url + backupsPath)
		b.Says(`#restoring`, "The disk is full")
		shot("failed")
		b.Open(s.url + "/admin")
		b.Says(`#a-restore`, "was not restored")
		shot("overview")
	}
}
