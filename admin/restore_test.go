package admin_test

import (
	"slices"
	"testing"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/web/auth"
)

const backupsPath = "/admin/settings/backups"

func TestTheOwnerRestoresABackupAndMayCancel(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get(backupsPath).has(t, `action="/admin/settings/backups/`+backupOne+`/restore"`, "Restore checks the backup")
	s.post(backupsPath+"/"+backupOne+"/restore", nil).has(t, "The backup is being checked.", `data-left="10"`, "Everything since then will be as it was then", "this page comes back by itself; sign in again if it asks", `data-every="1"`, `action="/admin/settings/restore/cancel"`)
	a := s.get(backupsPath)
	a.lacks(t, `/restore"><input`) // no second one meanwhile
	s.get("/admin").has(t, `id="a-restore"`, "takes the place of what is there now", "a backup is being restored")
	s.post("/admin/settings/restore/cancel", nil).has(t, "The restore is cancelled. Nothing was changed.")
	s.get("/admin").lacks(t, `id="a-restore"`)
	if did := s.world.done(); !slices.Equal(did, []string{"restore " + backupOne, "cancel the restore"}) {
		t.Errorf("done: %q", did)
	}
}

func TestOnlyTheOwnerRestoresABackup(t *testing.T) {
	for _, role := range []string{auth.RoleAdmin, auth.RoleViewer} {
		s := newSite(t, nil, nil)
		s.world.full()
		s.enterAs("nina", role)
		a := s.get(backupsPath)
		a.has(t, "Only the owner’s account can restore a backup.")
		a.lacks(t, `/restore"`)
		if role == auth.RoleAdmin {
			s.post(backupsPath+"/"+backupOne+"/restore", nil).has(t, "Only the owner can restore a backup.")
		}
		if did := s.world.done(); len(did) != 0 {
			t.Errorf("%s did %q", role, did)
		}
	}
}

func TestTheOutcomeOfARestoreIsShownUntilItIsDismissed(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	set := s.world.setRestoring
	of := time.Date(2026, 1, 1, 3, 4, 5, 0, time.UTC)
	set(settings.Restoring{State: settings.RestoreChecks, Backup: backupOne, Of: of, Tell: "verified: 12 entries"})
	s.get(backupsPath).has(t, "Checking the backup of", "verified: 12 entries", "Cancel")
	set(settings.Restoring{State: settings.RestoreStops, Backup: backupOne, Of: of})
	a := s.get(backupsPath)
	a.has(t, "Restoring the backup of", "This page comes back by itself.")
	a.lacks(t, "/restore/cancel")
	set(settings.Restoring{State: settings.RestoreDone, Backup: backupOne, Of: of, Before: "gatehouse-20260102-000000-before-restore.tar.gz", Messages: 2, Sends: 1})
	s.get(backupsPath).has(t, "Restored "+backupOne+" from", `datetime="2026-01-01T03:04:05Z"`, "gatehouse-20260102-000000-before-restore.tar.gz", "2 messages and 1 reply were in progress", `href="/admin/queue"`, "Dismiss")
	s.get("/admin").lacks(t, `id="a-restore"`)
	set(settings.Restoring{State: settings.RestoreFailed, Backup: backupOne, Of: of, Reason: "the disk is full"})
	s.get(backupsPath).has(t, backupOne+" was not restored", "The disk is full.", "Nothing was changed. Solve this, then restore it again.")
	s.get("/admin").has(t, "was not restored, and nothing was changed: The disk is full. Solve this, then restore it again.", `href="/admin/settings/backups"`)
	s.post("/admin/settings/restore/dismiss", nil)
	s.get(backupsPath).lacks(t, "was not restored")
}
