package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/llm/embed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server plays the endpoint as OpenAI documents it (API reference, Create embeddings).
func server(t *testing.T, answer func(w http.ResponseWriter, model string, input []string, dimensions int)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model      string   `json:"model"`
			Input      []string `json:"input"`
			Dimensions int      `json:"dimensions"`
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&in) != nil {
			http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
			return
		}
		if r.Header.Get("Authorization") != "Bearer the-key" {
			http.Error(w, `{"error":{"message":"Incorrect API key provided: the-key."}}`, http.StatusUnauthorized)
			return
		}
		answer(w, in.Model, in.Input, in.Dimensions)
	}))
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, o embed.Options) *embed.Client {
	t.Helper()
	if o.Key == "" {
		o.Key = "the-key"
	}
	o.Model = "small"
	c, err := embed.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEmbed_ReturnsTheVectorsInTheOrderOfTheTexts(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, model string, input []string, dimensions int) {
		if model != "small" || len(input) != 2 || input[0] != "Tee, grün" || dimensions != 2 {
			t.Errorf("the server is asked for %q %q %d", model, input, dimensions)
		}
		io.WriteString(w, `{"data":[{"index":1,"embedding":[0.5, -1e-3]},{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":7}}`)
	})
	for _, base := range []string{s.URL, s.URL + "/v1", s.URL + "/v1/", s.URL + "/v1/embeddings"} {
		v, tokens, err := client(t, embed.Options{URL: base, Dimensions: 2}).Embed(t.Context(), []string{"Tee, grün", "roof"})
		if err != nil || tokens != 7 || fmt.Sprint(v) != "[[1 2] [0.5 -0.001]]" {
			t.Errorf("%s: %v, %d tokens, %v", base, v, tokens, err)
		}
	}
}

func TestEmbed_RefusesVectorsThatCannotBeCompared(t *testing.T) {
	for name, answer := range map[string]string{
		"short":         `{"data":[{"index":0,"embedding":[1,2,3]}]}`,
		"none":          `{"data":[]}`,
		"of one":        `{"data":[{"index":0,"embedding":[1,2,3]},{"index":0,"embedding":[1,2,3]}]}`,
		"other numbers": `{"data":[{"index":0,"embedding":[1,2,3]},{"index":7,"embedding":[1,2,3]}]}`,
		"dimensions":    `{"data":[{"index":0,"embedding":[1,2,3]},{"index":1,"embedding":[1,2]}]}`,
		"NaN":           `{"data":[{"index":0,"embedding":[1,2,NaN]},{"index":1,"embedding":[1,2,3]}]}`,
		"null":          `{"data":[{"index":0,"embedding":[1,2,null]},{"index":1,"embedding":[1,2,3]}]}`,
		"infinite":      `{"data":[{"index":0,"embedding":[1,2,1e99]},{"index":1,"embedding":[1,2,3]}]}`,
		"zero":          `{"data":[{"index":0,"embedding":[0,0,0]},{"index":1,"embedding":[1,2,3]}]}`,
		"no list":       `{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":[1,2,3]}]}`,
		"too many":      `{"data":[{"index":0,"embedding":[1` + strings.Repeat(",1", embed.MaxDimensions) + `]},{"index":1,"embedding":[1]}]}`,
		"a page":        `<html>`,
		"cut off":       `{"data":[{"index":0,"embedd`,
		"endless":       `{"data":"` + strings.Repeat("x", 33<<20),
	} {
		s := server(t, func(w http.ResponseWriter, _ string, _ []string, _ int) { io.WriteString(w, answer) })
		v, _, err := client(t, embed.Options{URL: s.URL}).Embed(t.Context(), []string{"a", "b"})
		var f *embed.Fault
		if v != nil || !errors.As(err, &f) || f.Again || len(err.Error()) > 400 {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	s := server(t, func(w http.ResponseWriter, _ string, _ []string, _ int) {
		io.WriteString(w, `{"data":[{"index":0,"embedding":[1,2,3]}]}`)
	})
	if _, _, err := client(t, embed.Options{URL: s.URL, Dimensions: 4}).Embed(t.Context(), []string{"a"}); err == nil || !strings.Contains(err.Error(), "3 dimensions, not 4") {
		t.Errorf("other dimensions than those asked for: %v", err)
	}
}

func TestEmbed_SaysWhetherToAskAgain(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for status, want := range map[int][2]bool{ // again, refused
		429: {true, false}, 500: {true, false}, 503: {true, false}, 400: {false, true}, 413: {false, true}, 404: {false, false}, 307: {false, false},
	} {
		s := server(t, func(w http.ResponseWriter, _ string, _ []string, _ int) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", elsewhere.URL)
			http.Error(w, `{"error":{"message":"the-key is`+"\\u0007"+` busy"}}`, status)
		})
		_, _, err := client(t, embed.Options{URL: s.URL}).Embed(t.Context(), []string{"a"})
		var f *embed.Fault
		if !errors.As(err, &f) || f.Again != want[0] || f.Refused() != want[1] || f.After != 7*time.Second || strings.Contains(err.Error(), "the-key") || !strings.Contains(err.Error(), "busy") {
			t.Errorf("%d: %+v", status, err)
		}
	}
	s := server(t, nil)
	_, _, err := client(t, embed.Options{URL: s.URL, Key: "wrong"}).Embed(t.Context(), []string{"a"})
	var f *embed.Fault
	if !errors.As(err, &f) || f.Again || f.Status != http.StatusUnauthorized {
		t.Errorf("a refused key: %v", err)
	}
	s.Close()
	if _, _, err = client(t, embed.Options{URL: s.URL}).Embed(t.Context(), []string{"a"}); !errors.As(err, &f) || !f.Again || strings.Contains(err.Error(), s.URL) {
		t.Errorf("a server that is down: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = client(t, embed.Options{URL: s.URL}).Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was ended: %v", err)
	}
}

func TestNew_RefusesWhatIsNoAddressOrModel(t *testing.T) {
	for _, base := range []string{"", "ftp://h", "127.0.0.1:9000", "http://"} {
		if _, err := embed.New(embed.Options{URL: base, Model: "m"}); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
	for _, o := range []embed.Options{{URL: "http://h"}, {URL: "http://h", Model: "m", Dimensions: -1}, {URL: "http://h", Model: "m", Dimensions: 1 << 20}} {
		if _, err := embed.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestFault_SaysWhetherATextMayBeWhy(t *testing.T) {
	ask := func(s *httptest.Server, d time.Duration) *embed.Fault {
		c := client(t, embed.Options{URL: s.URL})
		if d > 0 {
			c.SetTimeout(d)
		}
		_, _, err := c.Embed(t.Context(), []string{"a"})
		var f *embed.Fault
		if !errors.As(err, &f) {
			t.Fatalf("%v is no fault", err)
		}
		return f
	}
	for status, want := range map[int]bool{400: true, 413: true, 422: true, 500: true, 503: true, 200: true, 401: false, 404: false, 429: false} {
		s := server(t, func(w http.ResponseWriter, _ string, _ []string, _ int) { w.WriteHeader(status) })
		if f := ask(s, 0); f.OfTexts() != want {
			t.Errorf("%d: %t", status, f.OfTexts())
		}
	}
	hold := make(chan struct{})
	s := server(t, func(http.ResponseWriter, string, []string, int) { <-hold })
	f := ask(s, 10*time.Millisecond)
	close(hold)
	if !f.OfTexts() || !f.Again {
		t.Errorf("an answer that does not come in time: %+v", f)
	}
	s.Close()
	if f := ask(s, 0); f.OfTexts() {
		t.Error("a server that is down fails on a text")
	}
}

func TestFault_RepeatsNoTextThatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		said   string
		text   string
		kept   bool
	}{
		"all of a text":      {400, `1 validation error: {'loc': ('body','input'), 'input': 'The secret diagnosis is melanoma.'}`, "The secret diagnosis is melanoma.", false},
		"a part of it":       {500, `cannot embed "…diagnosis is\nmelanoma, which grows fast…"`, "The secret diagnosis is melanoma, which grows fast.", false},
		"escaped":            {500, `cannot embed 'Gr\u00fcner Tee und \u00c4pfel aus'`, "Grüner Tee und Äpfel aus dem Garten", false},
		"a search":           {400, `cannot embed "melanoma"`, "melanoma", false},
		"what is refused":    {401, `who are you?`, "text", false},
		"what is forbidden":  {403, `not for you`, "text", false},
		"what is of no text": {400, `input is too large to process`, "The secret diagnosis is melanoma.", true},
	} {
		said, _ := json.Marshal(map[string]any{"error": map[string]string{"message": c.said}})
		s := server(t, func(w http.ResponseWriter, _ string, _ []string, _ int) {
			w.WriteHeader(c.status)
			_, _ = w.Write(said)
		})
		_, _, err := client(t, embed.Options{URL: s.URL}).Embed(t.Context(), []string{"another", c.text})
		if kept := err != nil && strings.Contains(err.Error(), c.said); kept != c.kept || err == nil || !strings.Contains(err.Error(), fmt.Sprint(c.status)) || strings.Contains(err.Error(), "melanoma") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
