// Package child runs a bot under test as a process, and reads what it uses.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gatehouse/cmd/loadgen/field"
)

// startWait and StopWait bound a child's start and its end.
const (
	startWait = 60 * time.Second
	StopWait  = 60 * time.Second
)

// A Child is a bot under test: the gateway, or the bare one.
type Child struct {
	cmd     *exec.Cmd
	pid     int // of the bot itself, also under a tracer
	metrics string
	Runtime string // removed at the end; "" for the bare bot
	Begun   time.Time
	ended   chan error
	log     *os.File
}

// gatewayEnv returns the whole environment of the gateway under test: nothing is
// inherited, so that two machines measure the same.
func gatewayEnv(f *field.Field, dir, runtime, metrics string) []string {
	env := []string{
		"HOME=" + dir, "XDG_RUNTIME_DIR=" + runtime, "TMPDIR=" + dir,
		"GATEHOUSE_VAULT_PATH=" + filepath.Join(dir, "vault"),
		"GATEHOUSE_ADDR=127.0.0.1:0",
		"GATEHOUSE_METRICS_ADDR=" + metrics,
		"GATEHOUSE_BUSY_MODE=queue",
		"GATEHOUSE_RATE_LIMIT=off",
		"GATEHOUSE_PACE=off",
		"GATEHOUSE_LIMIT_RUNS=2000",
		"GATEHOUSE_MODEL=local/quote",
		"GATEHOUSE_LOG_FORMAT=json",
	}
	for _, p := range f.Platforms {
		for k, v := range p.Settings(p.URL) {
			env = append(env, "GATEHOUSE_"+k+"="+v)
		}
	}
	return env
}

// Gateway starts the program and returns when it receives. settings go
// before those of gatewayEnv; wrap, when given, is a command that runs it (a
// tracer).
func Gateway(ctx context.Context, program string, f *field.Field, dir string, settings []string, wrap ...string) (*Child, error) {
	runtime, err := os.MkdirTemp("", "lg") // short: a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	metrics, err := FreeAddr()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(runtime))
	}
	argv := append(append([]string{}, wrap...), program, "serve")
	c, err := Start(ctx, f, dir, append(gatewayEnv(f, dir, runtime, metrics), settings...), argv)
	if c == nil {
		return nil, errors.Join(err, os.RemoveAll(runtime))
	}
	c.metrics, c.Runtime = "http://"+metrics+"/metrics", runtime
	if err == nil && len(wrap) > 0 {
		c.pid, err = onlyChild(c.cmd.Process.Pid)
	}
	return c, err
}

// Start starts a bot and returns when it receives on all platforms.
func Start(ctx context.Context, f *field.Field, dir string, env, argv []string) (*Child, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c := &Child{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1), log: log}
	c.cmd.Env, c.cmd.Stderr, c.cmd.Stdout = env, log, log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Begun = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.pid = c.cmd.Process.Pid
	go func() { c.ended <- c.cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for !f.Online() {
		select {
		case err := <-c.ended:
			c.ended <- err
			return c, fmt.Errorf("%s ended at its start: %v; its log: %s", argv[0], err, tailOf(log.Name()))
		case <-ctx.Done():
			return c, fmt.Errorf("%s does not receive: %w", argv[0], context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
	return c, nil
}

// Stop asks the child to end and waits for it.
func (c *Child) Stop() error {
	if c == nil {
		return nil
	}
	defer c.log.Close()
	if c.Runtime != "" {
		defer os.RemoveAll(c.Runtime)
	}
	_ = syscall.Kill(c.pid, syscall.SIGTERM)
	select {
	case err := <-c.ended:
		if err != nil {
			return fmt.Errorf("the child ended with %w; its log: %s", err, tailOf(c.log.Name()))
		}
		return nil
	case <-time.After(StopWait):
		_ = c.cmd.Process.Kill()
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
		<-c.ended
		return errors.New("the child did not end when it was asked to")
	}
}

func tailOf(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// FreeAddr returns an address on loopback that no one listens on.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// onlyChild returns the process that a tracer runs.
func onlyChild(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("the tracer's child: %w", err)
	}
	return n, nil
}

// CPU returns the time that the child has used, to 10 ms (proc_pid_stat(5): utime
// and stime are the fields 14 and 15, in ticks of 1/100 s).
func (c *Child) CPU() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc/<pid>/stat is short")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// Memory returns the resident set and its peak since resetPeak, in MiB.
func (c *Child) Memory() (now, peak float64, err error) {
	m, err := c.status("VmRSS", "VmHWM")
	return m["VmRSS"], m["VmHWM"], err
}

// Own returns the part of the resident set that is no page of a file, in MiB: what
// the program has written, and no one else could use.
func (c *Child) Own() (float64, error) {
	m, err := c.status("RssAnon")
	return m["RssAnon"], err
}

// status reads fields of /proc/<pid>/status, in MiB.
func (c *Child) status(names ...string) (map[string]float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := map[string]float64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		if !slices.Contains(names, name) {
			continue
		}
		var kib float64
		if _, err := fmt.Sscanf(rest, "%f", &kib); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found[name] = kib / 1024
	}
	return found, nil
}

// ResetPeak begins a new peak (proc_pid_clear_refs(5): 5).
func (c *Child) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.pid), []byte("5"), 0)
}

// Series reads the gateway's metrics: "name{labels}" → value.
func (c *Child) Series(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64); err == nil {
			out[line[:i]] = v
		}
	}
	return out, nil
}
