package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"golang.org/x/net/html/charset"

	"gatehouse/core"
	"gatehouse/core/tool"
)

type fetchInput struct {
	URL    string `json:"url" tool:"required"`
	Prompt string `json:"prompt"` // known from other tools of this name; the text is given whole
}

func touchFetch(_ *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	var in fetchInput
	if err := tool.Decode(raw, &in); err != nil {
		return tool.Access{}, err
	}
	u, err := parseURL(in.URL)
	if err != nil {
		return tool.Access{}, err
	}
	return tool.Access{URL: u.String()}, nil
}

type fetcher struct{ client *http.Client }

func (f *fetcher) run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	u, err := parseURL(c.Access.URL)
	if err != nil {
		return tool.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return tool.Result{}, core.Errorf(core.Invalid, "url is not an address")
	}
	req.Header.Set("User-Agent", "gatehouse")
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.1")
	resp, err := f.client.Do(req)
	if err != nil {
		return tool.Result{}, explain(u.Hostname(), err)
	}
	defer resp.Body.Close()
	if to := elsewhere(resp); to != "" {
		return tool.Result{Text: outside("redirect", "URL: "+resp.Request.URL.String()+"\nIt redirects to another host, which was not opened: "+to+"\nTo read that page, call WebFetch with its address.")}, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return tool.Result{}, explain(u.Hostname(), err)
	}
	return page(resp, body)
}

// elsewhere returns the address on another host that an answer redirects to,
// "" where it does not. Redirects on the same host have been followed.
func elsewhere(resp *http.Response) string {
	if resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.Header.Get("Location") == "" {
		return ""
	}
	to, err := resp.Location()
	if err != nil || checkURL(to) != nil || sameHost(to, resp.Request.URL) || len(to.String()) > maxURL {
		return ""
	}
	return to.String()
}

// page returns what the model reads of an answer.
func page(resp *http.Response, body []byte) (tool.Result, error) {
	cut := ""
	if len(body) > maxBody {
		body, cut = body[:maxBody], fmt.Sprintf("\n(the page is larger than %d MiB and cut)", maxBody>>20)
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = http.DetectContentType(body)
	}
	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		media = "application/octet-stream"
	}
	if !readable(media) {
		return tool.Result{}, core.Errorf(core.Invalid, "the address holds no text but %s", core.CutRunes(core.CleanName(media), 64))
	}
	text := decoded(body, kind)
	if media == "text/html" || media == "application/xhtml+xml" {
		text = markdown(text, resp.Request.URL)
	}
	if len(text) > maxText {
		text, cut = core.CutRunes(text, maxText), fmt.Sprintf("\n(cut after %d bytes)", maxText)
	}
	if strings.TrimSpace(text) == "" {
		text = "(no text)"
	}
	head := fmt.Sprintf("URL: %s\nStatus: %d %s\nType: %s\n\n", resp.Request.URL, resp.StatusCode, http.StatusText(resp.StatusCode), media)
	return tool.Result{Text: outside("page", head+text+cut), IsError: resp.StatusCode >= 400}, nil
}

// readable types are text, whatever they are called.
func readable(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/xhtml+xml", "application/javascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/ld+json":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasPrefix(media, "application/") &&
		(strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+yaml"))
}

// decoded returns body in UTF-8, by the header's or the page's declared encoding.

func decoded(body []byte, kind string) string {
	r, err := charset.NewReader(bytes.NewReader(body), kind)
	if err == nil {
		if text, err := io.ReadAll(io.LimitReader(r, 4*maxBody)); err == nil {
			body = text
		}
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}
