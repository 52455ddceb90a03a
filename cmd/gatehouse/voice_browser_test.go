//go:build browser

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/web/webtest"
)

// speaker is a visit of the panel by somebody whose microphone plays two sentences over
// and over.
func speaker(t *testing.T) *visit {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"text":"Where is the shed?"}`)
	}))
	t.Cleanup(engine.Close)
	wav := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(wav, sentences(t), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *configs.Config) {
		c.AdminPassword, c.TranscribeURL, c.Model = values.Secret{}, engine.URL, "local/quote:30ms"
	})
	oneTime, err := w.app.admins.Prepare(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{world: w, oneTime: oneTime, panel: webtest.NewSpeaking(t, wav)}
	v.panel.Look(1280, 860, "light")
	v.panel.Open("http://" + w.cfg.Addr + "/admin")
	v.signIn()
	v.panel.Open("http://" + w.cfg.Addr + "/admin/talk")
	return v
}

func TestTheOperatorSpeaksInTheBrowserAndSendsTheText(t *testing.T) {
	t.Parallel()
	v := speaker(t)
	v.panel.Write(`#composer textarea`, "Ask this:")
	v.panel.Click(`#speak button`)
	v.panel.Says(`#speak p`, "Listening")
	v.panel.Eventually(`document.querySelector("#composer textarea").value.startsWith("Ask this: Where is the shed?")`)
	v.panel.Keep("speak-desk-light", v.panel.Picture())
	v.panel.Look(390, 844, "dark")
	v.panel.Keep("speak-phone-dark", v.panel.Picture())
	v.panel.Look(1280, 860, "light")
	v.panel.Focus(`#speak button`)
	v.panel.Press(kb.Enter)
	v.panel.Eventually(`document.querySelector("#speak button").ariaPressed === "false"`)
	v.panel.Focused(`#composer textarea`) // to read it, and send it
	v.panel.Press(kb.Enter)
	v.panel.Eventually(`document.querySelector(".said.person")?.textContent.includes("Where is the shed?")`)
}

func TestOnlyThePagesToTalkOnMayUseTheMicrophone(t *testing.T) {
	t.Parallel()
	v := speaker(t)
	v.panel.Eventually(`document.featurePolicy.allowsFeature("microphone") && document.querySelector("#speak button") !== null`)
	v.panel.Open("http://" + v.cfg.Addr + "/admin/chats")
	v.panel.Eventually(`!document.featurePolicy.allowsFeature("microphone") && document.querySelector("#speak") === null`)
}
