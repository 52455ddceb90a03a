package voice

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of a stream.
const (
	MaxLength = 2 * time.Hour
	Interval  = 2 * time.Second // between passes over an open segment, of audio
	piece     = Rate            // samples that are cut at a time
	ahead     = 5 * Rate        // samples of the next segment while one waits for its text
)

// ErrTooLong is returned for a recording of more than MaxLength.
var ErrTooLong = errors.New("the recording is longer than 2 hours")

// A Transcriber returns the text of a segment, "" for silence. It does not
// change or keep pcm.
type Transcriber interface {
	Transcribe(ctx context.Context, pcm []int16) (string, error)
}

// An Event is the text of a segment so far. Confirmed text only grows; tentative
// and interim text may still change.
type Event struct {
	Segment    int
	Start, End time.Duration // from the beginning of the recording
	Confirmed  string
	Tentative  string
	Interim    string // the last word, which may be cut off
	Final      bool   // the segment ended: all its text is confirmed
}

// Options for Start.
type Options struct {
	Detector Detector // nil: an Energy
	// Every is how much audio is added before an open segment is transcribed again;
	// 0: only whole segments are transcribed.
	Every time.Duration
	// Emit is called with each change of the text, from one goroutine. It may be nil.
	Emit func(Event)
}

// A Stream transcribes one recording as it comes in. It keeps at most 35 s of audio.
type Stream struct {
	o      Options
	to     Transcriber
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan Segment  // closed by Close
	grown  chan struct{} // capacity 1: the open segment may be due
	free   chan struct{} // capacity 1: a segment that ended has its text
	done   chan struct{}

	total int64 // samples

	mu      sync.Mutex
	chunker *Chunker
	waiting int // segments that ended and have no text

	// Of the worker.
	next  int // segment whose text comes next
	last  int // samples of it in the latest pass
	words Agreement
}

// Start begins a stream. It ends with Close or ctx.
func Start(ctx context.Context, to Transcriber, o Options) *Stream {
	if o.Emit == nil {
		o.Emit = func(Event) {}
	}
	s := &Stream{o: o, to: to, chunker: newChunker(o.Detector), ended: make(chan Segment),
		grown: make(chan struct{}, 1), free: make(chan struct{}, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	go s.work()
	return s
}

// Done is closed when the stream ended, by Close, a failure or its context.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Write adds samples. It blocks while segments wait for their text, and returns
// the error that ended the stream. Write and Close are called one at a time.
func (s *Stream) Write(pcm []int16) error {
	for len(pcm) > 0 {
		n := min(len(pcm), piece)
		if s.total += int64(n); Duration(s.total) > MaxLength {
			return ErrTooLong
		}
		if err := s.room(); err != nil {
			return err
		}
		s.mu.Lock()
		ended := s.chunker.Write(pcm[:n])
		s.waiting += len(ended)
		s.mu.Unlock()
		if err := s.pass(ended); err != nil {
			return err
		}
		pcm = pcm[n:]
	}
	return context.Cause(s.ctx)
}

// Close ends the recording and waits until all of it is transcribed. It returns
// the error that ended the stream.
func (s *Stream) Close() error {
	s.mu.Lock()
	ended := s.chunker.Close()
	s.waiting += len(ended)
	s.mu.Unlock()
	err := s.pass(ended)
	close(s.ended)
	<-s.done
	if err == nil {
		err = context.Cause(s.ctx)
	}
	s.cancel(nil)
	return err
}

// Abort ends the stream without transcribing the rest, and waits for its end.
func (s *Stream) Abort() {
	s.cancel(context.Canceled)
	<-s.done
}

// room waits while a segment waits for its text and the next one is long already.
func (s *Stream) room() error {
	for {
		s.mu.Lock()
		full := s.waiting > 0 && len(s.chunker.open) >= ahead
		s.mu.Unlock()
		if !full {
			return context.Cause(s.ctx)
		}
		select {
		case <-s.free:
		case <-s.ctx.Done():
		}
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
	}
}

// pass hands over segments that ended, and reports that the open one grew.
func (s *Stream) pass(ended []Segment) error {
	for _, seg := range ended {
		select {
		case s.ended <- seg:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	if s.o.Every > 0 {
		select {
		case s.grown <- struct{}{}:
		default:
		}
	}
	return nil
}

func (s *Stream) work() {
	defer close(s.done)
	for {
		var err error
		select {
		case <-s.ctx.Done():
			return
		case seg, more := <-s.ended:
			if !more {
				return
			}
			err = s.whole(seg)
		case <-s.grown:
			err = s.growing()
		}
		if err != nil {
			s.cancel(err)
			return
		}
	}
}

// whole transcribes a segment that ended.
func (s *Stream) whole(seg Segment) error {
	text, err := s.to.Transcribe(s.ctx, seg.PCM)
	if err != nil {
		return err
	}
	s.words.End(text)
	s.emit(seg, true)
	s.words, s.next, s.last = Agreement{}, seg.Number+1, 0
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	select {
	case s.free <- struct{}{}:
	default:
	}
	return nil
}

// growing transcribes the open segment as far as it was spoken, if that is due.
func (s *Stream) growing() error {
	s.mu.Lock()
	seg := s.chunker.Open()
	s.mu.Unlock()
	if seg.Number != s.next || len(seg.PCM)-s.last < Samples(s.o.Every) {
		return nil
	}
	s.last = len(seg.PCM)
	text, err := s.to.Transcribe(s.ctx, seg.PCM)
	if err != nil {
		return err
	}
	s.words.Pass(text)
	s.emit(seg, false)
	return nil
}

func (s *Stream) emit(seg Segment, final bool) {
	e := Event{Segment: seg.Number, Start: Duration(seg.Start), End: Duration(seg.End()), Final: final}
	e.Confirmed, e.Tentative, e.Interim = s.words.Text()
	s.o.Emit(e)
}
