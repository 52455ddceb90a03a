package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/core"
)

type sample struct {
	Path  string   `json:"file_path" tool:"required"`
	Limit int      `json:"limit"`
	Head  *int     `json:"head_limit"`
	All   bool     `json:"replace_all"`
	Only  []string `json:"only"`
}

func TestInputIsReadAsModelsWriteIt(t *testing.T) {
	for _, input := range []string{
		`{"file_path": "a", "limit": 7, "head_limit": 0, "replace_all": true, "only": ["x"]}`,
		`{"file_path": "a", "limit": "7", "head_limit": "0", "replace_all": "true", "only": "[\"x\"]"}`,
		`{"file_path": "a", "limit": 7.0, "head_limit": 0.0, "replace_all": true, "only": ["x"]}`,
		` {"file_path": "a", "limit": " 7 ", "head_limit": 0, "replace_all": true, "only": ["x"]} `,
	} {
		var s sample
		if err := Decode(json.RawMessage(input), &s); err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if s.Path != "a" || s.Limit != 7 || s.Head == nil || *s.Head != 0 || !s.All || len(s.Only) != 1 || s.Only[0] != "x" {
			t.Errorf("%s: %+v", input, s)
		}
	}
	var s sample
	if err := Decode(json.RawMessage(`{"file_path": " 12 ", "limit": null, "head_limit": null}`), &s); err != nil || s.Path != " 12 " || s.Head != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestInputThatDoesNotFitIsExplainedToTheModel(t *testing.T) {
	for input, want := range map[string]string{
		``:                                      "file_path is missing",
		`null`:                                  "file_path is missing",
		`{}`:                                    "file_path is missing",
		`{"file_path":null}`:                    "file_path is missing",
		`[]`:                                    "the input is not a JSON object; send one with: file_path, limit, head_limit, replace_all, only",
		`{"file_path"`:                          "the input is not a JSON object; send one with: file_path, limit, head_limit, replace_all, only",
		`{"path": "a"}`:                         `"path" is not an input of this tool; its inputs are: file_path, limit, head_limit, replace_all, only`,
		`{"file_path":"a","FILE_PATH":"b"}`:     `"FILE_PATH" is not an input of this tool; its inputs are: file_path, limit, head_limit, replace_all, only`,
		`{"file_path":7}`:                       "file_path must be a text",
		`{"file_path":"a","limit":"many"}`:      "limit must be a whole number",
		`{"file_path":"a","limit":1.5}`:         "limit must be a whole number",
		`{"file_path":"a","limit":1e99}`:        "limit must be a whole number",
		`{"file_path":"a","head_limit":"x"}`:    "head_limit must be a whole number",
		`{"file_path":"a","replace_all":"yes"}`: "replace_all must be true or false",
		`{"file_path":"a","only":[1]}`:          "only must be a list of texts",
		`{"file_path":"` + strings.Repeat("a", 5<<20) + `"}`: "the input is 5242896 bytes long, and at most 4194304 are taken",
	} {
		var s sample
		err := Decode(json.RawMessage(input), &s)
		if core.KindOf(err) != core.Invalid || core.TextOf(err) != want {
			t.Errorf("%.60s: %v %q, want %q", input, core.KindOf(err), core.TextOf(err), want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"file_path": "a", "limit": "7"}`))
	f.Add([]byte(`{"file_path": {"a": []}, "only": [["x"]]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var s sample
		if err := Decode(input, &s); err != nil && core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", input, err)
		}
	})
}

func TestAToolThatIsNotWellFormedIsFoundOut(t *testing.T) {
	good := Tool{
		Name: "Read", About: "Reads.", Kind: Read, Schema: json.RawMessage(`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`),
		Run: func(context.Context, *Call) (Result, error) { return Result{}, nil },
	}
	if err := Check(good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Tool){
		"the name":             func(x *Tool) { x.Name = "Re ad" },
		"no description":       func(x *Tool) { x.About = " \n" },
		"unknown kind":         func(x *Tool) { x.Kind = "" },
		"no work":              func(x *Tool) { x.Run = nil },
		"negative time-out":    func(x *Tool) { x.Timeout = -1 },
		"schema":               func(x *Tool) { x.Schema = nil },
		"not object":           func(x *Tool) { x.Schema = json.RawMessage(`{"type":"string"}`) },
		"additionalProperties": func(x *Tool) { x.Schema = json.RawMessage(`{"type":"object"}`) },
		"not described": func(x *Tool) {
			x.Schema = json.RawMessage(`{"type":"object","required":["a"],"additionalProperties":false}`)
		},
	} {
		x := good
		change(&x)
		if err := Check(x); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	x := good
	x.Kind, x.Schema = MCP, json.RawMessage(`{"type":"object","properties":{}}`)
	if err := Check(x); err != nil {
		t.Errorf("a server's schema: %v", err)
	}
}
