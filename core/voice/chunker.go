package voice

import "slices"

// Lengths in samples.
const (
	shortest = Rate           // of a segment
	longest  = 30 * Rate      // of a segment
	pause    = Rate / 2       // silence that ends a segment
	search   = 2 * Rate       // end of a segment of 30 s in which it is cut
	margin   = Rate / 5       // silence that a segment keeps at its ends
	first    = 2 * Rate       // what a segment has space for at first
	frames   = search / Frame // whose energy is known
)

// A Chunker cuts a recording into segments. Each sample is in exactly one segment
// or in silence. It keeps at most 30 s of audio and is not safe for concurrent use.
type Chunker struct {
	detect  Detector
	partial []int16 // less than a frame
	before  []int16 // the silence before a segment, at most margin
	at      int64   // samples of the frames so far
	number  int     // of segments that ended
	start   int64   // of the open segment
	open    []int16 // nil: none
	quiet   int     // samples of silence at the end of open
	energy  [frames]float64
}

// newChunker returns a Chunker that asks d, or an Energy if d is nil.
func newChunker(d Detector) *Chunker {
	if d == nil {
		d = new(Energy)
	}
	return &Chunker{detect: d}
}

// Write adds samples and returns the segments that ended.
func (c *Chunker) Write(pcm []int16) (ended []Segment) {
	if len(c.partial) > 0 {
		n := min(len(pcm), Frame-len(c.partial))
		c.partial = append(c.partial, pcm[:n]...)
		if pcm = pcm[n:]; len(c.partial) < Frame {
			return nil
		}
		ended = c.frame(c.partial, ended)
		c.partial = c.partial[:0]
	}
	for ; len(pcm) >= Frame; pcm = pcm[Frame:] {
		ended = c.frame(pcm[:Frame], ended)
	}
	c.partial = append(c.partial, pcm...)
	return ended
}

// Open returns the segment that has not ended; without one its PCM is empty. Later
// calls of Write leave the samples as they are.
func (c *Chunker) Open() Segment {
	return Segment{Number: c.number, Start: c.start, PCM: c.open[:len(c.open):len(c.open)]}
}

// Close ends the recording and returns the last segment, if one is open.
func (c *Chunker) Close() (ended []Segment) {
	if c.open != nil {
		c.add(c.partial)
		ended = c.cut(len(c.open), ended)
	}
	c.at += int64(len(c.partial))
	c.partial, c.before, c.open = nil, nil, nil
	return ended
}

func (c *Chunker) frame(f []int16, ended []Segment) []Segment {
	speech := c.detect.Speech(f)
	c.energy[int(c.at/Frame)%frames] = energyOf(f)
	if c.open == nil && !speech {
		c.keep(f)
		c.at += Frame
		return ended
	}
	if c.open == nil {
		c.begin(c.at-int64(len(c.before)), c.before)
		c.before = c.before[:0]
	}
	c.add(f)
	c.at += Frame
	if c.quiet += Frame; speech {
		c.quiet = 0
	}
	switch {
	case c.quiet > pause && len(c.open) >= shortest:
		rest := max(len(c.open)-c.quiet+margin, shortest)
		ended = c.cut(rest, ended)
		c.silence()
	case len(c.open)+Frame > longest:
		ended = c.cut(c.quietest(), ended)
		if c.quiet >= len(c.open) {
			c.silence()
		}
	}
	return ended
}

// keep adds silence to what precedes the next segment.
func (c *Chunker) keep(pcm []int16) {
	c.before = append(c.before, pcm...)
	if n := len(c.before) - margin; n > 0 {
		c.before = slices.Delete(c.before, 0, n)
	}
}

// silence drops the open segment, which holds no speech.
func (c *Chunker) silence() {
	c.keep(c.open)
	c.open, c.quiet = nil, 0
}

func (c *Chunker) begin(start int64, pcm []int16) {
	c.start = start
	c.open = append(make([]int16, 0, first), pcm...)
}

// add appends to the open segment. A view of it that Open returned stays as it is.
func (c *Chunker) add(pcm []int16) {
	if n := len(c.open) + len(pcm); n > cap(c.open) {
		c.open = append(make([]int16, 0, max(n, min(2*cap(c.open), longest))), c.open...)
	}
	c.open = append(c.open, pcm...)
}

// cut ends the open segment after n samples; the rest becomes the next one.
func (c *Chunker) cut(n int, ended []Segment) []Segment {
	s := Segment{Number: c.number, Start: c.start, PCM: c.open[:n:n]}
	c.number++
	c.begin(s.End(), c.open[n:])
	return append(ended, s)
}

// quietest returns where to cut the open segment: at the beginning of the frame
// with the least energy in its last two seconds.
func (c *Chunker) quietest() int {
	last := int(c.at / Frame) // frames so far
	best := last - 1
	for f := last - frames; f < last; f++ {
		if c.energy[f%frames] < c.energy[best%frames] {
			best = f
		}
	}
	return len(c.open) - (last-best)*Frame
}
