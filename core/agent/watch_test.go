package agent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that must happen.
const patience = 5 * time.Minute

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen: ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	v, _ := open(t, nil)
	log := &coretest.Log{}
	a := agent.New(v, agent.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Watch(ctx) }()
	defer func() { cancel(); <-done }()
	write := func(name, text string) {
		t.Helper()
		if err := v.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string) func() bool {
		return func() bool { who, _ := a.Choose("cook"); return who.Prompt == want }
	}
	file := ".parachute/agents/cook.md"
	write(file, "---\nname: cook\n---\nfirst") // the folders did not exist
	until(t, "a new folder is seen", says("first"))
	write(file, "---\nname: cook\n---\nsecond")
	until(t, "a changed file is seen", says("second"))
	write(file, "---\nname: cook\ntools: 1: 2\n---\nthird")
	until(t, "a fault is seen", func() bool { return len(a.Faults()) == 1 })
	if who, warnings := a.Choose("cook"); who.Prompt != "second" || len(warnings) != 0 {
		t.Errorf("a broken file took the agent away: %+v %v", who, warnings)
	}
	if out := log.String(); !strings.Contains(out, "file="+file) || !strings.Contains(out, "line=3") {
		t.Errorf("the fault is not in the log: %s", out)
	}
	write(file, "---\nname: cook\n---\nfourth")
	until(t, "a mended file is seen", func() bool { return says("fourth")() && len(a.Faults()) == 0 })

	space := ".parachute/workspaces/w/config.yaml"
	write(space, "trust_level: vault\n")
	until(t, "a workspace is seen", func() bool { return a.Role("", "w").Trust == core.Vault })
	write(space, "trust_level: sandboxed\n")
	until(t, "a changed workspace is seen", func() bool { return len(a.Role("", "w").Warnings) == 0 && a.Role("", "w").Trust == core.Sandboxed })
	write(space, "trust_level: full\n")
	until(t, "a workspace opens again", func() bool { return a.Role("", "w").Trust == core.Full })
	write(space, "trust_level: fu\n")
	until(t, "a broken workspace closes, whatever it said before", func() bool { return a.Role("", "w").Trust == core.Sandboxed })

	if err := os.RemoveAll(filepath.Join(v.Path(), ".parachute")); err != nil {
		t.Fatal(err)
	}
	until(t, "agents go with their folder", func() bool { return len(a.Names()) == 1 && len(a.Faults()) == 0 })
	write(file, "---\nname: cook\n---\nagain")
	until(t, "a folder that comes back is seen", says("again"))
}

func TestAnAgentThatWasBrokenFromTheStartIsNotOpenedByReading(t *testing.T) {
	v, a := open(t, map[string]string{".parachute/agents/cook.md": "---\nname: [\n---\n"})
	if r := a.Role("cook", ""); r.Trust != core.Sandboxed {
		t.Fatalf("%+v", r)
	}
	if a.Reload() {
		t.Error("nothing changed, and something did")
	}
	if err := v.WriteFile(".parachute/agents/cook.md", []byte("---\nname: cook\n---\nx")); err != nil {
		t.Fatal(err)
	}
	if !a.Reload() || a.Role("cook", "").Trust != core.Full {
		t.Error("the mended file is not in use")
	}
}
