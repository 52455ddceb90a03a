package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core/session"
)

// BenchmarkFinishWhileFilling compares the end of a turn with the index idle and while 1,000
// conversations of 20 messages are indexed, as after an upgrade.
func BenchmarkFinishWhileFilling(b *testing.B) {
	h := open(b)
	h.pause = func(context.Context) { time.Sleep(3 * time.Millisecond) }
	h.Store = h.another()
	text := strings.Repeat("some words of a message that nobody reads but the index ", 12)
	for i := range 1000 {
		s := h.resolve(chat(int64(2+i%50), fmt.Sprint("c", i))).Session
		c := h.open(h.Store, s)
		for k := range 10 {
			if err := c.Append(fmt.Sprint("r", k), 0, user(text), answer(text)); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	run := 0
	sess := h.resolve(chat(1, "live")).Session
	measure := func(n int) (took []time.Duration) {
		for range n {
			run++
			c := h.open(h.Store, sess)
			if err := c.Append(fmt.Sprint("live", run), 0, user(text), answer(text)); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			h.finish(sess.ID, session.Finish{Messages: 2, Title: text, At: h.clock.Now(), Words: h.Words(context.Background(), c)})
			took = append(took, time.Since(began))
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		slices.Sort(took)
		return took
	}
	measure(100)
	idle := measure(500)
	done := make(chan int, 1)
	began := time.Now()
	go func() {
		all := 0
		for {
			n, err := h.Fill(context.Background())
			if all += n; err != nil || n == 0 {
				done <- all
				return
			}
		}
	}()
	filling := measure(500)
	select {
	case <-done:
		b.Error("the index was full before the turns had ended")
	default:
		n := <-done
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "conversations/s")
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(idle[250]), "idle-p50-ms")
	b.ReportMetric(ms(idle[495]), "idle-p99-ms")
	b.ReportMetric(ms(filling[250]), "filling-p50-ms")
	b.ReportMetric(ms(filling[495]), "filling-p99-ms")
}
