// Package report reports what was measured: the figures, the goals that they are held to, and
// the pages that show them.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"
)

// A Machine is what the figures were measured on; no names and no paths.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int    `json:"memory_mib"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// ThisMachine describes the machine that this runs on.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	m.CPU = field1("/proc/cpuinfo", "model name")
	var kib int
	fmt.Sscanf(field1("/proc/meminfo", "MemTotal"), "%d", &kib)
	m.Memory = kib / 1024
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	return m
}

// field1 returns the first value of a key in a file of "key: value" lines.
func field1(path, key string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Commit returns the revision of the working directory; empty outside of one.
func Commit(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// A Stage is one part of the way of a message, from the gateway's histogram.
type Stage struct {
	N    float64 `json:"n"`
	Mean float64 `json:"mean_ms"`
	P50  float64 `json:"p50_ms"` // upper bound of the bucket
	P99  float64 `json:"p99_ms"`
}

// Stages returns what gatehouse_gateway_overhead_seconds gained between two readings.
func Stages(before, after map[string]float64) map[string]Stage {
	out := map[string]Stage{}
	const name = "gatehouse_gateway_overhead_seconds"
	for _, s := range []string{"ingest", "queue", "prepare", "first_token", "commit", "deliver"} {
		label := `{stage="` + s + `"`
		gain := func(series string) float64 { return after[series] - before[series] }
		n := gain(name + "_count" + label + "}")
		if n == 0 {
			continue
		}
		type bucket struct{ le, n float64 }
		var buckets []bucket
		for k := range after {
			rest, ok := strings.CutPrefix(k, name+"_bucket{")
			if !ok || !strings.Contains(rest, `stage="`+s+`"`) || strings.Contains(rest, "+Inf") {
				continue
			}
			var le float64
			_, from, _ := strings.Cut(rest, `le="`)
			if _, err := fmt.Sscanf(from, "%g", &le); err == nil {
				buckets = append(buckets, bucket{le, gain(k)})
			}
		}
		sort.Slice(buckets, func(i, j int) bool { return buckets[i].le < buckets[j].le })
		at := func(q float64) float64 {
			for _, b := range buckets {
				if b.n >= q*n {
					return b.le * 1000
				}
			}
			return 0
		}
		out[s] = Stage{N: n, Mean: gain(name+"_sum"+label+"}") / n * 1000, P50: at(.5), P99: at(.99)}
	}
	return out
}

// Commits returns how many commits n messages took, and how many writes shared one.
func Commits(before, after map[string]float64, n float64) (per, group float64) {
	c := after["gatehouse_db_commits_total"] - before["gatehouse_db_commits_total"]
	w := after["gatehouse_db_group_size_sum"] - before["gatehouse_db_group_size_sum"]
	if c == 0 {
		return 0, 0
	}
	return c / n, w / c
}

// A Report is a result, with what it was measured with.
type Report struct {
	Result
	Model       string  // of both sides
	Rate        float64 // messages a second of the open loop
	Thinking    time.Duration
	WaitFor     time.Duration
	WordEvery   time.Duration
	StreamEvery time.Duration
	StreamWord  int // bytes
}

// Write prints the report to w, as JSON or as Markdown, and writes both to path and next to
// it; "" writes no file.
func (b *Report) Write(w io.Writer, asJSON bool, path string) error {
	raw, err := json.MarshalIndent(b.Result, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	text := b.markdown()
	if asJSON {
		_, err = w.Write(raw)
	} else {
		_, err = io.WriteString(w, text)
	}
	if err != nil || path == "" {
		return err
	}
	if err := os.WriteFile(strings.TrimSuffix(path, ".md")+".json", raw, 0o644); err != nil {
		return err
	}
	return writeText(path, text)
}

// endOfFigures separates what is measured from what users write below it.
const endOfFigures = "<!-- below this line: written by hand, kept by make bench -->\n"

// writeText replaces the figures and keeps what is below them.
func writeText(path, text string) error {
	notes := "\n"
	if old, err := os.ReadFile(path); err == nil {
		if _, below, ok := strings.Cut(string(old), endOfFigures); ok {
			notes = below
		}
	}
	return os.WriteFile(path, []byte(text+"\n"+endOfFigures+notes), 0o644)
}

func (b *Report) markdown() string {
	var w strings.Builder
	d := &b.Result
	say := func(format string, a ...any) { fmt.Fprintf(&w, format+"\n", a...) }
	say("# Performance\n")
	say("Written by `make bench`; the raw data is in `performance.json` beside this file.\n")
	m := d.Machine
	say("Machine: %s, %d cores, %d MiB, Linux %s, %s. Commit: `%s`. Measured %s in %s.", m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, d.Commit, d.At.Format("2006-01-02 15:04 UTC"), d.Took)
	say("Load tool, simulated platforms and gateway share the cores. Of the chats, all private, %.0f %% are on Discord, the others on Telegram, at the same time. Others used %s of the cores before the parts began.\n", d.Discord*100, percents(d.Busy))
	say("Durable throughout (`synchronous=FULL`); `RATE_LIMIT=off PACE=off LIMIT_RUNS=2000 BUSY_MODE=queue MODEL=%s`, empty vault, flood control of the simulators off.", b.Model)
	say("The floor is the same load in the same run on a bare bot on the same platforms and with the same model, which streams 20 words; it stores nothing. One fsync of a 4 KiB page here: p50 %s, p99 %s ms; fdatasync %s, %s ms.\n",
		short(d.Fsync.P50), short(d.Fsync.P99), short(d.Datasync.P50), short(d.Datasync.P99))
	say("| what | goal | measured | floor | verdict |\n|---|---|---|---|---|")
	for _, l := range b.goals() {
		verdict := "met"
		if !l.met {
			verdict = "**missed " + l.missed + "**"
		}
		say("| %s | %s | %s | %s | %s |", l.what, strings.TrimSpace(l.goal), strings.TrimSpace(l.measured), l.floor, verdict)
	}
	b.details(say)
	return w.String()
}

func percents(list []float64) string {
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprintf("%.0f %%", v*100))
	}
	return strings.Join(out, ", ")
}

func (b *Report) details(say func(string, ...any)) {
	d := &b.Result
	say("\n## Details\n")
	say("| latency, ms | p50 | p95 | p99 | max | n |\n|---|---|---|---|---|---|")
	row := func(name string, p Percentiles) {
		say("| %s | %s | %s | %s | %s | %d |", name, short(p.P50), short(p.P95), short(p.P99), short(p.Max), p.N)
	}
	parts := []struct {
		name string
		d    *Latency
	}{{"one in flight", d.Latency}, {fmt.Sprintf("%g/s", b.Rate), d.Rate}}
	for _, p := range parts {
		if p.d != nil {
			row(p.name+", gateway", p.d.Gateway)
			row(p.name+", bare loop", p.d.Bare)
			for _, platform := range slices.Sorted(maps.Keys(p.d.Platforms)) {
				row(p.name+", gateway, "+platform, p.d.Platforms[platform].Gateway)
				row(p.name+", bare loop, "+platform, p.d.Platforms[platform].Bare)
			}
		}
	}
	if s := d.Scale; s != nil {
		row("one in flight, empty database", s.Small)
		row(fmt.Sprintf("one in flight, %d rows", s.Rows), s.Large)
	}
	b.toolRows(row)
	b.councilRows(row)
	if x := d.Index; x != nil {
		row("search by two words", x.WordTimes)
		row("search by words and meaning", x.HybridTimes)
	}
	say("")
	for _, p := range parts {
		if p.d != nil {
			say("%s: processor time %s ms per message (bare loop %s), %s commits per message, %s writes per commit.\n", p.name, short(p.d.CPU), short(p.d.BareCPU), short(p.d.Commits), short(p.d.Group))
			stageTable(say, p.name, p.d.Stages)
		}
	}
	if u := d.Burst; u != nil {
		say("Burst: %s commits per message, %s writes per commit; calls of the platforms in all rounds: %v.\n", short(u.Commits), short(u.Group), u.Calls)
		stageTable(say, "burst", u.Stages)
		rateTable(say, u.Rounds)
	}
	verdictTable(say, d.Judged)
	if s := d.Syncs; s != nil {
		if s.Note != "" {
			say("fsync and fdatasync per message: %s.\n", s.Note)
		} else {
			say("fsync and fdatasync calls per message (counted by strace): %s one in flight, %s in the burst; %d at start and stop.\n", short(s.Alone), short(s.Burst), s.Idle)
		}
	}
	if m := d.Memory; m != nil {
		say("Of the memory the gateway's own, which is no page of a file: %s MiB idle, %s MiB %s after the burst.", short(m.IdleOwn), short(m.AfterOwn), m.Settle)
		say("Goroutines: %.0f idle, %.0f after the burst. Heap in use then: %s MiB.", m.GoroutinesIdle, m.GoroutinesAfter, short(m.HeapAfter))
	}
	b.agentDetails(say)
	b.indexDetails(say)
	if s := d.Scale; s != nil {
		say("\nLarge database: %d MiB, filled in %s. Burst, processor time per message: %s ms empty, %s ms large.", s.Bytes>>20, s.Fill, short(s.CPU[0]), short(s.CPU[1]))
	}
}

func stageTable(say func(string, ...any), name string, list map[string]Stage) {
	say("| stage, %s | mean ms | p50 ≤ ms | p99 ≤ ms | n |\n|---|---|---|---|---|", name)
	for _, s := range []string{"ingest", "queue", "prepare", "first_token", "commit", "deliver"} {
		if v, ok := list[s]; ok {
			say("| %s | %s | %g | %g | %.0f |", s, short(v.Mean), v.P50, v.P99, v.N)
		}
	}
	say("")
}

// rateTable shows what each platform had of the bursts: medians.
func rateTable(say func(string, ...any), rounds []Round) {
	if len(rounds) == 0 {
		return
	}
	say("| burst, messages/s until a platform's last answer | gateway | bare loop |\n|---|---|---|")
	for _, platform := range slices.Sorted(maps.Keys(rounds[0].Platforms)) {
		var list [2][]float64
		for _, r := range rounds {
			for i, rate := range r.Platforms[platform] {
				list[i] = append(list[i], rate)
			}
		}
		say("| %s | %.0f | %.0f |", platform, Median(list[0]), Median(list[1]))
	}
	say("")
}

func verdictTable(say func(string, ...any), list Judgement) {
	say("| platform | messages | answers | lost | doubled | out of order |\n|---|---|---|---|---|---|")
	for _, platform := range slices.Sorted(maps.Keys(list)) {
		v := list[platform]
		say("| %s | %d | %d | %d | %d | %d |", platform, v.Messages, v.Answers, v.Lost, v.Doubled, v.Disorder)
	}
	say("")
}
