package program

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/sandbox"
	"gatehouse/core/voice"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	goleak.VerifyTestMain(m)
}

func options(t testing.TB) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box, why := sandbox.Open(sandbox.Auto, self)
	if box == nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip("SKIPPED: ", why)
	}
	return Options{Box: func() (sandbox.Box, string) { return box, "" }, Dir: t.TempDir()}
}

func engine(t testing.TB, command, model string) *Engine {
	t.Helper()
	e, err := NewEngine(options(t), command, model)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

func TestACommandTranscribesByFileOrInput(t *testing.T) {
	model := filepath.Join(t.TempDir(), "the model.bin")
	if err := os.WriteFile(model, []byte("tea"), 0o600); err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, voice.Rate)
	for command, want := range map[string]string{
		`sh -c 'printf "We had %s, " "$(cat "$1")"; wc -c < "$2"' x {model} {file}`: "We had tea, 32044",
		`sh -c 'wc -c'`: "32044",
		`sh -c 'echo "{\"text\": \" $0 \"}"' "--model={model}"`:                                             "--model=" + model,
		`sh -c 'echo loading >&2; echo "{\"lang\":\"\",\"text\": \"AFTER EARLY\"}" >&2; echo ---- >&2'`:     "AFTER EARLY",
		`sh -c 'echo "[00:00:00.000 --> 00:00:02.000]   One two"; echo "[BLANK_AUDIO]"'`:                    "One two",
		`sh -c 'echo "{\"transcription\":[{\"text\":\" One\"},{\"text\":\" two.\"}]}"'`:                     "One two.",
		`sh -c 'test "$(ls /home 2>/dev/null)$HTTP_PROXY" = "" && grep -vc -e lo: -e "|" /proc/net/dev; :'`: "0", // no network
		`true`: "",
	} {
		e := engine(t, command, model)
		got, err := e.Transcribe(t.Context(), pcm)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", command, got, err, want)
		}
		empty(t, e.o.Dir)
	}
}

func TestACommandThatFailsIsAnError(t *testing.T) {
	for command, want := range map[string]string{
		`sh -c 'echo "no such model" >&2; exit 3'`:     "sh: exit status 3: no such model",
		`sh -c 'kill -9 $$'`:                           "sh: ",
		`sh -c 'printf "\377\376\000"'`:                "no text",
		`sh -c 'echo "{\"error\": \"x\"}"'`:            "no text",
		`sh -c 'head -c 300000 /dev/zero | tr "\0" a'`: "no text",
	} {
		e := engine(t, command, "")
		if got, err := e.Transcribe(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", command, got, err, want)
		}
		empty(t, e.o.Dir)
	}
	for _, command := range []string{"", "no-such-program {file}", "sh 'x", "sh $(date)"} {
		if _, err := NewEngine(Options{}, command, ""); err == nil {
			t.Errorf("%q is taken", command)
		}
	}
	e, err := NewEngine(Options{Box: func() (sandbox.Box, string) { return nil, "bubblewrap is missing" }, Dir: t.TempDir()}, "sh", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Transcribe(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "bubblewrap is missing") {
		t.Errorf("without isolation: %v", err)
	}
	empty(t, e.o.Dir)
}

func TestAHangingCommandIsEnded(t *testing.T) {
	e := engine(t, `sh -c 'sleep 1000 & sleep 1000'`, "")
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, late)
	defer cancel()
	done := make(chan error, 3)
	for range 3 { // the third waits for a slot
		go func() {
			_, err := e.Transcribe(ctx, nil)
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; !errors.Is(err, late) {
			t.Error(err)
		}
	}
	empty(t, e.o.Dir)
}

func TestFFmpegConvertsOtherFormats(t *testing.T) {
	o := options(t)
	f := NewFFmpeg(o)
	if f.path == "" {
		t.Skip("SKIPPED: no ffmpeg")
	}
	in, err := os.Open("../decode/testdata/speech.m4a") // its index is at the end
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := f.Convert(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Error(err)
	}
	if d := voice.Duration(n / 2); d < 1500*time.Millisecond || d > 1750*time.Millisecond {
		t.Errorf("%v of sound", d)
	}
	if r, err = f.Convert(t.Context(), strings.NewReader("ID3 hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "ffmpeg cannot read the recording") {
		t.Errorf("garbage: %v", err)
	}
	_ = r.Close()
	empty(t, o.Dir)
	f.path = ""
	if _, err := f.Convert(t.Context(), in); err == nil || !strings.Contains(err.Error(), "install ffmpeg") {
		t.Errorf("without ffmpeg: %v", err)
	}
}

func FuzzTextOf(f *testing.F) {
	f.Add([]byte(`{"text":"a"}`), []byte("x"))
	f.Add([]byte("[00:00:00.000 --> 00:00:02.000] a\n[{\"text\":\"b\"}]"), []byte{})
	f.Fuzz(func(t *testing.T, out, errs []byte) {
		text, err := textOf(out, errs)
		if err == nil && (len(text) > maxText || strings.ContainsAny(text, "\x00\n\x1b")) {
			t.Fatalf("%q", text)
		}
	})
}

// Busybox and others are many programs under one file, of which they are the one that
// they are started as.
func TestACommandIsStartedByItsName(t *testing.T) {
	if got, err := engine(t, `sh -c 'echo "$0"'`, "").Transcribe(t.Context(), nil); err != nil || filepath.Base(got) != "sh" {
		t.Errorf("%q, %v", got, err)
	}
}

// A command that names a device has that of its sandbox, which can be written to.
func TestACommandMayNameADevice(t *testing.T) {
	if got, err := engine(t, `sh -c 'echo log >>"$1" && echo tea' x /dev/null`, "").Transcribe(t.Context(), nil); err != nil || got != "tea" {
		t.Errorf("%q, %v", got, err)
	}
}

// What strangers record is read by the command: it sees no more of the host than it needs.
func TestACommandSeesOnlyWhatItNames(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"engine": "#!/bin/sh\nls " + dir + " | tr '\\n' ' '; cat \"$LIST\"", "secret": "s", "words/list": "named"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e := engine(t, "env LIST="+filepath.Join(dir, "words/list")+" "+filepath.Join(dir, "engine"), "")
	if got, err := e.Transcribe(t.Context(), nil); err != nil || got != "engine words named" {
		t.Errorf("%q, %v", got, err)
	}
}
