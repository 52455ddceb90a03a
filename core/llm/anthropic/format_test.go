package anthropic_test

import (
	"encoding/json"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/wiretest"
)

func TestAFormatIsAskedForAndLeftOutWhereTheModelTakesNone(t *testing.T) {
	verdict := &llm.Format{Name: "verdict", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["points"],"properties":{"points":{"type":"array","items":{"type":"string"}}}}`)}
	for name, c := range map[string]struct {
		none     bool
		requests int
	}{"known": {false, 2}, "refused": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			s := anthropictest.New(t, anthropictest.Options{NoFormat: c.none, Default: anthropictest.Say(`{"points":[]}`)})
			m, _ := client(t, s.URL(), anthropic.Options{Model: newer})
			for range 2 {
				if g := wiretest.Collect(m.Reply(t.Context(), &llm.Request{Messages: wiretest.Said("x"), Format: verdict})); g.Err != nil || g.Text != `{"points":[]}` {
					t.Errorf("%+v", g)
				}
			}
			all := s.Requests()
			last := all[len(all)-1].Message.Output
			if len(all) != c.requests || (last == nil) != c.none || last != nil && string(last.Format.Schema) != string(verdict.Schema) {
				t.Errorf("%d requests, the last with %+v", len(all), last)
			}
		})
	}
}

func TestTheFakeHoldsAFormatAgainstTheRules(t *testing.T) {
	for schema, fine := range map[string]bool{
		`{"type":"object"}`: false,
		`{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","minimum":1}}}`: false,
		`{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer"}}}`:             true,
	} {
		body := `{"model":"claude-fake-5","max_tokens":5,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`
		if got := anthropictest.Check([]byte(body)); (got == "") != fine {
			t.Errorf("%s: %q", schema, got)
		}
	}
}
