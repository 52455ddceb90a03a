// Package program runs programs that read recordings: a command that transcribes,
// and ffmpeg. They see the system, the recording and the files that the command
// names, and have no network.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/core/sandbox"
)

// Limits of a program.
const (
	slots    = 2               // commands that transcribe at a time; models are large
	timeout  = 3 * time.Minute // of a command, for 30 s of audio
	memory   = 8 << 30         // bytes of a command: a model and what it computes
	maxPrint = 1 << 20         // bytes that are read of what a program prints
	maxCause = 200             // bytes of it that an error repeats
	convert  = 6 * time.Hour   // of ffmpeg, which waits while what it wrote is transcribed
)

// Options for programs.
type Options struct {
	// Box returns what isolates the programs. Where that is nil, nothing is started, and why
	// reports the reason.
	Box func() (box sandbox.Box, why string)
	// Dir is an own directory for recordings while a program reads them.
	Dir string
}

// A limitedBuffer keeps the first maxPrint bytes.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxPrint-b.Len())])
	return len(p), nil
}

// saved writes a recording to a file that a program can be given.
func (o Options) saved(pattern string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(o.Dir, pattern)
	if err != nil {
		return "", err
	}
	err = write(f)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// command returns a program that may read the given files.
func (o Options) command(ctx context.Context, limits sandbox.Limits, read []string, argv []string) (*exec.Cmd, error) {
	box, why := o.Box()
	if box == nil {
		return nil, fmt.Errorf("%s is not started without isolation: %s", filepath.Base(argv[0]), why)
	}
	spec := sandbox.Spec{ReadOnly: read, Dir: "/tmp", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"}, Limits: limits}
	return box.Command(ctx, spec, argv...)
}

// run runs a command to its end and returns what it printed.
func (o Options) run(ctx context.Context, read []string, stdin io.Reader, argv []string) (stdout, stderr []byte, err error) {
	name := filepath.Base(argv[0])
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%s did not end within %v", name, timeout))
	defer cancel()
	cmd, err := o.command(ctx, sandbox.Limits{Memory: memory}, read, argv)
	if err != nil {
		return nil, nil, err
	}
	var out, errs limitedBuffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Start()
	sandbox.Release(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w%s", name, err, cause(errs.Bytes()))
	}
	return out.Bytes(), errs.Bytes(), nil
}

// cause returns the end of what a program printed as the end of an error.
func cause(printed []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(printed), "?")), " ")
	if text == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(text[max(0, len(text)-maxCause):], "")
}

// system are directories that every program sees.
var system = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}

// devices are directories of which every program has its own.
var devices = []string{"/dev/", "/proc/"}

// visible returns a path without links, and whether the program must be given it. A
// link within the system stays: some programs do what their name states.
func visible(path string) (resolved string, give bool) {
	if within(devices, path) {
		return path, false
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil || resolved == "/":
		return path, false
	case !ofSystem(resolved):
		return resolved, true
	case ofSystem(path):
		return path, false
	}
	return resolved, false
}

func ofSystem(path string) bool { return within(system, path) }

func within(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, dir) })
}
