package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/measure"
)

// Tree returns a program that is not isolated but ends as a whole: when the program
// itself ends, when ctx ends, and when the gateway dies, everything that it
// started and that still runs is killed, also what left its process group or
// session. stage is as for Open. The caller starts, releases and waits as with a Box.
//
// It does not hold against a process of the same user, which may kill the process
// that watches.
func Tree(ctx context.Context, stage, dir string, env []string, argv ...string) (*exec.Cmd, error) {
	theirs, ours, err := os.Pipe() // a pipe that ends with this process
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	cmd := exec.CommandContext(ctx, stage, append([]string{treeWord}, argv...)...)
	cmd.Dir, cmd.Env = dir, env
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The watcher is asked first, so that it finds those who left the group.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	context.AfterFunc(ctx, func() { _ = ours.Close() })
	return cmd, nil
}

// aliveFD is the pipe that ends with the gateway.
const aliveFD = 3

// tree runs argv, ends with its exit code, and leaves nothing running.
func tree(argv []string) error { return runTree(exec.Command(argv[0], argv[1:]...)) }

func runTree(cmd *exec.Cmd) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	unix.CloseOnExec(aliveFD)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no way to the gateway's terminal
	if err := cmd.Start(); err != nil {
		return err
	}
	gone, done := make(chan struct{}), make(chan int, 1)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(aliveFD, "alive"))
		close(gone)
	}()
	go func() { done <- exitCode(cmd.Wait()) }()
	code := 128 + int(syscall.SIGKILL)
	select {
	case <-stop:
		killBelow(os.Getpid())
	case <-gone:
		killBelow(os.Getpid())
	case code = <-done:
	}
	reap()
	os.Exit(code)
	return nil
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			return 128 + int(st.Signal())
		}
		return exit.ExitCode()
	}
	return exitStage
}

// reap kills and waits until no process is left below this one: a process that
// loses its parent becomes our child.
func reap() {
	for {
		killBelow(os.Getpid())
		var st syscall.WaitStatus
		_, err := syscall.Wait4(-1, &st, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// maxTree is the most processes that one round of killBelow reads.
const maxTree = 100_000

// killBelow kills the descendants of pid, the nearest first.
func killBelow(pid int) {
	todo := []int{pid}
	for i := 0; i < len(todo) && i < maxTree; i++ {
		_, children := measure.Family(todo[i])
		for _, c := range children {
			_ = syscall.Kill(c, syscall.SIGSTOP) // it starts nothing more while we look
		}
		todo = append(todo, children...)
	}
	for _, p := range todo[1:] {
		if p > 1 && p != os.Getpid() {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
}
