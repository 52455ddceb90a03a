package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// dashboardQueries are the queries of the dashboard, with what Grafana fills in.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	b, err := os.ReadFile("../../configs/grafana/dashboards/gatehouse.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "30s", "$bot", ".*").Replace(x.Expr))
		}
	}
	if len(queries) < 25 {
		t.Fatalf("only %d queries", len(queries))
	}
	return queries
}

var (
	dashMetric = regexp.MustCompile(`\b(?:gatehouse|process|go)_[a-z_]+`)
	dashLabel  = regexp.MustCompile(`\bby \(([^)]*)\)`)
	dashPick   = regexp.MustCompile(`gatehouse_[a-z_]+\{([^}]*)\}`)
	pageHelp   = regexp.MustCompile(`(?m)^# TYPE ([a-z_]+) `)
	discordOwn = "gatehouse_discord_resumes_total" // there with a bot of that platform only
)

// The dashboard asks for series and labels that exist, and a real Prometheus
// that scrapes the gateway as docs/deployment.md says has an answer to every
// query; the alert rules are loaded and are evaluated.
func TestAPrometheusAnswersEveryQueryOfTheDashboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.guest("Gus")
	status, page := w.call("GET", "/metrics", nil)
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	queries := dashboardQueries(t)
	known, labels := pageHelp.FindAllStringSubmatch(page, -1), operationsPage(t).labels
	for _, q := range queries {
		for _, name := range dashMetric.FindAllString(q, -1) {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if base != discordOwn && !slices.ContainsFunc(known, func(m []string) bool { return m[1] == name || m[1] == base }) {
				t.Errorf("%s: the gateway has no %s", q, name)
			}
			for _, list := range append(dashLabel.FindAllStringSubmatch(q, -1), dashPick.FindAllStringSubmatch(q, -1)...) {
				for _, label := range regexp.MustCompile(`[a-z]+(?:$|=|!|,| )`).FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(list[1], ""), -1) {
					label = strings.TrimRight(label, "=!, ")
					if strings.HasPrefix(base, "gatehouse_") && label != "le" && !slices.Contains(labels[base], label) {
						t.Errorf("%s: %s has no label %s", q, base, label)
					}
				}
			}
		}
	}
	p := startPrometheus(t, w)
	for _, q := range queries {
		if strings.Contains(q, discordOwn) {
			continue
		}
		w.until("Prometheus answers "+q, func() bool { return p.series(q) > 0 })
	}
	if n := p.series(`gatehouse_runs_total{outcome="done"} >= 1`); n != 1 {
		t.Errorf("%d models have answered, want the one", n)
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State string }
			}
		}
	}
	w.until("the alert rules are evaluated", func() bool {
		n := 0
		if p.get("/api/v1/rules", &rules) {
			for _, g := range rules.Data.Groups {
				for _, r := range g.Rules {
					if r.Health == "ok" {
						n++
					}
				}
			}
		}
		return n >= 9
	})
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			if r.State == "firing" {
				t.Errorf("the alert %s is firing on a healthy gateway", r.Name)
			}
		}
	}
	// One may be pending until the gateway was scraped for the first time.
	w.until("no alert is raised on a healthy gateway", func() bool {
		if !p.get("/api/v1/rules", &rules) {
			return false
		}
		for _, g := range rules.Data.Groups {
			if slices.ContainsFunc(g.Rules, func(r struct{ Name, Health, State string }) bool { return r.State != "inactive" }) {
				return false
			}
		}
		return true
	})
	// Prometheus renames a label of ours that is one of its own, and rules miss it.
	var found struct{ Data []string }
	if !p.get("/api/v1/labels", &found) || !slices.Contains(found.Data, "task") {
		t.Errorf("labels: %q", found.Data)
	}
	for _, label := range found.Data {
		if strings.HasPrefix(label, "exported_") {
			t.Errorf("Prometheus renamed a label to %s", label)
		}
	}
}

// A scraper is a running Prometheus that scrapes a world.
type scraper struct{ url string }

func startPrometheus(t *testing.T, w *world) scraper {
	t.Helper()
	program, dir := installed(t, "prometheus"), t.TempDir()
	rules, err := filepath.Abs("../../configs/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: gatehouse
    authorization: {credentials: %q}
    static_configs:
      - targets: [%q]
`, rules, w.key, w.cfg.Addr)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
	out := &coretest.Log{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	p := scraper{"http://" + address}
	w.until("Prometheus scrapes the gateway", func() bool { return p.series(`up{job="gatehouse"} == 1`) == 1 })
	return p
}

var toPrometheus = &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// get asks for an address; false while there is no good answer.
func (p scraper) get(path string, to any) bool {
	res, err := toPrometheus.Get(p.url + path)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(to) == nil
}

// series is how many a query gives.
func (p scraper) series(query string) int {
	var a struct {
		Status string
		Data   struct{ Result []json.RawMessage }
	}
	if !p.get("/api/v1/query?query="+url.QueryEscape(query), &a) || a.Status != "success" {
		return 0
	}
	return len(a.Data.Result)
}
