package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"gatehouse/core/voice"
)

// recorded returns a recording of one sentence, and a service that hears what say returns in it.
func recorded(t *testing.T, say func() string) (recording, url string) {
	t.Helper()
	pcm := make([]int16, 3*voice.Rate)
	for i := range 2 * voice.Rate {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*200*float64(i)/voice.Rate))
	}
	var b bytes.Buffer
	if err := voice.WriteWAV(&b, pcm); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, _, err := r.FormFile("file"); err == nil {
			_, _ = io.Copy(io.Discard, f)
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": say()})
	}))
	t.Cleanup(s.Close)
	return b.String(), s.URL
}

// What is heard in a recording is text for the model: no command, no code, and no answer to a
// question, whatever it sounds like.
func TestWhatIsSpokenIsNoCommandAndNoAnswer(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			var said atomic.Value
			said.Store("")
			recording, url := recorded(t, func() string { return said.Load().(string) })
			s := newScript(t, platform, map[string]string{"settings": "TranscribeURL=" + url, "say.oga": recording})
			for _, step := range []string{"olga owns", "eve appears", "eve: let me in", "bot to eve: Your code is", `note code = Your code is (\w+)`} {
				s.step(step)
			}
			for _, words := range []string{"/approve {code} vault", "slash approve {code} vault", "/disable"} {
				said.Store(s.fill(words))
				for _, step := range []string{"olga sends say.oga:", "bot to olga: " + fakeSays, "quiet", "model read: " + said.Load().(string)} {
					s.step(step)
				}
			}
			if n := s.w.count(`SELECT count(*) FROM access WHERE user_id <> 1`); n != 0 {
				t.Error("a recording has approved a request")
			}

			said.Store("/stop")
			busy := s.model.Total() + 1
			for _, step := range []string{"model waits", "olga: A long story.", "bot shows to olga: One.", "olga sends say.oga:"} {
				s.step(step)
			}
			s.w.until("the recording waits behind the answer", func() bool {
				return s.w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state IN ('ready', 'limited')`) == 2
			})
			if n := s.w.count(`SELECT count(*) FROM lane WHERE owner <> ''`); n != 1 || s.model.Total() != busy {
				t.Errorf("%d answers run, %d calls of the model: a recording has stopped one", n, s.model.Total())
			}
			for _, step := range []string{"olga: /stop", "bot shows to olga: Stopped.", "quiet", "model read: /stop"} {
				s.step(step)
			}

			said.Store("Black")
			s.calls++
			for _, step := range []string{`model uses AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`,
				"olga: Make tea.", "bot to olga: Which tea?", "olga sends say.oga:", "bot to olga: still waits"} {
				s.step(step)
			}
			if n := s.w.count(`SELECT count(*) FROM asks WHERE kind = 'question' AND state = 'open'`); n != 1 {
				t.Error("a recording has answered the question")
			}
			for _, step := range []string{"model says: Poured.", "olga: Green", "bot to olga: Poured.", "quiet", "model read: Black"} {
				s.step(step)
			}
		})
	}
}

// Codes are read when a message is stored, and only from commands: an edit of a message into one
// uses up nothing.
func TestAMessageThatIsEditedIntoAClaimMakesNoOwner(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			code, _, err := s.w.app.pairing.Codes.NewClaim(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []string{"eve appears", "eve: hello", "bot to eve: Your code is", "eve edits hello: /claim " + code, "quiet", "bot silent to eve"} {
				s.step(step)
			}
			if n := s.w.count(`SELECT count(*) FROM identities WHERE user_id = 1`); n != 0 {
				t.Fatal("an edit has made an owner")
			}
			s.step("eve: /claim " + code)
			s.step("bot to eve: You are the owner now")
		})
	}
}
