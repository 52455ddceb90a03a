package claudecli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Limits of the output of one process.
const (
	maxLine   = 32 << 20 // bytes of one line; a longer one is passed over
	maxStderr = 8 << 10  // bytes of its complaints that are kept, the newest
	writeTime = 30 * time.Second
)

// A process is one Claude Code in its session. One turn at a time uses it.
type process struct {
	session string
	spec    string // what it was started with; another spec needs another process
	cmd     *exec.Cmd
	kill    context.CancelFunc // ends the whole tree
	stderr  tail
	gone    chan struct{} // closed when the process has ended and its output was read
	code    int           // exit code, when gone

	cost float64   // dollars, of the turns until now
	used time.Time // when the last turn ended; guarded by Runner.mu
	busy bool      // guarded by Runner.mu

	write sync.Mutex // of in: one line at a time
	in    *os.File

	mu   sync.Mutex
	turn *turnLines // nil between turns: output is dropped then
}

// turnLines passes the process's output to a turn, until the turn has ended.
type turnLines struct {
	lines chan line
	over  chan struct{}
}

// start runs the CLI. Its tree ends with kill, and with the gateway.
func (r *Runner) start(session, spec, dir string, args []string) (*process, error) {
	ctx, kill := context.WithCancel(context.Background())
	p := &process{session: session, spec: spec, kill: kill, gone: make(chan struct{})}
	cmd, err := r.o.Veil().Tree(ctx, r.o.Stage, dir, r.environment(), append([]string{r.o.Program}, args...)...)
	if err != nil {
		kill()
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		kill()
		return nil, fmt.Errorf("start claude: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		kill()
		return nil, errors.Join(fmt.Errorf("start claude: %w", err), theirIn.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, &p.stderr
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		kill()
		return nil, errors.Join(fmt.Errorf("start claude: %w", err), in.Close(), out.Close())
	}
	p.cmd, p.in = cmd, in
	go p.live(out)
	return p, nil
}

// live reads until the process has ended, with all that it started.
func (p *process) live(out *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(out)
	}()
	_ = p.cmd.Wait() // what it means is in ProcessState
	_ = out.SetReadDeadline(time.Now().Add(2 * time.Second))
	<-read
	p.kill()
	_, _ = out.Close(), p.in.Close()
	p.code = p.cmd.ProcessState.ExitCode()
	close(p.gone)
}

// read takes line by line; what is no JSON object is passed over.
func (p *process) read(out io.Reader) {
	in := bufio.NewReaderSize(out, 64<<10)
	var buf []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(buf)+len(part) > maxLine; !long {
			buf = append(buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if raw := bytes.TrimSpace(buf); !long && len(raw) > 0 {
			p.deliver(raw)
		}
		if buf, long = buf[:0], false; cap(buf) > 1<<20 {
			buf = nil
		}
		if err != nil {
			return
		}
	}
}

func (p *process) deliver(raw []byte) {
	var l line
	if json.Unmarshal(raw, &l) != nil || l.Type == "" {
		return
	}
	l.raw = bytes.Clone(raw)
	p.mu.Lock()
	t := p.turn
	p.mu.Unlock()
	if t != nil {
		select {
		case t.lines <- l:
			return
		case <-t.over:
		}
	}
	if l.Type == "control_request" { // work that goes on without a turn is no one's
		_ = p.send(refuses(l.RequestID, "no turn is running"))
	}
}

// begin passes the process's output to a turn until finish.
func (p *process) begin() *turnLines {
	t := &turnLines{lines: make(chan line), over: make(chan struct{})}
	p.mu.Lock()
	p.turn = t
	p.mu.Unlock()
	return t
}

func (p *process) finish(t *turnLines) {
	p.mu.Lock()
	p.turn = nil
	p.mu.Unlock()
	close(t.over)
}

// send writes one line. A process that does not read for writeTime, or is
// gone, is an error.
func (p *process) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	p.write.Lock()
	defer p.write.Unlock()
	_ = p.in.SetWriteDeadline(time.Now().Add(writeTime))
	_, err = p.in.Write(append(b, '\n'))
	return err
}

// isGone reports whether the process has ended.
func (p *process) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// end lets the CLI finish on its own (it leaves when its input ends), kills the
// tree where it does not within grace, and returns when nothing is left.
func (p *process) end(grace <-chan time.Time) {
	_ = p.in.Close()
	select {
	case <-p.gone:
	case <-grace:
		p.kill()
		<-p.gone
	}
}

// A tail keeps the newest bytes that were written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxStderr):]...)
	t.b = t.b[max(0, len(t.b)-maxStderr):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
