package llmtest_test

import (
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
)

func TestMediaAreHeldAgainstTheReference(t *testing.T) {
	const (
		text  = `{"type":"text","text":"hi"}`
		image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`
		file  = `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjcK"}}`
	)
	s, blind := llmtest.New(t, llmtest.Options{}), llmtest.New(t, llmtest.Options{NoImages: true, NoFiles: true})
	said := func(parts string) string { return msgs(`{"role":"user","content":[` + parts + `]}`) }
	for name, c := range map[string]struct {
		to            *llmtest.Server
		body, message string
	}{
		"text, picture and document": {s, said(text + "," + image + "," + file), ""},
		"501 pictures":               {s, said(strings.Repeat(image+",", 500) + image), "Too many images"},
		"no picture":                 {s, said(`{"type":"image_url"}`), "Missing required parameter"},
		"an address":                 {s, said(strings.Replace(image, "data:image/png;base64,iVBORw0KGgo=", "https://a/b.png", 1)), "Only image types are supported"},
		"another type":               {s, said(strings.Replace(image, "image/png", "image/bmp", 1)), "Only image types are supported"},
		"the wrong type":             {s, said(strings.Replace(image, "image/png", "image/jpeg", 1)), "unsupported image"},
		"no name":                    {s, said(strings.Replace(file, "a.pdf", "", 1)), "Missing required parameter"},
		"no PDF":                     {s, said(strings.Replace(file, "JVBERi0xLjcK", "aGVsbG8=", 1)), "Invalid file data"},
		"bare base64":                {s, said(strings.Replace(file, "data:application/pdf;base64,", "", 1)), "Invalid file data"},
		"an unknown part":            {s, said(`{"type":"document"}`), "Invalid value: 'document'"},
		"empty text":                 {s, said(`{"type":"text"}`), "Missing required parameter"},
		"the system's picture":       {s, msgs(`{"role":"system","content":[` + image + `]}`), "Supported values are: 'text'"},
		"a model without vision":     {blind, said(image), "only supported by certain models"},
		"a model without files":      {blind, said(file), "only supported by certain models"},
	} {
		resp, body := do(t, "POST", c.to.URL()+"/chat/completions", "", c.body)
		if resp == nil || (resp.StatusCode == 200) != (c.message == "") || !strings.Contains(body, c.message) {
			t.Errorf("%s: %s", name, body)
		}
	}
	if m := s.Requests(); m[0].Path != "/v1/chat/completions" {
		t.Error(m[0].Path)
	}
}
