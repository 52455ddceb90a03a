package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

func TestTemperatureAndStopAreSentAndLeftOutWhereTheModelTakesNone(t *testing.T) {
	var sent []string
	url, _ := picky(t, func(body string) string {
		sent = append(sent, body)
		switch {
		case strings.Contains(body, `"temperature":0`):
			return "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
		case strings.Contains(body, `"stop"`):
			return "Unsupported parameter: 'stop' is not supported with this model."
		}
		return ""
	})
	c, _ := client(t, url, openai.Options{Model: "fake-1"})
	cold := 0.0
	for range 2 {
		g := wiretest.Collect(c.Reply(t.Context(), &llm.Request{Messages: wiretest.Said("x"), Temperature: &cold, Stop: []string{"END"}}))
		if g.Err != nil || g.Text == "" {
			t.Errorf("%+v", g)
		}
	}
	var first struct {
		Temperature *float64
		Stop        []string
	}
	if err := json.Unmarshal([]byte(sent[0]), &first); err != nil || first.Temperature == nil || *first.Temperature != 0 || len(first.Stop) != 1 {
		t.Errorf("%s: %v", sent[0], err)
	}
	if len(sent) != 4 || strings.Contains(sent[3], "temperature") || strings.Contains(sent[3], `"stop"`) {
		t.Errorf("%d requests, the last %s", len(sent), sent[len(sent)-1])
	}
}
