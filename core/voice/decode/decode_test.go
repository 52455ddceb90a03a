package decode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/voice"
)

func all(t testing.TB, r io.Reader, other Converter) ([]int16, error) {
	t.Helper()
	rec, err := Open(t.Context(), r, other)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	var pcm []int16
	buf := make([]int16, 777)
	for {
		n, err := rec.Read(buf)
		pcm = append(pcm, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return pcm, nil
		}
		if err != nil {
			return pcm, err
		}
	}
}

// levels are the loudness of each 50 ms in dB, and -60 for silence.
func levels(pcm []int16) (out []float64) {
	for ; len(pcm) >= voice.Rate/20; pcm = pcm[voice.Rate/20:] {
		sum := 1e-6 * 32768 * 32768
		for _, v := range pcm[:voice.Rate/20] {
			sum += float64(v) * float64(v) * 20 / voice.Rate
		}
		out = append(out, math.Round(100*math.Log10(sum/32768/32768))/10)
	}
	return out
}

// below7k returns the signal without what is above 7 kHz, where the filters of two
// resamplers differ.
func below7k(pcm []int16) []int16 {
	const half, cutoff = 32, 6.6 / 8
	var taps [2*half + 1]float64
	for i := range taps {
		x := float64(i - half)
		taps[i] = cutoff
		if x != 0 {
			taps[i] = math.Sin(math.Pi*x*cutoff) / (math.Pi * x)
		}
		taps[i] *= 0.5 + 0.5*math.Cos(math.Pi*x/(half+1))
	}
	out := make([]int16, len(pcm))
	for i := range pcm {
		sum := 0.0
		for k, v := range taps {
			if j := i + k - half; j >= 0 && j < len(pcm) {
				sum += float64(pcm[j]) * v
			}
		}
		out[i] = int16(min(max(sum, -32768), 32767))
	}
	return out
}

// alike returns the signal-to-noise ratio of a as b in dB, at the best of a few shifts.
func alike(a, b []int16) float64 {
	best := math.Inf(-1)
	for shift := -1; shift <= 1; shift++ {
		var signal, noise float64
		for i := 100; i < min(len(a), len(b))-100; i++ {
			x, y := float64(a[i+shift]), float64(b[i])
			signal, noise = signal+y*y, noise+(x-y)*(x-y)
		}
		best = max(best, 10*math.Log10(signal/max(noise, 1)))
	}
	return best
}

// opusFiles were made by opusenc 0.2 from a sentence and from chords: in the mode
// SILK at 8 kbit/s, hybrid at 16 to 32 kbit/s of speech, else CELT.
func opusFiles(t *testing.T) []string {
	t.Helper()
	files, _ := filepath.Glob("testdata/*.opus")
	if len(files) != 13 {
		t.Fatal(files)
	}
	return files
}

// TestOpusFilesSoundAsOpusdecPlaysThem compares the loudness of each 50 ms with what
// opusdec decoded; without the file levels.json it is written, where opusdec is installed.
func TestOpusFilesSoundAsOpusdecPlaysThem(t *testing.T) {
	const golden = "testdata/levels.json"
	want := map[string][]float64{}
	if data, err := os.ReadFile(golden); err == nil {
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
	}
	opusdec, _ := exec.LookPath("opusdec")
	for _, name := range opusFiles(t) {
		f, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pcm, err := all(t, bytes.NewReader(f), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		pcm = below7k(pcm)
		if opusdec != "" && (want[filepath.Base(name)] == nil || !raceDetector) {
			want[filepath.Base(name)] = levels(below7k(played(t, opusdec, name)))
		}
		got, ref := levels(pcm), want[filepath.Base(name)]
		if len(got) != len(ref) {
			t.Errorf("%s: %d ms, opusdec has %d", name, len(got)*50, len(ref)*50)
			continue
		}
		for i := range ref {
			if ref[i] > -50 && math.Abs(got[i]-ref[i]) > 1 {
				t.Errorf("%s: at %d ms %.1f dB, opusdec has %.1f", name, i*50, got[i], ref[i])
			}
		}
	}
	if _, err := os.Stat(golden); os.IsNotExist(err) {
		data, _ := json.Marshal(want)
		_ = os.WriteFile(golden, []byte(strings.ReplaceAll(string(data), "],", "],\n")+"\n"), 0o644)
	}
}

func played(t *testing.T, opusdec, name string) []int16 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.wav")
	if b, err := exec.Command(opusdec, "--quiet", "--no-dither", "--rate", "48000", name, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	f, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	pcm, err := all(t, bytes.NewReader(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	return pcm
}

// wavFile returns a WAV file of one second of a tone of 440 Hz.
func wavFile(rate, channels, bits int, float bool) []byte {
	kind := uint16(1)
	if float {
		kind = 3
	}
	size := bits / 8
	b := []byte("RIFF\x00\x00\x00\x00WAVEJUNK\x03\x00\x00\x00abc\x00fmt ")
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*size))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels*size))
	b = binary.LittleEndian.AppendUint16(b, uint16(bits))
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*size))
	for i := range rate {
		v := 0.5 * math.Sin(2*math.Pi*440*float64(i)/float64(rate))
		for range channels {
			switch {
			case float:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
			case bits == 8:
				b = append(b, byte(128+127*v))
			default:
				n := uint32(int32(v * (1<<31 - 1)))
				b = append(b, binary.LittleEndian.AppendUint32(nil, n)[4-size:]...)
			}
		}
	}
	return b
}

func TestWAVFilesOfAllRatesAreResampled(t *testing.T) {
	want := make([]int16, voice.Rate)
	for i := range want {
		want[i] = int16(16384 * math.Sin(2*math.Pi*440*float64(i)/voice.Rate))
	}
	rates := []int{44100, 8000, 16000, 48000, 11025, 22050, 32000, 44101, 96000}
	if raceDetector {
		rates = rates[:3] // it is slow, and there is nothing concurrent
	}
	for _, rate := range rates {
		for _, f := range []struct {
			channels, bits int
			float          bool
		}{{1, 16, false}, {2, 24, false}, {2, 32, true}, {1, 8, false}, {1, 32, false}} {
			pcm, err := all(t, bytes.NewReader(wavFile(rate, f.channels, f.bits, f.float)), nil)
			if err != nil || len(pcm) < voice.Rate-1 || len(pcm) > voice.Rate+1 {
				t.Fatalf("%d Hz, %+v: %d samples, %v", rate, f, len(pcm), err)
			}
			if snr := alike(pcm, want); snr < 30 {
				t.Errorf("%d Hz, %+v: %.1f dB", rate, f, snr)
			}
		}
	}
	// What 16 kHz cannot carry is filtered out: a tone of 10 kHz leaves next to nothing.
	loud := wavFile(48000, 1, 16, false)
	for i := range 48000 {
		binary.LittleEndian.PutUint16(loud[len(loud)-96000+2*i:], uint16(int16(16000*math.Sin(2*math.Pi*10_000*float64(i)/48000))))
	}
	pcm, err := all(t, bytes.NewReader(loud), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range levels(pcm[:len(pcm)-800])[1:] {
		if l > -45 {
			t.Errorf("a tone of 10 kHz is heard at %d ms with %.1f dB", i*50, l)
		}
	}
}

func TestRecordingsAreBounded(t *testing.T) {
	if n, err := io.Copy(io.Discard, &limited{r: zeros{}, left: 100}); n > 100 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := io.Copy(io.Discard, &limited{r: bytes.NewReader(make([]byte, 100)), left: 100}); n != 100 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	rec := &bounded{Recording: &plain{r: bufio.NewReader(zeros{}), close: func() error { return nil }}, left: 100}
	if n, err := Length(t.Context(), rec); !errors.Is(err, voice.ErrTooLong) {
		t.Errorf("%d samples, %v", n, err)
	}
}

// zeros is silence without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestDamagedRecordings(t *testing.T) {
	whole, err := os.ReadFile("testdata/speech-24.opus")
	if err != nil {
		t.Fatal(err)
	}
	if pcm, err := all(t, bytes.NewReader(whole[:len(whole)*9/10]), nil); err != nil || len(pcm) < voice.Rate/2 {
		t.Errorf("of a recording whose end is missing %d samples were read, %v", len(pcm), err)
	}
	holed := bytes.Clone(whole)
	for i := 2000; i < 2200; i++ {
		holed[i] ^= 0x5a
	}
	if _, err := all(t, bytes.NewReader(holed), nil); err != nil && !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	for _, text := range []string{"", "OggS", "hello", "RIFF....WAVE", "RIFF....WAVEdata\x01\x00\x00\x00a", strings.Repeat("OggS\x00OpusHead", 9)} {
		if _, err := all(t, strings.NewReader(text), nil); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Its filter would be computed for each: hours for a file that may be sent.
func TestAWAVFileWithManyFormatsIsRefusedAtTheSecond(t *testing.T) {
	whole := wavFile(191_999, 1, 16, false)
	at := bytes.Index(whole, []byte("fmt "))
	many := slices.Concat(whole[:at], bytes.Repeat(whole[at:at+24], 200_000), whole[at+24:])
	if len(many) > MaxBytes {
		t.Fatal(len(many))
	}
	began := time.Now()
	if _, err := Open(t.Context(), bytes.NewReader(many), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("it is read: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// converter is a Converter that plays what it is given.
type converter struct{ err error }

func (c converter) Convert(_ context.Context, r io.Reader) (io.ReadCloser, error) {
	return io.NopCloser(r), c.err
}

func TestOtherFormatsAreConverted(t *testing.T) {
	pcm, err := all(t, strings.NewReader("ID3\x01\x02"), converter{})
	if err != nil || fmt.Sprint(pcm) != fmt.Sprint([]int16{'I' | 'D'<<8, '3' | 1<<8}) {
		t.Error(pcm, err)
	}
	if _, err := all(t, strings.NewReader("ID3"), converter{errors.New("no ffmpeg")}); err == nil {
		t.Error("no error")
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"testdata/speech-8.opus", "testdata/music-16.opus"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:2000])
	}
	f.Add(wavFile(44100, 2, 24, false)[:500])
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := Open(t.Context(), bytes.NewReader(data), nil)
		if err != nil {
			return
		}
		// A packet of two bytes lasts up to 120 ms; no more than that comes out.
		n, buf := 0, make([]int16, maxPacket)
		for err == nil {
			var k int
			k, err = rec.Read(buf)
			n += k
		}
		if n > (len(data)+64)*maxPacket {
			t.Fatalf("%d samples of %d bytes", n, len(data))
		}
		// The length is what the recording says it is, which may be a lie.
		if rec, err = Open(t.Context(), bytes.NewReader(data), nil); err != nil {
			t.Fatal(err)
		}
		if n, _ := Length(t.Context(), rec); n > int64(voice.Samples(voice.MaxLength)) {
			t.Fatalf("%d samples", n)
		}
	})
}
