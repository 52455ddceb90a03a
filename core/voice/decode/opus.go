package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	pion "github.com/pion/opus"
	"github.com/pion/opus/pkg/oggreader"

	"gatehouse/core/voice"
)

const (
	granules  = 48_000 / voice.Rate   // of a sample: positions in Ogg Opus are at 48 kHz
	maxPacket = voice.Rate * 12 / 100 // samples of a packet: 120 ms
	maxBroken = 50                    // packets in a row that cannot be decoded
)

// opus reads an Ogg Opus stream.
type opus struct {
	ogg     *oggreader.OggReader
	dec     pion.Decoder
	skip    int    // samples at the beginning that are not played
	pre     uint64 // their number in granules
	decoded uint64 // samples, with those that are skipped
	broken  int
	packet  [maxPacket]int16
	ready   []int16 // decoded and not read
	err     error
}

func openOpus(r io.Reader) (o *opus, err error) {
	defer caught(&err)
	ogg, head, err := oggreader.NewWith(r)
	if err != nil {
		return nil, damaged(err)
	}
	if head.ChannelMap != 0 || head.Channels < 1 || head.Channels > 2 {
		return nil, fmt.Errorf("%w: it has %d channels", ErrDamaged, head.Channels)
	}
	o = &opus{ogg: ogg, skip: int(head.PreSkip) / granules, pre: uint64(head.PreSkip)}
	if o.dec, err = pion.NewDecoderWithOutput(voice.Rate, 1); err != nil {
		return nil, err
	}
	return o, nil
}

// caught turns a panic about a damaged recording into an error.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// damaged returns the error of a reader, as ErrDamaged unless it is about its source.
func damaged(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func (o *opus) Read(pcm []int16) (int, error) {
	for len(o.ready) == 0 {
		if o.err != nil {
			return 0, o.err
		}
		o.err = o.next()
	}
	n := copy(pcm, o.ready)
	o.ready = o.ready[n:]
	return n, nil
}

// next decodes a packet. A damaged one is passed over, as players do.
func (o *opus) next() (err error) {
	defer caught(&err)
	p, page, err := o.ogg.ParseNextPacket()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && o.decoded > 0 {
		return io.EOF // also of a recording whose end is missing
	}
	if err != nil {
		return damaged(err)
	}
	if len(p) == 0 || bytes.HasPrefix(p, []byte("OpusHead")) || bytes.HasPrefix(p, []byte("OpusTags")) {
		return nil
	}
	n, err := o.decode(p)
	if err != nil {
		if o.broken++; o.broken == maxBroken {
			return damaged(err)
		}
		return nil
	}
	o.broken = 0
	out := o.packet[:n]
	o.decoded += uint64(n)
	// The position of the last page is where the recording ends.
	if end := page.GranulePosition / granules; end < o.decoded && o.decoded-end < maxPacket && end >= o.pre/granules {
		out = out[:max(0, n-int(o.decoded-end))]
	}
	k := min(o.skip, len(out))
	o.skip -= k
	o.ready = out[k:]
	return nil
}

// length returns the samples of the recording, by the positions of its pages.
func (o *opus) length() (n int64, err error) {
	defer caught(&err)
	for {
		_, page, err := o.ogg.ParseNextPacket()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil {
			return 0, damaged(err)
		}
		if end := page.GranulePosition; end != math.MaxUint64 && end > o.pre {
			n = int64((end - o.pre) / granules)
		}
		if n > int64(voice.Samples(voice.MaxLength)) || n < 0 {
			return 0, voice.ErrTooLong
		}
	}
}

func (o *opus) decode(packet []byte) (n int, err error) {
	defer caught(&err)
	return o.dec.DecodeToInt16(packet, o.packet[:])
}

func (o *opus) Close() error { return nil }
