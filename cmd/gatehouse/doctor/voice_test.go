package doctor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDoctorTriesTheTranscription(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"text":""}`)
	}))
	defer server.Close()
	p := healthySubject(t)
	first := func() (Finding, bool) {
		t.Helper()
		found, healthy := examine(t, p, "voice")
		if len(found) == 0 {
			return Finding{}, healthy
		}
		return found[0], healthy
	}
	if f, _ := first(); f.Name != "" {
		t.Errorf("without a transcription: %+v", f)
	}
	p.Config.TranscribeURL = server.URL
	if f, healthy := first(); f.State != OK || !healthy || !strings.Contains(f.Text, "gets the recordings") {
		t.Errorf("%+v", f)
	}
	status = http.StatusServiceUnavailable
	if f, healthy := first(); f.State != Fail || healthy || !strings.Contains(f.Text, "kept and transcribed later") {
		t.Errorf("%+v", f)
	}
	p.Config.TranscribeCommand = "no-such-engine {file}"
	if f, _ := first(); f.State != Fail || !strings.Contains(f.Text, "no-such-engine") || !strings.Contains(f.Fix, "install the program") {
		t.Errorf("%+v", f)
	}
	p.Config.TranscribeCommand, p.Config.TranscribeModel = "sh -c true {model}", "/no/such/model"
	if f, _ := first(); f.State != Fail || !strings.Contains(f.Text, "the model is missing") {
		t.Errorf("%+v", f)
	}
	p.Config.TranscribeModel = "/bin/sh"
	if f, healthy := first(); f.State != OK || !healthy {
		t.Errorf("%+v", f)
	}
}
