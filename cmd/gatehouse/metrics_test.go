package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs/values"
)

func secret(s string) values.Secret { return values.NewSecret(s) }

// opsPage are the metric tables of docs/metrics.md.
type opsPage struct {
	labels map[string][]string // series → its labels, sorted
	values map[string][]string // "label of series" → the values it may have
}

var (
	backquoted = regexp.MustCompile("`([^`]+)`")
	seriesName = regexp.MustCompile("^`gatehouse_[a-z_]+`$")
	ofSeries   = map[string]string{ // how the page says which series a label belongs to
		"updates": "gatehouse_updates_total", "deliveries": "gatehouse_deliveries_total", "runs": "gatehouse_runs_total",
		"lanes": "gatehouse_lanes", "connectors": "gatehouse_connector_state", "daily agents": "gatehouse_schedule_runs_total", "recordings": "gatehouse_voice_recordings_total",
	}
)

// operationsPage reads them.
func operationsPage(t *testing.T) opsPage {
	t.Helper()
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	p := opsPage{map[string][]string{}, map[string][]string{}}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		first := strings.TrimSpace(cells[1])
		name := strings.Trim(first, "`")
		if seriesName.MatchString(first) {
			p.labels[name] = words(cells[2])
			slices.Sort(p.labels[name])
			continue
		}
		label, series, _ := strings.Cut(first, " of ")
		label = strings.Trim(label, "`")
		vals := words(cells[2])
		switch {
		case !strings.HasPrefix(first, "`") || strings.HasPrefix(label, "GATEHOUSE") || label == "bot" || label == "model" || label == "agent":
		case series != "":
			p.values[label+" of "+ofSeries[series]] = vals
		default:
			for name, labels := range p.labels {
				if slices.Contains(labels, label) {
					p.values[label+" of "+name] = vals
				}
			}
		}
	}
	if len(p.labels) < 20 || len(p.values) < 8 {
		t.Fatalf("the tables could not be read: %d series, %d labels", len(p.labels), len(p.values))
	}
	return p
}

func words(cell string) []string {
	out := []string{}
	for _, m := range backquoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}
