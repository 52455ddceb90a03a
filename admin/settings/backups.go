package settings

import (
	"net/http"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// maxBackupRows bounds the backups that are shown.
const maxBackupRows = 20

// backupsPart are the backups, and the one that is being made.
type backupsPart struct {
	Rows page.Part[[]BackupFile]
	More int
	Job  *page.Job
	Open bool // how to restore one is shown
	Own  bool // the account is the owner's, who may download one

	Restore restorePart
}

// backupsOf reads the backups and returns how often the page refetches itself.
func (p *valuePages) backupsOf(r *http.Request, b *backupsPart) (every int) {
	who, _ := page.Principal(r)
	b.Own = who.User == core.Operator
	b.Open = r.URL.Query().Get("open") == "restore"
	b.Rows = page.Load(r.Context(), p.frame, "The list of backups", p.o.Backups.Backups)
	b.More = page.Cut(&b.Rows.Value, maxBackupRows)
	if b.Restore = p.restoreOf(r); b.Restore.Busy() {
		every = 1
	}
	if j, ok := p.o.BackupJob(); ok {
		b.Job = &j
		if j.Running {
			every = 1
		}
	}
	return every
}

func (p *valuePages) backUp(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The backup is being made. This page shows how far it is."), pathOf(secBackups), p.o.Backups.Backup(r.Context(), by)
}

func (p *valuePages) deleteBackup(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The backup is deleted."), pathOf(secBackups), p.o.Backups.RemoveBackup(r.Context(), r.PathValue("name"), by)
}

func (p *valuePages) downloadBackup(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	if who.User != core.Operator {
		return core.Errorf(core.Denied, "only the owner’s account can download a backup: it has everything of everyone")
	}
	f, at, err := p.o.Backups.OpenBackup(r.Context(), r.PathValue("name"), who.Actor())
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("name")+`"`) // the source knows no names with quotes
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(page.Slow(w), r, "", at, f)
	return nil
}
