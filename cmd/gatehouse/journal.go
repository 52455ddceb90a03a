package main

import (
	"context"
	"io"
	"io/fs"
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
	of      fs.FS // the vault
	by      core.Clock
	may     func(trust core.Trust, user int64, path string, write bool) bool
	nowOf   func(ctx context.Context, user int64) (time.Time, error) // in the user's time zone
}

// openJournal builds the registry of ids, the journals, and the sync of the vault.
func (a *app) openJournal(ctx context.Context) error {
	a.paraIDs = paraid.New(a.db, a.vault, a.log)
	a.closing(a.paraIDs.Close)
	room := func(ctx context.Context, user int64, name string, isNew bool, grows int64) error {
		return files.Room(ctx, a.vault, user, name, isNew, grows)
	}
	a.copied = copied{
		journal: journal.New(journal.Options{DB: a.db, Vault: a.vault, IDs: a.paraIDs, Rows: a.paraIDs, Clock: a.clock, Log: a.log, Room: room}),
		synced:  vaultsync.New(vaultsync.Options{DB: a.db, Vault: a.vault, Clock: a.clock, Log: a.log, Room: room, Registry: a.reg}),
		of:      a.vault.FS(), by: a.clock, may: a.readable.may,
		nowOf: func(ctx context.Context, user int64) (time.Time, error) {
			zone, err := a.pairing.People.Timezone(ctx, a.db, user)
			if err != nil {
				return time.Time{}, err
			}
			return a.clock.Now().In(zone), nil
		},
	}
	return a.paraIDs.Load(ctx)
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
func (c *copied) apiJournal() apijournal.Options {
	return apijournal.Options{Store: c.journal, May: c.may, Now: c.nowOf}
}

// apiSync returns what the sync's endpoints need.
func (c *copied) apiSync() apisync.Options {
	return apisync.Options{Files: c.synced, Clock: c.by, May: c.may, Did: c.synced.Audit}
}

// panelJournal returns what the panel's page of the journal needs.
func (c *copied) panelJournal() panel.Options {
	return panel.Options{Store: c.journal, Files: c.of, May: c.may, Now: c.nowOf}
}
