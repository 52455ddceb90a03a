package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bare" { // the tool starts itself
		main()
	}
	os.Exit(m.Run())
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"--program", os.Args[0], "--only", "everything"}, {"--program", os.Args[0], "--rate", "0"}, {"--program", os.Args[0], "--each", "90"}, {"--program", os.Args[0], "--discord", "2"}, {"--program", os.Args[0], "--streaming", "1"}} {
		if code := run(t.Context(), args); code != 2 {
			t.Errorf("%v ended with %d, want 2", args, code)
		}
	}
}

// The tool against the real program: everything is answered, and the report
// has figures for both sides.
func TestTheToolMeasuresARealGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := filepath.Join(t.TempDir(), "gatehouse")
	if out, err := coretest.GoBuild("-o", program, "../gatehouse").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(t.TempDir(), "performance.md")
	code := run(t.Context(), []string{"--program", program, "--only", "latency,burst,memory,council", "--messages", "100", "--discord", "0.5", "--chats", "20", "--each", "2",
		"--rounds", "1", "--settle", "1s", "--dir", t.TempDir(), "--report", path})
	if code != 0 {
		t.Fatalf("ended with %d", code)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"latency p99, one in flight", "burst of 20 chats × 2", "a council of 9 with 9 ratings", "memory (RSS), idle", "of 240 messages", "commits per message", "| deliver |", "one in flight, bare loop, discord", "one in flight, gateway, telegram", "| discord | 120 | 120 | 0 | 0 | 0 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(strings.TrimSuffix(path, ".md") + ".json"); err != nil {
		t.Error(err)
	}
}
