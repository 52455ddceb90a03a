package decode

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"gatehouse/core/voice"
)

// Formats of WAV files.
const (
	pcmFormat   = 1
	floatFormat = 3
	extensible  = 0xFFFE
)

var errCompressed = errors.New("a WAV file in a compressed format")

// wav reads a WAV file of PCM.
type wav struct {
	r        *bufio.Reader
	left     int64 // bytes of samples
	float    bool
	bytes    int // of a sample of one channel
	channels int
	frame    []byte
	to       *resampler // nil: it has 16 kHz
}

func openWAV(r *bufio.Reader) (*wav, error) {
	if _, err := r.Discard(12); err != nil {
		return nil, damaged(err)
	}
	w := &wav{r: r}
	for {
		var h [8]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return nil, damaged(err)
		}
		size := int64(binary.LittleEndian.Uint32(h[4:]))
		switch string(h[:4]) {
		case "fmt ":
			if w.frame != nil { // each would be worked out: a filter takes long
				return nil, fmt.Errorf("%w: it has two formats", ErrDamaged)
			}
			if err := w.format(size); err != nil {
				return nil, err
			}
			continue
		case "data":
			if w.frame == nil {
				return nil, fmt.Errorf("%w: its samples precede their format", ErrDamaged)
			}
			w.left = size
			if size == 0 || size == math.MaxUint32 { // written while it was recorded
				w.left = math.MaxInt64
			}
			return w, nil
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return nil, damaged(err)
		}
	}
}

func (w *wav) format(size int64) error {
	if size < 16 || size > 1024 {
		return fmt.Errorf("%w: its format has %d bytes", ErrDamaged, size)
	}
	f := make([]byte, size+size%2)
	if _, err := io.ReadFull(w.r, f); err != nil {
		return damaged(err)
	}
	kind := binary.LittleEndian.Uint16(f)
	if kind == extensible && size >= 26 {
		kind = binary.LittleEndian.Uint16(f[24:])
	}
	w.float, w.channels, w.bytes = kind == floatFormat, int(binary.LittleEndian.Uint16(f[2:])), int(binary.LittleEndian.Uint16(f[14:]))/8
	rate := binary.LittleEndian.Uint32(f[4:])
	switch {
	case kind != pcmFormat && kind != floatFormat:
		return errCompressed
	case w.channels < 1 || w.channels > 8 || rate < 4000 || rate > 192_000 || w.bytes < 1 || w.bytes > 4 || w.float && w.bytes != 4:
		return fmt.Errorf("%w: %d channels of %d bytes at %d Hz", ErrDamaged, w.channels, w.bytes, rate)
	}
	w.frame = make([]byte, w.channels*w.bytes)
	if rate != voice.Rate {
		w.to = newResampler(int(rate))
	}
	return nil
}

func (w *wav) Read(pcm []int16) (n int, err error) {
	for n < len(pcm) {
		if w.to != nil {
			if v, ok := w.to.next(); ok {
				pcm[n] = clip(v)
				n++
				continue
			}
		}
		v, err := w.sample()
		switch {
		case errors.Is(err, io.EOF) && w.to != nil && w.to.end():
			continue
		case err != nil && n > 0:
			return n, nil
		case err != nil:
			return 0, err
		case w.to != nil:
			w.to.add(v)
		default:
			pcm[n] = clip(v)
			n++
		}
	}
	return n, nil
}

// sample returns the mean of the channels, from -1 to 1.
func (w *wav) sample() (float32, error) {
	if w.left < int64(len(w.frame)) {
		return 0, io.EOF
	}
	if _, err := io.ReadFull(w.r, w.frame); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		w.left = 0
		return 0, io.EOF
	} else if err != nil {
		return 0, err
	}
	w.left -= int64(len(w.frame))
	sum := float32(0)
	for b := w.frame; len(b) > 0; b = b[w.bytes:] {
		sum += w.value(b)
	}
	return sum / float32(w.channels), nil
}

func (w *wav) value(b []byte) float32 {
	switch {
	case w.float:
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		if v != v {
			return 0
		}
		return min(max(v, -1), 1)
	case w.bytes == 1:
		return (float32(b[0]) - 128) / 128
	case w.bytes == 2:
		return float32(int16(binary.LittleEndian.Uint16(b))) / (1 << 15)
	case w.bytes == 3:
		return float32(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
	}
	return float32(int32(binary.LittleEndian.Uint32(b))) / (1 << 31)
}

func (w *wav) Close() error { return nil }

func clip(v float32) int16 {
	return int16(min(max(math.Round(float64(v)*(1<<15)), math.MinInt16), math.MaxInt16))
}
