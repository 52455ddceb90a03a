package commands

import (
	"fmt"
	"path/filepath"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs"
	"gatehouse/core/backup"
)

// A Backup writes the database and the vault into an archive.
type Backup struct {
	File string `arg:"" type:"path" help:"The archive to write, such as gatehouse.tar.gz; it must not exist and must be outside the vault."`
	JSON bool   `help:"As JSON."`
}

func (c *Backup) Help() string {
	return "The gateway may keep running. The backup has a snapshot of the database and the files of the vault, but not the settings, files with secrets, the key file of encrypted texts, and Claude Code's login: keep those elsewhere. Files whose names no backup can hold are left out and listed; the exit code is then 1. 'gatehouse restore' restores it."
}

func (c *Backup) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if err := p.CheckVault(cfg); err != nil {
		return err
	}
	p.WarnElsewhere(cfg)
	show := progress(p, "backing up")
	report, err := backup.Make(p.Context, backups.Source(cfg, p.EnvFile, p.Version), c.File, show.Show)
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
	if note := report.KeyNote(); note != "" {
		fmt.Fprintln(p.Stdout, note)
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
	report, err := backup.Restore(p.Context, backups.Target(cfg, control.By, filepath.Base(c.File), ""), c.File, show.Show)
	show.End()
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, report)
	}
	fmt.Fprintf(p.Stdout, "Restored %d files and the database of %s into %s.\n", report.Files, report.CreatedAt.Local().Format(console.Minute), cfg.VaultPath)
	if report.Messages+report.Sends > 0 {
		fmt.Fprintf(p.Stdout, "%d messages and %d replies were in progress when the backup was made. They are not retried automatically: see the panel's page Queue.\n", report.Messages, report.Sends)
	}
	for _, name := range report.Left {
		fmt.Fprintf(p.Stdout, "Not restored: %s (a link that leads out of the vault)\n", name)
	}
	lacking, err := backups.Lacking(cfg, report.Keys)
	if err != nil {
		return fmt.Errorf("everything is restored, but: %w", err)
	}
	for _, id := range lacking {
		fmt.Fprintf(p.Stdout, "Texts in the database are encrypted with the key %s: put the key file that has it at %s (GATEHOUSE_CONTENT_KEY_FILE) before you start the gateway. 'gatehouse backup' named it where the backup was made; by default it is VAULT-keys/content.key.\n", id, cfg.ContentKeyPath())
	}
	if len(report.Keys) > 0 && len(lacking) == 0 {
		fmt.Fprintf(p.Stdout, "The key file %s opens the encrypted texts.\n", cfg.ContentKeyPath())
	}
	_, err = fmt.Fprintln(p.Stdout, "Secrets are in no backup: give the settings as before, run 'gatehouse doctor', then 'gatehouse serve'.")
	return err
}
