package main

import (
	"context"
	"io"
	_ "time/tzdata" // time zones of users, also on machines and in images without them

	chatjournal "gatehouse/connectors/chat/journal"
	"gatehouse/core"
	"gatehouse/core/tool/files"
	"gatehouse/pairing/people"
)

// journalRoom holds the journals of guests to the limits of their directories.
func (a *app) journalRoom(ctx context.Context, user int64, name string, isNew bool, grows int64) error {
	return files.Room(ctx, a.vault, user, name, isNew, grows)
}

// chatJournal returns what /journal and /timezone need.
func (a *app) chatJournal() chatjournal.Options {
	return chatjournal.Options{
		Log: a.log, Journals: a.journal, Zones: a.pairing.People, Hear: a.hear,
		Fetch: func(ctx context.Context, bot string, f core.File, to io.Writer) error {
			return a.hub.Fetch(ctx, bot, f, to)
		},
		Known: func(name string) error { _, err := people.ParseZone(name); return err },
	}
}
