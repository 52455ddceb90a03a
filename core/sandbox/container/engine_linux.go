package container

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container/inside"
)

// An engine is podman or docker as it is called on this machine.
type engine struct {
	name, path string
	fix        string   // what to do where it does not work
	global     []string // arguments before the command
	run        []string // arguments of run that only this engine has
	env        []string
	uid, gid   int  // of the program, inside
	ownUsers   bool // the container has a user namespace of its own
	storage    bool // images are kept in our own directory
}

const (
	podman = "podman"
	docker = "docker"
	userID = 1000 // the program's user inside, where the engine can map it
)

// Places where the engines are searched. PATH is not used: a process that could
// change it would choose what isolates.
var (
	folders = []string{"/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin"}
	// socket is the one of docker's service. A service on another machine is never used.
	socket = "/var/run/docker.sock"
)

// engines returns how the engines of this machine can be called, in the order in
// which they are tried, and why others cannot.
func engines(o Options) (list []engine, missing []fault) {
	if path := program(podman); path != "" {
		for _, manager := range cgroupManagers() {
			list = append(list, newPodman(o, path, manager))
		}
	}
	path := program(docker)
	if path == "" && len(list) == 0 {
		return nil, []fault{{"neither podman nor docker is installed", "install the package podman (it brings runc or crun), or use bubblewrap (GATEHOUSE_SANDBOX=auto)"}}
	}
	if path == "" {
		return list, nil
	}
	e, text := newDocker(o, path)
	if text != "" {
		return list, []fault{{text, "install the package podman, or use bubblewrap (GATEHOUSE_SANDBOX=auto)"}}
	}
	return append(list, e), nil
}

func program(name string) string {
	for _, dir := range folders {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// cgroupManagers returns podman's ways to make control groups, in the order to try.
func cgroupManagers() []string {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return []string{"systemd", "cgroupfs"}
	}
	return []string{"cgroupfs"}
}

// hostRoot is the user of the host that root inside a container is: one that no host has.
const hostRoot = 0x70000000

func newPodman(o Options, path, manager string) engine {
	e := engine{
		name: podman, path: path, uid: userID, gid: userID, ownUsers: true,
		fix:    "run '" + path + " run --rm IMAGE' by hand and fix what it reports, or use bubblewrap (GATEHOUSE_SANDBOX=auto)",
		global: []string{"--remote=false", "--cgroup-manager=" + manager, "--events-backend=none"},
		run: []string{
			"--no-hosts", "--read-only-tmpfs=false", "--http-proxy=false", "--log-driver=passthrough",
			"--pid=private", "--uts=private", "--tmpfs=/sys:ro,size=4k",
		},
		env: clientEnv(o.Dir),
	}
	// Nothing of the operator's own configuration is added to a container.
	e.env = append(e.env, "CONTAINERS_CONF=/dev/null", "XDG_RUNTIME_DIR="+runtimeOf(o.Dir))
	if o.Image == "" {
		e.storage = true
		e.global = append(e.global, "--root="+filepath.Join(o.Dir, "s"), "--runroot="+filepath.Join(o.Dir, "r"), "--storage-driver=vfs")
	} else {
		e.env = append(e.env, "HOME="+o.Home)
	}
	if os.Getuid() != 0 {
		e.run = append(e.run, fmt.Sprintf("--userns=keep-id:uid=%d,gid=%d", userID, userID))
		return e
	}
	for _, option := range []string{"--uidmap", "--gidmap"} {
		e.run = append(e.run, option, fmt.Sprintf("0:%d:%d", hostRoot, userID), option, fmt.Sprintf("%d:0:1", userID),
			option, fmt.Sprintf("%d:%d:%d", userID+1, hostRoot+userID+1, 65535-userID))
	}
	return e
}

// runtimeOf returns the directory that rootless podman expects as XDG_RUNTIME_DIR.
func runtimeOf(dir string) string {
	if user := fmt.Sprintf("/run/user/%d", os.Getuid()); strings.HasPrefix(dir, user+"/") {
		return user
	}
	return dir
}

func newDocker(o Options, path string) (engine, string) {
	if os.Getuid() == 0 {
		return engine{}, "docker cannot give the commands of a gateway that runs as root another user: run the gateway as an ordinary user"
	}
	if _, err := os.Stat(socket); err != nil {
		return engine{}, "docker's service does not run (" + socket + " does not exist)"
	}
	return engine{
		name: docker, path: path, uid: os.Getuid(), gid: os.Getgid(),
		fix:    "run '" + path + " info' as the gateway's user and fix what it reports, or use bubblewrap (GATEHOUSE_SANDBOX=auto)",
		global: []string{"--host=unix://" + socket, "--config=" + filepath.Join(o.Dir, "d")},
		run:    []string{"--interactive", "--log-driver=none"},
		env:    append(clientEnv(o.Dir), "DOCKER_CONTENT_TRUST=0"),
	}, ""
}

// clientEnv returns the environment of an engine's client, with nothing of the
// gateway's.
func clientEnv(dir string) []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
}

// instance returns the value of our containers' label.
func (b *box) instance() string {
	sum := sha256.Sum256([]byte(strconv.Itoa(os.Getuid()) + b.o.Dir))
	return hex.EncodeToString(sum[:8])
}

// ownMemory is the room that our own processes have inside a container.
const ownMemory = 48 << 20

// args returns the arguments of the engine's client that run r.
func (b *box) args(r *run) []string {
	l, e := r.spec.Limits, b.engine
	memory := strconv.FormatInt(l.Memory+ownMemory, 10)
	a := append([]string{}, e.global...)
	a = append(a, "run", "--rm", "--pull=never", "--name="+r.name(), "--label="+labelName+"="+b.instance(),
		"--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=label=disable",
		"--ipc=private", "--hostname=sandbox", "--workdir=/", "--init=false", "--stop-timeout=1",
		"--user="+strconv.Itoa(e.uid)+":"+strconv.Itoa(e.gid),
		"--memory="+memory, "--memory-swap="+memory, "--pids-limit="+strconv.Itoa(l.Processes+own), "--cpus="+strconv.Itoa(sandbox.Cores()),
		"--ulimit=nofile=1024:1024", "--ulimit=core=0:0", "--ulimit=nproc="+r.processes(), "--shm-size="+strconv.Itoa(shmBytes))
	a = append(a, e.run...)
	for _, m := range b.fixed(r) {
		a = append(a, "--mount="+m.option(e))
	}
	for _, m := range r.view.mounts {
		a = append(a, "--mount="+m.option(e))
	}
	return append(a, "--entrypoint="+inside.StagePath, b.image, inside.Word)
}

// processes returns the limit of processes that the kernel counts by user.
func (r *run) processes() string {
	n := r.spec.Limits.Processes + own
	if !r.box.engine.ownUsers {
		n = manyProcesses()
	}
	return fmt.Sprintf("%d:%d", n, n)
}

// manyProcesses returns the limit of processes where the kernel counts all of this
// user on the machine: the gateway's own limit. The processes of the container are
// limited by its control group.
func manyProcesses() int {
	const most = 1 << 20
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &l) != nil || l.Max > most {
		return most
	}
	return int(l.Max)
}

// option returns m as the value of --mount, which is a line of CSV.
func (m mount) option(e engine) string {
	fields := []string{"type=bind", "src=" + m.source, "dst=" + m.path}
	if m.source == "" {
		fields = []string{"type=tmpfs", "dst=" + m.path, "tmpfs-size=" + strconv.Itoa(m.size), "tmpfs-mode=1777"}
		if e.name == podman {
			fields = append(fields, "notmpcopyup")
		}
	}
	if m.readOnly {
		fields = append(fields, "ro")
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// callTime bounds a call of the engine that is not run.
const callTime = 30 * time.Second

// call runs one command of the engine and returns what it printed.
func (b *box) call(ctx context.Context, stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.engine.path, append(append([]string{}, b.engine.global...), args...)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = b.engine.env, "/", time.Second
	cmd.Stdin = bytes.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		text := core.CutRunes(strings.TrimSpace(said.String()), 500)
		return "", fmt.Errorf("%s %s: %w", b.engine.name, args[0], errors.Join(err, ctx.Err(), errors.New(text)))
	}
	return out.String(), nil
}

// sweep removes the containers of this instance, which an earlier gateway has left.
func (b *box) sweep(ctx context.Context) error {
	out, err := b.call(ctx, nil, "ps", "--all", "--quiet", "--filter=label="+labelName+"="+b.instance())
	if err != nil {
		return err
	}
	errs := []error{b.sweepFiles()}
	for _, id := range strings.Fields(out) {
		b.o.Log.Info("removing a container that an earlier gateway has left", "container", id)
		errs = append(errs, b.remove(ctx, id))
	}
	return errors.Join(errs...)
}

// sweepFiles removes the sockets and directories of programs that an earlier gateway has
// left.
func (b *box) sweepFiles() error {
	entries, err := os.ReadDir(b.o.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), runPrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(b.o.Dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// remove ends and removes a container; one that does not exist is no error.
func (b *box) remove(ctx context.Context, name string) error {
	_, err := b.call(ctx, nil, "rm", "--force", "--volumes", name)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container") || err != nil && strings.Contains(err.Error(), "no container with") {
		return nil
	}
	return err
}
