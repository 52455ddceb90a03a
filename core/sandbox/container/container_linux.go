// Package container runs programs isolated by a container engine, podman or docker,
// through its command line: an alternative sandbox.Box to bubblewrap.
//
// Each program gets a container of its own without network, capabilities or a
// writable root. Its first process is our own program (Main). It first checks that
// exactly the ordered files are mounted: the engine mounts by names, which others
// may have exchanged. It then starts the stage of package sandbox, which adds Landlock, seccomp and resource limits, and
// ends the container when the gateway ends.
package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container/inside"
)

// Options of Open and Probe.
type Options struct {
	// Stage is a program that calls sandbox.Main and Main first, usually os.Executable.
	Stage string
	// Dir is a directory of this gateway's own, with mode 0700 and a path of at
	// most MaxDir bytes. It names the instance: containers that an earlier
	// gateway with the same Dir has left are removed by Open.
	Dir string
	// Image is an image of the operator's with programs of its own, which the
	// engine already has. Empty is one without content, made by Open, in which
	// the host's programs are visible as with bubblewrap.
	Image string
	// Home is the home directory of the gateway's user; podman keeps the images of an
	// ordinary user there.
	Home string
	Log  *slog.Logger // nil: nothing is logged
}

// MaxDir bounds the length of Options.Dir: podman refuses a longer directory for
// its run-time files, and a socket has its place below.
const MaxDir = 48

// Main is called by main (and TestMain) before anything else, after
// sandbox.Main: if this process is the first of a container, it runs as that and
// never returns; otherwise it does nothing.
func Main() { inside.Main() }

// A box is a sandbox.Box of one engine.
type box struct {
	o      Options
	engine engine
	image  string
	stage  string // without links
	left   sync.WaitGroup
}

// Name returns sandbox.Container.
func (b *box) Name() string { return sandbox.Container }

// The prefix of the names of our containers and the label of their gateway, and
// the prefixes of what is created in Options.Dir for one of them.
const (
	namePrefix = "gatehouse-"
	runPrefix  = "c"
	labelName  = "gatehouse.instance"
)

// own is how many threads inside the container are not the program's.
const own = 24

// Command implements sandbox.Box.
func (b *box) Command(ctx context.Context, s sandbox.Spec, argv ...string) (*exec.Cmd, error) {
	s, err := sandbox.Prepare(s, argv)
	if err != nil {
		return nil, err
	}
	r := &run{box: b, spec: s, id: strings.ToLower(rand.Text()[:16])}
	if r.view, err = b.plan(s, filepath.Join(b.o.Dir, runPrefix+r.id+"m")); err != nil {
		return nil, err
	}
	if err := r.prepare(argv); err != nil {
		r.close()
		if r.theirs != nil {
			_ = r.theirs.Close()
		}
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.engine.path, b.args(r)...)
	cmd.Env, cmd.Dir = b.engine.env, "/"
	cmd.ExtraFiles = []*os.File{r.theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// When ctx ends the container is ended, and with it the engine's client. A client
	// that does not end is killed after WaitDelay.
	cmd.Cancel = func() error { return nil }
	cmd.WaitDelay = endTime
	r.attend(ctx)
	return cmd, nil
}

// endTime is how long the end of a container is waited for.
const endTime = 8 * time.Second

// prepare opens what the program needs outside: the socket on which its first
// process reports, and the pipe that ends with the engine's client.
func (r *run) prepare(argv []string) (err error) {
	s := r.spec
	if !r.box.engine.ownUsers { // the kernel counts all processes of this user on the machine
		s.Limits.Processes = manyProcesses()
	} else {
		s.Limits.Processes += own
	}
	if r.order.Order, err = sandbox.StageOrder(s, argv); err != nil {
		return err
	}
	r.order.User, r.order.Group = r.box.engine.uid, r.box.engine.gid
	r.order.Checks, r.order.Mounts = r.view.checks, r.view.points
	if err := makeMountPoints(s); err != nil {
		return err
	}
	if r.ended, r.theirs, err = os.Pipe(); err != nil {
		return fmt.Errorf("sandbox status: %w", err)
	}
	return r.listen()
}

// makeMountPoints makes the directories of /tmp in which paths of s are mounted: the
// engine would make them with another owner.
func makeMountPoints(s sandbox.Spec) error {
	if s.Scratch == "" {
		return nil
	}
	root, err := os.OpenRoot(s.Scratch)
	if err != nil {
		return fmt.Errorf("sandbox /tmp: %w", err)
	}
	defer root.Close()
	for _, list := range [][]string{s.ReadOnly, s.Writable} {
		for _, p := range list {
			rel, below := strings.CutPrefix(p, "/tmp/")
			if !below {
				continue
			}
			dir := rel
			if st, err := os.Lstat(p); err == nil && !st.IsDir() {
				dir = filepath.Dir(rel)
			}
			if err := root.MkdirAll(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
				return fmt.Errorf("sandbox /tmp: %w", err)
			}
		}
	}
	return nil
}

// Probe reports whether a container engine works on this machine, for doctor. It
// runs one container and changes nothing else.
func Probe(o Options) sandbox.Backend {
	_, b := find(o)
	return b
}

// Open returns a Box that uses the first engine that works, podman or docker, or
// nil, and a description of what was found. It removes the containers that an
// earlier gateway with the same Dir has left, so only one process at a time may
// call it.
func Open(o Options) (sandbox.Box, string) {
	b, found := find(o)
	text := found.Text
	if found.Fix != "" {
		text += ": " + found.Fix
	}
	if b == nil {
		return nil, text
	}
	if err := b.sweep(context.Background()); err != nil {
		return nil, "containers of an earlier gateway cannot be removed: " + err.Error()
	}
	return b, text
}

// Close waits until the containers of a Box that Open has returned are removed.
// Their contexts must have ended.
func Close(x sandbox.Box) {
	if b, ok := x.(*box); ok {
		b.left.Wait()
		b.stopPause()
	}
}

// stopPause ends the process that podman leaves for an ordinary user, to keep a
// user namespace, where no other containers than ours use it.
func (b *box) stopPause() {
	if b.engine.name != podman || os.Getuid() == 0 || runtimeOf(b.o.Dir) != b.o.Dir {
		return
	}
	text, err := os.ReadFile(filepath.Join(b.o.Dir, "libpod/tmp/pause.pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(process)
	if line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && strings.Contains(string(line), podman) {
		_ = unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0)
	}
}

// find returns a box of the first engine that works.
func find(o Options) (*box, sandbox.Backend) {
	none := sandbox.Backend{Name: sandbox.Container}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if none.Text, none.Fix = usable(&o); none.Text != "" {
		return nil, none
	}
	list, missing := engines(o)
	if len(list) == 0 {
		none.Text, none.Fix = missing[0].text, missing[0].fix
		return nil, none
	}
	for _, e := range list {
		b := &box{o: o, engine: e, stage: o.Stage}
		text := b.start()
		if text == "" {
			none.Works = true
			none.Text = b.about()
			return b, none
		}
		b.stopPause()
		missing = append(missing, fault{e.name + " does not work here (" + core.CutRunes(text, 500) + ")", e.fix})
	}
	none.Text, none.Fix = missing[len(missing)-1].text, missing[len(missing)-1].fix
	for _, m := range missing[:len(missing)-1] {
		none.Text += "; " + m.text
	}
	return nil, none
}

// A fault is why something does not work, and what to do.
type fault struct{ text, fix string }

// usable checks the options, and makes the directories below Dir.
func usable(o *Options) (text, fix string) {
	stage, err := filepath.EvalSymlinks(o.Stage)
	if err != nil {
		return "the gateway's own program file does not exist (it was replaced while it runs)", "start the gateway again"
	}
	o.Stage = stage
	if len(o.Dir) > MaxDir {
		return fmt.Sprintf("the path of the runtime folder %s is too long for containers (%d bytes, at most %d)", o.Dir, len(o.Dir), MaxDir), "set XDG_RUNTIME_DIR to a folder with a shorter path"
	}
	if !representable(o.Dir) || !representable(o.Stage) {
		return "the path of the runtime folder or of the program is not UTF-8", "use other folders"
	}
	var st unix.Stat_t
	if err := unix.Lstat(o.Dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o077 != 0 || int(st.Uid) != os.Getuid() {
		return "the runtime folder " + o.Dir + " is not a folder of the gateway's user alone (mode 0700)", "remove it"
	}
	if err := makeMasks(o.Dir); err != nil {
		return "the runtime folder cannot be written: " + err.Error(), "free some space, or remove the folder"
	}
	return "", ""
}

// start makes the image where that is needed, and runs one program.
func (b *box) start() string {
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	if err := b.findImage(ctx); err != nil {
		return err.Error()
	}
	return sandbox.Try(b)
}

// about returns a description of what is in use.
func (b *box) about() string {
	text := fmt.Sprintf("%s (%s), a container for each command", b.engine.name, b.engine.path)
	if b.o.Image != "" {
		text += " of the image " + b.o.Image
	}
	if abi := landlock.Load(); abi > 0 {
		return text + fmt.Sprintf(", and Landlock (version %d) inside", abi)
	}
	return text + ", without Landlock inside, which the kernel or the engine's seccomp profile lacks"
}
