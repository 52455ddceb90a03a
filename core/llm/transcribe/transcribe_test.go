package transcribe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server plays the endpoint as OpenAI documents it (API reference, Create
// transcription): multipart with file and model, the key as bearer.
func server(t *testing.T, answer func(w http.ResponseWriter)) (*httptest.Server, *string) {
	t.Helper()
	heard := new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/audio/transcriptions" || r.FormValue("model") == "" || !strings.Contains(h.Filename, ".") {
			http.Error(w, `{"error":{"message":"Invalid file format."}}`, http.StatusBadRequest)
			return
		}
		if r.Header.Get("Authorization") != "Bearer the-key" {
			http.Error(w, `{"error":{"message":"Incorrect API key provided: the-key."}}`, http.StatusUnauthorized)
			return
		}
		data, _ := io.ReadAll(f)
		*heard = string(data)
		answer(w)
	}))
	t.Cleanup(s.Close)
	return s, heard
}

func client(t *testing.T, base, key string) *Client {
	t.Helper()
	c, err := New(base, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAVoiceMessageIsWrittenDown(t *testing.T) {
	s, heard := server(t, func(w http.ResponseWriter) { io.WriteString(w, `{"text":" Grüße aus Ulm. \n"}`) })
	for _, base := range []string{s.URL, s.URL + "/v1", s.URL + "/v1/", s.URL + "/v1/audio/transcriptions"} {
		text, err := client(t, base, "the-key").Text(t.Context(), "voice.ogg", strings.NewReader("OggS sound"))
		if err != nil || text != "Grüße aus Ulm." || *heard != "OggS sound" {
			t.Errorf("%s: %q, %v; heard %q", base, text, err, *heard)
		}
	}
}

func TestAServerThatDoesNotAnswerWellIsAnErrorWithoutKey(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for name, answer := range map[string]func(http.ResponseWriter){
		"broken":  func(w http.ResponseWriter) { http.Error(w, "the-key is overloaded", http.StatusBadGateway) },
		"odd":     func(w http.ResponseWriter) { io.WriteString(w, "<html>") },
		"endless": func(w http.ResponseWriter) { io.WriteString(w, `{"text":"`+strings.Repeat("x", 2<<20)+`"}`) },
		"long":    func(w http.ResponseWriter) { io.WriteString(w, `{"text":"`+strings.Repeat("x", maxText+1)+`"}`) },
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	} {
		s, _ := server(t, answer)
		text, err := client(t, s.URL, "the-key").Text(t.Context(), "voice.ogg", strings.NewReader("sound"))
		if err == nil || text != "" || strings.Contains(err.Error(), "the-key") || len(err.Error()) > 400 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	s, _ := server(t, nil)
	if _, err := client(t, s.URL, "wrong").Text(t.Context(), "voice.ogg", strings.NewReader("sound")); err == nil {
		t.Error("a refused key is no error")
	}
	for _, base := range []string{"", "ftp://h", "127.0.0.1:9000", "http://"} {
		if _, err := New(base, ""); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
}

// A server that takes the recording and never answers is given up.
func TestAServerThatHangsIsGivenUp(t *testing.T) {
	released := make(chan struct{})
	s, _ := server(t, func(http.ResponseWriter) { <-released })
	c := client(t, s.URL, "the-key")
	if c.http.Timeout != timeout {
		t.Errorf("it is waited for %v, want %v", c.http.Timeout, timeout)
	}
	c.http.Timeout = 50 * time.Millisecond
	text, err := c.Text(t.Context(), "voice.ogg", strings.NewReader("sound"))
	close(released)
	if err == nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
