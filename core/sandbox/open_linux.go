package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/core/sandbox/landlock"
)

// probeTime is what the program that is run to see whether isolation works may take.
const probeTime = 10 * time.Second

// Open returns the Box for mode (Auto, Bubblewrap or None), or nil, and a
// description of it with the reason. stage is a program that calls Main first,
// usually os.Executable. Open runs one program inside to verify that it works.
func Open(mode, stage string) (Box, string) {
	switch mode {
	case None:
		return nil, "isolation is switched off (SANDBOX is none)"
	case Auto, Bubblewrap:
	default:
		return nil, "the package sandbox has no back end " + mode
	}
	box, b := probe(stage)
	return box, b.said(": ")
}

// said returns the text, and the fix behind sep.
func (b Backend) said(sep string) string {
	if b.Fix == "" {
		return b.Text
	}
	return b.Text + sep + b.Fix
}

// Probe returns the state of every back end on this machine, for doctor and panel.
func Probe(stage string) []Backend {
	_, b := probe(stage)
	return []Backend{b}
}

// places are the paths of bwrap. PATH is not used: a process that could change it
// would choose what isolates.
var places = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

func probe(stage string) (Box, Backend) {
	for _, p := range places {
		if _, err := exec.LookPath(p); err == nil {
			return probeAt(p, stage)
		}
	}
	return nil, Backend{Name: Bubblewrap, Text: "bubblewrap is not installed", Fix: "install the package bubblewrap (it brings the program bwrap)"}
}

func probeAt(bwrap, stage string) (Box, Backend) {
	b := Backend{Name: Bubblewrap}
	stage, err := filepath.EvalSymlinks(stage)
	if err != nil {
		b.Text, b.Fix = "the gateway's program file was replaced or deleted while it runs", "start the gateway again"
		return nil, b
	}
	w := &bubblewrap{bwrap: bwrap, stage: stage, can: abilities(bwrap)}
	if text := Try(w); text != "" {
		b.Text, b.Fix = reason(text)
		return nil, b
	}
	b.Works = true
	if abi := landlock.ABI(); abi > 0 {
		b.Text = fmt.Sprintf("bubblewrap, and Landlock (version %d) inside", abi)
	} else {
		b.Text = "bubblewrap, without Landlock inside, which this kernel lacks"
		b.Fix = "a kernel from 5.13 with landlock in CONFIG_LSM gives the second wall"
	}
	return w, b
}

// reason returns a text for an error of bwrap, and how to fix it.
func reason(said string) (text, fix string) {
	switch {
	case setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return "AppArmor keeps programs without rights from making user namespaces",
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap with 'userns,'"
	case setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" && os.Geteuid() != 0:
		return "the kernel keeps programs without rights from making user namespaces",
			"sysctl kernel.unprivileged_userns_clone=1"
	case setting("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off", "sysctl user.max_user_namespaces=10000"
	case strings.Contains(said, "namespace") || strings.Contains(said, "uid map") || strings.Contains(said, "Operation not permitted"):
		return "user namespaces cannot be made here (" + said + ")",
			"in a container, allow them: a seccomp profile that permits clone with namespaces and mount, or run on the machine itself; where podman or docker is installed, GATEHOUSE_SANDBOX=container uses it"
	}
	return "bubblewrap does not work here (" + said + ")", "run 'bwrap --unshare-all --ro-bind / / true' and fix what it reports"
}

func setting(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// abilities returns the options of this bwrap that older ones lack.
func abilities(path string) map[string]bool {
	out, err := exec.Command(path, "--help").CombinedOutput()
	if err != nil {
		return nil
	}
	words := strings.Fields(string(out))
	can := map[string]bool{}
	for _, option := range []string{"--disable-userns", "--size", "--ro-bind-fd", "--bind-fd"} {
		can[option] = slices.Contains(words, option)
	}
	return can
}
