package main

import (
	"slices"

	"gatehouse/admin/find"
	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/backup/directory"
	"gatehouse/core/erasure"
	"gatehouse/core/importer"
	importtasks "gatehouse/core/importer/tasks"
	"gatehouse/core/session/bring"
	"gatehouse/core/session/discover"
	"gatehouse/web/importing"
)

// joinImports makes what brings in conversations of other systems.
func (a *app) joinImports() {
	a.importer = importer.New(importer.Options{
		Bringer: bring.New(bring.Options{DB: a.db, Vault: a.vault, Sessions: a.sessions, Clock: a.clock, Log: a.log}),
		Files:   a.files, Own: a.vault.Path(), Clock: a.clock, Log: a.log,
	})
	a.imports = importtasks.New(importtasks.Options{Importer: a.importer, Jobs: a.jobs, Clock: a.clock,
		Audit: a.db.Audit})
	a.intake = importing.NewIntake(a.imports.List)
	// Only the operator, and what runs at full trust, writes transcripts in the vault, so the
	// sessions that Claude Code's command line begins there are the operator's.
	a.discoverer = discover.New(discover.Options{DB: a.db, Vault: a.vault, Sessions: a.sessions, Owner: core.Operator, Trust: core.Full, Clock: a.clock, Log: a.log})
}

// userWork is what runs for users and ends when they are forgotten: their answers and imports.
type userWork []erasure.Runs

func (w userWork) AbortUser(bot string, user int64) {
	for _, r := range w {
		r.AbortUser(bot, user)
	}
}

func (w userWork) Busy(user int64) bool {
	return slices.ContainsFunc(w, func(r erasure.Runs) bool { return r.Busy(user) })
}

// panelFind is the search as the panel shows it.
func (a *app) panelFind() find.Options {
	o := find.Options{Finder: a.library.Finder, Chats: a.views().Chats(), Files: a.vault.FS(), MayRead: a.readable.mayRead, Groups: a.sessions.Groups}
	if a.cfg.Index != "off" {
		o.Index = a.views().Index()
	}
	return o
}

func (a *app) joinBackups() {
	source := func() backup.Source { return backups.Source(a.settings.Now(), a.cfg.EnvFile(), version) }
	a.backups = directory.New(directory.Options{Path: a.cfg.BackupDir(), Setting: configs.Prefix + "_BACKUP_PATH", DB: a.db, Jobs: a.jobs, Clock: a.clock, Source: source})
	a.restores = restore.New(restore.Options{Config: a.cfg, Source: source, Backups: a.backups, DB: a.db, Clock: a.clock, Log: a.log, Changed: func() { a.bus.Ring(core.TopicJobs) }})
	a.closing(a.restores.Close)
}
