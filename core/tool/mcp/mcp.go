// Package mcp gives turns the tools of MCP servers (modelcontextprotocol.io),
// which the vault's owner lists in .mcp.json. A server is a program that is
// spoken to by its standard streams, or an HTTP endpoint. What servers say is
// data that strangers wrote: bounded, cleaned, and labelled so for the model.
//
// A program runs as the gateway's user for turns at full trust; below, in a
// sandbox of the one run that it is for, and only where the owner marked it
// for that trust.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp/entry"
	"gatehouse/core/vault"
)

// Bounds of Servers.
const (
	MaxTools  = 256                    // of one turn, all servers together
	FirstWait = 300 * time.Millisecond // of a turn, for servers that have not been awaited before

	startTime  = time.Minute      // for a server to name its tools
	boxedTime  = 20 * time.Second // the same in a sandbox, while no command works in the same directories
	maxLinks   = 64               // connections at once
	idleTime   = 10 * time.Minute // without a call, until a connection is given up
	freshTime  = 5 * time.Minute  // until tools are asked for again
	maxBackoff = 5 * time.Minute
	lookEvery  = 5 * time.Second // at the file, and for idle connections
	stillTime  = time.Second     // to wait for commands when the file has changed
)

// Options of New.
type Options struct {
	Vault *vault.Vault
	// Env is the gateway's environment, KEY=VALUE. Of it a program at full
	// trust gets PATH, HOME and LANG; Names are those that the file may name.
	Env, Names []string
	Version    string               // of the gateway, which servers get
	Stage      string               // a program that calls sandbox.Main first
	Veil       func() *sandbox.Veil // around programs at full trust; nil, or returns nil: hides nothing
	Box        func() sandbox.Box   // nil, or returns nil: no programs below full trust
	// Room is what a program of a turn below full trust sees. The caller calls
	// release once the program runs, or will never. Nil, like no Box: no
	// programs below full trust.
	Room func(ctx context.Context, t *tool.Turn) (spec sandbox.Spec, release func(), err error)
	// Leave deletes what Room made for a run; nil: nothing is left.
	Leave func(run string)
	// Still keeps everyone below full trust from writing files that they must
	// not write until release, and returns once none is left; nil: no one could.
	Still func(ctx context.Context) (release func(), err error)
	Clock core.Clock
	Log   *slog.Logger
}

// Servers are the MCP servers of one vault. They are safe for concurrent use.
type Servers struct {
	o    Options
	life context.Context
	stop context.CancelFunc
	work sync.WaitGroup // one for each link, and those who wait for one

	reading sync.Mutex // one check the file at a time

	mu       sync.Mutex
	stamp    string // of the file as it was read
	list     []*entry.Server
	mistakes []entry.Mistake     // at most entry.MaxServers + 1
	links    map[key]*link       // at most maxLinks
	known    map[toolsKey]*tools // at most three for each server
	states   map[string]*state   // by a server's short name
}

// toolsKeyOf returns where the tools of s at a trust are kept. An endpoint has one:
// it is called in the same way at each trust.
func toolsKeyOf(s *entry.Server, trust core.Trust) toolsKey {
	if s.Transport == entry.HTTP {
		trust = core.Full
	}
	return toolsKey{s.Short, trust}
}

// A toolsKey is where a server's tools are kept: they may be others at another trust.
type toolsKey struct {
	short string
	trust core.Trust
}

// New reads the file and starts nothing. The caller calls End for each run,
// Watch, and Close.
func New(o Options) *Servers {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Veil == nil {
		o.Veil = func() *sandbox.Veil { return nil }
	}
	if o.Box == nil || o.Room == nil {
		o.Box = func() sandbox.Box { return nil }
	}
	life, stop := context.WithCancel(context.Background())
	v := &Servers{
		o: o, life: life, stop: stop,
		links: map[key]*link{}, known: map[toolsKey]*tools{}, states: map[string]*state{},
	}
	v.read()
	return v
}

// Close ends every connection and program, and waits for them.
func (v *Servers) Close() error {
	v.mu.Lock()
	v.stop()
	v.mu.Unlock()
	v.work.Wait()
	return nil
}

// Watch connects to the servers, again after failures, checks the file and gives up
// idle connections until ctx ends.
func (v *Servers) Watch(ctx context.Context) {
	v.connectAll()
	for core.Sleep(ctx, v.o.Clock, lookEvery) {
		v.Reload(ctx)
		v.connectAll()
		v.evict()
	}
}

// Reload reads the file again where it has changed. While someone below full
// trust runs a command that could have written it, the file is left for later.
func (v *Servers) Reload(ctx context.Context) {
	v.reading.Lock()
	defer v.reading.Unlock()
	stamp := v.fileStamp()
	v.mu.Lock()
	same := stamp == v.stamp
	v.mu.Unlock()
	if same {
		return
	}
	if v.o.Still != nil {
		ctx, cancel := context.WithTimeout(ctx, stillTime)
		defer cancel()
		release, err := v.o.Still(ctx)
		if err != nil {
			return
		}
		defer release()
	}
	v.read()
}

// fileStamp identifies a state of the file.
func (v *Servers) fileStamp() string {
	st, err := v.o.Vault.Root().Lstat(entry.File)
	if err != nil {
		return "none"
	}
	return fmt.Sprint(st.ModTime().UnixNano(), st.Size(), st.Mode())
}

// read takes the file as it is. Servers that are as before keep their
// connections; where the file is no JSON, all servers stay as they are.
func (v *Servers) read() {
	stamp := v.fileStamp()
	text, err := v.content()
	var list []*entry.Server
	var mistakes []entry.Mistake
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		mistakes = []entry.Mistake{{Line: 1, Text: "the file cannot be read: " + err.Error()}}
		v.o.Log.Warn("the list of MCP servers cannot be read", "err", err)
	default:
		list, mistakes = entry.Parse(text, v.o.Names, v.o.Env)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	first := v.stamp == ""
	v.stamp, v.mistakes = stamp, mistakes
	for _, m := range mistakes {
		v.o.Log.Warn("a mistake in the list of MCP servers", "mistake", m.String())
	}
	if slices.ContainsFunc(mistakes, func(m entry.Mistake) bool { return m.Server == "" }) && len(list) == 0 && !first {
		return
	}
	v.take(list)
}

// content returns what is in the file. A link is not followed: who may not
// write the list may be free to write what it leads to.
func (v *Servers) content() ([]byte, error) {
	f, err := v.o.Vault.OpenNoLinks(entry.File)
	if errors.Is(err, beneath.ErrLink) || errors.Is(err, beneath.ErrSpecial) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(errNoFile, err)
	}
	return io.ReadAll(io.LimitReader(f, entry.MaxFile+1))
}

var errNoFile = errors.New("it must be a file, not a link or something else")

// take inserts list in place of what there was; v.mu is held.
func (v *Servers) take(list []*entry.Server) {
	for i, s := range list {
		if j := slices.IndexFunc(v.list, s.Same); j >= 0 {
			v.list[j].Line = s.Line
			list[i] = v.list[j] // with its links and its tools
		}
	}
	kept := func(s *entry.Server) bool { return slices.Contains(list, s) }
	for k, l := range v.links {
		if !kept(l.s) {
			delete(v.links, k)
			l.retire()
		}
	}
	for k, t := range v.known {
		if !kept(t.s) {
			delete(v.known, k)
		}
	}
	states := map[string]*state{}
	for _, s := range list {
		if old := v.states[s.Short]; old != nil && old.s == s {
			states[s.Short] = old
		} else {
			states[s.Short] = &state{s: s, name: Idle, since: v.o.Clock.Now(), awaited: map[core.Trust]bool{}}
		}
	}
	v.list, v.states = list, states
}

// Only allows the servers that names lists, as the file or as tools call them;
// nil names allow all.
func Only(names []string) func(name, short string) bool {
	return func(name, short string) bool {
		return names == nil || slices.Contains(names, name) || slices.Contains(names, short)
	}
}

// An Offer is what a turn may use.
type Offer struct {
	Tools    []tool.Tool
	Servers  []string // that answer, as the file names them
	Missing  []string // plain text on what is not offered, and why
	Warnings []core.Warning
}

// Equip returns what a turn may use of the servers that are marked for its trust and
// that use, as Only makes one, allows: those that have named their tools. To the
// others it connects in the background; their tools come with a later turn. It waits
// for them once, at most FirstWait.
func (v *Servers) Equip(ctx context.Context, t *tool.Turn, use func(name, short string) bool) Offer {
	v.Reload(ctx)
	var o Offer
	v.mu.Lock()
	mistakes := slices.Clone(v.mistakes)
	var list []*entry.Server
	for _, s := range v.list {
		if t.Trust == core.Stranger || t.Trust < s.Trust || use != nil && !use(s.Name, s.Short) {
			continue
		}
		if s.Transport == entry.Stdio && t.Trust < core.Full && v.o.Box() == nil {
			o.Missing = append(o.Missing, fmt.Sprintf("The MCP server %s is not offered at trust %s, because this machine has no sandbox to run it in.", s.Name, t.Trust))
			continue
		}
		list = append(list, s)
	}
	v.mu.Unlock()
	if t.Trust == core.Full {
		for _, m := range mistakes {
			o.warn("A mistake in the list of MCP servers: " + m.String() + ".")
		}
	}
	v.gather(ctx, t, list, &o)
	return o
}

// End ends the programs that were started for one run and waits for them. It
// is called once the run has ended.
func (v *Servers) End(run string) {
	var mine []*link
	v.mu.Lock()
	for k, l := range v.links {
		if run != "" && k.run == run {
			delete(v.links, k)
			mine = append(mine, l)
		}
	}
	v.mu.Unlock()
	for _, l := range mine {
		l.cancel()
		<-l.gone
	}
}

// evict gives up connections that no one has used for a while.
func (v *Servers) evict() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for k, l := range v.links {
		if k.run == "" && l.busy == 0 && v.o.Clock.Now().Sub(l.used) >= idleTime {
			delete(v.links, k)
			l.cancel()
		}
	}
}
