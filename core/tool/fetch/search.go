package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// Limits of one search.
const (
	maxQuery   = 500 // bytes
	maxDomains = 20
	maxResults = 10
	maxSnippet = 500 // bytes
	maxAnswer  = 20_000
)

type searchInput struct {
	Query   string   `json:"query" tool:"required"`
	Only    []string `json:"allowed_domains"`
	Without []string `json:"blocked_domains"`
}

func decodeSearch(raw json.RawMessage) (in searchInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	in.Query = strings.TrimSpace(in.Query)
	switch {
	case in.Query == "" || len(in.Query) > maxQuery:
		return in, core.Errorf(core.Invalid, "query must have 1 to %d bytes", maxQuery)
	case len(in.Only) > maxDomains || len(in.Without) > maxDomains:
		return in, core.Errorf(core.Invalid, "at most %d domains are taken", maxDomains)
	}
	return in, nil
}

func touchSearch(_ *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	_, err := decodeSearch(raw)
	return tool.Access{}, err
}

// A searcher asks a SearXNG server: https://docs.searxng.org/dev/search_api.html.
type searcher struct {
	base   *url.URL
	client *http.Client
}

func newSearcher(base string) (*searcher, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, core.Errorf(core.Invalid, "the address of the search server is not one such as http://127.0.0.1:8080")
	}
	return &searcher{base: u.JoinPath("search"), client: &http.Client{
		Timeout:   timeout - 5*time.Second,
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader},
		// The server was named by the operator; where it points was not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// A found is one result as SearXNG sends it.
type found struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Content string `json:"content"`
}

func (s *searcher) look(ctx context.Context, _ *tool.Call, q tool.Query) (tool.Finding, error) {
	list, err := s.ask(ctx, q.Text)
	if err != nil {
		return tool.Finding{}, err
	}
	var f tool.Finding
	for _, r := range list {
		f.Pages = append(f.Pages, tool.Page{Title: r.Title, URL: r.URL, Passage: r.Content})
	}
	return f, nil
}

// WebSearch returns the tool over a search engine: results are passed to the
// model as data, at most ten pages, of the wanted domains alone.
func WebSearch(look tool.Look, limit time.Duration) tool.Tool {
	return tool.Tool{
		Name: "WebSearch", About: searchAbout, Schema: searchSchema, Kind: tool.Network, Timeout: limit, Touches: touchSearch,
		Run: func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			in, err := decodeSearch(c.Input)
			if err != nil {
				return tool.Result{}, err
			}
			f, err := look(ctx, c, tool.Query{Text: in.Query, Only: hosts(in.Only), Without: hosts(in.Without)})
			if err != nil {
				return tool.Result{}, err
			}
			return in.show(f), nil
		},
	}
}

// show returns a finding as the model reads it.
func (in *searchInput) show(f tool.Finding) tool.Result {
	var b strings.Builder
	if answer := strings.TrimSpace(f.Answer); answer != "" {
		// Marked, so that it cannot pass for one of the pages below it.
		b.WriteString("> " + strings.ReplaceAll(core.CutRunes(answer, maxAnswer), "\n", "\n> ") + "\n\n")
	}
	n := 0
	seen := map[string]bool{}
	for _, p := range f.Pages {
		u, err := url.Parse(p.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !in.wants(u.Hostname()) || len(p.URL) > maxURL || seen[p.URL] {
			continue
		}
		seen[p.URL] = true
		if n++; n > maxResults {
			break
		}
		fmt.Fprintf(&b, "%d. %s\n   %s\n", n, line(p.Title), u)
		if passage := line(p.Passage); passage != "" {
			fmt.Fprintf(&b, "   %s\n", passage)
		}
	}
	if b.Len() == 0 {
		return tool.Result{Text: "No results."}
	}
	return tool.Result{Text: outside("search results", b.String())}
}

// hosts returns domains as a server takes them: no scheme, no path, no blanks.
func hosts(domains []string) (out []string) {
	for _, d := range domains {
		_, after, found := strings.Cut(d, "://")
		if found {
			d = after
		}
		d, _, _ = strings.Cut(d, "/")
		if d = strings.ToLower(strings.Trim(d, ". \t")); d != "" && !strings.ContainsAny(d, " \t\n") {
			out = append(out, d)
		}
	}
	return out
}

// ask sends the query and reads the results.
func (s *searcher) ask(ctx context.Context, query string) ([]found, error) {
	u := *s.base
	u.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make search request: %w", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &core.Error{Kind: core.Busy, Text: "the search server cannot be reached", Err: err}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusForbidden:
		return nil, core.Errorf(core.Denied, "the search server refuses to answer in JSON; its settings.yml must list json under search: formats")
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, core.Errorf(core.Busy, "the search server has had enough for now; try again later")
	case resp.StatusCode != http.StatusOK:
		return nil, core.Errorf(core.Busy, "the search server answers %d", resp.StatusCode)
	}
	var answer struct {
		Results []found `json:"results"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		return nil, &core.Error{Kind: core.Busy, Text: "the search server's answer cannot be read", Err: err}
	}
	return answer.Results, nil
}

// wants reports whether results of host are shown.
func (in *searchInput) wants(host string) bool {
	of := func(domain string) bool {
		domain = strings.ToLower(strings.Trim(domain, ". "))
		host := strings.ToLower(host)
		return domain != "" && (host == domain || strings.HasSuffix(host, "."+domain))
	}
	return (len(in.Only) == 0 || slices.ContainsFunc(in.Only, of)) && !slices.ContainsFunc(in.Without, of)
}

// line returns a text on one line, cut.
func line(s string) string { return core.CutRunes(strings.Join(strings.Fields(s), " "), maxSnippet) }
