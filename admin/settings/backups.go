package settings

import (
	"context"
	"net/http"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// backupsOf sets the backups and returns how often the page refetches itself.
func (p *valuePages) backupsOf(ctx context.Context, b *settingsBody) (every int) {
	if p.o.Backups == nil || p.o.BackupJob == nil {
		return 0
	}
	b.HasJob = true
	b.Backups = page.Load(ctx, p.frame, "The list of backups", p.o.Backups.Backups)
	b.MoreBk = page.Cut(&b.Backups.Value, maxBackupRows)
	if j, ok := p.o.BackupJob(); ok {
		b.Job = &j
		if j.Running {
			every = 1
		}
	}
	return every
}

func (p *valuePages) backUp(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The backup is being made. This page shows how far it is."), settingsPath + "#backups-h", p.o.Backups.Backup(r.Context(), by)
}

func (p *valuePages) deleteBackup(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The backup is deleted."), settingsPath + "#backups-h", p.o.Backups.RemoveBackup(r.Context(), r.PathValue("name"), by)
}

func (p *valuePages) downloadBackup(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
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
