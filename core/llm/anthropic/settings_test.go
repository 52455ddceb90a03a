package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/wiretest"
)

func TestTemperatureAndStopAreSentWithinWhatTheAPITakes(t *testing.T) {
	type settings struct {
		Temperature *float64
		Stop        []string `json:"stop_sequences"`
	}
	var sent []settings
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var s settings
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &s); err != nil {
			t.Error(err)
		}
		sent = append(sent, s)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"temperature: not supported by this model"}}`)
	})
	c, _ := client(t, url, anthropic.Options{Model: "claude-3-5-haiku-latest"})
	hot := 1.5
	for range 2 {
		wiretest.Collect(c.Reply(t.Context(), &llm.Request{Messages: wiretest.Said("x"), Temperature: &hot, Stop: []string{"END", "\n"}}))
	}
	if len(sent) != 3 || sent[0].Temperature == nil || *sent[0].Temperature != 1 || !slices.Equal(sent[0].Stop, []string{"END"}) {
		t.Fatalf("%d requests, first %+v", len(sent), sent)
	}
	if sent[1].Temperature != nil || sent[2].Temperature != nil {
		t.Errorf("sent again after it was refused: %+v", sent)
	}
}
