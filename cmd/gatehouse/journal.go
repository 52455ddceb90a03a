package main

import (
	"context"
	"io"
	"time"
	_ "time/tzdata" // time zones of users, also on machines and in images without them

	panel "gatehouse/admin/journal"
	chatjournal "gatehouse/connectors/chat/journal"
	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/core/paraid"
	"gatehouse/core/tool/files"
	"gatehouse/core/vaultsync"
	"gatehouse/pairing/people"
	apijournal "gatehouse/web/api/journal"
	apisync "gatehouse/web/api/sync"
)

// copied is what devices have copies of: the journals, and the vault.
type copied struct {
	journal *journal.Store
	synced  *vaultsync.Store
}

// openJournal builds the registry of ids, the journals, and the sync of the vault.
func (a *app) openJournal(ctx context.Context) error {
	a.paraIDs = paraid.New(a.db, a.vault, a.log)
	a.closing(a.paraIDs.Close)
	a.journal = journal.New(journal.Options{DB: a.db, Vault: a.vault, IDs: a.paraIDs, Rows: a.paraIDs, Clock: a.clock, Log: a.log, Room: a.journalRoom})
	a.synced = vaultsync.New(vaultsync.Options{DB: a.db, Vault: a.vault, Clock: a.clock, Log: a.log, Room: a.journalRoom, Registry: a.reg})
	return a.paraIDs.Load(ctx)
}

// journalRoom holds the journals of guests to the limits of their directories.
func (a *app) journalRoom(ctx context.Context, user int64, name string, isNew bool, grows int64) error {
	return files.Room(ctx, a.vault, user, name, isNew, grows)
}

// chatJournal returns what /journal and /timezone need.
func (a *app) chatJournal() chatjournal.Options {
	return chatjournal.Options{
		Log: a.log, Journals: a.journal, Zones: a.pairing.People, Hear: a.hear, Length: a.voice.Length, Later: a.pending.Add,
		Fetch: func(ctx context.Context, bot string, f core.File, to io.Writer) error {
			return a.hub.Fetch(ctx, bot, f, to)
		},
		Known: func(name string) error { _, err := people.ParseZone(name); return err },
	}
}

// apiJournal returns what the journal's endpoints need.
func (a *app) apiJournal() apijournal.Options {
	return apijournal.Options{Reader: a.journal, Writer: a.journal, May: a.readable.may, Now: a.nowOf}
}

// apiSync returns what the sync's endpoints need.
func (a *app) apiSync() apisync.Options {
	return apisync.Options{Files: a.synced, Clock: a.clock, May: a.readable.may, Did: a.synced.Audit}
}

// nowOf returns the time in a user's time zone.
func (a *app) nowOf(ctx context.Context, user int64) (time.Time, error) {
	zone, err := a.pairing.People.Timezone(ctx, a.db, user)
	if err != nil {
		return time.Time{}, err
	}
	return a.clock.Now().In(zone), nil
}

// panelJournal returns what the panel's page of the journal needs.
func (a *app) panelJournal() panel.Options {
	return panel.Options{Reader: a.journal, Writer: a.journal, Files: a.vault.FS(), May: a.readable.may, Now: a.nowOf}
}
