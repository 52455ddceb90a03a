package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/voice"
)

// sentences is a recording of two sentences, in WAV.
func sentences(t testing.TB) []byte {
	t.Helper()
	pcm := make([]int16, 6*voice.Rate)
	for i := range pcm {
		if i%(3*voice.Rate) < 2*voice.Rate {
			pcm[i] = int16(8000 * math.Sin(2*math.Pi*200*float64(i)/voice.Rate))
		}
	}
	var b bytes.Buffer
	if err := voice.WriteWAV(&b, pcm); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stenographer answers the first sentence at once and the second after release is closed.
func stenographer(t *testing.T, release chan struct{}) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, h, err := r.FormFile("file"); err != nil || h.Filename != "speech.wav" {
			http.Error(w, "not a segment", http.StatusBadRequest)
			return
		} else {
			_, _ = io.Copy(io.Discard, f)
		}
		if n.Add(1)%2 == 1 {
			io.WriteString(w, `{"text":"Where is the shed?"}`)
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		io.WriteString(w, `{"text":"I lost the key."}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The text of a voice message grows in the chat while it is transcribed; then the answer
// stands in its place.
func TestAVoiceMessageShowsItsTextWhileItIsTranscribed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	url := stenographer(t, release)
	w, model := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	w.until("the first sentence is shown", func() bool {
		d := w.sim.Screen(ada.DM()).Drafts
		return len(d) == 1 && strings.Contains(d[0].Text, "Where is the shed?") && !strings.Contains(d[0].Text, "key")
	})
	close(release)
	if got := w.answers(ada.DM(), m.ID); got.Text != fakeSays {
		t.Errorf("answered %q", got.Text)
	}
	if text, _ := lastAsked(model); text != "Where is the shed? I lost the key." {
		t.Errorf("the model was asked %q", text)
	}
}

// discordGuest is a user of the second platform whose first message has been answered.
func discordGuest(w *world, sim *discordtest.Server, name string) *discordtest.User {
	w.t.Helper()
	w.until("the bot is online", func() bool {
		for _, b := range w.app.hub.States() {
			if b.Bot == "discord" && b.State == core.Running {
				return true
			}
		}
		return false
	})
	u := sim.NewUser(name)
	u.Send("hello")
	discordHears(w, sim, u.DM(), "code")
	if _, err := w.app.pairing.Approve(w.t.Context(), discordRequest(w, u).ID, core.Approval{}, cli); err != nil {
		w.t.Fatal(err)
	}
	discordHears(w, sim, u.DM(), fakeSays)
	return u
}

func TestAVoiceMessageOfTheSecondPlatformShowsItsText(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	url := stenographer(t, release)
	sim := newDiscord(t)
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.TranscribeURL = url
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(sim.Token()), sim.URL()
	})
	bob := discordGuest(w, sim, "Bob")
	if _, err := bob.Post(bob.DM(), discordtest.Outgoing{Files: []discordtest.File{{Name: "voice.wav", Data: sentences(t)}}}); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, bob.DM(), "Where is the shed?")
	close(release)
	w.until("the answer is in its place", func() bool {
		text, _ := lastAsked(model)
		all := sim.History(bob.DM())
		return strings.Contains(text, "Where is the shed? I lost the key.") && len(all) > 0 && strings.Contains(all[len(all)-1].Text, fakeSays)
	})
}

func TestJournal_ARecordingIsTranscribedLaterAndHasItsDuration(t *testing.T) {
	t.Parallel()
	url, up := outage(t, "We had tea.")
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	boss := w.boss()
	m := w.post(boss, boss.DM(), telegramtest.Outgoing{Text: "/journal", File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	if got := w.answers(boss.DM(), m.ID); !strings.Contains(got.Text, "The transcription failed; the text is added as soon as it works") {
		t.Errorf("answered %q", got.Text)
	}
	if got := w.diary("Daily"); !strings.Contains(got, "## Audio\n- Duration: 0:06\n- Path: assets/") || strings.Contains(got, "tea") {
		t.Errorf("the entry stands with its audio and without a text:\n%s", got)
	}
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); core.KindOf(err) != core.Busy || r.Waiting != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	up.Store(true)
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); err != nil || r.Transcribed != 1 || r.Waiting != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.diary("Daily"); !strings.Contains(got, "We had tea. We had tea.\n\n## Audio\n- Duration: 0:06") {
		t.Errorf("after the retry:\n%s", got)
	}
}

// outage is a server that transcribes, each segment as text, while up is set.
func outage(t *testing.T, text string) (url string, up *atomic.Bool) {
	t.Helper()
	up = new(atomic.Bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"text":%q}`, text)
	}))
	t.Cleanup(s.Close)
	return s.URL, up
}

// The sender of a voice message that could not be transcribed is told so, gets its text when
// the transcription works again, and decides whether the agent answers it.
func TestTheTextOfAVoiceMessageComesLaterAndIsAnsweredOnRequest(t *testing.T) {
	t.Parallel()
	url, up := outage(t, "Where is the xyzzyshed?")
	w, model := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	if got := w.answers(ada.DM(), m.ID); !strings.Contains(got.Text, "could not be transcribed: the transcription service failed; it is kept as Chat/assets/") || !strings.Contains(got.Text, "its text is sent here as soon as the transcription works") {
		t.Errorf("its sender was told %q", got.Text)
	}
	w.quiet()
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); core.KindOf(err) != core.Busy || r.Waiting != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	up.Store(true)
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); err != nil || r.Transcribed != 1 || r.Waiting != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	const said = "Where is the xyzzyshed? Where is the xyzzyshed?"
	late := w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, said) })
	if !strings.Contains(late.Text, "The text of your voice message") || late.ReplyTo != m.ID {
		t.Errorf("sent %q in reply to %d, want %d", late.Text, late.ReplyTo, m.ID)
	}
	w.quiet()
	if text, _ := lastAsked(model); strings.Contains(text, "xyzzyshed") {
		t.Errorf("the model was asked without a request: %q", text)
	}
	if _, err := ada.Press(ada.DM(), late.ID, telegramButton(t, late, "Answer it")); err != nil {
		t.Fatal(err)
	}
	if got := w.answers(ada.DM(), late.ID); got.Text != fakeSays {
		t.Errorf("answered %q", got.Text)
	}
	if text, _ := lastAsked(model); text != said {
		t.Errorf("the model was asked %q", text)
	}
	w.until("the button is gone", func() bool {
		for _, now := range w.sim.History(ada.DM()) {
			if now.ID == late.ID {
				return len(now.Buttons) == 0 && strings.Contains(now.Text, said)
			}
		}
		return false
	})
}

// While as many wait as may, nobody is promised a text that does not come.
func TestTheTextOfAVoiceMessageIsNotPromisedWhileTooManyWait(t *testing.T) {
	t.Parallel()
	url, _ := outage(t, "Where is the xyzzyshed?")
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	ada := w.guest("Ada")
	w.replies(ada, "Hello.")
	user := w.user(ada)
	if err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		paths := make([]string, 499)
		for i := range paths {
			paths[i] = fmt.Sprintf("%d.ogg", i)
		}
		return w.app.pending.Add(t.Context(), tx, user, "entry", paths)
	}); err != nil {
		t.Fatal(err)
	}
	const promise = "its text is sent here as soon as the transcription works"
	for _, promised := range []bool{true, false} { // the 500th and the 501st
		m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
		if got := w.answers(ada.DM(), m.ID).Text; !strings.Contains(got, "could not be transcribed: the transcription service failed") || strings.Contains(got, promise) != promised {
			t.Errorf("its sender was told %q", got)
		}
		w.quiet()
		if n := w.count(`SELECT count(*) FROM voice_pending`); n != 500 {
			t.Errorf("%d wait, want 500", n)
		}
	}
}

// Whoever deletes a recording that waits is not told that it is kept.
func TestNothingIsSentAboutAVoiceMessageThatWasDeletedWhileItWaited(t *testing.T) {
	t.Parallel()
	url, up := outage(t, "Where is the xyzzyshed?")
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	w.answers(ada.DM(), m.ID)
	w.quiet()
	for _, name := range w.assets() {
		if err := w.app.vault.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	before := len(w.sim.History(ada.DM()))
	up.Store(true)
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); err != nil || r.Dropped != 1 || r.Waiting != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w.quiet()
	if now := w.sim.History(ada.DM()); len(now) != before {
		t.Errorf("sent %+v", now[before:])
	}
}

// The same on the second platform.
func TestTheTextOfAVoiceMessageComesLaterOnDiscord(t *testing.T) {
	t.Parallel()
	url, up := outage(t, "Where is the xyzzyshed?")
	sim := newDiscord(t)
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.TranscribeURL = url
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(sim.Token()), sim.URL()
	})
	bob := discordGuest(w, sim, "Bob")
	const isVoiceMessage = "8192"
	sent, err := bob.Post(bob.DM(), discordtest.Outgoing{Files: []discordtest.File{{Name: "voice-message.ogg", Data: sentences(t)}}, Extra: map[string]json.RawMessage{"flags": []byte(isVoiceMessage)}})
	if err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, bob.DM(), "its text is sent here as soon as the transcription works")
	w.quiet()
	up.Store(true)
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); err != nil || r.Transcribed != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	late := discordHears(w, sim, bob.DM(), "xyzzyshed")
	if late.ReplyTo != sent.ID {
		t.Errorf("sent in reply to %v, want %v", late.ReplyTo, sent.ID)
	}
	if _, err := bob.Press(bob.DM(), late.ID, discordButton(t, late, "Answer it")); err != nil {
		t.Fatal(err)
	}
	w.until("the agent has the text", func() bool {
		text, _ := lastAsked(model)
		return text == "Where is the xyzzyshed? Where is the xyzzyshed?"
	})
}

// Of a person who is forgotten neither the recording nor its text is left, whether it waits
// or was sent.
func TestForgettingAPersonRemovesVoiceMessagesThatWaitForTheirText(t *testing.T) {
	t.Parallel()
	url, up := outage(t, "Where is the xyzzyshed?")
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	ada := w.guest("Ada")
	say := func() {
		t.Helper()
		m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
		w.answers(ada.DM(), m.ID)
		w.quiet()
	}
	say()
	up.Store(true)
	if r, err := w.app.retryVoice(t.Context(), func(string) {}); err != nil || r.Transcribed != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	w.quiet()
	up.Store(false)
	say()
	if w.count(`SELECT count(*) FROM voice_pending`) != 1 || len(grep(t, w, "xyzzyshed")) == 0 || len(w.assets()) != 2 {
		t.Fatal("the world is not filled")
	}
	if _, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(w.user(ada)), cli, nil); err != nil {
		t.Fatal(err)
	}
	if found := grep(t, w, "xyzzyshed"); len(found) != 0 || w.count(`SELECT count(*) FROM voice_pending`) != 0 || len(w.assets()) != 0 {
		t.Errorf("left: %q, %v", found, w.assets())
	}
}

// A command transcribes as well as a server; where it is missing, the gateway serves and
// says so.
func TestACommandTranscribesVoiceMessages(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.TranscribeCommand = `sh -c 'test -s "$1" && echo "Where is $2?"' x {file} {model}`
		c.TranscribeModel = "tea"
	})
	if !w.app.isolated() {
		t.Skip("SKIPPED: ", whyNoBox(w.app))
	}
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	w.answers(ada.DM(), m.ID)
	if text, _ := lastAsked(model); text != "Where is tea? Where is tea?" {
		t.Errorf("the model was asked %q", text)
	}
	if left, err := os.ReadDir(filepath.Join(w.app.runtime, "voice")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	w, _ = newModelWorld(t, func(c *configs.Config) { c.TranscribeCommand = "no-such-engine {file}" })
	ada = w.guest("Ada")
	m = w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: sentences(t)}})
	if got := w.answers(ada.DM(), m.ID); !strings.Contains(got.Text, "could not be transcribed: the transcription service failed; it is kept as") {
		t.Errorf("its sender was told %q", got.Text)
	}
}

// A real engine with its model, without network: two sentences that were spoken by a program,
// as Telegram sends voice messages.
func TestARealEngineTranscribesAVoiceMessage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pocketsphinx_continuous"); err != nil {
		t.Skip("SKIPPED: no pocketsphinx (Debian: apt-get install pocketsphinx pocketsphinx-en-us)")
	}
	spoken, err := os.ReadFile("testdata/spoken.opus")
	if err != nil {
		t.Fatal(err)
	}
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.TranscribeCommand = "pocketsphinx_continuous -infile {file} -logfn /dev/null"
	})
	if !w.app.isolated() {
		t.Skip("SKIPPED: ", whyNoBox(w.app))
	}
	ada := w.guest("Ada")
	m := w.post(ada, ada.DM(), telegramtest.Outgoing{File: &telegramtest.File{Kind: "voice", Data: spoken}})
	if got := w.answers(ada.DM(), m.ID); got.Text != fakeSays {
		t.Errorf("answered %q", got.Text)
	}
	if text, _ := lastAsked(model); text != "go forward ten meters please open the door and turn on the light" {
		t.Errorf("the model was asked %q", text)
	}
}

func TestVoiceRetryOnTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t, newSim(t))
	if code, out, errs := h.run("voice", "retry"); code != 1 || !strings.Contains(errs, "no transcription is set up: set GATEHOUSE_TRANSCRIBE_URL") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	url, _ := outage(t, "Where is the xyzzyshed?")
	h.env["GATEHOUSE_TRANSCRIBE_URL"] = url
	if code, out, errs := h.run("voice", "retry"); code != 0 || out != "0 transcribed, 0 dropped, 0 waiting\n" {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := h.run("voice", "retry", "--json"); code != 0 || !strings.Contains(out, `"waiting": 0`) {
		t.Errorf("%d %s %s", code, out, errs)
	}
}
