package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/model"
	"gatehouse/cmd/loadgen/report"
)

// The streaming models send a token at an interval, for 10 to 30 s in
// all. An answer stays one message on both platforms.
const (
	streamEvery = time.Second
	streamWord  = "and then there is more to say, because of that: "
	streamLeast = 10
	streamMost  = 30
	streamFor   = 30 * time.Second // measured, once all have begun
)

// streaming measures many chats whose answers stream at once: how long a final
// takes from the model's last token until it is visible, while all others continue,
// and the interval of a chat's previews. A user who got an answer asks again.
func (b *bench) streaming(ctx context.Context) error {
	m, err := model.Open()
	if err != nil {
		return err
	}
	m.Set(model.Plan{Slow: streamEvery, Word: streamWord, Words: func() int { return streamLeast + rand.IntN(streamMost-streamLeast) }})
	gw, err := b.side(ctx, b.c.Streaming, "", func(s *side) (*child.Child, error) {
		return child.Gateway(ctx, b.c.Program, s.Field, s.dir, modelEnv(m))
	})
	if err != nil {
		return errors.Join(err, m.Close())
	}
	d, err := stream(ctx, gw, m)
	if err != nil {
		return errors.Join(err, m.Close(), gw.end())
	}
	b.data.Streaming = d
	d.Verdict, err = b.settle(ctx, gw) // every message has its answer
	return errors.Join(err, m.Close())
}

// An audience reads all chats.
type audience struct {
	mu       sync.Mutex
	finals   map[int]time.Time    // when the end of an answer was last visible
	previews map[string]time.Time // by chat: the last
	shown    int                  // previews, while counting
	counting bool
	closest  time.Duration
	done     chan string // chats that have their answer
}

var lastWord = regexp.MustCompile(`End (\d+)\.$`)

func (a *audience) see(key string, m crowd.Message) {
	found := lastWord.FindStringSubmatch(m.Text)
	switch {
	case !m.Bot || m.Deleted:
		return
	case found == nil:
		a.preview(key, m.At)
		return
	}
	n, _ := strconv.Atoi(found[1])
	a.mu.Lock()
	_, again := a.finals[n]
	a.finals[n] = m.At
	delete(a.previews, key)
	a.mu.Unlock()
	if !again {
		a.done <- key
	}
}

func (a *audience) preview(key string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.previews[key]; ok {
		a.closest = min(a.closest, at.Sub(last))
	}
	a.previews[key] = at
	if a.counting {
		a.shown++
	}
}

func (a *audience) count(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counting = on
}

// stream has every chat ask, and again when it is answered, until the time has ended.
func stream(ctx context.Context, gw *side, m *model.Server) (*report.Streaming, error) {
	a := &audience{finals: map[int]time.Time{}, previews: map[string]time.Time{}, closest: time.Hour, done: make(chan string, 2*len(gw.Chats))}
	for _, p := range gw.Platforms {
		defer p.Watch(func(msg crowd.Message) { a.see(field.KeyOf(p.Name, msg.Chat), msg) })()
		defer p.Drafts(func(chat string, at time.Time) { a.preview(field.KeyOf(p.Name, chat), at) })()
	}
	chats := map[string]field.Spot{}
	asked := 0
	ask := func(c field.Spot) error {
		asked++
		_, err := c.Say(asked, field.Text(asked))
		return err
	}
	tend := func() (err error) { // who is answered asks again
		for err == nil {
			select {
			case key := <-a.done:
				err = ask(chats[key])
			default:
				return nil
			}
		}
		return err
	}
	for _, c := range gw.Chats {
		chats[c.Key] = c
		if err := errors.Join(tend(), ask(c)); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(streamMost) * streamEvery / 3 / time.Duration(len(gw.Chats))) // not all at one moment
	}
	var failed error
	begun := func() bool {
		failed = errors.Join(failed, tend())
		return failed != nil || m.Busy() >= len(gw.Chats)*9/10
	}
	if err := errors.Join(until(ctx, 2*time.Minute, begun), failed); err != nil {
		return nil, fmt.Errorf("of %d chats %d stream: %w", len(gw.Chats), m.Busy(), err)
	}
	d := &report.Streaming{Chats: len(gw.Chats)}
	before, err := gw.Series(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	a.count(true)
	_, used, err := gw.measured(func() ([]field.Sample, error) {
		for over := time.After(streamFor); ; {
			select {
			case key := <-a.done:
				if err := ask(chats[key]); err != nil {
					return nil, err
				}
			case <-over:
				return nil, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	a.count(false)
	end := time.Now()
	after, err := gw.Series(ctx)
	if err != nil {
		return nil, err
	}
	d.Stages = report.Stages(before, after)
	if _, d.Peak, err = gw.Memory(); err != nil {
		return nil, err
	}
	if err := until(ctx, 2*time.Minute, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.finals) == asked }); err != nil {
		return nil, fmt.Errorf("of %d answers %d are seen: %w", asked, len(a.finals), err)
	}
	time.Sleep(time.Second) // what is shown once more
	a.mu.Lock()
	defer a.mu.Unlock()
	var took []time.Duration
	for n, at := range m.Ended() {
		if at.After(began) && at.Before(end) {
			took = append(took, a.finals[n].Sub(at))
		}
	}
	d.Final, d.Previews, d.Closest = report.Summary(took), float64(a.shown)/end.Sub(began).Seconds(), report.MS(a.closest)
	d.CPU = used.Seconds() / end.Sub(began).Seconds()
	return d, nil
}
