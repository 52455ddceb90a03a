package voice

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tone returns d of a tone like a voice's over noise; loud and noise are amplitudes.
func tone(d time.Duration, loud, noise float64) []int16 {
	r := rand.New(rand.NewPCG(1, uint64(d)))
	pcm := make([]int16, Samples(d))
	for i := range pcm {
		t := float64(i) / Rate
		syllable := 0.6 + 0.4*math.Sin(2*math.Pi*4*t)
		pcm[i] = int16(loud*syllable*math.Sin(2*math.Pi*180*t) + noise*(2*r.Float64()-1))
	}
	return pcm
}

func join(parts ...[]int16) []int16 { return slices.Concat(parts...) }

func speechIn(d Detector, pcm []int16) (speech, all int) {
	for ; len(pcm) >= Frame; pcm = pcm[Frame:] {
		if all++; d.Speech(pcm[:Frame]) {
			speech++
		}
	}
	return speech, all
}

func TestEnergyFindsSpeechInQuietAndNoisyRooms(t *testing.T) {
	for name, noise := range map[string]float64{"quiet": 5, "office": 150, "street": 900} {
		d := new(Energy)
		if n, all := speechIn(d, tone(3*time.Second, 0, noise)); n > all/10 {
			t.Errorf("%s: %d of %d frames of noise are speech", name, n, all)
		}
		if n, all := speechIn(d, tone(5*time.Second, 9000, noise)); n < all*7/10 {
			t.Errorf("%s: %d of %d frames of speech were found", name, n, all)
		}
		if n, all := speechIn(d, tone(3*time.Second, 0, noise)); n > all/10 {
			t.Errorf("%s: after speech %d of %d frames of noise are speech", name, n, all)
		}
	}
	d := new(Energy)
	if n, all := speechIn(d, tone(time.Second, 9000, 50)); n < all*7/10 {
		t.Errorf("speech from the first frame on: %d of %d were found", n, all)
	}
	speechIn(d, tone(10*time.Second, 0, 20))
	// A fan starts: after some seconds it is noise.
	speechIn(d, tone(15*time.Second, 0, 600))
	if n, all := speechIn(d, tone(3*time.Second, 0, 600)); n > all/10 {
		t.Errorf("%d of %d frames of a fan that keeps running are speech", n, all)
	}
}

// marked detects frames whose samples are positive.
type marked struct{}

func (marked) Speech(f []int16) bool { return f[0] > 0 }

// recording draws speech and silence; each sample of speech tells its place.
func recording(t *rapid.T) (pcm []int16) {
	for range rapid.IntRange(0, 8).Draw(t, "parts") {
		sign := rapid.SampledFrom([]int16{-1, 1, 1}).Draw(t, "sign")
		n := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(1, 60), rapid.IntRange(1, 1600)).Draw(t, "frames") * Frame
		for range n {
			pcm = append(pcm, sign*int16(1+len(pcm)%1000))
		}
	}
	return append(pcm, make([]int16, rapid.IntRange(0, Frame-1).Draw(t, "rest"))...)
}

func TestEachSampleIsInOneSegmentOrInSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pcm := recording(t)
		c := newChunker(marked{})
		var all []Segment
		for rest := pcm; len(rest) > 0; {
			n := min(len(rest), rapid.SampledFrom([]int{1, 7, Frame, 333, 5000, Rate, 40 * Rate}).Draw(t, "write"))
			if n < Rate && len(rest) > 2*Rate {
				n = Rate - n // few writes
			}
			all = append(all, c.Write(rest[:n])...)
			if len(c.open) > longest || cap(c.open) > longest+Frame || len(c.before) > margin {
				t.Fatalf("the chunker keeps %d and %d samples", len(c.open), len(c.before))
			}
			rest = rest[n:]
		}
		all = append(all, c.Close()...)
		covered := int64(0)
		for i, s := range all {
			if s.Number != i || s.Start < covered || s.End() > int64(len(pcm)) || len(s.PCM) == 0 || len(s.PCM) > longest || len(s.PCM) < shortest && i < len(all)-1 {
				t.Fatalf("segment %d of %d: number %d, %d to %d, after %d", i, len(all), s.Number, s.Start, s.End(), covered)
			}
			if !slices.Equal(s.PCM, pcm[s.Start:s.End()]) {
				t.Fatalf("segment %d has other samples", i)
			}
			onlySilence(t, pcm, covered, s.Start)
			covered = s.End()
		}
		onlySilence(t, pcm, covered, int64(len(pcm)))
	})
}

func onlySilence(t *rapid.T, pcm []int16, from, to int64) {
	if i := slices.IndexFunc(pcm[from:to], func(v int16) bool { return v > 0 }); i >= 0 {
		t.Fatalf("sample %d of speech is in no segment", from+int64(i))
	}
}

func TestSegmentsAreCutInPausesAndAtTheQuietestPoint(t *testing.T) {
	c := newChunker(nil)
	voice, hush := func(d time.Duration) []int16 { return tone(d, 9000, 20) }, func(d time.Duration) []int16 { return tone(d, 0, 20) }
	all := c.Write(join(hush(time.Second), voice(3*time.Second), hush(400*time.Millisecond), voice(2*time.Second), hush(time.Second), voice(300*time.Millisecond), hush(2*time.Second)))
	all = append(all, c.Close()...)
	if len(all) != 2 || Duration(all[0].Start).Round(100*time.Millisecond) != 800*time.Millisecond || len(all[0].PCM) < Samples(5500*time.Millisecond) || len(all[1].PCM) != shortest {
		t.Fatalf("%d segments: a pause of 400 ms is inside one, one of a second ends it, and a short one has a second", len(all))
	}

	c = newChunker(marked{})
	pcm := make([]int16, 40*Rate)
	for i := range pcm {
		pcm[i] = 8000
	}
	quiet := 29*Rate + Rate/4 // where one takes a breath
	for i := range Frame {
		pcm[quiet/Frame*Frame+i] = 50
	}
	all = append(c.Write(pcm), c.Close()...)
	if len(all) != 2 || all[0].End() != int64(quiet/Frame*Frame) || all[1].End() != int64(len(pcm)) {
		t.Fatalf("cut at %d of %d segments, want %d", all[0].End(), len(all), quiet)
	}
}

func TestConfirmedTextNeverChanges(t *testing.T) {
	word := rapid.SampledFrom([]string{"the", "The,", "store", "and", "bought", "some", "coffee.", "漢字かな", "ไทย", "…", "\xff", "a\u0301"})
	rapid.Check(t, func(t *rapid.T) {
		var a Agreement
		said, was := []string{}, ""
		for range rapid.IntRange(1, 12).Draw(t, "passes") {
			said = append(said, rapid.SliceOfN(word, 0, 4).Draw(t, "more")...)
			heard := slices.Clone(said)
			if len(heard) > 0 && rapid.Bool().Draw(t, "mishear") {
				heard[rapid.IntRange(0, len(heard)-1).Draw(t, "at")] = word.Draw(t, "as")
			}
			a.Pass(strings.Join(heard, " "))
			c, _, _ := a.Text()
			if !strings.HasPrefix(c, was) {
				t.Fatalf("%q became %q", was, c)
			}
			was = c
		}
		a.End(strings.Join(said, " "))
		c, tentative, interim := a.Text()
		if !strings.HasPrefix(c, was) || tentative+interim != "" {
			t.Fatalf("at the end %q became %q, %q, %q", was, c, tentative, interim)
		}
	})
}

func TestAgreementConfirmsWhatTwoPassesSay(t *testing.T) {
	var a Agreement
	want := func(confirmed, tentative, interim string) {
		t.Helper()
		if c, s, i := a.Text(); c != confirmed || s != tentative || i != interim {
			t.Errorf("%q, %q, %q; want %q, %q, %q", c, s, i, confirmed, tentative, interim)
		}
	}
	a.Pass("I went to the")
	want("", "I went to", "the")
	a.Pass("I went to the store and bot")
	want("I went to the", "store and", "bot")
	a.Pass("i went, to the store and bought some coff")
	want("I went to the store and", "bought some", "coff")
	a.Pass("Well I went to the store and bought some coffee") // a word more before
	want("I went to the store and bought some", "", "coffee")
	a.End("I went to the store and bought some coffee.")
	want("I went to the store and bought some coffee.", "", "")

	a = Agreement{}
	a.Pass("今日は")
	a.Pass("今日は天気")
	want("今日は", "天", "気")
	a.End("今日は天気がいい。")
	want("今日は天気がいい。", "", "")
}

// teller is an instant transcriber that says a word for each half second.
type teller struct{ fail func(n int) error }

func (f *teller) Transcribe(_ context.Context, pcm []int16) (string, error) {
	var words []string
	for i := range len(pcm) / (Rate / 2) {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	if f.fail != nil {
		return "", f.fail(len(pcm))
	}
	return strings.Join(words, " "), nil
}

func TestStreamShowsTextWhileSomebodySpeaks(t *testing.T) {
	events := make(chan Event, 100)
	s := Start(t.Context(), new(teller), Options{Every: Interval, Emit: func(e Event) { events <- e }})
	pcm := join(tone(2*time.Second, 0, 20), tone(10*time.Second, 9000, 20), tone(2*time.Second, 0, 20), tone(3*time.Second, 9000, 20))
	const spoken = 2 * time.Second // of silence at first
	for at := 0; at < len(pcm); at += Frame {
		if err := s.Write(pcm[at:min(at+Frame, len(pcm))]); err != nil {
			t.Fatal(err)
		}
		if Duration(int64(at+Frame)) == spoken+2500*time.Millisecond {
			e := <-events // an instant transcriber has answered by now, or blocks here
			if e.Final || e.Interim == "" || e.End > spoken+2500*time.Millisecond {
				t.Fatalf("the first text is %+v", e)
			}
			events <- e
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	close(events)
	finals, was := 0, Event{}
	for e := range events {
		if e.Segment == was.Segment && (e.End < was.End || !strings.HasPrefix(e.Confirmed, was.Confirmed)) || e.Segment > was.Segment && (e.Start < was.End || !was.Final) {
			t.Errorf("%+v after %+v", e, was)
		}
		if was = e; e.Final {
			finals++
		}
	}
	if finals != 2 || !was.Final || was.Segment != 1 {
		t.Errorf("%d segments, the last event is %+v", finals, was)
	}
}

func TestStreamEndsWithTheTranscribersError(t *testing.T) {
	broken := errors.New("the engine died")
	for _, every := range []time.Duration{0, Interval} {
		s := Start(t.Context(), &teller{fail: func(int) error { return broken }}, Options{Every: every})
		var err error
		for range 60 {
			if err = s.Write(tone(time.Second, 9000, 20)); err != nil {
				break
			}
		}
		if err2 := s.Close(); !errors.Is(err2, broken) {
			t.Errorf("%v, at the end %v", err, err2)
		}
	}
	s := Start(t.Context(), new(teller), Options{})
	s.total = int64(Samples(MaxLength)) - 10
	if err := s.Write(make([]int16, 11)); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	s.Abort()
}

// stuck answers when its context ends.
type stuck struct{}

func (stuck) Transcribe(ctx context.Context, _ []int16) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func TestStreamOfAHangingTranscriberKeepsLittleAudio(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := Start(ctx, stuck{}, Options{})
	written := make(chan int)
	go func() {
		n := 0
		for ; n < 3600; n++ { // an hour
			if s.Write(tone(time.Second, 9000, 20)) != nil {
				break
			}
			if n == 31 {
				written <- n
			}
		}
		written <- n
	}()
	<-written
	cancel()
	if n := <-written; n > 40 {
		t.Errorf("%d s were taken from a sender although nothing is transcribed", n)
	}
	s.Abort()
}

func TestTwentyStreamsStayBelow30MiB(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector uses memory of its own")
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	loud := tone(time.Second, 9000, 20)
	var all []*Stream
	for range 20 {
		all = append(all, Start(t.Context(), new(teller), Options{Every: Interval}))
	}
	most := uint64(0)
	for sec := range 35 {
		for _, s := range all {
			if err := s.Write(loud); err != nil {
				t.Fatal(err)
			}
		}
		if sec%5 == 4 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-before.HeapAlloc)
		}
	}
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("20 streams hold %.1f MiB at most", float64(most)/(1<<20))
	if most > 30<<20 {
		t.Errorf("20 streams hold %d bytes", most)
	}
}

func TestWriteWAV(t *testing.T) {
	var b bytes.Buffer
	if err := WriteWAV(&b, tone(time.Second, 100, 0)); err != nil || b.Len() != 44+2*Rate || binary.LittleEndian.Uint32(b.Bytes()[4:]) != uint32(b.Len()-8) {
		t.Error(err, b.Len())
	}
}

// speech is a minute of talk with pauses.
func speech() []int16 {
	var pcm []int16
	for range 12 {
		pcm = append(append(pcm, tone(4300*time.Millisecond, 9000, 30)...), tone(700*time.Millisecond, 0, 30)...)
	}
	return pcm
}

// process is the work of VAD, chunker and agreement for audio, of which the latter
// gets a transcription every two seconds.
func process(pcm []int16) {
	text := strings.Repeat("one two three four five ", 15)
	c := newChunker(nil)
	var a Agreement
	for i := 0; len(pcm) >= Rate; i, pcm = i+1, pcm[Rate:] {
		if len(c.Write(pcm[:Rate])) > 0 {
			a = Agreement{}
		}
		if i%2 == 0 {
			a.Pass(text)
		}
	}
}

func BenchmarkMinute(b *testing.B) {
	pcm := speech()
	for b.Loop() {
		process(pcm)
	}
}

// The work for a minute takes some 20 ms; the best of three is far from 600 ms also
// on a busy machine.
func TestVoiceCostsLessThanOnePercentOfACore(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows it down")
	}
	pcm, best := speech(), time.Hour
	for range 3 {
		began := time.Now()
		process(pcm)
		best = min(best, time.Since(began))
	}
	if t.Logf("a minute takes %v", best); best > 600*time.Millisecond {
		t.Errorf("a minute of audio takes %v of a core", best)
	}
}
