package hearing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/voice"
	"gatehouse/core/voice/decode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files is a vault of recordings.
type files map[string][]byte

func (f files) open(path string) (io.ReadCloser, error) {
	data, ok := f[path]
	if !ok {
		return nil, os.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// talk is a WAV file with this many sentences, each of 3 s with a pause of 1 s.
func talk(t testing.TB, sentences int) []byte {
	t.Helper()
	var pcm []int16
	for range sentences {
		for i := range 4 * voice.Rate {
			v := 20 * math.Sin(float64(i))
			if i < 3*voice.Rate {
				v += 8000 * math.Sin(2*math.Pi*200*float64(i)/voice.Rate) * (0.6 + 0.4*math.Sin(2*math.Pi*4*float64(i)/voice.Rate))
			}
			pcm = append(pcm, int16(v))
		}
	}
	var b bytes.Buffer
	if err := voice.WriteWAV(&b, pcm); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// engine says a sentence for each segment.
type engine struct {
	n    int
	fail error
}

func (e *engine) Transcribe(_ context.Context, pcm []int16) (string, error) {
	if e.n++; e.n > 2 && e.fail != nil {
		return "", e.fail
	}
	return fmt.Sprintf("Sentence %d.", e.n), nil
}

func TestARecordingIsHeardSentenceBySentence(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	h := New(Options{Open: files{"a.wav": talk(t, 3), "quiet.wav": talk(t, 0)}.open, Engine: new(engine), Metrics: m})
	var shown []string
	text, err := h.Hear(t.Context(), 7, core.File{Path: "a.wav", Name: "a.wav"}, func(s string) { shown = append(shown, s) })
	if err != nil || text != "Sentence 1. Sentence 2. Sentence 3." {
		t.Errorf("%q, %v", text, err)
	}
	if strings.Join(shown, "|") != "Sentence 1.|Sentence 1. Sentence 2.|Sentence 1. Sentence 2. Sentence 3." {
		t.Errorf("shown %q", shown)
	}
	if text, err := h.Hear(t.Context(), 7, core.File{Path: "quiet.wav"}, nil); err != nil || text != "" {
		t.Errorf("silence: %q, %v", text, err)
	}
	if d := h.Length(t.Context(), "a.wav"); d != 12*time.Second {
		t.Errorf("the recording lasts %v", d)
	}
	if n := testutil.ToFloat64(m.recordings.WithLabelValues("text")); n != 1 {
		t.Errorf("%v recordings", n)
	}
	if n := testutil.ToFloat64(m.seconds); n < 9 || n > 12 {
		t.Errorf("%v seconds", n)
	}
}

// whole is a server that reads files, and answers what they are.
type whole struct{ engine }

func (*whole) Text(_ context.Context, name string, r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	return fmt.Sprintf("%s has %d bytes", name, len(data)), err
}

func TestAServerGetsRecordingsThatAreNotReadHere(t *testing.T) {
	f := files{"a.m4a": []byte("....ftypM4A "), "b.ogg": []byte("OggS broken")}
	h := New(Options{Open: f.open, Engine: new(whole)})
	for path, want := range map[string]string{"a.m4a": "a.m4a has 12 bytes", "b.ogg": "b.ogg has 11 bytes"} {
		if text, err := h.Hear(t.Context(), 7, core.File{Path: path, Name: path}, nil); err != nil || text != want {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
	}
	text, err := Server{new(whole)}.Transcribe(t.Context(), make([]int16, voice.Rate))
	if err != nil || text != "speech.wav has 32044 bytes" {
		t.Errorf("a segment: %q, %v", text, err)
	}
}

// never is a Converter without ffmpeg.
type never struct{}

func (never) Convert(context.Context, io.Reader) (io.ReadCloser, error) {
	return nil, errors.New("install ffmpeg")
}

func TestEachFaultHasItsCode(t *testing.T) {
	died := errors.New("it died")
	f := files{"a.wav": talk(t, 4), "a.m4a": []byte("....ftypM4A "), "big.m4a": make([]byte, decode.MaxBytes+1), "cut.wav": []byte("RIFF....WAVEfmt ")}
	for path, want := range map[string]string{"a.wav": voice.FaultEngine, "a.m4a": voice.FaultFormat, "cut.wav": voice.FaultDamaged, "gone.wav": voice.FaultDamaged} {
		m := NewMetrics(prometheus.NewRegistry())
		_, err := New(Options{Open: f.open, Engine: &engine{fail: died}, Convert: never{}, Metrics: m}).Hear(t.Context(), 7, core.File{Path: path}, nil)
		var fault *voice.Fault
		if !errors.As(err, &fault) || fault.Code != want || testutil.ToFloat64(m.recordings.WithLabelValues(want)) != 1 {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	var fault *voice.Fault
	h := New(Options{Open: f.open, Convert: reads{}, Engine: new(engine)})
	if _, err := h.Hear(t.Context(), 7, core.File{Path: "big.m4a"}, nil); !errors.As(err, &fault) || fault.Code != voice.FaultLarge {
		t.Error(err)
	}
	if _, err := New(Options{Open: f.open}).Hear(t.Context(), 7, core.File{Path: "a.wav"}, nil); !errors.As(err, &fault) || fault.Code != voice.FaultOff {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(died)
	if _, err := h.Hear(ctx, 7, core.File{Path: "a.wav"}, nil); !errors.Is(err, died) || errors.As(err, &fault) {
		t.Errorf("a run that is stopped: %v", err)
	}
}

// reads is a Converter that reads all first.
type reads struct{}

func (reads) Convert(_ context.Context, r io.Reader) (io.ReadCloser, error) {
	data, err := io.ReadAll(r)
	return io.NopCloser(bytes.NewReader(data)), err
}

func TestStreamsAreBounded(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	h := New(Options{Engine: new(engine), Metrics: m})
	var ends []func()
	for range MaxStreams {
		_, end, err := h.Live(t.Context(), 7, func(voice.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, _, err := h.Live(t.Context(), 7, nil); core.KindOf(err) != core.Busy || testutil.ToFloat64(m.open) != MaxStreams {
		t.Error(err)
	}
	for _, end := range ends {
		end()
	}
	if _, end, err := h.Live(t.Context(), 7, nil); err != nil {
		t.Error(err)
	} else {
		end()
	}
	if n := testutil.ToFloat64(m.open); n != 0 {
		t.Errorf("%v streams are open", n)
	}
	if _, _, err := New(Options{}).Live(t.Context(), 7, nil); core.KindOf(err) != core.Conflict {
		t.Errorf("without an engine: %v", err)
	}
}

// Streams count while they are open, and the audio that the engine had.
func TestTranscriptionIsMeasured(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := New(Options{Open: files{"a.wav": talk(t, 3)}.open, Engine: new(engine), Metrics: NewMetrics(reg)})
	value := func(name string) float64 {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name && len(f.Metric) == 1 {
				return f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
			}
		}
		t.Fatalf("there is no %s", name)
		return 0
	}
	if n := value("gatehouse_voice_seconds_total"); n != 0 {
		t.Errorf("%v seconds before a recording", n)
	}
	if _, err := h.Hear(t.Context(), 7, core.File{Path: "a.wav"}, nil); err != nil {
		t.Fatal(err)
	}
	if n := value("gatehouse_voice_seconds_total"); n < 9 || n > 12 {
		t.Errorf("%v seconds of a recording of 12", n)
	}
	_, end, err := h.Live(t.Context(), 7, func(voice.Event) {})
	if err != nil || value("gatehouse_voice_streams") != 1 {
		t.Errorf("%v streams, %v", value("gatehouse_voice_streams"), err)
	}
	end()
	if n := value("gatehouse_voice_streams"); n != 0 {
		t.Errorf("%v streams after the end", n)
	}
}

// A limit lets a user have so much transcribed.
type limit struct {
	left  time.Duration
	users []int64
	day   time.Duration
}

func (l *limit) Limit() time.Duration { return l.day }

func (l *limit) Check(_ context.Context, user int64) error {
	if l.users = append(l.users, user); l.left <= 0 {
		return voice.ErrQuota
	}
	return nil
}

func (l *limit) Add(_ context.Context, _ int64, d time.Duration) error {
	l.left -= d
	return nil
}

func TestARecordingEndsWhereTheTimeOfItsUserIsUsedUp(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	l := &limit{left: 4 * time.Second} // the first segment is of over 3
	h := New(Options{Open: files{"a.wav": talk(t, 3), "a.m4a": []byte("....ftypM4A ")}.open, Engine: new(whole), Quota: l, Metrics: m})
	var fault *voice.Fault
	if _, err := h.Hear(t.Context(), 9, core.File{Path: "a.wav"}, nil); !errors.As(err, &fault) || fault.Code != voice.FaultQuota || !fault.Passes() || !errors.Is(err, voice.ErrQuota) {
		t.Errorf("%v", err)
	}
	if len(l.users) != 3 || l.users[0] != 9 || testutil.ToFloat64(m.recordings.WithLabelValues(voice.FaultQuota)) != 1 {
		t.Errorf("asked about %v", l.users)
	}
	if _, err := h.Hear(t.Context(), 9, core.File{Path: "a.m4a", Name: "a.m4a"}, nil); !errors.As(err, &fault) || fault.Code != voice.FaultQuota {
		t.Errorf("a recording that only the server reads: %v", err)
	}
	l.left = time.Hour
	if _, err := h.Hear(t.Context(), 9, core.File{Path: "a.m4a", Name: "a.m4a"}, nil); err != nil || l.left >= time.Hour {
		t.Errorf("it is not counted: %v, %v left", err, l.left)
	}
}

// What is spoken counts once, however often an open segment is transcribed.
func TestAStreamCountsWhatIsSpokenOnce(t *testing.T) {
	l := &limit{left: time.Hour}
	h := New(Options{Engine: new(engine), Quota: l})
	s, end, err := h.Live(t.Context(), 9, func(voice.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for i := range 8 {
		pcm := make([]int16, voice.Rate)
		for j := range pcm {
			at := float64(i*voice.Rate + j)
			pcm[j] = int16(8000 * math.Sin(2*math.Pi*200*at/voice.Rate) * (0.6 + 0.4*math.Sin(2*math.Pi*4*at/voice.Rate)))
		}
		if err := s.Write(pcm); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if used := time.Hour - l.left; used < 7*time.Second || used > 8*time.Second {
		t.Errorf("%v are counted", used)
	}
	l.left = 0
	if _, _, err := h.Live(t.Context(), 9, nil); core.KindOf(err) != core.Busy {
		t.Errorf("nothing is left: %v", err)
	}
}

func TestARecordingThatIsLongerThanADaysTimeIsNotBegun(t *testing.T) {
	l, e := &limit{left: 8 * time.Second, day: 8 * time.Second}, new(engine)
	h := New(Options{Open: files{"a.wav": talk(t, 3), "b.wav": talk(t, 1)}.open, Engine: e, Quota: l})
	var fault *voice.Fault
	if _, err := h.Hear(t.Context(), 9, core.File{Path: "a.wav"}, nil); !errors.As(err, &fault) || fault.Code != voice.FaultDay || fault.Passes() || e.n != 0 || l.left != l.day {
		t.Errorf("%v, %d segments, %v left", err, e.n, l.left)
	}
	if text, err := h.Hear(t.Context(), 9, core.File{Path: "b.wav"}, nil); err != nil || text == "" {
		t.Errorf("a shorter one: %q, %v", text, err)
	}
}

// torn is a Converter whose recording ends with an error.
type torn struct{ pcm []byte }

func (c torn) Convert(context.Context, io.Reader) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(c.pcm), iotest.ErrReader(errors.New("it is torn")))), nil
}

func TestWhatWasReadOfADamagedRecordingCountsOnce(t *testing.T) {
	l := &limit{left: time.Hour}
	file := append([]byte("....ftypM4A "), make([]byte, 2<<20-12)...)
	h := New(Options{Open: files{"a.m4a": file}.open, Convert: torn{talk(t, 20)[44:]}, Engine: new(whole), Quota: l})
	begun := false
	if text, err := h.Hear(t.Context(), 9, core.File{Path: "a.m4a", Name: "a.m4a"}, func(string) { begun = true }); err != nil || text != "a.m4a has 2097152 bytes" || !begun {
		t.Fatalf("%q, %v, begun %v", text, err, begun)
	}
	if used := time.Hour - l.left; used != 2*time.Minute {
		t.Errorf("%v are counted", used)
	}
}
