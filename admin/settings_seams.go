package admin

import (
	"context"
	"io"
	"time"

	"gatehouse/core"
)

type (
	// Changes are what of the configuration can be changed here: kept, taken at
	// once, and audited. What can't be is core.Invalid and names its field.
	Changes interface {
		// Change gives settings values as the environment would hold them; the
		// configured value takes a change away.
		Change(ctx context.Context, values map[string]string, by core.Actor) error
		BotSettings() []BotSettings
		// SetPolicy with nil is as configured.
		SetPolicy(ctx context.Context, bot string, p *BotPolicy, by core.Actor) error
		// SetTokenFile has a bot go on with the token in a file; "" is as configured.
		SetTokenFile(ctx context.Context, bot, path string, by core.Actor) error
	}
	// A BotPolicy is how a bot treats people without access.
	BotPolicy struct{ DMPolicy, AllowedUsers, DMTrust, GroupTrust string }
	// A BotSettings is a bot as it is set.
	BotSettings struct {
		Bot, Platform string
		BotPolicy
		Token        string // where it stands, never what it is
		Off          bool   // it stays stopped
		PolicyFromUs bool   // set here
		TokenFromUs  bool
	}
	// Texts are what bots say to people by themselves, where that can be written
	// anew. A bot or text that is not there is core.NotFound.
	Texts interface {
		Texts(bot string) ([]BotText, error)
		// TryText is what would be said. What is wrong with body is core.Invalid
		// and names the line.
		TryText(bot, name, body string) (BotText, error)
		// SetText has the bot say body from now on; "" is the default again.
		// version is that of the text as its writer saw it.
		SetText(ctx context.Context, bot, name, version, body string, by core.Actor) error
	}
	// A BotText is one of them, as it is said now.
	BotText struct {
		Name, Title, When string
		Body, Default     string // as they are written
		Own               bool   // Body was written here
		Version           string
		Fields            []TextField
		Said              core.Part // with the example's values
		Size, Most        int       // of Said, and what a message holds
	}
	// A TextField is what a text may fill in.
	TextField struct{ Name, About, Example string }
	// Backups are the archives that were made here.
	Backups interface {
		Backups(ctx context.Context) ([]BackupFile, error)
		// Backup begins one; it goes on while nobody looks.
		Backup(ctx context.Context, by core.Actor) error
		OpenBackup(ctx context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error)
		RemoveBackup(ctx context.Context, name string, by core.Actor) error
	}
	// A BackupFile is one.
	BackupFile struct {
		Name, Path string
		Size       int64
		At         time.Time
		SHA256     string // "": nobody knows
	}
)
