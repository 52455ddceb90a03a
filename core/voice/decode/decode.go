// Package decode reads recordings as mono PCM of 16 kHz: Ogg Opus and WAV itself,
// anything else by ffmpeg where that is installed.
package decode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gatehouse/core/voice"
)

// MaxBytes is the size of the largest recording that is read.
const MaxBytes = 20 << 20

var (
	// ErrTooLarge is returned for a recording of more than MaxBytes.
	ErrTooLarge = errors.New("the recording is larger than 20 MB")
	// ErrUnknown is wrapped by errors of Open for a format that needs ffmpeg, which
	// is missing.
	ErrUnknown = errors.New("the recording is neither Ogg Opus nor WAV")
	// ErrConvert is wrapped by errors of a Converter that converts nothing.
	ErrConvert = errors.New("the recording cannot be converted")
	// ErrDamaged is wrapped by errors about the content of a recording.
	ErrDamaged = errors.New("the recording is damaged")
)

// A Recording is a source of samples. It is not safe for concurrent use.
type Recording interface {
	// Read fills pcm with up to len(pcm) samples. The end is io.EOF.
	Read(pcm []int16) (n int, err error)
	Close() error
}

// A Converter reads formats that this package does not.
type Converter interface {
	// Convert returns the recording r as little-endian samples of 16 bits, mono, 16 kHz.
	// Its errors name the fix.
	Convert(ctx context.Context, r io.Reader) (io.ReadCloser, error)
}

// Open returns the recording in r, in the format that its first bytes show. With a nil
// Converter other formats are ErrUnknown. r is read until the Recording is closed;
// more than MaxBytes of it are ErrTooLarge, more than voice.MaxLength of sound
// voice.ErrTooLong.
func Open(ctx context.Context, r io.Reader, other Converter) (Recording, error) {
	b := bufio.NewReaderSize(Limit(r), 16<<10)
	head, err := b.Peek(64)
	if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var rec Recording
	switch {
	case bytes.HasPrefix(head, []byte("OggS")) && bytes.Contains(head, []byte("OpusHead")):
		rec, err = openOpus(b)
	case bytes.HasPrefix(head, []byte("RIFF")) && len(head) > 12 && string(head[8:12]) == "WAVE":
		if rec, err = openWAV(b); errors.Is(err, errCompressed) && other == nil {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	case other == nil:
		return nil, ErrUnknown
	default:
		rec, err = converted(ctx, b, other)
	}
	if err != nil {
		return nil, err
	}
	return &bounded{Recording: rec, left: int64(voice.Samples(voice.MaxLength))}, nil
}

func converted(ctx context.Context, r io.Reader, other Converter) (Recording, error) {
	raw, err := other.Convert(ctx, r)
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrConvert, err)
	}
	return &plain{r: bufio.NewReader(raw), close: raw.Close}, nil
}

// Limit returns a reader of r that fails with ErrTooLarge after MaxBytes.
func Limit(r io.Reader) io.Reader { return &limited{r: r, left: MaxBytes} }

// Length reads a recording to its end and returns its samples.
func Length(ctx context.Context, rec Recording) (n int64, err error) {
	if b, ok := rec.(*bounded); ok {
		if o, ok := b.Recording.(*opus); ok {
			return o.length()
		}
	}
	buf := make([]int16, voice.Rate)
	for ctx.Err() == nil {
		k, err := rec.Read(buf)
		n += int64(k)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, context.Cause(ctx)
}

// limited fails with ErrTooLarge after left bytes.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if len(p) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// bounded fails with voice.ErrTooLong after left samples.
type bounded struct {
	Recording
	left int64
}

func (b *bounded) Read(pcm []int16) (int, error) {
	n, err := b.Recording.Read(pcm)
	if b.left -= int64(n); b.left < 0 {
		return 0, voice.ErrTooLong
	}
	return n, err
}

// plain reads samples as they are needed.
type plain struct {
	r     *bufio.Reader
	close func() error
}

func (p *plain) Read(pcm []int16) (n int, err error) {
	var b [2]byte
	for ; n < len(pcm); n++ {
		if n > 0 && p.r.Buffered() < 2 {
			return n, nil
		}
		if _, err = io.ReadFull(p.r, b[:]); errors.Is(err, io.ErrUnexpectedEOF) {
			return n, io.EOF
		} else if errors.Is(err, io.EOF) {
			return n, err
		} else if err != nil {
			return n, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		pcm[n] = int16(uint16(b[0]) | uint16(b[1])<<8)
	}
	return n, nil
}

func (p *plain) Close() error { return p.close() }
