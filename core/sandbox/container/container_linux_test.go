package container

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	Main()
	if path := os.Getenv("GATEHOUSE_TEST_DOCKER"); path != "" { // the socket of a docker service to test with
		socket = path
	}
	goleak.VerifyTestMain(m)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// short is a folder whose path is short enough for Options.Dir.
func short(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ghc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", dir).Run() // podman's storage has folders that their owner may not read
		end := time.Now().Add(2 * time.Minute)
		err := os.RemoveAll(dir)
		for err != nil && time.Now().Before(end) { // a container that ends still writes into its storage
			time.Sleep(50 * time.Millisecond)
			err = os.RemoveAll(dir)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open is the box of this machine; where no engine works the test is skipped.
func openBox(t testing.TB) *box {
	t.Helper()
	x, why := Open(Options{Stage: self(t), Dir: short(t)})
	if x == nil {
		t.Skip("SKIPPED: no container back end: ", why)
	}
	b := x.(*box)
	t.Cleanup(func() { Close(b) })
	return b
}

// finish runs cmd to its end and gives what it printed.
func finish(t testing.TB, cmd *exec.Cmd) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	sandbox.Release(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}

// in runs a shell command in b.
func in(t testing.TB, b *box, s sandbox.Spec, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd, err := b.Command(ctx, withPath(s), "/bin/sh", "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, cmd)
}

func withPath(s sandbox.Spec) sandbox.Spec {
	if s.Dir == "" {
		s.Dir = "/tmp"
	}
	s.Env = append(s.Env, "PATH=/usr/bin:/bin")
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// count is how many containers of b exist.
func count(t testing.TB, b *box) int {
	t.Helper()
	out, err := b.call(t.Context(), nil, "ps", "--all", "--quiet", "--filter=label="+labelName+"="+b.instance())
	if err != nil {
		t.Fatal(err)
	}
	return len(strings.Fields(out))
}

func TestNamesWithCommasColonsQuotesAndLineFeedsAreMounted(t *testing.T) {
	b := openBox(t)
	dir := t.TempDir()
	s := sandbox.Spec{Writable: []string{dir}, Dir: dir}
	for i, name := range []string{"a,b", "a:b", "a b", `a"b`, "a'b", "a\nb", "a=b,dst=x", `a\b`, "-a", "~", "$HOME", "é", "a\rb", ",ro", "a\tb", "a\u00a0b"} {
		write(t, filepath.Join(dir, name, "note"), fmt.Sprintln("note", i))
		write(t, filepath.Join(dir, name, "hidden"), "hidden")
		s.ReadOnly = append(s.ReadOnly, filepath.Join(dir, name))
		s.Masked = append(s.Masked, filepath.Join(dir, name, "hidden"))
	}
	out, err := in(t, b, s, `for f in *; do cat "./$f/note"; cat "./$f/hidden" 2>/dev/null && echo READ; touch "./$f/x" 2>/dev/null && echo WRITTEN; done; true`)
	if err != nil {
		t.Log(err, out)
	}
	for i := range s.ReadOnly {
		if !strings.Contains(out, fmt.Sprintln("note", i)) {
			t.Errorf("note %d is not seen", i)
		}
	}
	if strings.Contains(out, "READ") || strings.Contains(out, "WRITTEN") {
		t.Error(out)
	}
}

func TestANameThatNoEngineCanMountHidesItsFolderOnly(t *testing.T) {
	b := openBox(t)
	for _, name := range []string{"a\xffb", "a\r\nb"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "mine/note"), "mine\n")
		write(t, filepath.Join(dir, "theirs", name, "secret"), "secret\n")
		write(t, filepath.Join(dir, "theirs/note"), "theirs\n")
		s := sandbox.Spec{Writable: []string{dir}, Masked: []string{filepath.Join(dir, "theirs", name, "secret")}, Dir: filepath.Join(dir, "mine")}
		out, err := in(t, b, s, "cat note; cat ../theirs/*/secret ../theirs/note 2>/dev/null || echo hidden")
		if err != nil || out != "mine\nhidden\n" {
			t.Errorf("%q: %v %q", name, err, out)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "theirs"))
		if err != nil || len(entries) != 2 {
			t.Errorf("%q: the engine left something in the host's folder: %v %v", name, entries, err)
		}
		s.Dir = filepath.Join(dir, "theirs")
		if _, err := b.Command(t.Context(), s, "true"); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestANameThatIsExchangedBeforeTheMountStartsNothing(t *testing.T) {
	b := openBox(t)
	dir := t.TempDir()
	for _, name := range []string{"open", "closed", "open/hidden", "closed/hidden"} {
		write(t, filepath.Join(dir, name, "note"), name+"\n")
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	for what, s := range map[string]sandbox.Spec{
		"writable":  {Writable: []string{open}, Dir: open},
		"read-only": {ReadOnly: []string{open}, Dir: open},
		"below":     {Writable: []string{open}, Masked: []string{filepath.Join(open, "hidden")}, Dir: open},
		"scratch":   {Scratch: open, Dir: "/tmp"},
	} {
		for how, exchange := range map[string]func() error{
			"a link":         func() error { return os.Symlink(closed, open) },
			"another folder": func() error { return os.Rename(closed, open) },
		} {
			cmd, err := b.Command(t.Context(), withPath(s), "/bin/cat", "note", "/tmp/note")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Rename(open, open+"2"), exchange()); err != nil {
				t.Fatal(err)
			}
			if out, err := finish(t, cmd); err == nil || strings.Contains(out, "closed\n") {
				t.Errorf("%s for %s: %v %q", how, what, err, out)
			}
			if how == "another folder" {
				err = os.Rename(open, closed)
			} else {
				err = os.Remove(open)
			}
			if err := errors.Join(err, os.Rename(open+"2", open)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(closed, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Command(t.Context(), sandbox.Spec{Writable: []string{filepath.Join(dir, "link")}, Dir: "/tmp"}, "true"); err == nil {
		t.Error("a link is mounted")
	}
}

// TestAnEngineThatDoesLessThanItWasAskedForStartsNothing takes one option of the
// command line away, or adds one, as a broken engine or its configuration would.
func TestAnEngineThatDoesLessThanItWasAskedForStartsNothing(t *testing.T) {
	b := openBox(t)
	if b.engine.name != podman {
		t.Skip("the options are podman's")
	}
	other := t.TempDir()
	drop := func(options ...string) func([]string) []string {
		return func(a []string) []string {
			return slices.DeleteFunc(a, func(o string) bool { return slices.Contains(options, o) })
		}
	}
	add := func(options ...string) func([]string) []string {
		return func(a []string) []string {
			at := slices.IndexFunc(a, func(o string) bool { return strings.HasPrefix(o, "--entrypoint") })
			return slices.Insert(a, at, options...)
		}
	}
	replace := func(from, to string) func([]string) []string {
		return func(a []string) []string { return add(to)(drop(from)(a)) }
	}
	for what, c := range map[string]struct {
		change func([]string) []string
		want   string
	}{
		"nothing changed":         {func(a []string) []string { return a }, ""},
		"capabilities":            {add("--cap-add=CHOWN"), "Cap"},
		"all capabilities":        {drop("--cap-drop=ALL"), "Cap"},
		"rights by set-user-id":   {drop("--security-opt=no-new-privileges"), "NoNewPrivs"},
		"no seccomp profile":      {add("--security-opt=seccomp=unconfined"), "Seccomp"},
		"a writable root":         {drop("--read-only"), "can be written"},
		"a folder more":           {add("--volume=" + other + ":/more"), "mounted at /more"},
		"a folder in the vault":   {add("--volume=" + other + ":/srv/vault/more"), "mounted at /srv/vault/more"},
		"the host's network":      {replace("--network=none", "--network=host"), "network"},
		"the host's processes":    {add("--pid=host"), "process namespace"},
		"the host's root as /sys": {drop("--tmpfs=/sys:ro,size=4k"), ""}, // read-only, and Landlock hides it
		"another user":            {add("--user=0:0"), "started"},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd, err := b.Command(ctx, withPath(sandbox.Spec{}), "/bin/echo", "it runs")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = c.change(cmd.Args)
			out, err := finish(t, cmd)
			if c.want == "" {
				if err != nil || out != "it runs\n" {
					t.Errorf("%v %q", err, out)
				}
				return
			}
			if err == nil || strings.Contains(out, "it runs") || !strings.Contains(out, c.want) || !strings.Contains(out, "nothing is started") {
				t.Errorf("%v %q", err, out)
			}
		})
	}
}

func TestExitCodesInputAndTheOrderOfOutputAreKept(t *testing.T) {
	b := openBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd, err := b.Command(ctx, withPath(sandbox.Spec{}), "/bin/sh", "-c", "cat; for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; head -c 3000000 /dev/zero | tr '\\0' x; kill -TERM $$")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader("input\n")
	out, err := finish(t, cmd)
	want := "input\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nout 4\nerr 4\nout 5\nerr 5\n"
	if b.engine.name == docker { // two streams, whose order to each other its service does not keep
		want = out[:len(want)]
	}
	if !strings.HasPrefix(out, want) || len(out) != len(want)+3_000_000 {
		t.Errorf("%d bytes: %.200q", len(out), out)
	}
	if cmd.ProcessState.ExitCode() != 128+15 {
		t.Error(err)
	}
}

func TestTheProgramAndTheFirstProcessGetNothingOfTheGatewaysEnvironment(t *testing.T) {
	t.Setenv("GATEHOUSE_SECRET", "CANARY")
	t.Setenv("HTTP_PROXY", "http://CANARY")
	b := openBox(t)
	out, err := in(t, b, sandbox.Spec{Env: []string{"A=b"}}, "env | sort; cat /proc/1/environ /proc/1/maps 2>&1; ls /proc/1/fd 2>&1")
	if strings.Contains(out, "CANARY") || !strings.HasPrefix(out, "A=b\nPATH=/usr/bin:/bin\n") || strings.Count(out, "ermission denied") != 3 {
		t.Error(err, out)
	}
}

// killedDir names the folder of the gateway that TestAGatewayToBeKilled plays.
const killedDir = "CONTAINER_TEST_FOLDER"

// TestAGatewayToBeKilled is no test: it is the gateway of the next one.
func TestAGatewayToBeKilled(t *testing.T) {
	dir := os.Getenv(killedDir)
	if dir == "" {
		t.Skip("a part of TestAKilledGatewayLeavesNothing")
	}
	x, why := Open(Options{Stage: self(t), Dir: dir})
	if x == nil {
		t.Fatal(why)
	}
	cmd, err := x.Command(t.Context(), withPath(sandbox.Spec{}), "/bin/sh", "-c", "trap '' TERM HUP; setsid sleep 987654 & echo begun; sleep 987654")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func TestAKilledGatewayLeavesNothing(t *testing.T) {
	b := openBox(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	gateway := exec.CommandContext(ctx, self(t), "-test.run=^TestAGatewayToBeKilled$")
	gateway.Env = append(os.Environ(), killedDir+"="+b.o.Dir)
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "begun" {
	}
	var sleepers []int
	for end := time.Now().Add(5 * time.Minute); len(sleepers) < 2; sleepers = sleeping(t, "987654") {
		if time.Now().After(end) {
			t.Fatal("nothing was started: ", gateway.Process.Kill(), gateway.Wait())
		}
	}
	_ = gateway.Process.Kill()
	_ = gateway.Wait()
	for _, fd := range sleepers {
		gone(t, fd)
	}
	for end := time.Now().Add(5 * time.Minute); count(t, b) > 0; {
		if time.Now().After(end) {
			t.Fatal("the container is left")
		}
	}
}

// sleeping are pidfds of the processes "sleep what".
func sleeping(t *testing.T, what string) (list []int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if line, _ := os.ReadFile(f); string(line) != "sleep\x00"+what+"\x00" {
			continue
		}
		pid := 0
		_, _ = fmt.Sscanf(f, "/proc/%d/", &pid)
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		list = append(list, fd)
	}
	return list
}

// gone waits for the end of a process.
func gone(t *testing.T, fd int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000); n > 0 {
			return
		}
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	t.Error("a process is left")
}

func TestTheNextStartRemovesWhatAnEarlierGatewayHasLeft(t *testing.T) {
	b := openBox(t)
	mine, others := "gatehouse-left-mine", "gatehouse-left-others"
	for name, label := range map[string]string{mine: b.instance(), others: "another"} {
		if _, err := b.call(t.Context(), nil, "create", "--pull=never", "--network=none", "--name="+name, "--label="+labelName+"="+label, b.image, "/x"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = b.remove(context.Background(), others) })
	stale := filepath.Join(b.o.Dir, runPrefix+"stale")
	write(t, stale, "")
	if p := Probe(b.o); !p.Works || count(t, b) != 1 {
		t.Errorf("%+v, %d left: a probe removes nothing", p, count(t, b))
	}
	if again, why := Open(b.o); again == nil {
		t.Fatal(why)
	}
	if _, err := os.Lstat(stale); count(t, b) != 0 || err == nil {
		t.Error("something is left")
	}
	if out, err := b.call(t.Context(), nil, "ps", "--all", "--quiet", "--filter=name="+others); err != nil || out == "" {
		t.Error("another gateway's container was removed", err)
	}
}

func TestACommandThatIsEndedLeavesNoContainer(t *testing.T) {
	b := openBox(t)
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		ctx, cancel := context.WithTimeout(t.Context(), after) // at every stage of the start
		ended := make(chan struct{})
		cmd, err := b.Command(ctx, withPath(sandbox.Spec{OnGone: func() { close(ended) }}), "/bin/sleep", "600")
		if err != nil {
			t.Fatal(err)
		}
		_, err = finish(t, cmd)
		if err == nil {
			t.Error("it ended well")
		}
		<-ended
		cancel()
	}
	b.left.Wait()
	if n := count(t, b); n != 0 {
		t.Errorf("%d containers are left", n)
	}
	files, err := filepath.Glob(filepath.Join(b.o.Dir, runPrefix+"*"))
	if err != nil || len(files) > 0 {
		t.Error("left:", files, err)
	}
}

func TestTooManyMountsAreRefusedWithTheNumber(t *testing.T) {
	b := openBox(t)
	dir := t.TempDir()
	s := sandbox.Spec{Writable: []string{dir}, Dir: dir}
	for i := range maxPaths + 1 {
		path := filepath.Join(dir, fmt.Sprint(i))
		write(t, path, "")
		s.Masked = append(s.Masked, path)
	}
	if _, err := b.Command(t.Context(), s, "true"); core.KindOf(err) != core.TooLarge || !strings.Contains(err.Error(), "1002 mounts") {
		t.Error(err)
	}
	s.Masked = s.Masked[:800] // what is allowed works
	if out, err := in(t, b, s, "cat 1 2>/dev/null || cat 900 && echo fine"); err != nil || out != "fine\n" {
		t.Error(err, out)
	}
}

func TestAnImageOfTheOperatorsIsUsedAndNothingOfTheHostIsSeenInIt(t *testing.T) {
	b := openBox(t)
	o := Options{Stage: b.o.Stage, Dir: b.o.Dir, Home: b.o.Dir, Image: "localhost/gatehouse-test-missing:1"}
	if p := Probe(o); p.Works || !strings.Contains(p.Text, "does not have the image") {
		t.Errorf("%+v", p)
	}
	o.Image = "localhost/gatehouse-test-tools:1"
	own := b.withImage(o.Image)
	if _, err := own.call(t.Context(), tools(t), "import", "-", o.Image); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := own.call(context.Background(), nil, "rmi", "--force", o.Image); err != nil {
			t.Error(err)
		}
	})
	x, why := Open(o)
	if x == nil && strings.Contains(why, "mounting storage") {
		t.Skip("SKIPPED: this engine cannot use an image with users of its own here: ", why)
	}
	if x == nil {
		t.Fatal(why)
	}
	t.Cleanup(x.(*box).left.Wait)
	dir := t.TempDir()
	out, err := in(t, x.(*box), sandbox.Spec{Writable: []string{dir}, Dir: dir}, "echo fine > note; read x < note; echo $x; test -e /usr/bin/env || echo 'not seen'")
	if err != nil || out != "fine\nnot seen\n" {
		t.Error(err, out)
	}
}

// tools is an image with a shell, our own program's libraries and nothing else.
func tools(t *testing.T) []byte {
	t.Helper()
	libs, err := exec.Command("ldd", "/bin/bash", self(t)).Output()
	if err != nil {
		t.Skip("SKIPPED: ldd: ", err)
	}
	files := []string{"/bin/bash"}
	for _, word := range strings.Fields(string(libs)) {
		if strings.HasPrefix(word, "/lib") && !strings.HasSuffix(word, ":") && !slices.Contains(files, word) {
			files = append(files, word)
		}
	}
	root := t.TempDir()
	for _, f := range files {
		to := filepath.Join(root, f)
		if out, err := exec.Command("sh", "-c", `mkdir -p "$(dirname "$2")" && cp -L "$1" "$2"`, "sh", f, to).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	if err := os.Link(filepath.Join(root, "bin/bash"), filepath.Join(root, "bin/sh")); err != nil {
		t.Fatal(err)
	}
	image, err := exec.Command("tar", "-C", root, "-cf", "-", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestManyContainersAtOnce(t *testing.T) {
	b := openBox(t)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if out, err := in(t, b, sandbox.Spec{}, fmt.Sprint("echo ", i)); err != nil || out != fmt.Sprintln(i) {
				t.Error(err, out)
			}
		})
	}
	all.Wait()
}

// withImage is b for an image that is kept where the engine keeps its own.
func (b *box) withImage(name string) *box {
	o := Options{Image: name, Dir: b.o.Dir, Home: b.o.Dir, Stage: b.o.Stage, Log: b.o.Log}
	list, _ := engines(o)
	for _, e := range list {
		if e.name == b.engine.name {
			return &box{o: o, engine: e, stage: b.stage}
		}
	}
	return nil
}

func TestWhatIsMissingIsSaidWithWhatToDo(t *testing.T) {
	dir := short(t)
	old, oldSocket := folders, socket
	t.Cleanup(func() { folders, socket = old, oldSocket })
	bin := filepath.Join(dir, "bin")
	socket = filepath.Join(dir, "no.sock")
	o := Options{Stage: self(t), Dir: filepath.Join(dir, "c")}
	if p := Probe(o); p.Works || !strings.Contains(p.Text, "not a folder of the gateway's user") || p.Fix == "" {
		t.Errorf("no folder: %+v", p)
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	folders = []string{bin}
	if p := Probe(o); p.Works || !strings.Contains(p.Text, "neither podman nor docker is installed") || !strings.Contains(p.Fix, "install") {
		t.Errorf("nothing: %+v", p)
	}
	for name, script := range map[string]string{"on fire": "echo 'Error: on fire' >&2; exit 125", "pretends": "exit 0", "talks": "echo fine; exit 0"} {
		write(t, filepath.Join(bin, podman), "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(bin, podman), 0o700); err != nil {
			t.Fatal(err)
		}
		want := "podman does not work here"
		p := Probe(o)
		if name == "talks" { // an engine that prints what is expected has isolated nothing, but nothing can see that from outside
			continue
		}
		if p.Works || !strings.Contains(p.Text, want) || p.Fix == "" || name == "on fire" && !strings.Contains(p.Text, "on fire") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if err := os.Rename(filepath.Join(bin, podman), filepath.Join(bin, docker)); err != nil {
		t.Fatal(err)
	}
	if p := Probe(o); p.Works || !strings.Contains(p.Text, "docker") || p.Fix == "" {
		t.Errorf("docker: %+v", p)
	}
	o.Dir = filepath.Join(dir, strings.Repeat("x", MaxDir))
	if p := Probe(o); p.Works || !strings.Contains(p.Text, "too long") {
		t.Errorf("long: %+v", p)
	}
}
