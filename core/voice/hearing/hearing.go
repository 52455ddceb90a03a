// Package hearing transcribes recordings in files, and what comes in over a stream.
package hearing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/voice"
	"gatehouse/core/voice/decode"
)

const (
	// MaxStreams is how many streams are transcribed at a time.
	MaxStreams = 20
	requests   = 4       // to the engine at a time, over all recordings and streams
	maxText    = 400_000 // bytes of the text of a recording
)

// Whole is an engine that is given recordings as they are, in formats that are
// not read here. name's ending is that of the format.
type Whole interface {
	Text(ctx context.Context, name string, r io.Reader) (string, error)
}

// Server is an engine that is asked with files.
type Server struct{ Whole }

// Transcribe asks with a WAV file.
func (s Server) Transcribe(ctx context.Context, pcm []int16) (string, error) {
	var b bytes.Buffer
	b.Grow(2*len(pcm) + 64)
	if err := voice.WriteWAV(&b, pcm); err != nil {
		return "", err
	}
	return s.Text(ctx, "speech.wav", &b)
}

// Options for New.
type Options struct {
	// Open opens a file of the vault.
	Open    func(path string) (io.ReadCloser, error)
	Engine  voice.Transcriber // nil: recordings have a length and no text
	Convert decode.Converter  // nil: no other formats
	Metrics *Metrics          // nil: none
}

// A Hearer transcribes. It is safe for concurrent use.
type Hearer struct {
	o       Options
	asks    chan struct{}
	streams chan struct{}
}

// New returns a Hearer.
func New(o Options) *Hearer {
	return &Hearer{o: o, asks: make(chan struct{}, requests), streams: make(chan struct{}, MaxStreams)}
}

// On reports whether recordings are transcribed.
func (h *Hearer) On() bool { return h.o.Engine != nil }

// Transcribe asks the engine, once it is free.
func (h *Hearer) Transcribe(ctx context.Context, pcm []int16) (string, error) {
	select {
	case h.asks <- struct{}{}:
		defer func() { <-h.asks }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	text, err := h.o.Engine.Transcribe(ctx, pcm)
	if err != nil {
		return "", err
	}
	h.o.Metrics.heard(voice.Duration(int64(len(pcm))))
	return text, nil
}

// Hear returns what is said in the recording f of the vault, "" for nothing. show,
// if not nil, is called with the text so far when it grows. An error that is not
// the context's is a *voice.Fault.
func (h *Hearer) Hear(ctx context.Context, f core.File, show func(string)) (text string, err error) {
	if !h.On() {
		return "", &voice.Fault{Code: voice.FaultOff, Err: errors.New("no transcription is set up")}
	}
	text, err = h.decoded(ctx, f, show)
	if whole, ok := h.o.Engine.(Whole); ok && (errors.Is(err, decode.ErrUnknown) || errors.Is(err, decode.ErrConvert) || errors.Is(err, decode.ErrDamaged)) {
		text, err = h.whole(ctx, f, whole)
	}
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		err = faultOf(err)
	}
	h.o.Metrics.ended(text, err)
	return text, err
}

// decoded transcribes the segments of a recording.
func (h *Hearer) decoded(ctx context.Context, f core.File, show func(string)) (string, error) {
	rec, closeAll, err := h.open(ctx, f.Path)
	if err != nil {
		return "", err
	}
	defer closeAll()
	var said []string
	size := 0
	s := voice.Start(ctx, h, voice.Options{Emit: func(e voice.Event) {
		if e.Confirmed == "" || size > maxText {
			return
		}
		said, size = append(said, e.Confirmed), size+len(e.Confirmed)
		if show != nil {
			show(strings.Join(said, " "))
		}
	}})
	defer s.Abort()
	buf := make([]int16, voice.Rate)
	for {
		n, err := rec.Read(buf)
		if werr := s.Write(buf[:n]); werr != nil {
			return "", werr
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if err := s.Close(); err != nil {
		return "", err
	}
	return strings.Join(said, " "), nil
}

// whole has the engine read the recording.
func (h *Hearer) whole(ctx context.Context, f core.File, engine Whole) (string, error) {
	r, err := h.file(f.Path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	select {
	case h.asks <- struct{}{}:
		defer func() { <-h.asks }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return engine.Text(ctx, f.Name, decode.Limit(r))
}

// errGone is returned for a recording that is not in the vault any more.
var errGone = errors.New("the recording is gone")

func (h *Hearer) file(path string) (io.ReadCloser, error) {
	r, err := h.o.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	return r, err
}

func (h *Hearer) open(ctx context.Context, path string) (rec decode.Recording, closeAll func(), err error) {
	r, err := h.file(path)
	if err != nil {
		return nil, nil, err
	}
	if rec, err = decode.Open(ctx, r, h.o.Convert); err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return rec, func() { _, _ = rec.Close(), r.Close() }, nil
}

// Length returns how long the recording at path is, 0 if that cannot be read.
func (h *Hearer) Length(ctx context.Context, path string) time.Duration {
	rec, closeAll, err := h.open(ctx, path)
	if err != nil {
		return 0
	}
	defer closeAll()
	n, err := decode.Length(ctx, rec)
	if err != nil {
		return 0
	}
	return voice.Duration(n)
}

// Live begins a stream, or returns core.Busy if there are MaxStreams and
// core.Conflict if nothing is transcribed. The caller calls end when the
// stream has ended.
func (h *Hearer) Live(ctx context.Context, emit func(voice.Event)) (s *voice.Stream, end func(), err error) {
	if !h.On() {
		return nil, nil, core.Errorf(core.Conflict, "no transcription is set up: set TRANSCRIBE_URL or TRANSCRIBE_COMMAND")
	}
	select {
	case h.streams <- struct{}{}:
	default:
		return nil, nil, core.Errorf(core.Busy, "%d recordings are being transcribed; try again later", MaxStreams)
	}
	h.o.Metrics.streams(1)
	s = voice.Start(ctx, h, voice.Options{Every: voice.Interval, Emit: emit})
	return s, func() {
		s.Abort()
		h.o.Metrics.streams(-1)
		<-h.streams
	}, nil
}

// faultOf returns the fault that an error is.
func faultOf(err error) *voice.Fault {
	code := voice.FaultEngine
	switch {
	case errors.Is(err, voice.ErrTooLong):
		code = voice.FaultLong
	case errors.Is(err, decode.ErrTooLarge):
		code = voice.FaultLarge
	case errors.Is(err, decode.ErrUnknown), errors.Is(err, decode.ErrConvert):
		code = voice.FaultFormat
	case errors.Is(err, decode.ErrDamaged), errors.Is(err, errGone):
		code = voice.FaultDamaged
	}
	return &voice.Fault{Code: code, Err: fmt.Errorf("transcribe: %w", err)}
}
