package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

var verdict = &llm.Format{Name: "verdict", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["points"],"properties":{"points":{"type":"array","items":{"type":"string"}}}}`)}

func TestAFormatIsAskedForAndLeftOutWhereTheServerKnowsNone(t *testing.T) {
	for name, c := range map[string]struct {
		none     bool
		requests int
		last     string
	}{"known": {false, 2, "verdict"}, "unknown": {true, 3, ""}} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{NoFormat: c.none, Default: llmtest.Say(`{"points":[]}`)})
			m, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			for range 2 {
				if g := wiretest.Collect(m.Reply(t.Context(), &llm.Request{Messages: wiretest.Said("x"), Format: verdict})); g.Err != nil || g.Text != `{"points":[]}` {
					t.Errorf("%+v", g)
				}
			}
			all := s.Requests()
			if len(all) != c.requests || all[len(all)-1].Format != c.last || all[0].Format == "" && !c.none {
				t.Errorf("%d requests, the last with the format %q", len(all), all[len(all)-1].Format)
			}
		})
	}
}

func TestTheFakeHoldsAFormatAgainstTheRules(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	m, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	for _, schema := range []string{`{"type":"array"}`, `{"type":"object"}`, `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`} {
		before := s.Total()
		_ = wiretest.Collect(m.Reply(t.Context(), &llm.Request{Messages: wiretest.Said("x"), Format: &llm.Format{Name: "v", Schema: json.RawMessage(schema)}}))
		if r := s.Requests()[before]; r.Status != 400 || !strings.Contains(string(r.Body), "response_format") {
			t.Errorf("%s was answered with %d", schema, r.Status)
		}
		m, _ = client(t, s.URL(), openai.Options{Model: "fake-1"}) // it has learnt to leave it out
	}
}
