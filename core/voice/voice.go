// Package voice turns speech into text while it is spoken. Its parts are pure:
// a Detector finds speech, a Chunker cuts it into segments, an Agreement decides
// which words of repeated transcriptions are certain, and a Stream joins them to
// a Transcriber. Audio is mono PCM of 16 bits at 16 kHz.
package voice

import (
	"encoding/binary"
	"io"
	"time"
)

const (
	Rate  = 16_000    // samples per second
	Frame = Rate / 50 // samples of 20 ms, which a Detector decides on
)

// Duration returns how long n samples last.
func Duration(n int64) time.Duration { return time.Duration(n) * time.Second / Rate }

// Samples returns how many samples last d.
func Samples(d time.Duration) int { return int(d * Rate / time.Second) }

// A Segment is a passage of speech of 1 to 30 seconds; the last one of a recording
// may be shorter.
type Segment struct {
	Number int     // 0, 1, 2 …
	Start  int64   // samples from the beginning of the recording
	PCM    []int16 // not to be changed
}

// End returns the first sample after the segment.
func (s Segment) End() int64 { return s.Start + int64(len(s.PCM)) }

// WriteWAV writes pcm as a WAV file.
func WriteWAV(w io.Writer, pcm []int16) error {
	const header = 44
	n := uint32(2 * len(pcm))
	h := make([]byte, 0, header)
	h = append(h, "RIFF"...)
	h = binary.LittleEndian.AppendUint32(h, header-8+n)
	h = append(h, "WAVEfmt "...)
	h = binary.LittleEndian.AppendUint32(h, 16)
	h = binary.LittleEndian.AppendUint16(h, 1) // PCM
	h = binary.LittleEndian.AppendUint16(h, 1) // channels
	h = binary.LittleEndian.AppendUint32(h, Rate)
	h = binary.LittleEndian.AppendUint32(h, 2*Rate)
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint16(h, 16)
	h = append(h, "data"...)
	h = binary.LittleEndian.AppendUint32(h, n)
	if _, err := w.Write(h); err != nil {
		return err
	}
	buf := make([]byte, 0, 16<<10)
	for len(pcm) > 0 {
		k := min(len(pcm), cap(buf)/2)
		buf = buf[:0]
		for _, v := range pcm[:k] {
			buf = binary.LittleEndian.AppendUint16(buf, uint16(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		pcm = pcm[k:]
	}
	return nil
}
