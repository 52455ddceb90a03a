// Package program runs a program that is spoken to by its standard streams, one
// JSON message in each line, and ends it with everything that it started.
package program

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
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/sandbox"
)

// Bounds of what a program states.
const (
	MaxMessage  = 8 << 20 // bytes of one message
	maxNoise    = 1000    // lines on standard output that are no message
	maxNoted    = 100     // lines of standard error that are logged, in each minute
	maxLine     = 500     // bytes of one of them
	maxLast     = 300     // bytes of the last one, kept to explain an end
	writeTime   = 10 * time.Second
	goodbyeTime = time.Second // between the end of its input and its end by force
)

// A Program is one that runs, with everything that it started.
type Program struct {
	stdin  *os.File
	stdout *lines
	stop   context.CancelFunc // kills it
	ended  chan struct{}      // closed once nothing of it is left

	mu   sync.Mutex
	last string // line of standard error
	code int
}

// Start starts cmd, which ends with stop; gone, where not nil, is closed once
// nothing of it is left. note hears what it states next to messages, with all
// that may be in it. The caller calls End.
func Start(cmd *exec.Cmd, stop context.CancelFunc, gone <-chan struct{}, note func(line string)) (*Program, error) {
	var ends []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			ends = append(ends, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	err := errors.Join(err1, err2, err3)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
		err = cmd.Start()
	}
	sandbox.Release(cmd)
	if err != nil {
		for _, f := range ends {
			_ = f.Close()
		}
		stop()
		return nil, fmt.Errorf("start: %w", err)
	}
	_, _, _ = inR.Close(), outW.Close(), errW.Close()
	p := &Program{stdin: inW, stdout: &lines{f: outR, r: bufio.NewReaderSize(outR, 64<<10), note: note}, stop: stop, ended: make(chan struct{})}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		p.listen(errR, note)
	}()
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
		p.mu.Lock()
		p.code = cmd.ProcessState.ExitCode()
		p.mu.Unlock()
		stop()
		if gone != nil {
			<-gone
		}
		_ = errR.SetReadDeadline(time.Now().Add(time.Second))
		<-heard
		_ = errR.Close()
	}()
	return p, nil
}

// End asks the program to end by the end of its input, and a little later
// kills it and what it started. It returns once nothing is left.
func (p *Program) End(clock core.Clock) {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-clock.After(goodbyeTime):
	}
	p.stop()
	<-p.ended
	_ = p.stdout.Close()
}

// Why returns how a process ended, as text; "" while it runs.
func (p *Program) Why() string {
	select {
	case <-p.ended:
	default:
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("its program ended with exit code %d", p.code)
	if p.last != "" {
		text += " (" + p.last + ")"
	}
	return text
}

// Ended returns closed once nothing of it is left.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Stop kills it at once; End is still to be called.
func (p *Program) Stop() { p.stop() }

// Stdout returns the messages that it sends; Stdin takes those for it, and gives
// up on a program that does not read.
func (p *Program) Stdout() io.ReadCloser { return p.stdout }
func (p *Program) Stdin() io.WriteCloser { return patient{p.stdin} }

// Fault is why its messages are not read any more, where it has not just ended.
func (p *Program) Fault() error { return p.stdout.fault() }

// listen hands the lines of standard error to note.
func (p *Program) listen(r io.Reader, note func(string)) {
	b := bufio.NewReaderSize(r, 4<<10)
	noted, since := 0, time.Now()
	for {
		raw, long, err := b.ReadLine()
		for long && err == nil { // the rest of a long line is not checked
			_, long, err = b.ReadLine()
		}
		if line := Plain(string(raw)); line != "" {
			p.mu.Lock()
			p.last = core.CutRunes(line, maxLast)
			p.mu.Unlock()
			if now := time.Now(); now.Sub(since) > time.Minute {
				noted, since = 0, now
			}
			if noted++; noted <= maxNoted {
				note(core.CutRunes(line, maxLine))
			} else if noted == maxNoted+1 {
				note("(more is left out)")
			}
		}
		if err != nil {
			return
		}
	}
}

// Plain returns a line that any terminal can show.
func Plain(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\uFFFD' {
			return ' '
		}
		return r
	}, line))
}

// lines are what a program prints, one message in each. Those that are no
// message are dropped: programs greet on standard output, although they must not.
type lines struct {
	f     *os.File
	r     *bufio.Reader
	note  func(string)
	rest  []byte
	noise int

	mu  sync.Mutex
	err error // why it gave up
}

// fault is why nothing more is read, where the program has not just ended.
func (l *lines) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lines) giveUp(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	return err
}

var (
	errNoise = errors.New("what the server prints is no protocol")
	errLong  = fmt.Errorf("the server sent a message of more than %d MiB", MaxMessage>>20)
)

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if err != nil {
			return 0, err
		}
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case (text[0] == '{' || text[0] == '[') && json.Valid(text):
			l.rest = append(text, '\n')
		default:
			if l.noise++; l.noise > maxNoise {
				return 0, l.giveUp(errNoise)
			}
			if l.noise == 1 {
				l.note("on standard output: " + core.CutRunes(Plain(string(text[:min(len(text), maxLine)])), maxLine))
			}
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// line returns the next one, of at most MaxMessage bytes.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > MaxMessage {
			return nil, l.giveUp(errLong)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && len(bytes.TrimSpace(line)) > 0 && errors.Is(err, io.EOF) {
				return line, nil
			}
			return line, err
		}
	}
}

func (l *lines) Close() error { return l.f.Close() }

// patient writes, but gives up on a program that does not read.
type patient struct{ f *os.File }

func (w patient) Write(p []byte) (int, error) {
	_ = w.f.SetWriteDeadline(time.Now().Add(writeTime))
	return w.f.Write(p)
}

func (w patient) Close() error { return w.f.Close() }
