package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"gatehouse/core/sandbox"
	"gatehouse/core/voice"
)

// FFmpeg converts recordings of any format. The zero value of its path means that
// ffmpeg is not installed.
type FFmpeg struct {
	o    Options
	path string
}

// NewFFmpeg looks for ffmpeg.
func NewFFmpeg(o Options) FFmpeg {
	path, _ := exec.LookPath("ffmpeg")
	return FFmpeg{o: o, path: path}
}

// Fault returns why recordings are not converted, with the fix; "" if they are.
func (f FFmpeg) Fault() string {
	if f.path == "" {
		return "ffmpeg is not installed, so recordings other than Ogg Opus and WAV cannot be read here: install ffmpeg"
	}
	if box, why := f.o.Box(); box == nil {
		return "ffmpeg is not started without isolation: " + why
	}
	return ""
}

// Convert returns the recording r as little-endian samples of 16 bits, mono, 16 kHz.
// Close ends ffmpeg.
func (f FFmpeg) Convert(ctx context.Context, r io.Reader) (io.ReadCloser, error) {
	if why := f.Fault(); why != "" {
		return nil, fmt.Errorf("%s", why)
	}
	name, err := f.o.saved("recording-*", func(w io.Writer) error { _, err := io.Copy(w, r); return err })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, convert, fmt.Errorf("ffmpeg did not end within %v", convert))
	end := func() { cancel(); _ = os.Remove(name) }
	path, give := visible(f.path)
	read := []string{name}
	if give {
		read = append(read, path)
	}
	cmd, err := f.o.command(ctx, sandbox.Limits{}, read, []string{path, "-nostdin", "-hide_banner", "-loglevel", "error",
		"-protocol_whitelist", "file,pipe", "-i", name, "-map", "0:a:0", "-ac", "1", "-ar", strconv.Itoa(voice.Rate), "-f", "s16le", "pipe:1"})
	if err != nil {
		end()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		sandbox.Release(cmd)
		end()
		return nil, err
	}
	c := &conversion{cmd: cmd, out: out, end: end}
	cmd.Stderr = &c.errs
	err = cmd.Start()
	sandbox.Release(cmd)
	if err != nil {
		end()
		return nil, fmt.Errorf("ffmpeg: %w", err)
	}
	return c, nil
}

// A conversion is a running ffmpeg.
type conversion struct {
	cmd  *exec.Cmd
	out  io.Reader
	errs limitedBuffer
	end  func()
	done bool
}

// Read returns what ffmpeg writes. Its failure is an error at the end.
func (c *conversion) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if err == nil || n > 0 || c.done {
		return n, err
	}
	c.done = true
	if werr := c.cmd.Wait(); werr != nil {
		return 0, fmt.Errorf("ffmpeg cannot read the recording: %w%s", werr, cause(c.errs.Bytes()))
	}
	return 0, err
}

func (c *conversion) Close() error {
	c.end()
	if !c.done {
		c.done = true
		_ = c.cmd.Wait() // it was ended
	}
	return nil
}
