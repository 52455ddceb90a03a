package container

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container/inside"
)

// maxReport bounds the bytes of one report.
const maxReport = 16 << 10

// landlock is the version of Landlock that a container last reported, 0 for none.
var landlock atomic.Int64

// A run is one program in its container.
type run struct {
	box   *box
	spec  sandbox.Spec
	id    string
	view  *view
	order inside.Instruction

	listener      *net.UnixListener
	address       string
	ended, theirs *os.File // the pipe that the engine's client holds
}

// name returns the name of the container.
func (r *run) name() string { return namePrefix + r.id }

// listen makes the socket on which the first process of the container reports.
func (r *run) listen() (err error) {
	r.address = filepath.Join(r.box.o.Dir, runPrefix+r.id)
	r.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: r.address, Net: "unix"})
	if err != nil {
		return fmt.Errorf("sandbox socket: %w", err)
	}
	return nil
}

// close releases what prepare has made, except for what the command was given.
func (r *run) close() {
	r.view.remove()
	if r.listener != nil {
		_ = r.listener.Close() // which removes its file
	}
	if r.ended != nil {
		_ = r.ended.Close()
	}
}

// attend waits in the background for the first process of the container, and
// watches the program until nothing of it is left.
func (r *run) attend(ctx context.Context) {
	exited := make(chan struct{}) // closed once the client has ended or will never start
	go func() {
		defer close(exited)
		_, _ = io.Copy(io.Discard, r.ended)
		_ = r.listener.Close()
	}()
	// Where the caller forgets Release, the end of ctx ends the wait all the same.
	stop := context.AfterFunc(ctx, func() {
		_ = r.listener.Close() // from here on no program begins
		_ = r.ended.SetReadDeadline(time.Now().Add(endTime))
	})
	r.box.left.Add(1)
	go func() {
		defer r.box.left.Done()
		defer r.close()
		defer stop()
		began := r.serve(ctx)
		if r.spec.OnGone != nil {
			r.spec.OnGone()
		}
		<-exited
		if !began || !r.quiet() {
			r.remove()
		}
	}()
}

// quiet reports whether the client has ended, and with it the container.
func (r *run) quiet() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(r.ended.Fd()), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// remove removes a container that did not end in the usual way.
func (r *run) remove() {
	if err := r.box.remove(context.Background(), r.name()); err != nil {
		r.box.o.Log.Warn("a container may be left until the next start", "container", r.name(), "error", err)
	}
}

// serve accepts the first process, has it check what it sees, and watches the
// program. It reports whether one was started.
func (r *run) serve(ctx context.Context) bool {
	conn, err := r.listener.AcceptUnix()
	_ = r.listener.Close()
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // which ends the container
	pid, err := peer(conn)
	if err != nil {
		r.box.o.Log.Warn("a container was refused", "error", err)
		return false
	}
	reports := json.NewDecoder(bufio.NewReader(io.LimitReader(conn, 4*maxReport)))
	first, err := r.instruct(conn, reports)
	if err != nil {
		if ctx.Err() == nil {
			r.box.o.Log.Warn("a container was refused", "error", err)
		}
		return false
	}
	landlock.Store(int64(first.Landlock))
	r.watch(ctx, conn, reports, pid)
	return true
}

// watch starts the program and returns when nothing of it is left.
func (r *run) watch(ctx context.Context, conn net.Conn, reports *json.Decoder, pid int) {
	memory := memoryGroup(pid)
	memory.together()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var last inside.Report
		if _, err := conn.Write([]byte("{}\n")); err == nil {
			_ = reports.Decode(&last) // it has ended, or the container has
		}
		close(ended)
		memory.read()
		_ = conn.Close()
	}()
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		memory.watch(ended, conn)
	}()
	why := sandbox.Watch(ctx, pid, own, r.spec)
	<-done
	<-killed
	if why == "" && memory.killed.Load() && r.spec.OnLimit != nil {
		r.spec.OnLimit(sandbox.MemoryText(r.spec.Limits))
	}
}

// instruct sends the order and returns the report about the checks.
func (r *run) instruct(conn net.Conn, reports *json.Decoder) (first inside.Report, err error) {
	defer r.view.closeHandles() // the checks are over
	_ = conn.SetDeadline(time.Now().Add(callTime))
	if err := json.NewEncoder(conn).Encode(r.order); err != nil {
		return first, fmt.Errorf("instruct the container: %w", err)
	}
	if err := reports.Decode(&first); err != nil {
		return first, fmt.Errorf("instruct the container: %w", err)
	}
	if !first.Ready {
		return first, errors.New(core.CutRunes(first.Fault, 1000))
	}
	return first, conn.SetDeadline(time.Time{})
}

// peer returns the process at the other end of conn, which must be the user's own.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var fault error
	err = raw.Control(func(fd uintptr) {
		cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, fault); err != nil {
		return 0, err
	}
	switch {
	case int(cred.Uid) != os.Getuid():
		return 0, fmt.Errorf("its first process runs as user %d, not as the gateway's", cred.Uid)
	case cred.Pid <= 1:
		return 0, errors.New("its processes cannot be seen from here: the engine runs on another machine, or the gateway in a container")
	}
	return int(cred.Pid), nil
}

// An oom reports whether the kernel has killed a process of a control group for
// its memory.
type oom struct {
	dir, file string
	killed    atomic.Bool
}

// memoryGroup returns the oom of the control group of process pid.
func memoryGroup(pid int) *oom {
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return &oom{}
	}
	found := &oom{}
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[1] == "memory":
			return &oom{dir: filepath.Join("/sys/fs/cgroup/memory", f[2]), file: "memory.oom_control"}
		case f[0] == "0":
			found = &oom{dir: filepath.Join("/sys/fs/cgroup", f[2]), file: "memory.events"}
		}
	}
	return found
}

// together has the kernel end all processes of the group with the first, where
// it can (version 2) and the gateway may ask for it.
func (o *oom) together() {
	if o.file != "memory.events" {
		return
	}
	if f, err := os.OpenFile(filepath.Join(o.dir, "memory.oom.group"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1")
		_ = f.Close()
	}
}

// read checks whether a process was ended.
func (o *oom) read() {
	b, err := os.ReadFile(filepath.Join(o.dir, o.file))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" && f[1] != "0" {
			o.killed.Store(true)
		}
	}
}

// watchEvery is how often the kernel is asked whether it has ended a process.
const watchEvery = 100 * time.Millisecond

// watch closes conn, which ends the container, once a process was ended. It
// returns when ended is closed.
func (o *oom) watch(ended <-chan struct{}, conn net.Conn) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if o.read(); o.killed.Load() {
			_ = conn.Close()
			return
		}
	}
}
