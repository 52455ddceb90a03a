package main

import (
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// BenchmarkStop is the time from /stop, as the platform has it, to the end of
// the answer, as the chat sees it, with twenty other chats being answered.
func BenchmarkStop(b *testing.B) {
	model := llmtest.New(b, llmtest.Options{Default: llmtest.Reply{Text: []string{"One. "}, Hang: true}})
	w := newWorld(b, func(c *configs.Config) {
		unguarded(c)
		c.Model, c.OpenaiBaseURL = fakeModel, model.URL()
	})
	for _, u := range w.crowd(20) {
		u.Send("think for long")
	}
	ada := w.sim.NewUser("Ada")
	var spent time.Duration
	for b.Loop() {
		ada.Send("and you")
		w.until("all are being answered", func() bool { return len(w.app.bus.Active()) == 21 })
		began := time.Now()
		m := ada.Send("/stop")
		w.hears(ada.DM(), func(x telegramtest.Message) bool { return x.ID > m.ID && strings.Contains(x.Text, "Stopped") })
		spent += time.Since(began)
		w.until("it has ended", func() bool { return len(w.app.bus.Active()) == 20 })
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms/stop")
}
