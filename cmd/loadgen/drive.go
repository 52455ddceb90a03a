package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

// A field is one simulated platform with people on it, and a record of what
// became visible in their chats.
type field struct {
	sim   *telegramtest.Server
	users []*telegramtest.User
	stop  func()

	mu      sync.Mutex
	replies map[int64][]seen // chat → the bot's messages, in order
	at      map[int64]map[int]int
	total   int
	edits   int
	last    time.Time
	bell    chan struct{} // something became visible
}

type seen struct {
	id      int
	at      time.Time // first visible
	settled time.Time // last changed
}

// newField is a platform without flood control, and n people.
func newField(n int) (*field, error) {
	sim, err := telegramtest.Open(telegramtest.Options{FloodOff: true, LogSize: 1000})
	if err != nil {
		return nil, err
	}
	f := &field{sim: sim, replies: map[int64][]seen{}, at: map[int64]map[int]int{}, bell: make(chan struct{}, 1)}
	for i := range n {
		u, err := sim.AddUser(telegramtest.Account{FirstName: fmt.Sprintf("Person %d", i+1)})
		if err != nil {
			_ = sim.Close()
			return nil, err
		}
		f.users = append(f.users, u)
	}
	f.stop = sim.Watch(f.see)
	return f, nil
}

func (f *field) close() {
	f.stop()
	_ = f.sim.Close()
}

func (f *field) see(c telegramtest.Change) {
	if c.Message == nil || !c.Message.FromBot() || c.Kind != telegramtest.ChangeMessage && c.Kind != telegramtest.ChangeEdit {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = c.At
	id, chat := c.Message.ID, c.Chat
	if c.Kind == telegramtest.ChangeEdit {
		f.edits++
		if i, ok := f.at[chat][id]; ok {
			f.replies[chat][i].settled = c.At
		}
	} else {
		if f.at[chat] == nil {
			f.at[chat] = map[int]int{}
		}
		f.at[chat][id] = len(f.replies[chat])
		f.replies[chat] = append(f.replies[chat], seen{id, c.At, c.At})
		f.total++
	}
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

func (f *field) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// await waits until n of the bot's messages are visible in all, and then for
// quiet: final edits, and answers that should not come.
func (f *field) await(ctx context.Context, n int, limit, quiet time.Duration) error {
	over := time.NewTimer(limit)
	defer over.Stop()
	for f.count() < n {
		select {
		case <-f.bell:
		case <-over.C:
			return nil // what is missing is counted as lost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for quiet > 0 {
		select {
		case <-f.bell:
		case <-time.After(quiet):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// talkers is how many people write in the latency parts.
const talkers = 10

// oneByOne sends n messages, ten people in turn, each after the answer to the
// one before, and returns the times from "available" to "visible".
func (f *field) oneByOne(ctx context.Context, n int) ([]time.Duration, error) {
	out := make([]time.Duration, 0, n)
	for i := range n {
		before := f.count()
		u := f.users[i%min(talkers, len(f.users))]
		m, err := u.Post(u.DM(), telegramtest.Outgoing{Text: text(i)})
		if err != nil {
			return nil, err
		}
		if err := f.await(ctx, before+1, 20*time.Second, 0); err != nil {
			return nil, err
		}
		f.mu.Lock()
		r := f.replies[m.Chat]
		if f.total != before+1 || len(r) == 0 {
			f.mu.Unlock()
			return nil, fmt.Errorf("message %d was answered %d times within 20 s", i+1, f.total-before)
		}
		out = append(out, r[len(r)-1].at.Sub(m.At))
		f.mu.Unlock()
	}
	return out, nil
}

// openLoop sends n messages at a rate whatever the answers do. The k-th answer
// in a chat belongs to its k-th message.
func (f *field) openLoop(ctx context.Context, n int, rate float64) ([]time.Duration, error) {
	f.mu.Lock()
	base := map[int64]int{}
	for chat, r := range f.replies {
		base[chat] = len(r)
	}
	start := f.total
	f.mu.Unlock()
	sent := map[int64][]time.Time{}
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for i := range n {
		u := f.users[i%min(talkers, len(f.users))]
		m, err := u.Post(u.DM(), telegramtest.Outgoing{Text: text(i)})
		if err != nil {
			return nil, err
		}
		sent[m.Chat] = append(sent[m.Chat], m.At)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := f.await(ctx, start+n, time.Minute, 200*time.Millisecond); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []time.Duration
	for chat, times := range sent {
		got := f.replies[chat][base[chat]:]
		for i, at := range times {
			if i < len(got) {
				out = append(out, got[i].at.Sub(at))
			}
		}
	}
	return out, nil
}

// burst sends each messages to every chat at once and waits for the answers.
// It returns the time from the first message to the last change.
func (f *field) burst(ctx context.Context, each int) (time.Duration, error) {
	before := f.count()
	began := time.Now()
	for k := range each {
		for _, u := range f.users {
			if _, err := u.Post(u.DM(), telegramtest.Outgoing{Text: text(k)}); err != nil {
				return 0, err
			}
		}
	}
	want := before + each*len(f.users)
	limit := 30*time.Second + time.Duration(each*len(f.users))*20*time.Millisecond
	if err := f.await(ctx, want, limit, 300*time.Millisecond); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.Sub(began), nil
}

// text is a question of ordinary length that matches no note.
func text(i int) string {
	return fmt.Sprintf("Question %d: could you please tell me where we stand with this, and what comes next?", i+1)
}

// Percentiles of a set of times, in milliseconds.
type percentiles struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func summary(d []time.Duration) percentiles {
	if len(d) == 0 {
		return percentiles{}
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	at := func(q float64) float64 { return ms(d[min(len(d)-1, int(q*float64(len(d))))]) }
	return percentiles{N: len(d), P50: at(.5), P95: at(.95), P99: at(.99), Max: ms(d[len(d)-1])}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := append([]float64(nil), list...)
	sort.Float64s(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
