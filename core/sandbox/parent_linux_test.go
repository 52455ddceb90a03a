package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The stage starts nothing for a gateway that was killed while the walls were
// made: no process around it would have noticed.
func TestNothingIsStartedForAGatewayThatIsGone(t *testing.T) {
	dir := t.TempDir()
	s := Spec{Writable: []string{dir}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{}.orDefaults()}
	for _, gone := range []bool{false, true} {
		text, err := json.Marshal(newOrder(s, []string{"/bin/echo", "it runs"}))
		if err != nil {
			t.Fatal(err)
		}
		f, err := memory("order", string(text))
		if err != nil {
			t.Fatal(err)
		}
		theirs, life, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if gone {
			_ = life.Close()
		}
		cmd := exec.Command(self(t), stageWord, "3", "4")
		cmd.ExtraFiles = []*os.File{f, theirs}
		if out := said(t, cmd); strings.Contains(out, "it runs") == gone {
			t.Errorf("gone %v: %q", gone, out)
		}
		_ = life.Close()
	}
}

// toBeKilled names the folder of the program that TestAGatewayToBeKilled starts.
const toBeKilled = "SANDBOX_TEST_FOLDER"

// TestAGatewayToBeKilled is no test: it is the gateway of the next one.
func TestAGatewayToBeKilled(t *testing.T) {
	dir := os.Getenv(toBeKilled)
	if dir == "" {
		t.Skip("a part of TestBubblewrapEndsWithTheGatewayFromItsFirstMomentOn")
	}
	w := &bubblewrap{bwrap: filepath.Join(dir, "slow"), stage: self(t)}
	cmd, err := w.Command(t.Context(), Spec{Dir: "/tmp"}, "true")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("pid %d\n", cmd.Process.Pid)
	_ = cmd.Wait()
}

// A bwrap that has not come to bind itself to its parent ends with it all the same.
func TestBubblewrapEndsWithTheGatewayFromItsFirstMomentOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "slow"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	gateway := exec.CommandContext(ctx, self(t), "-test.run=^TestAGatewayToBeKilled$")
	gateway.Env = append(os.Environ(), toBeKilled+"="+dir)
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d", &pid)
	}
	if pid == 0 {
		t.Fatalf("it started nothing: %v", gateway.Wait())
	}
	bwrap, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(bwrap)
	_ = gateway.Process.Kill()
	_ = gateway.Wait()
	for end := time.Now().Add(5 * time.Minute); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(bwrap), Events: unix.POLLIN}}, 1000)
		if n > 0 {
			return
		}
		if err != nil && err != unix.EINTR || time.Now().After(end) {
			_ = unix.PidfdSendSignal(bwrap, syscall.SIGKILL, nil, 0)
			t.Fatalf("it is left: %v", err)
		}
	}
}
