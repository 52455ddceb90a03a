package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// BenchmarkAnswerWhileIndexing compares the time from a message to its answer, one at a
// time, with the index idle and while it fills with 100,000 passages.
func BenchmarkAnswerWhileIndexing(b *testing.B) {
	model := llmtest.New(b, llmtest.Options{Default: llmtest.Reply{Text: []string{"One."}}})
	w := newWorld(b, func(c *configs.Config) {
		unguarded(c)
		c.Index = "on"
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
	})
	ada := w.sim.NewUser("Ada")
	measure := func() (took []time.Duration) {
		for range 300 {
			began := time.Now()
			m := ada.Send("and you")
			w.hears(ada.DM(), func(x telegramtest.Message) bool { return x.ID > m.ID && strings.Contains(x.Text, "One.") })
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	measure()
	idle := measure()
	line := strings.Repeat("some words of a note that nobody reads but the index ", 28) + "\n\n"
	for i := range 10_000 {
		var text strings.Builder
		for k := range 10 {
			fmt.Fprintf(&text, "passage %d-%d %s", i, k, line)
		}
		name := filepath.Join(w.cfg.VaultPath, "Notes", fmt.Sprint(i%50), fmt.Sprintf("%d.md", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	w.app.library.Crawler.Kick()
	w.until("the index fills", func() bool { return w.app.library.Crawler.Status().Running })
	began := time.Now()
	filling := measure()
	if !w.app.library.Crawler.Status().Running {
		b.Error("the index was full before the messages were answered")
	}
	w.until("the index is full", func() bool { return !w.app.library.Crawler.Status().Running })
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(idle[150]), "idle-p50-ms")
	b.ReportMetric(ms(idle[297]), "idle-p99-ms")
	b.ReportMetric(ms(filling[150]), "filling-p50-ms")
	b.ReportMetric(ms(filling[297]), "filling-p99-ms")
	b.ReportMetric(time.Since(began).Seconds(), "s-to-fill")
}
