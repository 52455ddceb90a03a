package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core"
)

// A Connection leads to the running gateway or, from the first request on that
// finds none, to its files opened in this process. Close it.
type Connection struct {
	Rebuilds bool // the files may be opened although the database is missing

	p      *Process
	cfg    *configs.Config
	client *control.Client
	close  func() error // nil: the files are not open
}

// Connect returns a connection to the gateway of the settings. Errors are about the settings.
func (p *Process) Connect() (*Connection, error) {
	cfg, err := configs.Load()
	if err != nil {
		return nil, err
	}
	dir, err := control.Dir(cfg.VaultPath)
	return &Connection{p: p, cfg: cfg, client: control.Dial(dir)}, err
}

// Request makes one request, on a connection of its own.
func (p *Process) Request(method, at string, in, out any) error {
	c, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.Do(method, at, in, out)
}

// Get reads at into out, on a connection of its own.
func (p *Process) Get(at string, out any) error { return p.Request(http.MethodGet, at, nil, out) }

// Close closes the files.
func (c *Connection) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// Do makes a request (control.Client.Do).
func (c *Connection) Do(method, at string, in, out any) error {
	err := c.client.Do(c.p.Context, method, at, in, out)
	if !errors.Is(err, control.ErrNotServing) {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	return c.client.Do(c.p.Context, method, at, in, out)
}

// User returns the user that a flag --user names: a number, "owner", platform:id, the id of an
// account, or a name.
func (c *Connection) User(ref string) (r control.Reference, err error) {
	if err = c.Do(http.MethodGet, "/control/user?"+url.Values{"ref": {ref}}.Encode(), nil, &r); core.KindOf(err) == core.NotFound {
		return r, core.Errorf(core.Invalid, "--user: %w", err)
	} else if err != nil {
		return r, fmt.Errorf("--user: %w", err)
	}
	return r, nil
}

// Finish makes a request that an interrupted process waits for.
func (c *Connection) Finish(method, at string, out any) error {
	return c.client.Do(context.WithoutCancel(c.p.Context), method, at, nil, out)
}

// HasNoVault reports whether there is no vault.
func (c *Connection) HasNoVault() bool {
	_, err := os.Stat(c.cfg.VaultPath)
	return errors.Is(err, fs.ErrNotExist)
}

func (c *Connection) open() error {
	if err := c.p.CheckVault(c.cfg); err != nil {
		return err
	}
	c.p.WarnElsewhere(c.cfg)
	if !c.Rebuilds && c.p.DatabaseMissing != nil {
		if _, err := c.p.DatabaseMissing(c.cfg); err != nil {
			return err
		}
	}
	h, end, err := c.p.Open(c.p.Context, c.cfg)
	if c.close = end; err == nil {
		fmt.Fprintf(c.p.Stderr, "No gateway runs on %s now, so this works on its files.\n", c.cfg.VaultPath)
		c.client = control.Local(h)
	}
	return err
}

// AsGateway is how to run a command as the gateway's user and with its settings.
const AsGateway = "under systemd: 'sudo gatehousectl ...'"

// CheckVault returns the error of a command that needs the files of the vault of cfg, where it
// is not there or cannot be read by this user.
func (p *Process) CheckVault(cfg *configs.Config) error {
	f, err := os.Open(cfg.VaultPath)
	if err != nil {
		return p.vaultFault(cfg, err)
	}
	_ = f.Close() // it was only opened
	return nil
}

func (p *Process) vaultFault(cfg *configs.Config, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Errorf(core.NotFound, "there is no vault at %s: run the command with the settings of the gateway (%s), where GATEHOUSE_VAULT_PATH names its vault; the demo's is ~/%s. 'gatehouse serve' makes a new vault", cfg.VaultPath, AsGateway, p.Demo)
	case errors.Is(err, fs.ErrPermission):
		return core.Errorf(core.Denied, "the vault %s is not this user's (uid %d): run the command as the gateway's user and with its settings (%s)", cfg.VaultPath, os.Getuid(), AsGateway)
	}
	return nil
}

// WarnElsewhere writes to Stderr if the database of cfg seems not to be the gateway's.
func (p *Process) WarnElsewhere(cfg *configs.Config) {
	if fault, fix := vaultid.Elsewhere(p.Context, cfg); fault != "" {
		fmt.Fprintf(p.Stderr, "Warning: %s: %s.\n", fault, fix)
	}
}

// Long starts a job, follows it to its end, and decodes its result into out. On
// a terminal it shows the progress.
func (c *Connection) Long(at string, out any) error {
	var job control.Job
	if err := c.Do(http.MethodPost, at, nil, &job); err != nil {
		return err
	}
	shown := false
	for {
		var st control.JobState
		err := c.Do(http.MethodGet, control.Path("control", "jobs", job.Key), nil, &st)
		if shown {
			fmt.Fprint(c.p.Stderr, "\r\x1b[K")
		}
		if err != nil {
			return err
		}
		if !st.Running {
			return json.Unmarshal(st.Result, out)
		}
		if shown = c.p.Terminal && st.Progress != ""; shown {
			fmt.Fprint(c.p.Stderr, st.Progress)
		}
	}
}
