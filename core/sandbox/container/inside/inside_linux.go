// Package inside is the first process of a container: it checks from within that
// the container is what the gateway ordered, starts the program, and ends the
// container when the gateway ends.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox"
)

// Word is the argument of our own program that Main answers.
const Word = "gatehouse:container"

// Where the engine mounts what the first process needs.
const (
	StagePath = "/.gatehouse"      // our own program
	LinkPath  = "/.gatehouse.sock" // the socket on which it reports
)

// The messages between the gateway and the first process, one JSON value in each
// line: Instruction, Report, an empty object to continue, Report.
type (
	// An Instruction is what to check and what to start.
	Instruction struct {
		Order       json.RawMessage // for the stage of package sandbox
		User, Group int             // of the process
		Checks      []Check
		Mounts      []string // where something may be mounted
	}
	// A Check is what is found at a path.
	Check struct {
		Path     string
		Dev, Ino uint64
		ReadOnly bool
	}
	// A Report is the result of the checks, or the end of the program.
	Report struct {
		Ready    bool   `json:",omitempty"`
		Landlock int    `json:",omitempty"` // version
		Fault    string `json:",omitempty"`
		Ended    bool   `json:",omitempty"`
	}
)

// Exit codes of the first process of a container that are not the program's.
const (
	exitFault = 125
	exitAlone = 128 + int(syscall.SIGKILL) // the gateway has ended
)

// Main is called by main (and TestMain) before anything else, after
// sandbox.Main: if this process is the first of a container, it runs as that and
// never returns; otherwise it does nothing.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != Word {
		return
	}
	code, err := first()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		code = exitFault
	}
	os.Exit(code)
}

// first checks what this process sees, starts the program and returns its exit code.
func first() (code int, err error) {
	// The program has the same user: it must not reach our memory and files.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("not dumpable: %w", err)
	}
	conn, err := net.Dial("unix", LinkPath)
	if err != nil {
		return 0, fmt.Errorf("the gateway has ended: nothing is started: %w", err)
	}
	out := json.NewEncoder(conn)
	todo, err := agree(json.NewDecoder(conn), out)
	if err != nil {
		return 0, err
	}
	gone := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
		select {
		case <-ended:
		default:
			os.Exit(exitAlone) // and with us everything in the container
		}
	}()
	if code, err = start(todo.Order); err != nil {
		return 0, err
	}
	close(ended)
	_ = out.Encode(Report{Ended: true})
	select {
	case <-gone: // the gateway has looked how it ended
	case <-time.After(2 * time.Second):
	}
	return code, nil
}

// agree receives the instruction, checks it against what this process sees, and
// reports the result. It returns once the gateway watches.
func agree(in *json.Decoder, out *json.Encoder) (todo Instruction, err error) {
	if err := in.Decode(&todo); err != nil {
		return todo, fmt.Errorf("the gateway has ended: nothing is started: %w", err)
	}
	if err := todo.verify(); err != nil {
		return todo, errors.Join(err, out.Encode(Report{Fault: err.Error()}))
	}
	if err := out.Encode(Report{Ready: true, Landlock: landlockVersion()}); err != nil {
		return todo, err
	}
	if err := in.Decode(&struct{}{}); err != nil {
		return todo, fmt.Errorf("the gateway has ended: nothing is started: %w", err)
	}
	return todo, nil
}

// start starts the stage, waits for it and collects the processes that lose
// their parent in the meantime.
func start(order []byte) (code int, err error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("order: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err = f.Write(order); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, fmt.Errorf("order: %w", err)
	}
	theirs, life, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("order: %w", err)
	}
	defer life.Close()
	pid, err := syscall.ForkExec(StagePath, append([]string{StagePath}, sandbox.StageArgs(3, 4)...), &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2, f.Fd(), theirs.Fd()}, Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start the stage: %w", err)
	}
	_, _ = f.Close(), theirs.Close()
	release()
	for {
		var st syscall.WaitStatus
		got, err := syscall.Wait4(-1, &st, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait: %w", err)
		case got == pid && st.Signaled():
			return 128 + int(st.Signal()), nil
		case got == pid && st.Exited():
			return st.ExitStatus(), nil
		}
	}
}

// release closes our ends of the standard streams, so that their readers see the
// end when the program closes its own.
func release() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for _, fd := range []int{0, 1, 2} {
		_ = unix.Dup3(null, fd, 0)
	}
}

func landlockVersion() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}
