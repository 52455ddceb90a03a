// Package shell holds the Bash tool. At full trust a command runs as the gateway's user,
// behind a veil over the gateway's own files; below, in a sandbox that shows what the
// turn may read and lets it write what the turn may write, without network. Where there
// is no sandbox, there is no shell below full trust.
package shell

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
)

var (
	//go:embed bash.md
	about string
	//go:embed bash.json
	schema json.RawMessage
)

// Bounds of the Bash tool.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	MaxOutput      = 30_000  // characters
	MaxCommand     = 100_000 // bytes; the kernel takes 128 KiB as one argument
)

// Options of a Shell.
type Options struct {
	Box   func() sandbox.Box // nil, or returns nil: none, and no shell below full trust
	Stage string             // a program that calls sandbox.Main first
	// Veil hides the gateway's own files and process from commands at full
	// trust; where it is nil, or returns nil, nothing is hidden.
	Veil  func() *sandbox.Veil
	Clock core.Clock
	// Env is the gateway's environment, KEY=VALUE. Only PATH, HOME, USER,
	// LOGNAME, LANG, LC_ALL, LC_CTYPE and TZ of it reach a command, below full
	// only the language and the time zone.
	Env []string
	// Temp is a directory of this gateway's own where the scratch directories are made:
	// those that a crash left are deleted by New. Empty is the system's, where
	// nothing is looked for.
	Temp string
	// Meant reports whether a file of the vault that a command may not write, with this
	// content, was written by someone who may, since a time; without a content, whether
	// such files are in the directory. nil: none.
	Meant func(name string, since time.Time, content io.Reader) bool
	// Limits of one command below full; zero values mean the sandbox's.
	Limits sandbox.Limits
}

// A Shell runs commands. It is safe for concurrent use.
type Shell struct {
	o    Options
	bash string // path of bash, or of sh where there is none

	mu      sync.Mutex
	scratch map[string]string // by run; at most maxRuns

	areas areas // what commands below full may write
}

// maxRuns bounds the runs that have a scratch directory at once.
const maxRuns = 1024

// New gives a Shell. The caller ends each run's scratch with End, and Close
// ends all.
func New(o Options) *Shell {
	if o.Box == nil {
		o.Box = func() sandbox.Box { return nil }
	}
	if o.Veil == nil {
		o.Veil = func() *sandbox.Veil { return nil }
	}
	s := &Shell{o: o, bash: "/bin/sh", scratch: map[string]string{}}
	for _, p := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(p); err == nil {
			s.bash = p
			break
		}
	}
	s.tidy()
	return s
}

// Tool returns the tool "Bash".
func (s *Shell) Tool() tool.Tool {
	return tool.Tool{
		Name: "Bash", About: about, Schema: schema, Kind: tool.Shell, Isolated: true, Effects: true,
		Timeout: MaxTimeout + time.Minute, Touches: s.touches, Run: s.run,
	}
}

type input struct {
	Command     string `json:"command" tool:"required"`
	Timeout     int    `json:"timeout"`
	Description string `json:"description"`
}

func decode(raw json.RawMessage) (input, error) {
	in := input{Timeout: int(DefaultTimeout / time.Second)}
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	switch {
	case strings.TrimSpace(in.Command) == "":
		return in, core.Errorf(core.Invalid, "command is empty")
	case strings.ContainsRune(in.Command, 0):
		return in, core.Errorf(core.Invalid, "command holds a NUL character")
	case len(in.Command) > MaxCommand:
		return in, core.Errorf(core.Invalid, "command is %d bytes long, at most %d are taken: write a script to a file first", len(in.Command), MaxCommand)
	case in.Timeout < 1 || in.Timeout > int(MaxTimeout/time.Second):
		return in, core.Errorf(core.Invalid, "timeout is in seconds, from 1 to %d", int(MaxTimeout/time.Second))
	}
	return in, nil
}

func (s *Shell) touches(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decode(raw)
	return tool.Access{Command: in.Command, Dir: t.Dir.Path}, err
}

func (s *Shell) run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decode(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	if c.Turn.Trust == core.Full {
		return s.plain(ctx, c, in)
	}
	return s.boxed(ctx, c, in)
}

// plain runs a command as the gateway's user.
func (s *Shell) plain(ctx context.Context, c *tool.Call, in input) (tool.Result, error) {
	limited, cancel := context.WithTimeout(ctx, time.Duration(in.Timeout)*time.Second)
	defer cancel()
	cmd, err := s.o.Veil().Tree(limited, s.o.Stage, c.Turn.Dir.Path, s.environment(true), s.bash, "-c", in.Command)
	if err != nil {
		return tool.Result{}, err
	}
	e, err := s.finish(limited, cmd, c)
	if err != nil {
		return tool.Result{}, err
	}
	e.aborted = ctx.Err() != nil
	return e.result(in, "", nil), nil
}

// boxed runs a command in the sandbox.
func (s *Shell) boxed(ctx context.Context, c *tool.Call, in input) (tool.Result, error) {
	t := c.Turn
	if s.o.Box() == nil || t.Trust != core.Vault && t.Trust != core.Sandboxed {
		return tool.Result{}, core.Errorf(core.Denied, "commands below full trust need a sandbox, and this gateway has none")
	}
	scratch, err := s.scratchOf(t.Run)
	if err != nil {
		return tool.Result{}, err
	}
	except, release, err := s.areas.claim(ctx, area(t))
	if err != nil {
		return tool.Result{}, core.Errorf(core.Busy, "the command was not started: another one works in the same folders")
	}
	defer release()
	limited, cancel := context.WithTimeout(ctx, time.Duration(in.Timeout)*time.Second)
	defer cancel()
	began := s.o.Clock.Now()
	var limit atomic.Pointer[string]
	gone := make(chan struct{})
	cmd, v, err := s.shut(limited, t, except, sandbox.Spec{
		Scratch: scratch, Env: s.environment(false), Limits: s.o.Limits,
		OnLimit: func(why string) { limit.Store(&why) }, OnGone: func() { close(gone) },
	}, s.bash, "-c", in.Command)
	if err != nil {
		return tool.Result{}, err
	}
	e, err := s.finish(limited, cmd, c)
	cancel()
	<-gone // also what ran in the background: no one writes any more
	notes := v.sweep(ctx, t, s.o, began)
	if err != nil {
		return tool.Result{}, err
	}
	e.aborted = ctx.Err() != nil
	why := ""
	if p := limit.Load(); p != nil {
		why = *p
	}
	return e.result(in, why, notes), nil
}

// lookAgain is how often a view is created again when files went away in the meantime.
const lookAgain = 3

// shut returns argv ready to start with the view of t.
func (s *Shell) shut(ctx context.Context, t *tool.Turn, except []string, spec sandbox.Spec, argv ...string) (*exec.Cmd, *view, error) {
	for try := 1; ; try++ {
		v, err := look(ctx, t, except)
		if err != nil {
			return nil, nil, err
		}
		seen := v.spec()
		spec.ReadOnly, spec.Writable, spec.Masked, spec.IDs, spec.Dir = seen.ReadOnly, seen.Writable, seen.Masked, seen.IDs, seen.Dir
		cmd, err := s.o.Box().Command(ctx, spec, argv...)
		switch {
		case err == nil:
			return cmd, v, nil
		case core.KindOf(err) != core.Other:
			return nil, nil, err
		case try == lookAgain:
			return nil, nil, &core.Error{Kind: core.Busy, Text: "the command was not started: files of the vault change too fast; try again", Err: err}
		}
	}
}

// An ending is how a command ended.
type ending struct {
	text     string
	code     int
	timedOut bool
	aborted  bool
}

// finish runs cmd to its end and gathers what it prints.
func (s *Shell) finish(ctx context.Context, cmd *exec.Cmd, c *tool.Call) (ending, error) {
	r, w, err := os.Pipe()
	if err != nil {
		sandbox.Release(cmd)
		return ending{}, fmt.Errorf("output: %w", err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	sandbox.Release(cmd)
	_ = w.Close()
	if err != nil {
		return ending{}, fmt.Errorf("start command: %w", err)
	}
	out := output{clock: s.o.Clock, progress: c.Progress}
	read := make(chan struct{})
	go func() {
		defer close(read)
		out.readAll(r)
	}()
	_ = cmd.Wait() // what it means is in ProcessState
	_ = r.SetReadDeadline(time.Now().Add(drain))
	<-read
	return ending{text: out.String(), code: cmd.ProcessState.ExitCode(), timedOut: ctx.Err() != nil}, nil
}

// drain is how long output is read after everyone who could write has ended.
const drain = 2 * time.Second

// crossDevice is in what programs print of the error EXDEV.
const crossDevice = "cross-device link"

func (e ending) result(in input, limit string, notes []string) tool.Result {
	var b strings.Builder
	say := func(format string, args ...any) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, format, args...)
	}
	b.WriteString(e.text)
	failed := true
	switch {
	case limit != "":
		say("[The command was ended because %s.]", limit)
	case e.aborted:
		say("[The command was ended because the run was stopped.]")
	case e.timedOut:
		say("[The command was ended after %d s, its time-out. What it had done until then stays.]", in.Timeout)
	case e.code != 0:
		say("[Exit code %d]", e.code)
	default:
		failed = false
	}
	if failed && strings.Contains(strings.ToLower(e.text), crossDevice) {
		say("[In the sandbox some folders, such as %s, are mounts of their own, and a file cannot be renamed from one to another: copy it and delete the original, as mv does.]", agentsIn)
	}
	for _, n := range notes {
		say("[%s]", n)
	}
	if b.Len() == 0 {
		say("[No output]")
	}
	return tool.Result{Text: b.String(), IsError: failed}
}

// passed are the variables of the gateway that a command at full trust gets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}

// gitSettings keep git from running programs that a repository names and a
// command does not: a bare repository inside a directory is not used unasked, and
// neither its monitor nor its hooks run. They override every file of settings.
var gitSettings = [][2]string{{"safe.bareRepository", "explicit"}, {"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}}

// environment of a command. Nothing of the gateway's own reaches it.
func (s *Shell) environment(full bool) []string {
	env := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
	for _, kv := range s.o.Env {
		name, value, ok := strings.Cut(kv, "=")
		if ok && slices.Contains(passed, name) && (full || name == "TZ" || strings.HasPrefix(name, "L") && name != "LOGNAME") {
			env[name] = value
		}
	}
	env["TERM"] = "dumb"
	for i, set := range gitSettings {
		env["GIT_CONFIG_KEY_"+strconv.Itoa(i)], env["GIT_CONFIG_VALUE_"+strconv.Itoa(i)] = set[0], set[1]
	}
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(len(gitSettings))
	if !full {
		env["HOME"], env["TMPDIR"] = "/tmp/home", "/tmp"
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
