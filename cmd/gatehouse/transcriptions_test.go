package main

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"gatehouse/configs"
)

// transcription sends a form with these fields and a recording, and returns what came.
func (w *world) transcription(name string, recording []byte, fields map[string]string) (status int, body string, head http.Header) {
	w.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for k, v := range fields {
		_ = form.WriteField(k, v) // into memory
	}
	if recording != nil {
		f, err := form.CreateFormFile("file", name)
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = f.Write(recording)
	}
	_ = form.Close()
	r, err := http.NewRequestWithContext(w.t.Context(), "POST", "http://"+w.cfg.Addr+"/v1/audio/transcriptions", &b)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

func TestRecordingsAreTranscribedForOpenAIsClients(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	close(release)
	url := stenographer(t, release)
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TranscribeURL = url })
	wav, whisper := sentences(t), map[string]string{"model": "whisper-1"}
	const said = "Where is the shed? I lost the key."
	if status, body, _ := w.transcription("a.wav", wav, whisper); status != 200 || body != `{"text":"`+said+`"}`+"\n" {
		t.Errorf("%d %q", status, body)
	}
	status, body, head := w.transcription("a.wav", wav, map[string]string{"model": "whisper-1", "response_format": "text", "language": "en"})
	if status != 200 || body != said+"\n" || !strings.HasPrefix(head.Get("Content-Type"), "text/plain") || !strings.Contains(head.Get("Warning"), "language") {
		t.Errorf("%d %q %v", status, body, head)
	}
	for _, c := range []struct {
		name      string
		recording []byte
		fields    map[string]string
		status    int
		param     string
	}{
		{"a.wav", wav, nil, 400, "model"},
		{"a.wav", nil, whisper, 400, "file"},
		{"a.wav", wav, map[string]string{"model": "other"}, 404, "model"},
		{"a.wav", wav, map[string]string{"model": "whisper-1", "response_format": "srt"}, 400, "response_format"},
		{"a.wav", wav, map[string]string{"model": strings.Repeat("m", 9<<10)}, 400, "model"},
		{"a.wav", make([]byte, 21<<20), whisper, 413, ""},
		{"../../a.m4a", []byte("....ftypM4A "), whisper, 502, ""}, // the server is asked, and refuses it
	} {
		status, body, _ := w.transcription(c.name, c.recording, c.fields)
		var got struct {
			Error struct{ Param, Message string }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != c.status || got.Error.Param != c.param || got.Error.Message == "" {
			t.Errorf("%v: %d %s", c.fields, status, body)
		}
	}
	if status, body := w.call("POST", "/v1/audio/transcriptions", map[string]any{"model": "whisper-1"}); status != 415 {
		t.Errorf("JSON: %d %s", status, body)
	}
}

func TestWithoutATranscriptionOpenAIsClientsAreToldSo(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	if status, body, _ := w.transcription("a.wav", sentences(t), map[string]string{"model": "whisper-1"}); status != 404 || !strings.Contains(body, "GATEHOUSE_TRANSCRIBE_URL") {
		t.Errorf("%d %s", status, body)
	}
}
