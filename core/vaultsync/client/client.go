// Package client keeps a directory the same as a gateway's vault. It compares what the
// directory has, what the server has, and what both had last; it sends what was changed
// here, with what it was edited from, and fetches what was changed there. The server
// merges. A kill at any point loses nothing: the next run finds out what was done.
package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// maxPasses limits how often one Once compares again after it changed something.
const maxPasses = 10

// maxWaits limits how often one Once waits because the server asks for it.
const maxWaits = 5

// suddenly is how many files do not vanish all at once.
const suddenly = 10

// Options for Open. Dir, Server, Key, Clock and Log are needed.
type Options struct {
	Dir    string
	Server string // such as http://127.0.0.1:8080
	Key    string
	Device string       // the name in conflicts; "": the machine's
	HTTP   *http.Client // nil: a usual one
	Clock  core.Clock
	Log    *slog.Logger
	DryRun bool // change nothing, here and there
	// Progress is called with what is done now; may be nil.
	Progress func(text string)
	// Step is called before each step that a kill may come before, in tests.
	Step func(what string)
}

// A Report is what a run has done.
type Report struct {
	Sent, Fetched           int
	DeletedHere, DeletedOut int
	Merged                  []wire.Done // files that the server merged
	Copies                  []wire.Done // files that could not be merged: both are kept
	Recovered               []string    // content that a kill left, by its new name
	Errors                  []string    // files that are not synced, and why
	Plan                    []string    // of a dry run: what would be done
}

// A Client syncs one directory. It is for one goroutine.
type Client struct {
	o     Options
	tree  place.Tree
	lock  *os.File
	empty string // a directory to delete: a dry run's in place of a missing one; "" for none
	state state
	saved [sha256.Size]byte // of the state as it is stored
	r     Report
	scans uint32
	local local
	// contradicted: the server's files are not what its changes have told, until a listing agrees.
	contradicted bool
	unsent       map[content]bool // of this pass, since a request failed; at most wire.MaxFiles
	held         map[string]hold  // files that could not be moved; at most wire.MaxFiles
}

// Open opens a directory, which is created if it is missing, for this process alone. A dry
// run takes a missing one for an empty one. The caller closes it.
func Open(o Options) (*Client, error) {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 5 * time.Minute, IdleConnTimeout: time.Minute}}
	}
	o.Device = cmp.Or(o.Device, hostname())
	o.Server = strings.TrimRight(o.Server, "/")
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if !o.DryRun {
		if err := os.MkdirAll(filepath.Join(o.Dir, wire.StateDir), 0o700); err != nil {
			return nil, err
		}
	}
	top, err := beneath.OpenDir(o.Dir)
	empty := ""
	if o.DryRun && errors.Is(err, fs.ErrNotExist) {
		if empty, err = os.MkdirTemp("", "gatehouse-sync-"); err == nil {
			top, err = beneath.OpenDir(empty)
		}
	}
	if err != nil {
		return nil, err
	}
	c := &Client{o: o, empty: empty, held: map[string]hold{}, tree: place.Tree{Top: top, Step: o.Step}}
	if !o.DryRun {
		err = c.takeLock()
	}
	if err == nil {
		err = c.load()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func hostname() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "device")
}

// takeLock refuses a second client of the directory.
func (c *Client) takeLock() error {
	f, err := os.OpenFile(filepath.Join(c.o.Dir, wire.StateDir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return core.Errorf(core.Conflict, "another 'gatehouse sync' runs on %s: stop it first", c.o.Dir)
		}
		return fmt.Errorf("lock %s: %w", c.o.Dir, err)
	}
	c.lock = f
	return nil
}

// Close releases the directory.
func (c *Client) Close() error {
	err := c.tree.Top.Close()
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
	}
	if c.empty != "" {
		err = errors.Join(err, os.Remove(c.empty))
	}
	return err
}

// Once brings both sides together and returns what it has done, also with an error.
func (c *Client) Once(ctx context.Context) (Report, error) {
	c.r = Report{}
	waits := 0
	for range maxPasses {
		c.r.Errors = nil
		again, err := c.pass(ctx)
		if late, ok := errors.AsType[*later](err); ok && waits < maxWaits {
			waits++
			c.o.Progress("waiting, since the server asks for it")
			if !core.Sleep(ctx, c.o.Clock, late.after) {
				return c.r, context.Cause(ctx)
			}
			continue
		}
		if err != nil || !again {
			return c.r, err
		}
	}
	return c.r, nil
}

// pass compares once; again reports whether something was done and more is to be done.
func (c *Client) pass(ctx context.Context) (again bool, err error) {
	c.o.Progress("reading the folder")
	if err := c.scan(ctx); err != nil {
		return false, err
	}
	c.o.Progress("asking the server")
	if err := c.list(ctx); err != nil {
		return false, err
	}
	if c.o.DryRun {
		for _, name := range c.state.names() {
			if do := c.decide(name); do != nothing {
				c.r.Plan = append(c.r.Plan, string(do)+" "+name)
			}
		}
		return false, nil
	}
	c.unsent = map[content]bool{}
	did, saved, copies := false, false, len(c.r.Copies)
	for _, phase := range []struct {
		do  action
		run func(ctx context.Context, names []string) (bool, error)
	}{{deleteOut, c.respelled}, {send, c.send}, {deleteOut, c.deleteRest}, {fetch, c.fetch}, {deleteHere, c.deleteHere}} {
		n, err := phase.run(ctx, c.todo(phase.do))
		did = did || n
		if n || err != nil {
			saved = true
			err = errors.Join(err, c.save())
		}
		if err != nil {
			return did, err
		}
	}
	if !saved { // what the scan and the listing have found
		if err := c.save(); err != nil {
			return did, err
		}
	}
	rest := slices.ContainsFunc(c.state.names(), func(name string) bool { return c.decide(name) != nothing })
	return did && (rest || len(c.r.Copies) > copies), nil // copies are not here yet
}

// An action is what is done about a file.
type action string

const (
	nothing    action = ""
	send       action = "send"
	fetch      action = "fetch"
	deleteHere action = "delete here"
	deleteOut  action = "delete on the server"
)

// todo returns the files about which an action is to be taken now.
func (c *Client) todo(do action) (names []string) {
	for _, name := range c.state.names() {
		if c.decide(name) == do {
			names = append(names, name)
		}
	}
	return names
}

// decide returns what is to be done about a file, and notes what both sides have.
func (c *Client) decide(name string) action {
	k := c.state.Files[name]
	if !wire.Synced(name) || c.local.unknown(name) {
		return nothing
	}
	switch {
	case k.Local == k.Remote:
		if k.Base = k.Local; k.Base == none {
			delete(c.state.Files, name)
		}
		return nothing
	case k.Local == k.Base && k.Remote != none:
		return fetch
	case k.Local == k.Base:
		return deleteHere
	case k.Local == none && k.Remote == k.Base:
		return deleteOut
	case k.Local == none:
		return fetch // it was deleted here and changed there: the change is kept
	}
	return send
}

// none is no file.
var none content

// local is what a scan has found beside the files.
type local struct {
	*place.Walked
	unread map[string]bool // names about which nothing could be found out, and directories; at most wire.MaxFiles
}

// unknown reports whether the scan could not find out about a name.
func (l *local) unknown(name string) bool {
	if len(l.unread) == 0 {
		return false
	}
	for ; name != "."; name = path.Dir(name) {
		if l.unread[name] {
			return true
		}
	}
	return l.unread["."]
}

// visitor notes what a walk finds (place.Visitor).
type visitor struct{ *Client }

// Known implements place.Visitor.
func (v visitor) Known(f place.Found) (string, error) {
	if k := v.state.Files[f.Name]; k != nil && k.Mark != (mark{}) && k.Mark == markOf(f.Mark) {
		return k.Local.String(), nil
	}
	return "", nil
}

// File implements place.Visitor.
func (v visitor) File(f place.Found) error {
	k := v.state.of(f.Name)
	k.Local, k.Mark, k.size, k.seen = contentOf(f.Hash), markOf(f.Mark), f.Size, v.scans
	return nil
}

// Unread implements place.Visitor.
func (v visitor) Unread(name string) error {
	v.local.unread[name] = true
	return nil
}

// Below implements place.Visitor.
func (v visitor) Below(dir string) error { return v.Unread(dir) }

// scan finds out what the directory has.
func (c *Client) scan(ctx context.Context) (err error) {
	enter := func(name string) bool {
		parts := strings.Split(name, "/")
		last := len(parts) - 1
		return len(name) < wire.MaxPath && wire.EnterDir(parts[:last], parts[last])
	}
	c.scans++
	c.local = local{unread: map[string]bool{}}
	c.local.Walked, err = c.tree.Walk(ctx, ".", enter, wire.Synced, visitor{c})
	if err != nil {
		return fmt.Errorf("read %s: %w", c.o.Dir, err)
	}
	for _, name := range c.local.Skipped {
		c.r.Errors = append(c.r.Errors, fmt.Sprintf("%s: larger than %s", name, core.ByteSize(wire.MaxFile)))
	}
	for _, name := range c.local.Failed {
		c.r.Errors = append(c.r.Errors, name+": it cannot be read here")
	}
	c.sweep()
	had := 0
	for name, k := range c.state.Files {
		if k.Local != none && k.Base != none {
			had++
		}
		if k.seen != c.scans && !c.local.unknown(name) {
			k.Local, k.Mark = none, mark{}
		}
	}
	if c.local.Files == 0 && had >= suddenly {
		return core.Errorf(core.Conflict, "%s is empty, where %d files were synced: put them back, or remove %s to fetch all files again", c.o.Dir, had, filepath.Join(c.o.Dir, wire.StateDir))
	}
	return nil
}

// sweep removes what a kill has left. No other client writes temporary files here.
func (c *Client) sweep() {
	for _, name := range c.local.Temps {
		if c.o.DryRun {
			return
		}
		kept, err := c.tree.Sweep(name, func(n int) string {
			return wire.ConflictName("recovered.md", wire.Device(c.o.Device), c.o.Clock.Now(), n)
		})
		if err != nil { // it is tried again in the next run
			c.r.Errors = append(c.r.Errors, fmt.Sprintf("%s: what an interrupted run left cannot be removed: %v", name, err))
			continue
		}
		if kept != "" {
			c.r.Recovered = append(c.r.Recovered, path.Join(path.Dir(name), kept))
		}
	}
}
