package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/mcp/entry"
	"gatehouse/core/tool/mcp/program"
)

// A key is the user or run that a connection serves: below full trust no one shares one with
// anyone else, and a program serves one run.
type key struct {
	short string
	trust core.Trust
	user  int64  // 0 at full trust
	run   string // of a program below full trust
	probe bool   // a program below full trust that only names its tools, for no one's run
}

func keyOf(s *entry.Server, t *tool.Turn) key {
	k := key{short: s.Short, trust: t.Trust}
	if t.Trust < core.Full {
		k.user = t.User
		if s.Transport == entry.Stdio {
			k.run = t.Run
		}
	}
	return k
}

// A link is a connection to a server, from its first use on.
type link struct {
	s      *entry.Server
	key    key
	life   context.Context // its end ends the connection and the program
	cancel context.CancelFunc
	ready  chan struct{} // closed once it is connected, or has failed
	gone   chan struct{} // closed once nothing of it is left

	// Set before ready is closed.
	session *sdk.ClientSession
	proc    *program.Program
	err     error
	closers []func()

	// Of Servers.mu.
	busy    int
	asking  bool // for the tools again
	used    time.Time
	retired bool

	progress watchers
}

// isReady reports whether l is connected, or has failed.
func (l *link) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// failure returns why l could not be connected; nil while it may yet be.
func (l *link) failure() error {
	if !l.isReady() {
		return nil
	}
	return l.err
}

// retire ends l once no one uses it; Servers.mu is held.
func (l *link) retire() {
	if l.retired = true; l.busy == 0 {
		l.cancel()
	}
}

// use returns a connection to s for t, ready; the caller calls release.
func (v *Servers) use(ctx context.Context, s *entry.Server, t *tool.Turn) (*link, error) {
	l, err := v.link(ctx, s, t)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		v.release(l)
		return nil, fmt.Errorf("wait for the server: %w", context.Cause(ctx))
	}
	if l.err != nil {
		v.release(l)
		return nil, l.err
	}
	return l, nil
}

// link finds the connection or begins one, as long as ctx has not ended: what
// begins after the end of its run would be ended by no one.
func (v *Servers) link(ctx context.Context, s *entry.Server, t *tool.Turn) (*link, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("use the server: %w", context.Cause(ctx))
	}
	l, _, err := v.begin(s, keyOf(s, t), t)
	if err != nil {
		return nil, err
	}
	l.busy++
	return l, nil
}

// begin returns the connection of k, a new one if there is none. v.mu is held.
func (v *Servers) begin(s *entry.Server, k key, t *tool.Turn) (l *link, isNew bool, err error) {
	st := v.states[s.Short]
	if v.life.Err() != nil || st == nil || st.s != s {
		return nil, false, core.Errorf(core.NotFound, "the MCP server %s is not configured any more", s.Name)
	}
	if l = v.links[k]; l != nil {
		return l, false, nil
	}
	if wait := st.again.Sub(v.o.Clock.Now()); wait > 0 {
		return nil, false, core.Errorf(core.Busy, "%s (tried again in %s)", st.err, wait.Round(time.Second))
	}
	if err := v.makeRoom(); err != nil {
		return nil, false, err
	}
	l = &link{s: s, key: k, ready: make(chan struct{}), gone: make(chan struct{}), used: v.o.Clock.Now()}
	l.life, l.cancel = context.WithCancel(v.life)
	v.links[k] = l
	if st.name != Failing { // stays so until the server answers
		st.is(Starting, "", v.o.Clock.Now())
	}
	v.work.Go(func() { v.tend(l, t) })
	return l, true, nil
}

// makeRoom keeps the connections below maxLinks; v.mu is held.
func (v *Servers) makeRoom() error {
	if len(v.links) < maxLinks {
		return nil
	}
	var oldest *link
	for _, l := range v.links {
		if l.busy == 0 && (oldest == nil || l.used.Before(oldest.used)) {
			oldest = l
		}
	}
	if oldest == nil {
		return core.Errorf(core.Busy, "too many MCP servers are in use at once: try again later")
	}
	delete(v.links, oldest.key)
	oldest.cancel()
	return nil
}

func (v *Servers) release(l *link) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l.used = v.o.Clock.Now()
	if l.busy--; l.busy == 0 && l.retired {
		l.cancel()
	}
}

// tend opens l, waits for its end, and clears up.
func (v *Servers) tend(l *link, t *tool.Turn) {
	defer close(l.gone)
	err := v.open(l, t)
	if err == nil {
		v.became(l, Ready, "")
		close(l.ready)
		if l.key.probe {
			l.cancel()
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.session.Wait()
		}()
		select {
		case <-ended:
		case <-l.life.Done():
		}
		if l.life.Err() == nil { // else it was ended here, which is no failure, whichever of both came first
			err = errors.New(v.ending(l))
			if l.proc != nil {
				l.proc.Stop() // there is nothing to wait for
			}
		}
		v.shut(l)
		<-ended
		if err != nil {
			v.failed(l, err)
		} else {
			v.became(l, Idle, "")
		}
		return
	}
	l.err = &core.Error{Kind: core.Busy, Text: reason(l.s, err), Err: err}
	given := l.life.Err() != nil // up, by us
	v.shut(l)
	if given {
		v.became(l, Idle, "")
	} else {
		v.failed(l, err)
	}
	close(l.ready)
}

// shut ends what l has opened.
func (v *Servers) shut(l *link) {
	l.cancel()
	if l.proc != nil {
		if l.key.run != "" {
			l.proc.Stop()
		}
		l.proc.End(v.o.Clock)
	}
	if l.session != nil {
		_ = l.session.Close()
	}
	for _, f := range slices.Backward(l.closers) {
		f()
	}
	if l.key.probe && v.o.Leave != nil {
		v.o.Leave(l.key.run)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links[l.key] == l {
		delete(v.links, l.key)
	}
}

// ending returns why a connection has ended on its own, as text.
func (v *Servers) ending(l *link) string {
	if l.proc == nil {
		return "the connection has ended"
	}
	if err := l.proc.Fault(); err != nil {
		return err.Error()
	}
	select {
	case <-l.proc.Ended():
	case <-v.o.Clock.After(time.Second):
		return "it has ended the connection"
	}
	return l.proc.Why()
}

// open connects l and asks for the tools where they are not known.
func (v *Servers) open(l *link, t *tool.Turn) error {
	limit := startTime
	if l.key.run != "" {
		limit = boxedTime
	}
	ctx, cancel := v.within(l.life, limit)
	defer cancel()
	release, err := v.connect(ctx, l, t)
	release()
	if err == nil {
		_, err = v.listTools(ctx, l)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && l.life.Err() == nil:
		return errLate(limit)
	case l.proc != nil && isClosed(err):
		return errors.New(v.ending(l))
	}
	return err
}

// isClosed reports whether an error states only that the connection is no more.
func isClosed(err error) bool {
	var told *jsonrpc.Error
	return !errors.As(err, &told)
}

func (v *Servers) connect(ctx context.Context, l *link, t *tool.Turn) (release func(), err error) {
	release = func() {}
	c := sdk.NewClient(&sdk.Implementation{Name: "gatehouse", Version: v.o.Version}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{}, // a server is offered nothing
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: l.progress.tell,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { v.forget(l) },
	})
	if l.s.Transport == entry.HTTP {
		hc, idle := client(l.s)
		l.closers = append(l.closers, idle)
		l.session, err = c.Connect(ctx, &sdk.StreamableClientTransport{
			Endpoint: l.s.URL, HTTPClient: hc, MaxRetries: 2, MaxEventSize: program.MaxMessage, DisableStandaloneSSE: true,
		}, nil)
		return release, err
	}
	if release, err = v.launch(ctx, l, t); err != nil {
		return release, err
	}
	// The older greeting first: programs know it for long, and some never answer another.
	l.session, err = c.Connect(ctx, &sdk.IOTransport{Reader: l.proc.Stdout(), Writer: l.proc.Stdin(), MaxLineLength: 2 * program.MaxMessage},
		&sdk.ClientSessionOptions{ProtocolVersion: greeting})
	return release, err
}

// greeting is the newest version of the protocol that begins with "initialize".
const greeting = "2025-11-25"

// launch starts a server's program.
func (v *Servers) launch(ctx context.Context, l *link, t *tool.Turn) (release func(), err error) {
	argv := append([]string{l.s.Command}, l.s.Args...)
	note := v.note(l.s)
	life, stop := context.WithCancel(l.life)
	defer func() {
		if err != nil {
			stop()
		}
	}()
	release = func() {}
	if l.key.trust == core.Full {
		cmd, err := v.o.Veil().Tree(life, v.o.Stage, v.o.Vault.Path(), v.environment(l.s, true), argv...)
		if err == nil {
			l.proc, err = program.Start(cmd, stop, nil, note)
		}
		return release, err
	}
	spec, leave, err := v.o.Room(ctx, t)
	if err != nil {
		return release, err
	}
	gone := make(chan struct{})
	spec.Env, spec.OnGone = v.environment(l.s, false), func() { close(gone) }
	spec.OnLimit = func(why string) { note("ended by the gateway: " + why) }
	cmd, err := v.o.Box().Command(life, spec, argv...)
	if err == nil {
		l.proc, err = program.Start(cmd, stop, gone, note)
	}
	return leave, err
}

// note logs what a server states next to the protocol, its secrets taken out.
func (v *Servers) note(s *entry.Server) func(string) {
	return func(line string) { v.o.Log.Info("message of an MCP server", "server", s.Name, "text", s.Redact(line)) }
}

// environment of a program: nothing of the gateway's own but these three, and
// what the entry names.
func (v *Servers) environment(s *entry.Server, full bool) []string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp/home"}
	for _, pair := range v.o.Env {
		name, value, ok := strings.Cut(pair, "=")
		if ok && (name == "LANG" || full && (name == "PATH" || name == "HOME")) {
			env[name] = value
		}
	}
	for name, value := range s.Env {
		env[name] = value
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// forget makes the tools be asked for again: the server means that they have changed.
func (v *Servers) forget(l *link) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := toolsKey{l.s.Short, l.key.trust}
	if k := v.known[at]; k != nil && k.s == l.s {
		old := *k
		old.at = time.Time{}
		v.known[at] = &old
	}
}
