package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/core/attach/pdftext"
	"gatehouse/core/claudecli/claudetest"
	"gatehouse/core/coretest"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container"
)

// builds are the programs that the tests of whole processes run, made once.
type builds struct {
	dir  string
	mu   sync.Mutex
	made map[string]string
}

var programs = &builds{made: map[string]string{}}

// TestMain gives all gateways a folder for their sockets, each of which lies in
// a folder of its own by the vault's path, and removes what was built when the
// tests are over.
func TestMain(m *testing.M) {
	pdftext.Main()
	sandbox.Main()
	container.Main()
	claudetest.Main()
	restingMain()
	runtime, err := os.MkdirTemp("", "gh")
	if err == nil {
		err = os.Setenv("XDG_RUNTIME_DIR", runtime)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(runtime)
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// program is the path of the real program, built with these further arguments
// of go build.
func program(t *testing.T, args ...string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	key := strings.Join(args, " ")
	if path := programs.made[key]; path != "" {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "gatehouse-test")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir = dir
	}
	path := filepath.Join(programs.dir, fmt.Sprintf("gatehouse%d", len(programs.made)))
	cmd := coretest.GoBuild(append([]string{"-o", path}, append(args, ".")...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	programs.made[key] = path
	return path
}

// nonDurable builds the program so that a commit is not on the disk when it
// returns: the tests of durability must notice that.
const nonDurable = "-ldflags=-X gatehouse/core/store.synchronous=NORMAL"
