package strict

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyOneJSONObjectOfTheFormIsRead(t *testing.T) {
	type form struct {
		A int `json:"a"`
	}
	for _, good := range []string{`{"a":1}`, " \n{\"a\": 1}\n", "```json\n{\"a\":1}\n```", "```\n{\"a\":1}\n```"} {
		var f form
		if err := Decode(good, &f); err != nil || f.A != 1 {
			t.Errorf("%q: %v, %+v", good, err, f)
		}
	}
	for _, bad := range []string{"", "1", "[]", `{"a":1} and so on`, `Sure: {"a":1}`, `{"a":1}{"a":2}`, `{"a":1,"b":2}`, `{"a":1,"A":2}`, `{"a":"1"}`, `{"a":1`, "{\"a\":1,\"\u017f\":1}",
		"\xff{}", strings.Repeat("{\"a\":", 8) + "1" + strings.Repeat("}", 8), `{"a":1,"b":"` + strings.Repeat("x", MaxReply) + `"}`} {
		var f form
		if err := Decode(bad, &f); err == nil {
			t.Errorf("%.60q is read as %+v", bad, f)
		}
	}
}

func TestTheRepairNamesTheFaultAndTheSchema(t *testing.T) {
	if s := Repair(errors.New("ratings: missing"), `{"type":"object"}`); !strings.Contains(s, "ratings: missing") || !strings.Contains(s, `{"type":"object"}`) {
		t.Error(s)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"a":[{"b":1}]}`)
	f.Fuzz(func(t *testing.T, reply string) {
		var v map[string]any
		if err := Decode(reply, &v); err == nil && v == nil {
			t.Errorf("%q is read as nothing", reply)
		}
	})
}
