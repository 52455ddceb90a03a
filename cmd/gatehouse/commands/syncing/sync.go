// Package syncing is the command that syncs a directory of this machine with a gateway's
// vault. It reads no settings of the gateway: the gateway is usually another machine.
package syncing

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core"
	"gatehouse/core/vaultsync/client"
)

// A Sync keeps a directory the same as the vault of a gateway.
type Sync struct {
	Dir     string `arg:"" help:"The folder. It is created if it is missing."`
	Server  string `required:"" placeholder:"URL" help:"The gateway, such as https://gateway.example.org."`
	KeyFile string `required:"" type:"path" placeholder:"FILE" help:"A file with an API key that has the scope sync."`
	Device  string `placeholder:"NAME" help:"This device's name where two changes meet. The default is the machine's name."`
	Watch   bool   `xor:"how" help:"Keep running: sync at each change here, and every five seconds."`
	Once    bool   `xor:"how" help:"Sync once and end. This is the default."`
	DryRun  bool   `help:"Print what would be done, and change nothing."`
}

func (c *Sync) Help() string {
	return "Both sides get what the other has changed. Entries of a journal's day are merged, other texts by lines; what cannot be merged is kept twice, the second as 'NAME (conflict DEVICE DATE)'. Make the key with 'gatehouse keys create NAME --scope sync --trust vault' on the gateway. It may be interrupted at any time."
}

// maxKey is the largest file of a key, in bytes.
const maxKey = 4096

func (c *Sync) Run(p *console.Process) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if err := c.checkServer(p); err != nil {
		return err
	}
	o := client.Options{Dir: c.Dir, Server: c.Server, Key: key, Device: c.Device, DryRun: c.DryRun, Clock: core.System{},
		Log: slog.New(slog.NewTextHandler(p.Stderr, nil))}
	if p.Terminal {
		o.Progress = func(text string) { fmt.Fprint(p.Stderr, "\r\x1b[K"+text) }
	}
	s, err := client.Open(o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if c.Watch && !c.DryRun {
		return s.Watch(p.Context, func(r client.Report) { _ = c.print(p, &r) })
	}
	r, err := s.Once(p.Context)
	if p.Terminal {
		fmt.Fprint(p.Stderr, "\r\x1b[K")
	}
	if printed := c.print(p, &r); err == nil {
		err = printed
	}
	return err
}

func (c *Sync) key() (string, error) {
	f, err := os.Open(c.KeyFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey))
	key := strings.TrimSpace(string(text))
	if err == nil && (key == "" || strings.ContainsAny(key, " \n\t")) {
		err = core.Errorf(core.Invalid, "%s has no API key alone: 'gatehouse keys create NAME --scope sync --trust vault' prints one", c.KeyFile)
	}
	return key, err
}

// checkServer refuses an address that is none, and warns of a key that is sent readable.
func (c *Sync) checkServer(p *console.Process) error {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return core.Errorf(core.Invalid, "--server must be an address such as https://gateway.example.org")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintf(p.Stderr, "Warning: %s is not encrypted: others in the network can read the key and the files.\n", c.Server)
	}
	return nil
}

// print prints what was done.
func (c *Sync) print(p *console.Process, r *client.Report) error {
	if c.DryRun {
		for _, line := range r.Plan {
			fmt.Fprintln(p.Stdout, core.Visible(line))
		}
		_, err := fmt.Fprintf(p.Stdout, "%d files would be changed.\n", len(r.Plan))
		return err
	}
	for _, d := range r.Merged {
		note := ""
		if d.Conflicts > 0 {
			note = fmt.Sprintf("; both sides changed the same lines in %d places, which are under '## conflict'", d.Conflicts)
		}
		fmt.Fprintf(p.Stdout, "%s was changed on both sides and merged%s\n", core.Visible(d.Path), note)
	}
	for _, d := range r.Copies {
		fmt.Fprintf(p.Stdout, "%s was changed on both sides: what this device had is in %s\n", core.Visible(d.Path), core.Visible(d.Copy))
	}
	for _, name := range r.Recovered {
		fmt.Fprintf(p.Stdout, "what an interrupted run left is in %s\n", core.Visible(name))
	}
	for _, text := range r.Errors {
		fmt.Fprintf(p.Stderr, "not synced: %s\n", core.Visible(text))
	}
	_, err := fmt.Fprintf(p.Stdout, "%d sent, %d fetched, %d deleted here, %d deleted on the server.\n", r.Sent, r.Fetched, r.DeletedHere, r.DeletedOut)
	if err == nil && len(r.Errors) > 0 {
		err = console.ErrReported
	}
	return err
}
