package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"gatehouse/web"
)

//go:embed openapi.yaml
var source []byte

//go:embed docs.html
var pages string

// A document is what is served of openapi.yaml and of the problem types; made once.
type document struct {
	json, page, problems []byte
	problem              map[string][]byte // by slug; one for each of web.Faults
}

// parseDocument gives the one document of the program; the source is part of it
// and holds together, as the tests show. To read it takes 20 MiB for a moment, so
// that is left to the first who asks for it.
var parseDocument = sync.OnceValues(makeDocument)

func makeDocument() (*document, error) {
	var tree yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(source, &tree, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	var d document
	var buf bytes.Buffer
	if err := encode(&buf, tree); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	d.json = bytes.Clone(buf.Bytes())
	t, err := template.New("docs").Funcs(template.FuncMap{"prose": prose}).Parse(pages)
	if err != nil {
		return nil, fmt.Errorf("docs.html: %w", err)
	}
	for name, dest := range map[string]*[]byte{"page": &d.page, "problems": &d.problems} {
		buf.Reset()
		var data any = web.Faults()
		if name == "page" {
			data = describe(node{tree})
		}
		if err := t.ExecuteTemplate(&buf, name, data); err != nil {
			return nil, fmt.Errorf("docs.html: %w", err)
		}
		*dest = bytes.Clone(buf.Bytes())
	}
	d.problem, err = problemPages(t)
	return &d, err
}

// encode writes YAML's values as JSON, members in the order of the source.
func encode(buf *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		buf.WriteByte('{')
		for i, item := range v {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := encode(buf, fmt.Sprint(item.Key)); err != nil {
				return err
			}
			buf.WriteByte(':')
			if err := encode(buf, item.Value); err != nil {
				return err
			}
		}
		buf.WriteByte('}')
	case []any:
		buf.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := encode(buf, item); err != nil {
				return err
			}
		}
		buf.WriteByte(']')
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		buf.Write(b)
	}
	return nil
}

// prose is text with paragraphs and `code` as HTML; everything else is escaped.
func prose(s string) template.HTML {
	var b strings.Builder
	for par := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		if par == "" {
			continue
		}
		b.WriteString("<p>")
		for i, piece := range strings.Split(par, "`") {
			piece = html.EscapeString(piece)
			if i%2 == 1 {
				piece = "<code>" + piece + "</code>"
			}
			b.WriteString(piece)
		}
		b.WriteString("</p>")
	}
	return template.HTML(b.String())
}

func (a *API) openapi(w http.ResponseWriter, _ *http.Request) error {
	d, err := parseDocument()
	if err != nil {
		return err
	}
	return static(w, "application/json", d.json)
}

func (a *API) docs(w http.ResponseWriter, _ *http.Request) error {
	d, err := parseDocument()
	if err != nil {
		return err
	}
	return static(w, "text/html; charset=utf-8", d.page)
}

func static(w http.ResponseWriter, kind string, body []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(body) // the reader may be gone
	return nil
}
