package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// Before main runs, packages prepare what they keep in variables. A start runs the
// program three times, twice as the stage of a sandbox, and each command in the sandbox
// once more; beyond some 2.9 MB a collection of garbage is added to each. So large tables and
// patterns are made at their first use (core.Pattern). Packages of others prepare 1.5 MB.
func TestAStartPreparesLittleBeforeItBegins(t *testing.T) {
	cmd := exec.Command(program(t), "version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := 0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes,`).FindAllSubmatch(out, -1) {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		if sum += n; n > 60_000 && regexp.MustCompile(`^(gatehouse/|main$)`).Match(m[1]) {
			t.Errorf("%s prepares %d bytes, want at most 60,000", m[1], n)
		}
	}
	t.Logf("%d bytes", sum)
	if sum > 2_000_000 || sum < 100_000 {
		t.Errorf("packages prepare %d bytes before main, want at most 2,000,000", sum)
	}
}
