package api

import (
	"embed"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"

	"gatehouse/web"
)

//go:embed openapi.yaml
var source []byte

//go:embed docs.html
var docsPage []byte

// explanations has a text for each type of problem: what it means, what to do,
// and an example. Its file is the type's slug.
//
//go:embed problems/*.md
var explanations embed.FS

// document returns openapi.yaml as JSON, members in their order. Parsing takes
// 20 MiB for a moment, so the first request does it.
var document = sync.OnceValues(func() ([]byte, error) {
	b, err := yaml.YAMLToJSON(source)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return b, nil
})

// openapi serves GET /openapi.json.
func (a *API) openapi(w http.ResponseWriter, _ *http.Request) error {
	d, err := document()
	if err != nil {
		return err
	}
	return static(w, "application/json", d)
}

// openapiSource serves GET /openapi.yaml.
func (a *API) openapiSource(w http.ResponseWriter, _ *http.Request) error {
	return static(w, "application/yaml", source)
}

// docs serves GET /docs.
func (a *API) docs(w http.ResponseWriter, _ *http.Request) error {
	return static(w, "text/html; charset=utf-8", docsPage)
}

// problemType serves GET /docs/problems/{type}.
func (a *API) problemType(w http.ResponseWriter, r *http.Request) error {
	all := web.Faults()
	i := slices.IndexFunc(all, func(f web.Fault) bool { return f.Slug == r.PathValue("type") })
	if i < 0 {
		return web.Refuse(web.NotFound, "there is no such problem type")
	}
	text, err := explanations.ReadFile("problems/" + all[i].Slug + ".md")
	if err != nil {
		return fmt.Errorf("problem type %s: %w", all[i].Slug, err)
	}
	return static(w, "text/markdown; charset=utf-8", fmt.Appendf(nil, "# %s\n\n%s\n\n%s", all[i].Title, all[i].About, text))
}

func static(w http.ResponseWriter, kind string, body []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(body) // the client may have disconnected
	return nil
}
