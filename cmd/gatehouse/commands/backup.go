package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/runs"
	"gatehouse/core/store"
)

// A Backup writes the database and the vault into an archive.
type Backup struct {
	File string `arg:"" type:"path" help:"The archive to write, such as gatehouse.tar.gz; it must not exist and must be outside the vault."`
	JSON bool   `help:"As JSON."`
}

func (c *Backup) Help() string {
	return "The gateway may keep running. The backup has a snapshot of the database and the files of the vault, but not the settings, files with secrets, and Claude Code's login: keep those elsewhere. Files whose names no backup can hold are left out and listed; the exit code is then 1. 'gatehouse restore' restores it."
}

func (c *Backup) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	show := progress(p, "backing up")
	report, err := backup.Make(p.Context, BackupSource(cfg, p.EnvFile, p.Version), c.File, show.Show)
	show.End()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := console.PrintJSON(p.Stdout, report); err != nil || report.Misses == 0 {
			return err
		}
		return console.ErrReported
	}
	fmt.Fprintf(p.Stdout, "Backed up %d files and the database into %s (%s).\n", report.Files, report.File, backup.SizeText(report.Size))
	for _, left := range report.Left {
		fmt.Fprintf(p.Stdout, "Not in it: %s\n", left)
	}
	if report.Misses == 0 {
		return nil
	}
	fmt.Fprintf(p.Stderr, "gatehouse: %d files or folders cannot be in a backup: rename them, and make another one.\n", report.Misses)
	for _, missed := range report.Missed {
		fmt.Fprintf(p.Stderr, "Missing: %s\n", missed)
	}
	return console.ErrReported
}

// progress returns a meter on the terminal, or nil without one.
func progress(p *console.Process, what string) *backup.Meter {
	if !p.Terminal {
		return nil
	}
	return backup.NewMeter(what, func(line string) { fmt.Fprint(p.Stderr, "\r"+line+"\x1b[K") })
}

// BackupSource returns what a backup is made of. Files that hold a secret, by
// the settings, are left out.
func BackupSource(cfg *configs.Config, envFile, version string) backup.Source {
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
	return backup.Source{Vault: cfg.VaultPath, Database: cfg.DatabasePath(), Program: version, Without: without}
}

// A Restore restores a backup into an empty vault.
type Restore struct {
	File string `arg:"" type:"path" help:"The archive that 'gatehouse backup' wrote."`
	JSON bool   `help:"As JSON."`
}

func (c *Restore) Help() string {
	return "Restores a backup into an empty vault (GATEHOUSE_VAULT_PATH names another one). Over what a gateway has, its panel restores a backup: Settings, Backups, Restore. Every checksum is verified before anything is written. What was being answered or sent when the backup was made is not retried automatically: the panel's page Queue shows it. If it is interrupted, run it again."
}

func (c *Restore) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	show := progress(p, "restoring")
	report, err := backup.Restore(p.Context, RestoreTarget(cfg, control.By, filepath.Base(c.File), ""), c.File, show.Show)
	show.End()
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, report)
	}
	fmt.Fprintf(p.Stdout, "Restored %d files and the database of %s into %s.\n", report.Files, report.CreatedAt.Local().Format("2006-01-02 15:04"), cfg.VaultPath)
	if report.Messages+report.Sends > 0 {
		fmt.Fprintf(p.Stdout, "%d messages and %d replies were in progress when the backup was made. They are not retried automatically: see the panel's page Queue.\n", report.Messages, report.Sends)
	}
	for _, name := range report.Left {
		fmt.Fprintf(p.Stdout, "Not restored: %s (a link that leads out of the vault)\n", name)
	}
	for _, id := range report.Keys {
		fmt.Fprintf(p.Stdout, "Texts in the database are encrypted with the key %s: put the key file that has it at %s (GATEHOUSE_CONTENT_KEY_FILE) before you start the gateway.\n", id, cfg.ContentKeyPath())
	}
	_, err = fmt.Fprintln(p.Stdout, "Secrets are in no backup: give the settings as before, run 'gatehouse doctor', then 'gatehouse serve'.")
	return err
}

// RestoreTarget returns where the backup called name is restored to: the vault and
// database of the settings. The audit entry names who restores it, and the backup
// of what was there before; "" for none.
func RestoreTarget(cfg *configs.Config, by core.Actor, name, before string) backup.Target {
	to := backup.Target{Vault: cfg.VaultPath, Database: cfg.DatabasePath(), Settle: func(ctx context.Context, db *store.DB, tx *store.Tx) (maintenance.Restored, error) {
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
	// Discord would be asked for everything since the backup, and what was
	// answered since answered again. Telegram sends only what was not received.
	r, err := maintenance.AfterRestore(ctx, tx, "discord:")
	if err != nil {
		return r, err
	}
	if _, err := store.DeleteMetadataLike(ctx, tx, "discord:"); err != nil {
		return r, err
	}
	_, err = runs.New(db, core.System{}).AbandonAll(ctx, tx)
	return r, err
}
