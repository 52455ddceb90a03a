package api

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/yuin/goldmark"

	"gatehouse/web"
)

// explanations has a text for each type of problem: what it means, what to do,
// and an example. Its file is the type's slug.
//
//go:embed problems/*.md
var explanations embed.FS

// A problemPage is what the page of one type shows.
type problemPage struct {
	web.Fault
	Text template.HTML
}

// problemPages are the pages by slug. A type without a text is an error.
func problemPages(t *template.Template) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, f := range web.Faults() {
		source, err := explanations.ReadFile("problems/" + f.Slug + ".md")
		if err != nil {
			return nil, fmt.Errorf("problem type %s: %w", f.Slug, err)
		}
		var text, page bytes.Buffer
		if err := goldmark.Convert(source, &text); err != nil { // it passes no HTML through
			return nil, fmt.Errorf("problem type %s: %w", f.Slug, err)
		}
		seen := bytes.ReplaceAll(text.Bytes(), []byte("<pre>"), []byte(`<pre tabindex="0">`)) // reached by keyboard, since it may scroll
		if err := t.ExecuteTemplate(&page, "problem", problemPage{f, template.HTML(seen)}); err != nil {
			return nil, fmt.Errorf("docs.html: %w", err)
		}
		all[f.Slug] = page.Bytes()
	}
	return all, nil
}

// problems is GET /docs/problems.
func (a *API) problems(w http.ResponseWriter, _ *http.Request) error {
	d, err := parseDocument()
	if err != nil {
		return err
	}
	return static(w, "text/html; charset=utf-8", d.problems)
}

// problemType is GET /docs/problems/{type}.
func (a *API) problemType(w http.ResponseWriter, r *http.Request) error {
	d, err := parseDocument()
	if err != nil {
		return err
	}
	page, there := d.problem[r.PathValue("type")]
	if !there {
		return web.Refuse(web.NotFound, "there is no such problem type; /docs/problems lists them")
	}
	return static(w, "text/html; charset=utf-8", page)
}
