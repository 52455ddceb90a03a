// Package backups has what a backup is made of and restored to, by the settings.
package backups

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/report"
	"gatehouse/core/runs"
	"gatehouse/core/schedule"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/store"
	"gatehouse/core/store/carry/remote"
	"gatehouse/core/vaultsync"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

// Source returns what a backup is made of. Files that hold a secret, by
// the settings, are left out.
func Source(cfg *configs.Config, envFile, version string) backup.Source {
	const secret = "it holds a secret; keep it elsewhere"
	without := map[string]string{envFile: secret, cfg.TokensDir(): "the tokens of bots that were added in the panel; give them again there"}
	for _, path := range cfg.SecretFiles() {
		without[path] = secret
	}
	botsPath, _ := cfg.BotsPath()
	if beside, err := os.ReadDir(filepath.Dir(botsPath)); err == nil && botsPath != "" {
		for _, e := range beside { // what was adopted of the original system, with its tokens
			if path := filepath.Join(filepath.Dir(botsPath), e.Name()); strings.HasPrefix(path, botsPath+".original") {
				without[path] = secret
			}
		}
	}
	bots, err := cfg.ReadBots(nil)
	if err != nil && botsPath != "" {
		without[botsPath] = "it cannot be read, and may hold tokens"
	}
	for _, bot := range bots {
		if bot.TokenFile != "" {
			without[bot.TokenFile] = secret
		} else if bot.InFile {
			without[botsPath] = secret + ", or its tokens in files (token_file)"
		}
	}
	if old := filepath.Join(cfg.VaultPath, "Chat", "sessions.db"); cfg.OnServer() { // a file from before: restored, it would be in the place of the database
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			without[old+suffix] = "the database is on a server now"
		}
	}
	keys := cfg.ContentKeyPath()
	if _, err := os.Stat(keys); err != nil {
		keys = ""
	}
	return backup.Source{Vault: cfg.VaultPath, Database: cfg.DatabasePath(), Server: server(cfg), Program: version, Without: without, KeyFile: keys}
}

// server returns the way to a database on a server; nil where it is a file.
func server(cfg *configs.Config) backup.Server {
	if !cfg.OnServer() {
		return nil
	}
	return remote.Database{Address: cfg.DatabasePath(), Password: cfg.DatabasePassword.Reveal()}
}

// Lacking returns those of the keys of a restored database that the key file of the settings lacks.
func Lacking(cfg *configs.Config, keys []string) ([]string, error) { return sealing.Lacking(cfg, keys) }

// Target returns where the backup called name is restored to: the vault and
// database of the settings. The audit entry names who restores it, and the backup
// of what was there before; "" for none.
func Target(cfg *configs.Config, by core.Actor, name, before string) backup.Target {
	to := backup.Target{Vault: cfg.VaultPath, Database: cfg.DatabasePath(), Server: server(cfg), Settle: func(ctx context.Context, db *store.DB, tx *store.Tx) (maintenance.Restored, error) {
		r, err := settleRestored(ctx, db, tx)
		if err != nil {
			return r, err
		}
		detail := map[string]any{"messages": r.Messages, "sends": r.Sends}
		if before != "" {
			detail["before"] = before
		}
		return r, store.Audit(ctx, tx, by, "backup.restore", name, detail)
	}}
	to.Keys = func(ctx context.Context, q store.Queryer) ([]string, error) {
		used, missing, err := sealing.Missing(ctx, cfg, q)
		if before != "" && len(missing) > 0 { // the gateway would not start
			return nil, core.Errorf(core.Conflict, "texts in this backup are encrypted with the key %s, which the key file %s lacks: add its line from a copy of that key file", missing[0], cfg.ContentKeyPath())
		}
		return used, err
	}
	dir := cfg.VaultPath
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for ; ; dir = filepath.Dir(dir) { // the part of its path that exists
		if _, free, ok := doctor.Filesystem(dir); ok {
			to.Space = max(1, int64(min(free, 1<<62)))
			return to
		}
		if dir == filepath.Dir(dir) {
			return to
		}
	}
}

// settleRestored sets aside what a restored database would have done a second
// time.
func settleRestored(ctx context.Context, db *store.DB, tx *store.Tx) (maintenance.Restored, error) {
	reminders := remind.New(remind.Options{DB: db, Clock: core.System{}, Post: outbox.New(db, outbox.Options{}).Post, Name: people.New(db, core.System{}, bots.Bots{}, nil, nil, nil, nil).Name})
	if err := reminders.AfterRestore(ctx, tx); err != nil { // their messages are among the replies of the next step
		return maintenance.Restored{}, err
	}
	if err := schedule.AfterRestore(ctx, tx); err != nil {
		return maintenance.Restored{}, err
	}
	// Discord would be asked for everything since the backup, and what was
	// answered since answered again. Telegram sends only what was not received.
	r, err := maintenance.AfterRestore(ctx, tx, "discord:")
	if err != nil {
		return r, err
	}
	if err := maintenance.SkipNumbers(ctx, tx, store.OnServer(db.Path())); err != nil {
		return r, err
	}
	if _, err := store.DeleteMetadataLike(ctx, tx, "discord:"); err != nil {
		return r, err
	}
	if err := report.AfterRestore(ctx, tx); err != nil {
		return r, err
	}
	if err := vaultsync.AfterRestore(ctx, tx); err != nil {
		return r, err
	}
	_, err = runs.New(db, core.System{}).AbandonAll(ctx, tx)
	return r, err
}
