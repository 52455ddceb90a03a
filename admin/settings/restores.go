package settings

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// restorePath is the address of what concerns the restore that is under way.
const restorePath = settingsPath + "/restore"

type (
	// Restores replace what the gateway has by a backup. What can't be is refused with a
	// sentence, and changes nothing.
	Restores interface {
		Restore() Restoring
		// BeginRestore checks the backup, waits some seconds and restarts the gateway with it.
		BeginRestore(ctx context.Context, name string, by core.Actor) error
		CancelRestore(ctx context.Context, by core.Actor) error
		// DismissRestore forgets the outcome of the last one.
		DismissRestore() error
	}
	// A Restoring is the restore that is under way, or the outcome of the last one.
	Restoring struct {
		State           string // one of the following; else there is none
		Backup          string // its name
		Of              time.Time
		Tell            string // how far the check is
		Left            int    // seconds until it begins, while it waits
		Reason          string // why it failed
		Before          string // the backup of what was there before it was done
		Messages, Sends int    // that were in progress when the backup was made
	}
)

// States of a Restoring.
const (
	RestoreChecks = "checking"
	RestoreWaits  = "waiting"
	RestoreStops  = "stopping"
	RestoreDone   = "done"
	RestoreFailed = "failed"
)

// Busy reports whether a restore is under way.
func (r Restoring) Busy() bool {
	return r.State == RestoreChecks || r.State == RestoreWaits || r.State == RestoreStops
}

// Why returns why nothing was changed, as a sentence.
func (r Restoring) Why() string { return page.Sentence(r.Reason) }

// InProgress returns what was in progress when the backup was made; "" for nothing.
func (r Restoring) InProgress() string {
	if r.Messages+r.Sends == 0 {
		return ""
	}
	return page.Count(r.Messages, "message", "messages") + " and " + page.Count(r.Sends, "reply", "replies")
}

// restorePart is the restore on the page of backups.
type restorePart struct {
	Restoring
	CSRF string
	Can  bool // there is a button at each backup
	May  bool // and this account may press it
}

func (p *valuePages) restoreOf(r *http.Request) (part restorePart) {
	if p.o.Restores == nil {
		return part
	}
	who, _ := page.Principal(r)
	return restorePart{Restoring: p.o.Restores.Restore(), CSRF: page.Token(r), Can: true, May: who.User == core.Operator}
}

func (p *valuePages) restore(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The backup is being checked. It can still be cancelled."), pathOf(secBackups), p.o.Restores.BeginRestore(r.Context(), r.PathValue("name"), by)
}

func (p *valuePages) cancelRestore(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The restore is cancelled. Nothing was changed."), pathOf(secBackups), p.o.Restores.CancelRestore(r.Context(), by)
}

func (p *valuePages) dismissRestore(*http.Request, core.Actor) (page.Flash, string, error) {
	return page.Note("Dismissed."), pathOf(secBackups), p.o.Restores.DismissRestore()
}

// RestoreAnswer returns what the overview states of a restore that is under way or has
// failed, and whether there is one.
func (p *Pages) RestoreAnswer() (a page.Answer, ok bool) {
	if p.values.o.Restores == nil {
		return a, false
	}
	now := p.values.o.Restores.Restore()
	a = page.Answer{Key: "restore", Question: "Is a backup being restored?", Path: pathOf(secBackups), Link: "Backups"}
	switch {
	case now.State == RestoreFailed:
		a.Tone, a.Short = "bad", "a backup was not restored"
		a.Answer = now.Backup + " was not restored, and nothing was changed: " + strings.TrimSuffix(now.Why(), ".") + ". Solve this, then restore it again."
	case now.Busy():
		a.Tone, a.Short = "warn", "a backup is being restored"
		a.Answer = now.Backup + " takes the place of what is there now. The gateway restarts for it."
	default:
		return a, false
	}
	return a, true
}
