package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
)

// What a client of the API asks for is what its model gets: the model it
// names, its own system prompt, and the notes of its working directory.
func TestModelPromptAndFolderOfARequestReachTheModel(t *testing.T) {
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "fake-2"}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.ModelFallbacks = "openai/fake-1", values.List{"openai/fake-2"}
		c.OpenaiBaseURL, c.OpenaiAPIKey = model.URL(), values.NewSecret(modelKey)
	})
	folder := filepath.Join(w.cfg.VaultPath, "Boats")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "AGENTS.md"), []byte("Every boat here is called Henrietta."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ask          map[string]any
		model        string
		told, untold string
	}{
		{ask: map[string]any{"message": "hello"}, model: "fake-1", untold: "Henrietta"},
		{ask: map[string]any{"message": "hello", "model": "openai/fake-2"}, model: "fake-2", untold: "Henrietta"},
		{ask: map[string]any{"message": "hello", "system_prompt": "Speak like a gardener."}, model: "fake-1", told: "Speak like a gardener."},
		{ask: map[string]any{"message": "hello", "working_directory": "Boats"}, model: "fake-1", told: "Henrietta"},
	} {
		if status, body := w.call("POST", "/api/chat", c.ask); status != 200 {
			t.Fatalf("%v: %d %s", c.ask, status, body)
		}
		all := model.Requests()
		got := all[len(all)-1]
		if got.Model != c.model {
			t.Errorf("%v: the model %s was asked", c.ask, got.Model)
		}
		if c.told != "" && !strings.Contains(string(got.Body), c.told) {
			t.Errorf("%v: the model was not told %q: %s", c.ask, c.told, got.Body)
		}
		if c.untold != "" && strings.Contains(string(got.Body), c.untold) {
			t.Errorf("%v: the model was told %q", c.ask, c.untold)
		}
	}
}

// The log tells ids, states and causes: what people and models say stays out
// of it, at the level debug too.
func TestTheLogHoldsNoWordOfAConversation(t *testing.T) {
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	stranger := w.sim.NewUser("Wanda")
	stranger.Send("may a zebrafish in")
	w.request(stranger)
	model.Script(llmtest.Say("the quokka ", "answers"), llmtest.Refuse(500, "no", "server_error", ""))
	w.replies(boss, "what does the axolotl eat?")
	w.call("POST", "/api/chat", map[string]any{"message": "and the pangolin?", "system_prompt": "You are a narwhal."})
	boss.Send("/nosuchcommand okapi")
	w.quiet()
	for _, word := range []string{"zebrafish", "quokka", "axolotl", "pangolin", "narwhal", "okapi"} {
		if strings.Contains(w.log.String(), word) {
			t.Errorf("the log holds %q", word)
		}
	}
}

// The socket and the key lie in a folder of the user's own, outside of the
// vault, and whatever is asked over the socket is in the audit log.
func TestTheSocketIsPrivateAndWhatIsAskedOverItIsAudited(t *testing.T) {
	w := newWorld(t, nil)
	if strings.HasPrefix(w.app.runtime, w.cfg.VaultPath) {
		t.Errorf("%s is in the vault", w.app.runtime)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "socket": 0o600, "key": 0o600} {
		st, err := os.Stat(filepath.Join(w.app.runtime, name))
		if err != nil || st.Mode().Perm() != want {
			t.Errorf("%q: %v %v, want %v", name, st.Mode(), err, want)
		}
	}
	for name, request := range map[string]string{"pairing/list": "GET /api/bots/pairing", "claim": "POST /control/claim", "pairing/deny": "POST /api/bots/pairing/NOBODYS1/deny"} {
		method, at, _ := strings.Cut(request, " ")
		_ = w.overSocket(method, at, nil, nil) // a refused one is written, too
		if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'socket.request' AND subject = $1`, name); n != 1 {
			t.Errorf("%s: %d audit rows", name, n)
		}
	}
	// Of the API it serves what commands use, and nothing of it is on the network.
	for _, request := range []string{"POST /api/chat", "GET /api/chat", "PATCH /api/keys/x", "POST /api/bots/telegram/stop", "GET /admin", "GET /metrics"} {
		method, at, _ := strings.Cut(request, " ")
		if err := w.overSocket(method, at, nil, nil); err == nil {
			t.Errorf("%s is served on the socket", request)
		}
	}
	for _, request := range []string{"POST /control/claim", "GET /control/settings", "GET /control/people/1"} {
		method, at, _ := strings.Cut(request, " ")
		if status, _ := w.call(method, at, nil); status != 404 {
			t.Errorf("%s on the network: %d", request, status)
		}
	}
}

// Times begin with the program, so that "long ago" means something at once, and
// histograms reach from half a millisecond to five minutes.
func TestMetricsBeginWithTheProgramAndReachFarEnough(t *testing.T) {
	before := float64(time.Now().Add(-time.Minute).Unix())
	w := newWorld(t, nil)
	families, err := w.app.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	times, histograms := 0, 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "gatehouse_") {
			continue
		}
		for _, m := range f.GetMetric() {
			if strings.HasSuffix(f.GetName(), "_timestamp_seconds") {
				times++
				if m.GetGauge().GetValue() < before {
					t.Errorf("%s %v is %v at the start", f.GetName(), m.GetLabel(), m.GetGauge().GetValue())
				}
			}
			if h := m.GetHistogram(); h != nil && strings.HasSuffix(f.GetName(), "_seconds") {
				histograms++
				var bounds []float64
				for _, b := range h.GetBucket() {
					bounds = append(bounds, b.GetUpperBound())
				}
				if slices.Min(bounds) != 0.0005 || !slices.Contains(bounds, 300) {
					t.Errorf("%s has the bounds %v", f.GetName(), bounds)
				}
			}
		}
	}
	if times < 5 || histograms < 3 {
		t.Errorf("%d times and %d histograms were found", times, histograms)
	}
}
