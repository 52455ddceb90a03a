// Package migrating is the command that moves the database between SQLite and PostgreSQL.
package migrating

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/carry/remote"
	"gatehouse/core/store/snapshot"
	"gatehouse/core/vault"
)

// A Migrate copies the database of the settings to a server, or from it.
type Migrate struct {
	To           string   `xor:"way" required:"" placeholder:"URL" help:"Copy the SQLite database of the settings into this PostgreSQL database: postgres://user@host/name."`
	From         string   `xor:"way" required:"" placeholder:"URL" help:"Copy this PostgreSQL database into the SQLite file of the settings, which must not exist yet."`
	PasswordFile string   `type:"path" placeholder:"FILE" help:"A file with the password of the PostgreSQL user."`
	JSON         bool     `help:"As JSON."`
	Extra        []string `arg:"" optional:"" hidden:""` // refused without being printed: it may be a URL with a password
}

func (c *Migrate) Help() string {
	return "Stop the gateway first. The database that is copied is only read. All rows are copied and then compared by count and SHA-256 of each table. If it is interrupted, run the same command again: it continues. Until it is complete, 'gatehouse serve' refuses the new database. Afterwards set GATEHOUSE_DATABASE_URL as the command prints. The files of the vault stay where they are."
}

// A result is what the command prints.
type result struct {
	carry.Report
	Seconds float64 `json:"seconds"`
	URL     string  `json:"url"`  // without a password
	File    string  `json:"file"` // of SQLite
}

func (c *Migrate) Run(p *console.Process) (err error) {
	if len(c.Extra) > 0 {
		return core.Errorf(core.Invalid, "give the address of the PostgreSQL database with --to or --from, and nothing else")
	}
	at, err := newServer(c.To+c.From, c.PasswordFile)
	if err != nil {
		return err
	}
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	file := cfg.DatabasePath()
	if strings.Contains(file, "://") {
		return core.Errorf(core.Invalid, "GATEHOUSE_DATABASE_URL names a server: for this command set it to the SQLite file, or leave it empty for Chat/sessions.db in the vault")
	}
	release, err := lock(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	begun := time.Now()
	copied := c.copyFrom
	if c.To != "" {
		copied = c.copyTo
	}
	r := result{URL: at.shown(), File: file}
	if r.Report, err = copied(p, file, at); err != nil {
		if p.Context.Err() != nil {
			return fmt.Errorf("interrupted: run the same command again to complete the copy; until then 'gatehouse serve' refuses the new database")
		}
		return err
	}
	r.Seconds = time.Since(begun).Seconds()
	if c.JSON {
		return console.PrintJSON(p.Stdout, r)
	}
	return c.print(p, r)
}

// lock locks the vault, as a gateway does that serves it.
func lock(cfg *configs.Config) (release func() error, err error) {
	if err := backup.CheckFinished(cfg.VaultPath); err != nil {
		return nil, err
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return nil, err
	}
	if err := v.Lock(true); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v.Close, nil
}

// copyTo copies the file to the server.
func (c *Migrate) copyTo(p *console.Process, file string, at *server) (carry.Report, error) {
	if st, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return carry.Report{}, core.Errorf(core.NotFound, "there is no database at %s: GATEHOUSE_DATABASE_URL or GATEHOUSE_VAULT_PATH names another one", file)
	}
	if _, adopt, err := store.Examine(p.Context, file); err != nil {
		return carry.Report{}, err
	} else if adopt {
		return carry.Report{}, core.Errorf(core.Invalid, "%s is a database of the original system: start the gateway once with it ('gatehouse serve'), which takes it over, stop it, and try again", file)
	}
	from, err := carry.Source(file)
	if err != nil {
		return carry.Report{}, err
	}
	defer from.Close()
	to, err := at.Target(p.Context)
	if err != nil {
		return carry.Report{}, err
	}
	defer to.Close()
	return c.copy(p, from, to)
}

// copyFrom copies from the server into the file.
func (c *Migrate) copyFrom(p *console.Process, file string, at *server) (r carry.Report, err error) {
	if err := mayWrite(p.Context, file); err != nil {
		return r, err
	}
	release, err := at.Alone(p.Context)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, release()) }()
	from, err := at.Source(p.Context)
	if err != nil {
		return carry.Report{}, err
	}
	defer from.Close()
	if err := remote.Create(p.Context, file); err != nil {
		return carry.Report{}, err
	}
	to, err := carry.Target(file)
	if err != nil {
		return carry.Report{}, err
	}
	defer to.Close()
	return c.copy(p, from, to)
}

// mayWrite returns an error if the file is a database that is in use, which opening it
// might change.
func mayWrite(ctx context.Context, file string) error {
	inUse := func(name string) error {
		return core.Errorf(core.Conflict, "there is a database at %s already: move %s away, with those next to it that end in -wal and -shm, or name another place (GATEHOUSE_DATABASE_URL)", file, name)
	}
	st, err := os.Stat(file)
	switch {
	case err == nil && st.Size() > 0:
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	default: // SQLite would apply the log of another database to the new one
		if st, err := os.Stat(file + "-wal"); err == nil && st.Size() > 0 {
			return inUse(file + "-wal")
		}
		return nil
	}
	version, adopt, err := store.Examine(ctx, file)
	if err != nil || adopt {
		return inUse(file)
	}
	if mark, err := snapshot.Peek(ctx, file, carry.Marker); err != nil || mark == "" && version != store.Newest() {
		return inUse(file)
	}
	return nil // if it has rows of anything else, the copy refuses it
}

// copy copies, and shows the progress on a terminal.
func (c *Migrate) copy(p *console.Process, from, to *carry.Side) (carry.Report, error) {
	var meter *backup.Meter
	var progress carry.Progress
	step := ""
	if p.Terminal {
		progress = func(now string, rows int, bytes int64) {
			if now != step {
				meter.End()
				step, meter = now, backup.NewMeter(now, func(line string) { fmt.Fprint(p.Stderr, "\r"+line+"\x1b[K") })
			}
			meter.Show(rows, bytes)
		}
	}
	r, err := carry.Copy(p.Context, from, to, progress)
	meter.End()
	return r, err
}

func (c *Migrate) print(p *console.Process, r result) error {
	from, to := r.File, "the PostgreSQL database"
	if c.From != "" {
		from, to = to, r.File
	}
	fmt.Fprintf(p.Stdout, "Copied %d tables with %d rows from %s to %s in %.1f seconds. Both have the same content: every table was compared.\n", r.Tables, r.Rows, from, to, r.Seconds)
	if r.Kept > 0 {
		fmt.Fprintf(p.Stdout, "%d of the tables were there already, from an earlier run.\n", r.Kept)
	}
	for _, name := range r.LeftOut {
		fmt.Fprintf(p.Stdout, "Not copied, because this program does not use it: %s\n", name)
	}
	if c.From != "" {
		_, err := fmt.Fprintf(p.Stdout, "\nNext: start the gateway with GATEHOUSE_DATABASE_URL=%s (empty for Chat/sessions.db in the vault), and without GATEHOUSE_DATABASE_PASSWORD and its file. The database on the server was not changed and is not used any more.\n", r.File)
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "\nNext: set GATEHOUSE_DATABASE_URL=%s, and GATEHOUSE_DATABASE_PASSWORD_FILE to a file with the password if one is needed. Run 'gatehouse doctor', then 'gatehouse serve'.\n"+
		"%s was not changed and is not used any more. Keep it until you are content, then delete it.\n", r.URL, r.File)
	return err
}
