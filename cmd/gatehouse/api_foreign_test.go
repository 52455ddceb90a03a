package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin/page"
	"gatehouse/configs"
	"gatehouse/web/api"
	"gatehouse/web/auth"
	"gatehouse/web/openai"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/embeddings"
	"gatehouse/web/openai/responses"
	"gatehouse/web/openai/transcriptions"
)

var inPath = regexp.MustCompile(`\{[^}]*\}`)

// addresses are every route that a gateway has: those that the API, the first
// generation's, OpenAI's and the panel have registered, files, the metrics' own
// listener, and addresses that there are not.
func (w *world) addresses() (all [][2]string) {
	w.t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	_, served := w.call("GET", "/openapi.json", nil)
	if err := json.Unmarshal([]byte(served), &doc); err != nil || len(doc.Paths) < 40 {
		w.t.Fatal(len(doc.Paths), err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				all = append(all, [2]string{strings.ToUpper(method), inPath.ReplaceAllString(path, "x")})
			}
		}
	}
	door := auth.NewAuthenticator(w.app.keys, w.app.admins, auth.AuthenticatorOptions{})
	rest := api.New(api.Options{Authenticator: door})
	first := w.app.first(rest)
	desk := answer.New(answer.Options{Authenticator: door})
	v1, later := openai.New(desk), responses.New(responses.Options{Desk: desk})
	panel, ok := w.app.panel(door, nil).(*page.Frame)
	if !ok {
		w.t.Fatal("the panel is something else")
	}
	for _, pattern := range slices.Concat(rest.Routes(), first.Routes(), v1.Routes(), later.Routes(), embeddings.New(embeddings.Options{Desk: desk}).Routes(), transcriptions.New(transcriptions.Options{Desk: desk}).Routes(), panel.Routes()) {
		method, path, ok := strings.Cut(strings.Replace(pattern, "{$}", "", 1), " ")
		if !ok {
			w.t.Fatalf("%s is for every method", pattern)
		}
		all = append(all, [2]string{method, inPath.ReplaceAllString(path, "x")})
	}
	page := w.browser().page("/admin")
	for _, m := range regexp.MustCompile(`(?:href|action|src)="(/[^"#?]*)`).FindAllStringSubmatch(page, -1) {
		all = append(all, [2]string{"GET", m[1]}, [2]string{"POST", m[1]})
	}
	for _, path := range []string{"/", "/admin/login", "/admin/events", "/v1/models", "/v1/nothing", "/api/nothing", "/nothing", "/static/nothing"} {
		all = append(all, [2]string{"GET", path}, [2]string{"POST", path}, [2]string{"OPTIONS", path})
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	return slices.Compact(all)
}

// TestNoPageFromElsewhereReachesAnythingOfTheGateway asks every address as a
// page could that a browser on this machine has open: under a name that was
// rebound to us, from another origin, from a sibling host, by an image or a
// form; with keyless chat open, with a good key and with the operator's session.
// Only a click that leads to a page passes.
func TestNoPageFromElsewhereReachesAnythingOfTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *configs.Config) { c.LocalhostAccess, c.MetricsAddr = "chat", "127.0.0.1:0" })
	all := w.addresses()
	if len(all) < 150 {
		t.Fatalf("only %d addresses", len(all))
	}
	session := w.browser().http
	before := w.count(`SELECT (SELECT count(*) FROM inbox) + (SELECT coalesce(max(id), 0) FROM audit_events)`)
	try := func(client *http.Client, key, method, path string, want int, header ...string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+w.cfg.Addr+path, strings.NewReader(`{"message":"psst"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		for i := 0; i+1 < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			} else {
				r.Header.Set(header[i], header[i+1])
			}
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s %v: %s, want %d", method, path, header, res.Status, want)
		}
	}
	for _, a := range all {
		for who, client := range map[string]*http.Client{"": http.DefaultClient, w.key: http.DefaultClient, "session": session} {
			key := strings.TrimPrefix(who, "session")
			try(client, key, a[0], a[1], 421, "Host", "rebound.example")
			try(client, key, a[0], a[1], 421, "Host", "127.0.0.1.rebound.example:"+w.cfg.Addr[strings.LastIndexByte(w.cfg.Addr, ':')+1:])
			try(client, key, a[0], a[1], 403, "Origin", "https://elsewhere.example")
			try(client, key, a[0], a[1], 403, "Origin", "null")
			try(client, key, a[0], a[1], 403, "Origin", "http://127.0.0.1:1")
			try(client, key, a[0], a[1], 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image")
			try(client, key, a[0], a[1], 403, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty")
		}
	}
	if after := w.count(`SELECT (SELECT count(*) FROM inbox) + (SELECT coalesce(max(id), 0) FROM audit_events)`); after != before {
		t.Error("something was done")
	}
	w.cfg.Addr, w.cfg.MetricsAddr = w.cfg.MetricsAddr, w.cfg.Addr // the metrics' own listener
	for _, path := range []string{"/", "/metrics"} {
		try(http.DefaultClient, "", "GET", path, 421, "Host", "rebound.example")
		try(http.DefaultClient, "", "GET", path, 403, "Origin", "https://elsewhere.example")
		try(http.DefaultClient, "", "GET", path, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image")
		try(http.DefaultClient, "", "GET", path, 200)
	}
	w.cfg.Addr, w.cfg.MetricsAddr = w.cfg.MetricsAddr, w.cfg.Addr
	try(http.DefaultClient, "", "GET", "/admin/login", 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
}
