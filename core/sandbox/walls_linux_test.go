package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/sandbox/landlock"
)

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// spaces are a folder to see, and one beside it that is not to be seen.
func spaces(t *testing.T) (open, closed string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"open", "closed"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "note"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "open"), filepath.Join(dir, "closed")
}

// said runs cmd and gives what it printed.
func said(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	Release(cmd)
	if err == nil {
		_ = cmd.Wait()
	}
	return out.String()
}

// TestTheStageHoldsWithoutBubblewrap: Landlock, seccomp and limits alone, as if
// the first wall had a hole.
func TestTheStageHoldsWithoutBubblewrap(t *testing.T) {
	if landlock.ABI() < 4 {
		t.Skip("this kernel's Landlock does not know TCP")
	}
	open, closed := spaces(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := Spec{Writable: []string{open}, Dir: open, Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{}.orDefaults()}
	for command, want := range map[string]string{
		"cat note; echo x > new && cat new":                     "open\nx\n",
		"cat " + closed + "/note || echo held":                  "held\n",
		"echo x 2>/dev/null > " + closed + "/note || echo held": "held\n",
		"ls " + closed + " || echo held":                        "held\n",
		"exec 3<>/dev/tcp/127.0.0.1/" + port + " || echo held":  "held\n",
		"unshare -U true || echo held":                          "held\n",
		"chmod 4755 note || echo held":                          "held\n",
		"kill -0 $PPID || echo held":                            "held\n",
		"ulimit -c; ulimit -n":                                  "0\n1024\n",
	} {
		order := newOrder(s, []string{"/bin/bash", "-c", "{ " + command + "; } 2>/dev/null"})
		order.Write = slices.DeleteFunc(order.Write, func(p string) bool { return p == "/tmp" }) // it is the host's here
		text, err := json.Marshal(order)
		if err != nil {
			t.Fatal(err)
		}
		f, err := memory("order", string(text))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self(t), stageWord, "3")
		cmd.ExtraFiles = []*os.File{f}
		if out := said(t, cmd); out != want && !strings.HasPrefix(command, "kill") || strings.HasPrefix(command, "kill") && landlock.ABI() >= 6 && out != want {
			t.Errorf("%s: %q", command, out)
		}
	}
}

// TestBubblewrapHoldsWithoutTheStage: the namespaces and mounts alone, as on a
// kernel without Landlock.
func TestBubblewrapHoldsWithoutTheStage(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	open, closed := spaces(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for command, want := range map[string]string{
		"cat note; echo x > new && cat new":                                                "open\nx\n",
		"cat " + closed + "/note || echo held":                                             "held\n",
		"exec 3<>/dev/tcp/127.0.0.1/" + port + " || echo held":                             "held\n",
		"kill -0 " + "$(( $$ + 100000 )) || echo held":                                     "held\n",
		"test $(id -u) = 1000 && grep -c '^CapEff:.*0000000000000000$' /proc/self/status":  "1\n",
		"echo x > /usr/x || echo held":                                                     "held\n",
		"v=$(cat /proc/sys/vm/swappiness); echo $v > /proc/sys/vm/swappiness || echo held": "held\n",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd, err := box.Command(ctx, Spec{Writable: []string{open}, Dir: open}, "true")
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(cmd.Args, "--")
		cmd.Args = append(cmd.Args[:at+1], "/bin/bash", "-c", "{ "+command+"; } 2>/dev/null")
		if out := said(t, cmd); out != want {
			t.Errorf("%s: %q", command, out)
		}
		cancel()
	}
}

func TestANameThatIsSwappedBeforeTheMountGainsNothing(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	if !box.(*bubblewrap).can["--bind-fd"] {
		t.Skip("this bwrap takes no open files")
	}
	open, closed := spaces(t)
	for _, s := range []Spec{{Writable: []string{open}, Dir: open}, {ReadOnly: []string{open}, Dir: open}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		s.Env = []string{"PATH=/usr/bin:/bin"}
		cmd, err := box.Command(ctx, s, "/bin/cat", "note")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(open, open+"2"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(closed, open); err != nil {
			t.Fatal(err)
		}
		if out := said(t, cmd); out != "open\n" {
			t.Errorf("%q", out)
		}
		cancel()
		if _, err := box.Command(t.Context(), s, "true"); err == nil {
			t.Error("a link is taken for a folder")
		}
		if err := errors.Join(os.Remove(open), os.Rename(open+"2", open)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenReportsWhyThereIsNone(t *testing.T) {
	if box, why := Open(None, self(t)); box != nil || !strings.Contains(why, "switched off") {
		t.Error(box, why)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ script, want string }{
		"no namespaces": {"echo 'bwrap: No permissions to create a new namespace' >&2; exit 1", "user namespaces"},
		"no uid map":    {"echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "user namespaces"},
		"something":     {"echo 'bwrap: on fire' >&2; exit 1", "bubblewrap does not work here (bwrap: on fire"},
		"pretends":      {"exit 0", "bubblewrap does not work here"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		box, b := probeAt(path, self(t))
		if box != nil || b.Works || !strings.Contains(b.Text, c.want) || b.Fix == "" {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if _, b := probeAt("/usr/bin/bwrap", filepath.Join(dir, "gone")); !strings.Contains(b.Text, "program file was replaced or deleted") {
		t.Errorf("%+v", b)
	}
	if list := Probe(self(t)); len(list) != 1 || list[0].Name != Bubblewrap || list[0].Text == "" {
		t.Errorf("%+v", list)
	}
}

func TestTooManyPathsAreRefused(t *testing.T) {
	w := &bubblewrap{}
	s := Spec{Dir: "/tmp"}
	for range MaxPaths + 1 {
		s.Masked = append(s.Masked, "/x")
	}
	if _, err := w.Command(t.Context(), s, "true"); err == nil || !strings.Contains(err.Error(), "mounts") {
		t.Error(err)
	}
	for _, p := range []string{"relative", "/a/../b", "/", "/a\x00b"} {
		if _, err := w.Command(t.Context(), Spec{Dir: "/tmp", Writable: []string{p}}, "true"); err == nil {
			t.Errorf("%q is taken", p)
		}
	}
}
