package setup

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"gatehouse/core"
)

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 16 << 10

// An asker asks questions on a terminal, or takes the lines of its input as the
// answers; when they end, every further answer is empty.
type asker struct {
	ctx      context.Context
	out      io.Writer
	in       *os.File
	lines    *bufio.Scanner
	terminal bool
}

func newAsker(ctx context.Context, in *os.File, out io.Writer) *asker {
	q := &asker{ctx: ctx, out: out, in: in}
	if in != nil {
		q.lines = bufio.NewScanner(in)
		q.lines.Buffer(nil, maxAnswer)
		q.terminal = IsTerminal(in)
	}
	return q
}

func (q *asker) say(format string, args ...any) { fmt.Fprintf(q.out, format, args...) }

// line asks for something that may be seen.
func (q *asker) line(prompt string) (string, error) {
	q.say("%s ", prompt)
	return q.read()
}

// secret asks for something that must not be on the screen.
func (q *asker) secret(prompt string) (string, error) {
	q.say("%s ", prompt)
	if !q.terminal {
		return q.read()
	}
	show, err := hideInput(q.in)
	if err != nil {
		q.say("\n(what you type can be seen here) ")
		return q.read()
	}
	defer func() { show(); q.say("\n") }() // the line end was not shown either
	return q.read()
}

// read gives one answer without the blanks around it, or the context's end.
func (q *asker) read() (string, error) {
	if q.lines == nil {
		q.say("\n")
		return "", nil
	}
	type answer struct {
		text string
		over bool
		err  error
	}
	given := make(chan answer, 1) // the reader outlives a cut question, and ends with the process
	go func() {
		more := q.lines.Scan()
		given <- answer{strings.TrimSpace(q.lines.Text()), !more, q.lines.Err()}
	}()
	select {
	case <-q.ctx.Done():
		return "", context.Cause(q.ctx)
	case a := <-given:
		if !q.terminal {
			q.say("\n") // no one pressed Enter here
		}
		switch {
		case a.err != nil:
			return "", fmt.Errorf("read an answer: %w", a.err)
		case a.over && q.terminal: // hung up, or Ctrl-D: no one there has skipped anything
			return "", core.Errorf(core.Invalid, "the input ended before the last question; nothing was written. Start again; Enter skips a question")
		}
		return a.text, nil
	}
}

// yes asks a question that is answered with y or n; no answer is the default.
func (q *asker) yes(prompt string, byDefault bool) (bool, error) {
	a, err := q.line(prompt)
	switch strings.ToLower(a) {
	case "y", "yes":
		return true, err
	case "":
		return byDefault && q.terminal, err
	}
	return false, err
}
