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

// A Quota limits what is transcribed for a user.
type Quota interface {
	// Limit returns what a user may have on a day; 0 is no limit.
	Limit() time.Duration
	// Check returns voice.ErrQuota if nothing is left to the user.
	Check(ctx context.Context, user int64) error
	// Add counts what was transcribed.
	Add(ctx context.Context, user int64, d time.Duration) error
}

// Options for New.
type Options struct {
	// Open opens a file of the vault.
	Open    func(path string) (io.ReadCloser, error)
	Engine  voice.Transcriber // nil: recordings have a length and no text
	Convert decode.Converter  // nil: no other formats
	Quota   Quota             // nil: no limit
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

// An asker transcribes for a user, within the limit of the day.
type asker struct {
	*Hearer
	ctx   context.Context // of what is counted
	user  int64
	fault func(error) // of the counting
	total time.Duration
}

func (a *asker) Transcribe(ctx context.Context, pcm []int16) (string, error) {
	if a.o.Quota != nil {
		if err := a.o.Quota.Check(ctx, a.user); err != nil {
			return "", err
		}
	}
	return a.Hearer.Transcribe(ctx, pcm)
}

// count counts a segment that ended: what is transcribed repeatedly counts once.
func (a *asker) count(e voice.Event) {
	if e.Final && a.o.Quota != nil {
		a.total += e.End - e.Start
		if err := a.o.Quota.Add(a.ctx, a.user, e.End-e.Start); err != nil {
			a.fault(err)
		}
	}
}

// Hear returns the text of the recording f of the vault, "" for silence, for a user. show,
// if not nil, is called with the text so far when it grows. An error that is not
// the context's is a *voice.Fault.
func (h *Hearer) Hear(ctx context.Context, user int64, f core.File, show func(string)) (text string, err error) {
	if !h.On() {
		return "", &voice.Fault{Code: voice.FaultOff, Err: errors.New("no transcription is set up")}
	}
	text, counted, err := h.decoded(ctx, user, f, show)
	if whole, ok := h.o.Engine.(Whole); ok && (errors.Is(err, decode.ErrUnknown) || errors.Is(err, decode.ErrConvert) || errors.Is(err, decode.ErrDamaged)) {
		text, err = h.whole(ctx, user, f, counted, whole)
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

// fits returns an error if a recording is longer than what a user may have on a day: part of
// it would be transcribed day by day, and never all. One whose length cannot be read fits.
func (h *Hearer) fits(ctx context.Context, path string) error {
	if h.o.Quota == nil || h.o.Quota.Limit() == 0 || h.o.Quota.Limit() >= voice.MaxLength {
		return nil
	}
	rec, closeAll, err := h.open(ctx, path)
	if err != nil {
		return nil // who reads it says so
	}
	defer closeAll()
	switch n, err := decode.Length(ctx, rec); {
	case errors.Is(err, voice.ErrTooLong):
		return err
	case err == nil && voice.Duration(n) > h.o.Quota.Limit():
		return voice.ErrDay
	}
	return nil
}

// decoded transcribes the segments of a recording, and returns how much of it was counted.
func (h *Hearer) decoded(ctx context.Context, user int64, f core.File, show func(string)) (text string, counted time.Duration, err error) {
	if err := h.fits(ctx, f.Path); err != nil {
		return "", 0, err
	}
	rec, closeAll, err := h.open(ctx, f.Path)
	if err != nil {
		return "", 0, err
	}
	defer closeAll()
	var said []string
	size := 0
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	to := &asker{Hearer: h, ctx: ctx, user: user, fault: cancel}
	s := voice.Start(ctx, to, voice.Options{Emit: func(e voice.Event) {
		to.count(e)
		if e.Confirmed == "" || size > maxText {
			return
		}
		said, size = append(said, e.Confirmed), size+len(e.Confirmed)
		if show != nil {
			show(strings.Join(said, " "))
		}
	}})
	defer func() {
		s.Abort()
		counted = to.total
	}()
	buf := make([]int16, voice.Rate)
	for {
		n, err := rec.Read(buf)
		if werr := s.Write(buf[:n]); werr != nil {
			return "", 0, werr
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", 0, err
		}
	}
	if err := s.Close(); err != nil {
		return "", 0, err
	}
	return strings.Join(said, " "), 0, nil
}

// whole has the engine read the recording, of which so much is counted before.
func (h *Hearer) whole(ctx context.Context, user int64, f core.File, counted time.Duration, engine Whole) (string, error) {
	if h.o.Quota != nil {
		if err := h.o.Quota.Check(ctx, user); err != nil {
			return "", err
		}
	}
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
	in := &sized{r: decode.Limit(r)}
	text, err := engine.Text(ctx, f.Name, in)
	if err == nil && h.o.Quota != nil { // its length is not known here
		err = h.o.Quota.Add(ctx, user, max(0, time.Duration(in.n)*time.Minute/perMinute-counted))
	}
	return text, err
}

// perMinute is how many bytes of a format that is not read here count as a minute.
const perMinute = 1 << 20

// sized counts what is read.
type sized struct {
	r io.Reader
	n int64
}

func (s *sized) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	return n, err
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

// Live begins a stream for a user, or returns core.Busy if there are MaxStreams or the user
// has nothing left today, and core.Conflict if nothing is transcribed. The caller calls end when the
// stream has ended.
func (h *Hearer) Live(ctx context.Context, user int64, emit func(voice.Event)) (s *voice.Stream, end func(), err error) {
	if !h.On() {
		return nil, nil, core.Errorf(core.Conflict, "no transcription is set up: set TRANSCRIBE_URL or TRANSCRIBE_COMMAND")
	}
	if h.o.Quota != nil {
		if err := h.o.Quota.Check(ctx, user); errors.Is(err, voice.ErrQuota) {
			return nil, nil, core.Errorf(core.Busy, "%w", err)
		} else if err != nil {
			return nil, nil, err
		}
	}
	select {
	case h.streams <- struct{}{}:
	default:
		return nil, nil, core.Errorf(core.Busy, "%d recordings are being transcribed; try again later", MaxStreams)
	}
	h.o.Metrics.streams(1)
	ctx, cancel := context.WithCancelCause(ctx)
	to := &asker{Hearer: h, ctx: context.WithoutCancel(ctx), user: user, fault: cancel}
	s = voice.Start(ctx, to, voice.Options{Every: voice.Interval, Emit: func(e voice.Event) {
		to.count(e)
		emit(e)
	}})
	return s, func() {
		s.Abort()
		cancel(nil)
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
	case errors.Is(err, voice.ErrDay):
		code = voice.FaultDay
	case errors.Is(err, voice.ErrQuota):
		code = voice.FaultQuota
	case errors.Is(err, decode.ErrTooLarge):
		code = voice.FaultLarge
	case errors.Is(err, decode.ErrUnknown), errors.Is(err, decode.ErrConvert):
		code = voice.FaultFormat
	case errors.Is(err, decode.ErrDamaged), errors.Is(err, errGone):
		code = voice.FaultDamaged
	}
	return &voice.Fault{Code: code, Err: fmt.Errorf("transcribe: %w", err)}
}
