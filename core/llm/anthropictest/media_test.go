package anthropictest_test

import (
	"strings"
	"testing"

	fake "gatehouse/core/llm/anthropictest"
)

func TestMediaAreHeldAgainstTheGuides(t *testing.T) {
	const (
		png = "iVBORw0KGgo="
		pdf = "JVBERi0xLjcK"
	)
	source := func(kind, mime, data string) string {
		return `{"type":"` + kind + `","source":{"type":"base64","media_type":"` + mime + `","data":"` + data + `"}}`
	}
	said := func(blocks string) string { return msgs(`{"role":"user","content":[` + blocks + `]}`) }
	shown := func(fields, content string) string {
		return msgs(`{"role":"user","content":"x"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1",`+fields+`"content":[`+content+`]}]}`)
	}
	good := source("image", "image/png", png)
	for name, c := range map[string]struct{ body, message string }{
		"a picture":             {said(good), ""},
		"a document":            {said(source("document", "application/pdf", pdf)), ""},
		"a tool's":              {shown("", good+","+source("document", "application/pdf", pdf)), ""},
		"100 pictures":          {said(strings.Repeat(good+",", 99) + good), ""},
		"101 pictures":          {said(strings.Repeat(good+",", 100) + good), "too many images"},
		"no source":             {said(`{"type":"image"}`), "Field required"},
		"another type":          {said(source("image", "image/bmp", png)), "media_type: Input should be"},
		"a picture as document": {said(source("document", "image/png", png)), "Input should be 'application/pdf'"},
		"no base64":             {said(source("image", "image/png", "*")), "Invalid base64 data"},
		"the wrong type":        {said(source("image", "image/jpeg", png)), "appears to be a image/png image"},
		"no picture":            {said(source("image", "image/png", "aGVsbG8=")), "Could not process image"},
		"no PDF":                {said(source("document", "application/pdf", "aGVsbG8=")), "was not valid"},
		"a large one":           {said(source("image", "image/png", strings.Repeat("A", 5<<20+4))), "exceeds 5 MB maximum"},
		"in a failed result":    {shown(`"is_error":true,`, good), `all content must be type "text"`},
		"a call in a result":    {shown("", `{"type":"tool_use"}`), "does not match any of the expected tags"},
		"the model's own":       {msgs(`{"role":"user","content":"x"}`, `{"role":"assistant","content":[`+good+`]}`, `{"role":"user","content":"x"}`), "does not match any of the expected tags"},
	} {
		if got := fake.Check([]byte(c.body)); (got == "") != (c.message == "") || !strings.Contains(got, c.message) {
			t.Errorf("%s: %q, want %q", name, got, c.message)
		}
	}
}

func TestAnswersHaveNamesOfTheirOwn(t *testing.T) {
	s := fake.New(t, fake.Options{})
	names := map[string]bool{}
	for range 3 {
		_, body := do(t, "POST", s.URL()+"/v1/messages", msgs(`{"role":"user","content":"x"}`))
		_, rest, _ := strings.Cut(body, `"id":"`)
		name, _, _ := strings.Cut(rest, `"`)
		names[name] = true
	}
	if len(names) != 3 {
		t.Errorf("%v", names)
	}
}
