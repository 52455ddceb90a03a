// Package pdftext takes the text out of PDFs for models that are not given the
// files themselves. A PDF is a stranger's, and its parser may loop, panic or
// ask for all memory: so it works in a process of its own, which is our program
// called again with an empty environment, and is ended where it passes a bound.
package pdftext

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// Bounds of one file.
const (
	MaxFile  = 20 << 20 // bytes of the file
	MaxText  = 40_000   // bytes of its text: as much as of a text file
	MaxPages = 500      // pages that are read

	maxTime   = 30 * time.Second
	maxMemory = 512 << 20
	maxAtOnce = 2 // files read at the same time
)

// A Text is what a PDF states.
type Text struct {
	Text  string // at most MaxText; pages are parted by an empty line
	Pages int    // that it has
	Read  int    // of them; fewer where a bound was reached
}

// A Reader reads PDFs. It is safe for concurrent use; of many readers at a time
// some wait.
type Reader struct {
	program string
	slots   chan struct{} // at most maxAtOnce
	time    time.Duration // for one file
	memory  uint64        // bytes that a process may take on
}

// New returns a Reader that works in processes of program, whose main calls Main first.
func New(program string) *Reader {
	return &Reader{program: program, slots: make(chan struct{}, maxAtOnce), time: maxTime, memory: maxMemory}
}

// Text returns the text of a PDF. What cannot be read (damaged, with a password, too
// much work) is core.Invalid with a sentence that explains why, and begins with "it".
// A PDF of pictures has no text: that is no error.
func (r *Reader) Text(ctx context.Context, data []byte) (Text, error) {
	if len(data) > MaxFile {
		return Text{}, texts.Error(core.Invalid, "pdf_large", texts.With{"Most": core.ByteSize(MaxFile)})
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return Text{}, ctx.Err()
	}
	within, done := context.WithTimeout(ctx, r.time)
	defer done()
	out, err := r.call(within, data)
	switch {
	case ctx.Err() != nil:
		return Text{}, ctx.Err()
	case err != nil && within.Err() != nil:
		return Text{}, texts.Error(core.Invalid, "pdf_slow")
	case err != nil:
		if _, ended := errors.AsType[*exec.ExitError](err); ended { // whatever it died of, the file was the reason
			return Text{}, texts.Error(core.Invalid, "pdf_too_much")
		}
		return Text{}, fmt.Errorf("read a PDF: %w", err)
	case out.Fault == isLocked:
		return Text{}, texts.Error(core.Invalid, "pdf_locked")
	case out.Fault != "":
		return Text{}, texts.Error(core.Invalid, "pdf_damaged")
	}
	return out.Text, nil
}

// An outcome is what the process states.
type outcome struct {
	Text
	Fault string // why nothing was read; "" else
}

// Faults of an outcome.
const (
	isDamaged = "damaged"
	isLocked  = "locked"
)

func (r *Reader) call(ctx context.Context, data []byte) (out outcome, err error) {
	cmd := exec.CommandContext(ctx, r.program, word, strconv.FormatUint(r.memory, 10))
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin = bytes.NewReader(data)
	cmd.WaitDelay = time.Second
	said := &bounded{most: 8*MaxText + 1024} // JSON may write a byte with six
	cmd.Stdout = said
	if err := cmd.Run(); err != nil {
		return out, err
	}
	return out, json.Unmarshal(said.Bytes(), &out)
}

// bounded takes at most that many bytes.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, io.ErrShortBuffer
	}
	return b.Buffer.Write(p)
}
