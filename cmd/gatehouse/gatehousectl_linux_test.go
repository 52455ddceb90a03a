package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unitCommand returns the script that runs a command as the unit does.
func unitCommand(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../configs/systemd/gatehousectl")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// runUnitCommand runs the script with another systemd-run in front, which prints its
// arguments on lines.
func runUnitCommand(t *testing.T, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "systemd-run"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{"../../configs/systemd/gatehousectl"}, args...)...)
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// A command with other settings than the service's would work on another database.
func TestGatehousectlRunsWithTheUserDirectoriesAndSettingsOfTheUnit(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../configs/systemd/gatehouse.service")
	if err != nil {
		t.Fatal(err)
	}
	args := runUnitCommand(t, "claim", "--replace")
	end := slices.Index(args, "--")
	if end < 0 || strings.Join(args[end+1:], " ") != "/usr/local/bin/gatehouse claim --replace" {
		t.Fatalf("it runs %q", args)
	}
	want := 0
	for line := range strings.Lines(string(unit)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "User":
			want++
			if !slices.Contains(args[:end], "--uid="+value) {
				t.Errorf("not %s", line)
			}
		case "EnvironmentFile", "UMask":
			want++
			if !slices.Contains(args[:end], "--property="+name+"="+value) {
				t.Errorf("not %s", line)
			}
		case "Environment":
			for _, pair := range strings.Fields(value) {
				if strings.HasPrefix(pair, "GATEHOUSE_LOG_") {
					continue // of the service
				}
				want++
				if !slices.Contains(args[:end], "--setenv="+pair) {
					t.Errorf("not %s", pair)
				}
			}
		case "ExecStart":
			if !strings.HasPrefix(value, args[end+1]+" ") {
				t.Errorf("another program: %s", line)
			}
		}
	}
	if want != 5 {
		t.Errorf("the unit has %d lines of settings, want 5", want)
	}
}

func TestGatehousectlPassesArgumentsThroughSystemd(t *testing.T) {
	t.Parallel()
	words := []string{"send", "--bot", "", "it costs $5, ${HOME} and 'more'", "$HOME", "*", "-"}
	args := runUnitCommand(t, words...)
	args = args[slices.Index(args, "--")+2:]
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$$", "$") // as systemd does
	}
	if !slices.Equal(args, words) {
		t.Errorf("%q became %q", words, args)
	}
}

// systemd-run knows every option and every property, as far as it can tell without systemd.
func TestSystemdRunUnderstandsGatehousectl(t *testing.T) {
	t.Parallel()
	installed(t, "systemd-run")
	bus := installed(t, "dbus-run-session")
	try := func(more string) string {
		script := strings.NewReplacer("/usr/local/bin/gatehouse", "/bin/true", "--quiet", "--quiet --user "+more).Replace(unitCommand(t))
		cmd := exec.Command(bus, "--", "sh", "-c", script, "sh", "claim")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("a service was started:\n%s", out)
		}
		return string(out)
	}
	const asked = "Failed to start transient service unit" // nothing is there that could
	if out := try(""); !strings.Contains(out, asked) {
		t.Errorf("systemd-run says:\n%s", out)
	}
	if out := try("--property=Unknown=1"); strings.Contains(out, asked) { // what is shown above can fail
		t.Errorf("systemd-run takes anything:\n%s", out)
	}
}
