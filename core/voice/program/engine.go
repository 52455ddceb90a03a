package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/shell"

	"gatehouse/core/voice"
)

// Places in a command.
const (
	filePlace  = "{file}"  // the recording, a WAV file; without it the command reads it from its input
	modelPlace = "{model}" // the setting TRANSCRIBE_MODEL
)

// An Engine transcribes by running a command for each segment, at most two at a
// time. It is safe for concurrent use.
type Engine struct {
	o     Options
	argv  []string
	read  []string // files of the host that the command may read
	slots chan struct{}
}

// Words splits a command as a shell does. It does not run other commands, and
// variables are empty.
func Words(command string) ([]string, error) {
	words, err := shell.Fields(command, func(string) string { return "" })
	if err != nil {
		return nil, fmt.Errorf("command %q: %w", command, err)
	}
	if len(words) == 0 {
		return nil, errors.New("the command is empty")
	}
	return words, nil
}

// NewEngine returns an engine that runs command. Absolute paths in it, also behind
// "=", are files and directories that it may read, next to its program, which has to exist.
func NewEngine(o Options, command, model string) (*Engine, error) {
	words, err := Words(command)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(words[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the program of the transcription command is missing: %w", err)
	}
	e := &Engine{o: o, slots: make(chan struct{}, slots)}
	path, give := visible(path)
	if give {
		e.read = append(e.read, path)
	}
	e.argv = append(e.argv, path)
	for _, w := range words[1:] {
		w = strings.ReplaceAll(w, modelPlace, model)
		at := 0
		if !filepath.IsAbs(w) {
			at = strings.IndexByte(w, '=') + 1
		}
		if filepath.IsAbs(w[at:]) {
			path, give := visible(w[at:])
			if give {
				e.read = append(e.read, path)
			}
			w = w[:at] + path
		}
		e.argv = append(e.argv, w)
	}
	return e, nil
}

// Transcribe returns what the command prints about the segment: text, or JSON with
// a text.
func (e *Engine) Transcribe(ctx context.Context, pcm []int16) (string, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	name, err := e.o.saved("segment-*.wav", func(w io.Writer) error { return voice.WriteWAV(w, pcm) })
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(name) }()
	argv, stdin := make([]string, len(e.argv)), false
	for i, w := range e.argv {
		argv[i] = strings.ReplaceAll(w, filePlace, name)
		stdin = stdin || argv[i] != w
	}
	read := append(e.read[:len(e.read):len(e.read)], name)
	var in io.Reader
	if !stdin {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in, read = f, e.read
	}
	out, errs, err := e.o.run(ctx, read, in, argv)
	if err != nil {
		return "", err
	}
	text, err := textOf(out, errs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
	}
	return text, nil
}

// errGarbage is returned for output without a text.
var errGarbage = errors.New("it printed no text and no JSON with one")

var (
	stamped = regexp.MustCompile(`(?m)^\s*\[[\d:.,]+ --> [\d:.,]+\]\s*`) // whisper.cpp, without -nt
	remarks = regexp.MustCompile(`\[(?:BLANK_AUDIO|SILENCE|MUSIC|NOISE)\]`)
)

const maxText = 100_000 // bytes of the text of a segment

// textOf returns the text in what a command printed. Some engines print their
// result, in JSON, where others print messages.
func textOf(stdout, stderr []byte) (string, error) {
	out := bytes.TrimSpace(stdout)
	if len(out) == 0 {
		if text, ok := inJSON(stderr); ok {
			return clean(text), nil
		}
		return "", nil
	}
	if text, ok := inJSON(out); ok {
		return clean(text), nil
	}
	if !utf8.Valid(out) || len(out) > maxText || bytes.IndexByte(out, 0) >= 0 || out[0] == '{' || out[0] == '[' && json.Valid(out) {
		return "", errGarbage
	}
	return clean(stamped.ReplaceAllString(string(out), "")), nil
}

func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(remarks.ReplaceAllString(text, ""), ""))
	return strings.Join(strings.Fields(text), " ")
}

// A piece is a text, or has several.
type piece struct {
	Text          *string `json:"text"`
	Segments      []piece `json:"segments"`      // of Whisper
	Transcription []piece `json:"transcription"` // of whisper.cpp
}

// inJSON returns the text of a JSON value: the whole output, or its last line that is one.
func inJSON(out []byte) (string, bool) {
	if text, ok := decode(bytes.TrimSpace(out)); ok {
		return text, true
	}
	lines := bytes.Split(out, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if text, ok := decode(bytes.TrimSpace(lines[i])); ok {
			return text, true
		}
	}
	return "", false
}

func decode(data []byte) (string, bool) {
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return "", false
	}
	var p piece
	if data[0] == '[' {
		if json.Unmarshal(data, &p.Segments) != nil {
			return "", false
		}
	} else if json.Unmarshal(data, &p) != nil {
		return "", false
	}
	text, ok := p.words()
	return text, ok && len(text) <= maxText
}

func (p piece) words() (text string, ok bool) {
	if p.Text != nil {
		return *p.Text, true
	}
	for _, q := range append(p.Segments, p.Transcription...) {
		if q.Text != nil {
			text, ok = text+" "+*q.Text, true
		}
	}
	return text, ok || p.Segments != nil || p.Transcription != nil
}
