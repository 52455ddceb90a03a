package field

import (
	"context"
	"fmt"
	"time"
)

func (f *Field) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// Await waits until n of the bot's messages are visible in all, and then for
// quiet: final edits, and answers that should not come.
func (f *Field) Await(ctx context.Context, n int, limit, quiet time.Duration) error {
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

// talkers is how many chats are written in by the latency parts.
const talkers = 10

// A Sample is how long one message took from "available" to "visible".
type Sample struct {
	platform string
	took     time.Duration
}

// OneByOne sends n messages, ten chats in turn, each after the answer to the
// one before.
func (f *Field) OneByOne(ctx context.Context, n int) ([]Sample, error) {
	out := make([]Sample, 0, n)
	for i := range n {
		before := f.count()
		c := f.Chats[i%min(talkers, len(f.Chats))]
		m, err := c.Say(i, Text(i))
		if err != nil {
			return nil, err
		}
		if err := f.Await(ctx, before+1, 20*time.Second, 0); err != nil {
			return nil, err
		}
		f.mu.Lock()
		r := f.replies[c.Key]
		if f.total != before+1 || len(r) == 0 {
			f.mu.Unlock()
			return nil, fmt.Errorf("message %d was answered %d times within 20 s", i+1, f.total-before)
		}
		out = append(out, Sample{c.platform, r[len(r)-1].at.Sub(m.At)})
		f.mu.Unlock()
	}
	return out, nil
}

// OpenLoop sends n messages at a rate whatever the answers do. The k-th answer
// in a chat belongs to its k-th message.
func (f *Field) OpenLoop(ctx context.Context, n int, rate float64) ([]Sample, error) {
	f.mu.Lock()
	base := map[string]int{}
	for key, r := range f.replies {
		base[key] = len(r)
	}
	start := f.total
	f.mu.Unlock()
	chats := f.Chats[:min(talkers, len(f.Chats))]
	sent := map[string][]time.Time{}
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	for i := range n {
		c := chats[i%len(chats)]
		m, err := c.Say(i, Text(i))
		if err != nil {
			return nil, err
		}
		sent[c.Key] = append(sent[c.Key], m.At)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := f.Await(ctx, start+n, time.Minute, 200*time.Millisecond); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Sample
	for _, c := range chats {
		got := f.replies[c.Key][base[c.Key]:]
		for i, at := range sent[c.Key][:min(len(sent[c.Key]), len(got))] {
			out = append(out, Sample{c.platform, got[i].at.Sub(at)})
		}
	}
	return out, nil
}

// Burst sends each messages to every chat at once and waits for the answers.
// It returns the time from the first message to each platform's last change.
func (f *Field) Burst(ctx context.Context, each int) (map[string]time.Duration, error) {
	before := f.count()
	began := time.Now()
	for k := range each {
		for _, c := range f.Chats {
			if _, err := c.Say(k, Text(k)); err != nil {
				return nil, err
			}
		}
	}
	want := before + each*len(f.Chats)
	limit := 30*time.Second + time.Duration(each*len(f.Chats))*20*time.Millisecond
	if err := f.Await(ctx, want, limit, 300*time.Millisecond); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	took := map[string]time.Duration{}
	for platform, last := range f.last {
		took[platform] = last.Sub(began)
	}
	return took, nil
}

// Text returns a question of ordinary length that matches no note.
func Text(i int) string {
	return fmt.Sprintf("Question %d: could you please tell me where we stand with this, and what comes next?", i+1)
}

// Times returns those of one platform's samples; "" is all.
func Times(list []Sample, platform string) (out []time.Duration) {
	for _, s := range list {
		if platform == "" || s.platform == platform {
			out = append(out, s.took)
		}
	}
	return out
}
