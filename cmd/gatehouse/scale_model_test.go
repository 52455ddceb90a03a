package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/loadgen/report"
	"gatehouse/configs"
)

// The figures of docs/scale.md are computed here, from what make bench measured (docs/performance.json)
// and from docs/scale.json, and checked against each other. GATEHOUSE_TEST_SCALE_MODEL=write writes the
// page's tables.

const scalePage = "../../docs/scale.md"

// A scaleModel is what the page's tables are computed from.
type scaleModel struct {
	bench report.Result
	own   scaleFigures
}

type scaleFigures struct {
	Load struct {
		Messages float64 `json:"messages_per_day"`
		Share    float64 `json:"busiest_hour_share"`
		Peak     float64 `json:"peak_by_mean_of_that_hour"`
		Answer   float64 `json:"seconds_per_answer"`
		Text     int     `json:"text_bytes"`
		Bots     float64 `json:"bots"`
	} `json:"load"`
	Bytes  map[string][]messageCost `json:"bytes"`
	Bursts map[string][]struct {
		Rate float64 `json:"messages_per_s"`
		CPU  float64 `json:"gateway_cpu_ms"`
	} `json:"bursts"`
	Postgres struct {
		CPU      float64 `json:"server_cpu_ms_in_burst"`
		AloneCPU float64 `json:"server_cpu_ms_one_in_flight"`
		WAL      float64 `json:"wal_bytes_with_page_images"`
		Syncs    float64 `json:"log_syncs_one_in_flight"`
		Together float64 `json:"log_syncs_in_burst"`
		Requests float64 `json:"requests_of_a_message"`
	} `json:"postgres"`
	Alone    map[string]float64 `json:"one_in_flight_cpu_ms"`
	Requests []struct {
		What   string  `json:"what"`
		SQLite float64 `json:"sqlite_ms"`
		PG     float64 `json:"postgres_ms"`
		Server float64 `json:"server_ms"`
	} `json:"requests"`
	NotBeyond struct {
		Rows float64 `json:"rows_of_48_hours"`
	} `json:"not_beyond"`
}

func readScale(t *testing.T) (m scaleModel) {
	t.Helper()
	for path, into := range map[string]any{"../../docs/performance.json": &m.bench, "../../docs/scale.json": &m.own} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return m
}

// message returns what a message of the load leaves.
func (m *scaleModel) message(engine string) messageCost {
	for _, c := range m.own.Bytes[engine] {
		if c.Text == m.own.Load.Text {
			return c
		}
	}
	return messageCost{}
}

// peak returns the messages of a second in the load's busiest minutes.
func (m *scaleModel) peak() float64 {
	l := m.own.Load
	return l.Messages * l.Share * l.Peak / 3600
}

// runs returns how many answers are being made at the peak.
func (m *scaleModel) runs() float64 { return m.peak() * m.own.Load.Answer }

// MiB of a run that waits for its model or streams, and cores of one that streams.
func (m *scaleModel) runMemory() float64 {
	return (m.bench.Waiting.Peak - m.bench.Waiting.Idle) / float64(m.bench.Waiting.Runs)
}
func (m *scaleModel) runCores() float64 {
	return m.bench.Streaming.CPU / float64(m.bench.Streaming.Chats)
}

// cores returns what the load takes of the processor at its peak. A message counts as at 50 a second,
// where it takes most; together they take less.
func (m *scaleModel) cores() float64 { return m.peak()*m.bench.Rate.CPU/1000 + m.runs()*m.runCores() }

// previews returns how many previews a run shows in a second.
func (m *scaleModel) previews() float64 {
	return m.bench.Streaming.Previews / float64(m.bench.Streaming.Chats)
}

// bursts returns rate and processor time of bursts on SQLite, of those of performance.json the medians
// of the rounds, as its report does: a round may meet a machine that does something else.
func (m *scaleModel) bursts() (list [][2]float64) {
	for _, b := range []*report.Burst{m.bench.Burst, m.bench.Thinking} {
		var rates, cpu []float64
		for _, r := range b.Rounds {
			rates, cpu = append(rates, r.Gateway), append(cpu, r.CPU)
		}
		list = append(list, [2]float64{report.Median(rates), report.Median(cpu)})
	}
	for _, r := range m.own.Bursts["sqlite"] {
		list = append(list, [2]float64{r.Rate, r.CPU})
	}
	return list
}

// capacity returns the cores that a gateway gets of a machine of two whose load tool takes the others:
// the mean of all bursts.
func (m *scaleModel) capacity() (cores float64) {
	list := m.bursts()
	for _, b := range list {
		cores += b[0] * b[1] / 1000 / float64(len(list))
	}
	return cores
}

// faults returns in what the model does not agree with measured points that it was not made from.
func (m *scaleModel) faults() (list []string) {
	differ := func(what string, computed, measured, most float64) {
		if measured == 0 || math.Abs(computed/measured-1) > most {
			list = append(list, fmt.Sprintf("%s: computed %.4g, measured %.4g, want within %.0f %%", what, computed, measured, 100*most))
		}
	}
	for _, b := range m.bursts() {
		differ(fmt.Sprintf("messages/s of the burst at %.3g ms", b[1]), 1000*m.capacity()/b[1], b[0], 0.1)
	}
	s, w := m.bench.Streaming, m.bench.Waiting
	differ("MiB with 1000 chats that stream", w.Idle+float64(s.Chats)*m.runMemory(), s.Peak, 0.1)
	differ("KiB of a run: heap and stacks", w.Heap+w.Stack, 1024*m.runMemory(), 0.1)
	lengths := m.own.Bytes["sqlite"]
	if len(lengths) != 3 {
		return append(list, "want three lengths of text")
	}
	low, mid, high := lengths[0], lengths[1], lengths[2]
	between := float64(mid.Text-low.Text) / float64(high.Text-low.Text)
	differ("database bytes of a message between a shorter and a longer one", low.Database+between*(high.Database-low.Database), mid.Database, 0.1)
	differ("transcript bytes of the same", low.Vault+between*(high.Vault-low.Vault), mid.Vault, 0.1)
	slope := (high.TwoDays - low.TwoDays) / float64(high.Text-low.Text)
	differ("bytes of a finished message without texts, in the large database", low.TwoDays-slope*float64(low.Text)+low.Days90, float64(m.bench.Scale.Bytes)/float64(m.bench.Scale.Rows), 0.4)
	return list
}

// amount writes a number with three digits and separators.
func amount(x float64) string {
	switch {
	case x >= 1000:
		digits := int(math.Log10(x)) - 2
		p := math.Pow(10, float64(digits))
		s := strconv.FormatFloat(math.Round(x/p)*p, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1 || x == 0:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

func size(bytes float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for ; bytes >= 1000 && i < len(units)-1; i++ {
		bytes /= 1000
	}
	return amount(bytes) + " " + units[i]
}

func markdownTable(lines ...[]string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(l, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(l)) + "|\n")
		}
	}
	return b.String()
}

// tables returns the tables of the page by name.
func (m *scaleModel) tables() map[string]string {
	b, lite, pg := m.bench, m.message("sqlite"), m.message("postgres")
	both := func(f func(messageCost) float64) []string { return []string{size(f(lite)), size(f(pg))} }
	row := func(what string, values ...string) []string { return append([]string{what}, values...) }
	units := [][]string{
		{"a message", "SQLite", "PostgreSQL"},
		row("processor of the gateway, ms: one at a time", amount(m.own.Alone["sqlite"])+" ("+amount(b.Latency.CPU)+")", amount(m.own.Alone["postgres"])),
		row("… at 50 a second", "("+amount(b.Rate.CPU)+")", "not measured"),
		row("… in a burst of 2,000", amount(m.own.Bursts["sqlite"][1].CPU)+" ("+amount(report.Median(rounds(b.Burst)))+")", amount(m.own.Bursts["postgres"][0].CPU)),
		row("processor of the server, ms: one at a time; in a burst", "–", amount(m.own.Postgres.AloneCPU)+"; "+amount(m.own.Postgres.CPU)),
		row("statements of the writer, one at a time", amount(lite.Statements), amount(pg.Statements)),
		row("commits, one at a time; in a burst", "("+amount(b.Latency.Commits)+"; "+amount(b.Burst.Commits)+")", amount(pg.Commits)+"; not measured"),
		row("fsyncs of the gateway, one at a time; in a burst", "("+amount(b.Syncs.Alone)+"; "+amount(b.Syncs.Burst)+")", "not measured"),
		row("syncs of the server's log, one at a time; in a burst", "–", amount(m.own.Postgres.Syncs)+"; "+amount(m.own.Postgres.Together)),
		row("write-ahead log of the server, without and with images of pages", "–", size(pg.WAL)+"; "+size(m.own.Postgres.WAL)),
		append([]string{"database, right after it"}, both(func(c messageCost) float64 { return c.Database })...),
		append([]string{"… of it for 48 hours"}, both(func(c messageCost) float64 { return c.TwoDays })...),
		append([]string{"… of it for 90 days"}, both(func(c messageCost) float64 { return c.Days90 })...),
		append([]string{"… of it until the conversation is deleted"}, both(messageCost.kept)...),
		append([]string{"transcript, in the vault"}, both(func(c messageCost) float64 { return c.Vault })...),
	}
	memory := [][]string{
		{"memory, processor", ""},
		row("the gateway at rest", amount(b.Memory.Idle)+" MiB resident, "+amount(b.Memory.IdleOwn)+" of them its own"),
		row("an answer that is being made, model waiting or streaming", amount(1024*m.runMemory())+" KiB"),
		row("an answer that streams into a chat", amount(1000*m.runCores())+" ms of a core each second"),
		row("an event stream that is open and idle", amount(1024*(b.Streams.IdleNow-b.Streams.Before)/float64(b.Streams.Idle))+" KiB"),
		row("an event stream with the answer that it shows", amount(1024*(b.Streams.Now-b.Streams.IdleNow)/float64(b.Streams.Active))+" KiB"),
	}
	requests := [][]string{{"request", "SQLite, ms", "PostgreSQL, ms, and of its server", "a second on one core, SQLite"}}
	for _, r := range m.own.Requests {
		requests = append(requests, row(r.What, amount(r.SQLite), amount(r.PG)+" + "+amount(r.Server), amount(1000/r.SQLite)))
	}
	return map[string]string{"units": markdownTable(units...), "memory": markdownTable(memory...), "requests": markdownTable(requests...), "loads": m.loads(), "limits": m.limits()}
}

func rounds(b *report.Burst) (cpu []float64) {
	for _, r := range b.Rounds {
		cpu = append(cpu, r.CPU)
	}
	return cpu
}

// loads returns the table of the load and its multiples.
func (m *scaleModel) loads() string {
	lite, pg := m.message("sqlite"), m.message("postgres")
	times := []float64{1, 10, 100, 1000}
	lines := [][]string{{"", "× 1", "× 10", "× 100", "× 1,000"}}
	add := func(what string, f func(x float64) string) {
		line := []string{what}
		for _, x := range times {
			line = append(line, f(x))
		}
		lines = append(lines, line)
	}
	linear := func(what string, one float64) { add(what, func(x float64) string { return amount(x * one) }) }
	bytes := func(what string, one float64) { add(what, func(x float64) string { return size(x * one) }) }
	day := m.own.Load.Messages
	stored := func(c messageCost) float64 { return day * (365*c.kept() + 90*c.Days90 + 2*c.TwoDays) }
	linear("messages a day", day)
	linear("messages a second at the peak", m.peak())
	linear("answers being made at the peak", m.runs())
	linear("cores of the gateway at the peak", m.cores())
	add("memory of the gateway at the peak, MiB", func(x float64) string { return amount(m.bench.Waiting.Idle + x*m.runs()*m.runMemory()) })
	linear("fsyncs a second at the peak, one at a time", m.peak()*m.bench.Syncs.Alone)
	linear("answers and previews a second of each of two bots", m.sends())
	bytes("database after a year, SQLite", stored(lite))
	bytes("… PostgreSQL", stored(pg))
	bytes("write-ahead log of PostgreSQL in a day", day*m.own.Postgres.WAL)
	linear("rows of finished messages (48 hours)", 2*day)
	bytes("transcripts of a year", 365*day*lite.Vault)
	return markdownTable(lines...)
}

// sends returns the calls a second with which each of the load's bots shows answers.
func (m *scaleModel) sends() float64 { return (m.peak() + m.runs()*m.previews()) / m.own.Load.Bots }

const (
	telegramPace = 40 * time.Millisecond // between two messages of a bot
	slowSync     = 0.010                 // seconds: a disk that turns, or one on the network
	roundTrip    = 0.0005                // seconds: a server in the same data centre
)

// limits returns the table of what breaks first.
func (m *scaleModel) limits() string {
	type limit struct {
		what, at string
		times    float64
	}
	perBot := float64(time.Second) / float64(telegramPace)
	writer := 1 / m.own.Bursts["postgres"][0].Rate / m.own.Postgres.Requests // seconds of one statement over a socket
	near := 1 / (m.own.Postgres.Requests * (roundTrip + writer))
	slow := 1 / (m.bench.Latency.Commits * slowSync)
	list := []limit{
		{"`GATEHOUSE_LIMIT_RUNS`, as it is unless set", fmt.Sprintf("%d answers at a time", configs.Default().LimitRuns), float64(configs.Default().LimitRuns) / m.runs()},
		{"previews of a Telegram bot become rarer", fmt.Sprintf("%s messages a second of a bot", amount(perBot)), perBot / m.sends()},
		{"answers of a Telegram bot wait", fmt.Sprintf("%s messages a second of a bot", amount(perBot)), perBot / (m.peak() / m.own.Load.Bots)},
		{"a disk that takes 10 ms for an fsync, SQLite", fmt.Sprintf("%s messages a second, if no two share a commit", amount(slow)), slow / m.peak()},
		{"PostgreSQL, 0.5 ms away (computed)", fmt.Sprintf("%s messages a second", amount(near)), near / m.peak()},
		{"rows for 48 hours: more were not measured", amount(m.own.NotBeyond.Rows) + " rows", m.own.NotBeyond.Rows / (2 * m.own.Load.Messages)},
		{"the processor of the measured machine, SQLite", fmt.Sprintf("%s cores", amount(m.capacity())), m.capacity() / m.cores()},
		{"PostgreSQL on the gateway's machine, in a burst", fmt.Sprintf("%s messages a second", amount(m.own.Bursts["postgres"][0].Rate)), m.own.Bursts["postgres"][0].Rate / m.peak()},
		{"1 GiB of memory, as in the compose files", fmt.Sprintf("%s answers at a time", amount((1024-m.bench.Waiting.Idle)/m.runMemory())), (1024 - m.bench.Waiting.Idle) / m.runMemory() / m.runs()},
	}
	slices.SortStableFunc(list, func(a, b limit) int { return cmp.Compare(a.times, b.times) })
	lines := [][]string{{"what", "breaks at", "which is the load ×"}}
	for _, l := range list {
		lines = append(lines, []string{l.what, l.at, amount(l.times)})
	}
	return markdownTable(lines...)
}

// pageFaults returns which tables of the page are not the computed ones.
func (m *scaleModel) pageFaults(page string) (list []string) {
	for name, want := range m.tables() {
		if begin := "<!-- computed: " + name + " -->\n"; !strings.Contains(page, begin+want+"<!-- end -->\n") {
			list = append(list, fmt.Sprintf("docs/scale.md does not have the table %s:\n%s", name, want))
		}
	}
	slices.Sort(list)
	return list
}

func TestScaleModel_ThePageHasTheComputedTables(t *testing.T) {
	t.Parallel()
	m := readScale(t)
	page, err := os.ReadFile(scalePage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if os.Getenv("GATEHOUSE_TEST_SCALE_MODEL") == "write" {
		for name, want := range m.tables() {
			before, rest, _ := strings.Cut(text, "<!-- computed: "+name+" -->\n")
			_, after, ok := strings.Cut(rest, "<!-- end -->\n")
			if !ok {
				t.Fatalf("the page has no place for %s", name)
			}
			text = before + "<!-- computed: " + name + " -->\n" + want + "<!-- end -->\n" + after
		}
		if err := os.WriteFile(scalePage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range m.pageFaults(text) {
		t.Error(fault)
	}
	for _, file := range []string{"../../connectors/telegram/pace.go"} {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "Every: 40 * time.Millisecond") {
			t.Errorf("%s has another pace: %v", file, err)
		}
	}
	if !strings.Contains(text, m.bench.Commit[:8]) {
		t.Errorf("the page does not name commit %s of docs/performance.json", m.bench.Commit[:8])
	}
}

func TestScaleModel_AgreesWithWhatWasMeasured(t *testing.T) {
	t.Parallel()
	m := readScale(t)
	for _, fault := range m.faults() {
		t.Error(fault)
	}
	if n := len(m.bursts()); n < 5 {
		t.Errorf("only %d bursts", n)
	}
}

func TestScaleModel_AWrongFigureIsFound(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(scalePage)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*scaleModel){
		"processor time of a burst": func(m *scaleModel) {
			for i := range m.bench.Burst.Rounds {
				m.bench.Burst.Rounds[i].CPU *= 1.5
			}
		},
		"rate of a burst":           func(m *scaleModel) { m.own.Bursts["sqlite"][0].Rate *= 1.5 },
		"memory of streaming chats": func(m *scaleModel) { m.bench.Streaming.Peak *= 1.3 },
		"bytes of a message":        func(m *scaleModel) { m.own.Bytes["sqlite"][1].Database *= 1.3 },
		"the large database":        func(m *scaleModel) { m.bench.Scale.Bytes /= 2 },
	} {
		m := readScale(t)
		if change(&m); len(m.faults()) == 0 {
			t.Errorf("%s may be wrong", name)
		}
	}
	m := readScale(t)
	m.own.Load.Messages++
	m.own.Load.Messages *= 1.1
	if len(m.pageFaults(string(page))) != 2 {
		t.Errorf("of another load %d tables differ, want 2", len(m.pageFaults(string(page))))
	}
}
