// Package field has the simulated platforms with users on them: it writes in their chats,
// times the answers and checks that every message has one.
package field

import (
	"errors"
	"slices"
	"sync"
	"time"

	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
)

// A Field is the simulated platforms with users on them, and a record of what
// became visible in their chats.
type Field struct {
	Platforms []*crowd.Platform
	Chats     []Spot
	stops     []func()

	mu      sync.Mutex
	replies map[string][]seen // by chat: the bot's messages, in order
	total   int
	last    map[string]time.Time // by platform
	bell    chan struct{}        // something became visible
}

// A Spot is a chat of a platform; its key names it among all.
type Spot struct {
	crowd.Chat
	platform string
	Key      string
}

// KeyOf returns the key of a chat among all.
func KeyOf(platform, chat string) string { return platform + "/" + chat }

type seen struct {
	id string
	at time.Time // first visible
}

// New returns platforms without flood control and n private chats, a share of
// them on Discord; each platform with a share has one at least. They take
// turns, so that the first few are of both.
func New(n int, share float64) (*Field, error) {
	f := &Field{replies: map[string][]seen{}, last: map[string]time.Time{}, bell: make(chan struct{}, 1)}
	onDiscord := int(share*float64(n) + .5)
	if share < 1 {
		sim, err := telegramtest.Open(telegramtest.Options{FloodOff: true, LogSize: 1000})
		if err != nil {
			return nil, err
		}
		if err := f.add(sim.Close)(crowd.Telegram(sim, max(n-onDiscord, 1))); err != nil {
			return nil, err
		}
	}
	if share > 0 {
		sim, err := discordtest.Open(discordtest.Options{FloodOff: true, LogSize: 1000})
		if err != nil {
			f.Close()
			return nil, err
		}
		if err := f.add(sim.Close)(crowd.Discord(sim, max(onDiscord, 1), 0)); err != nil {
			return nil, err
		}
	}
	f.mix()
	return f, nil
}

// add takes a platform in; on an error everything is closed.
func (f *Field) add(shut func() error) func(*crowd.Platform, error) error {
	return func(p *crowd.Platform, err error) error {
		if err != nil {
			f.Close()
			return errors.Join(err, shut())
		}
		f.Platforms = append(f.Platforms, p)
		f.stops = append(f.stops, p.Watch(func(m crowd.Message) { f.see(p.Name, m) }))
		return nil
	}
}

// mix interleaves the platforms' chats evenly in one list.
func (f *Field) mix() {
	type placed struct {
		at float64
		Spot
	}
	var all []placed
	for _, p := range f.Platforms {
		for i, c := range p.Chats {
			all = append(all, placed{(float64(i) + .5) / float64(len(p.Chats)), Spot{c, p.Name, KeyOf(p.Name, c.ID)}})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	for _, c := range all {
		f.Chats = append(f.Chats, c.Spot)
	}
}

// Close ends the platforms.
func (f *Field) Close() {
	for _, stop := range f.stops {
		stop()
	}
	for _, p := range f.Platforms {
		_ = p.Close()
	}
}

func (f *Field) see(platform string, m crowd.Message) {
	if !m.Bot {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[platform] = m.At
	if !m.Edited {
		key := KeyOf(platform, m.Chat)
		f.replies[key] = append(f.replies[key], seen{m.ID, m.At})
		f.total++
	}
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

// Online reports whether the bot receives on every platform.
func (f *Field) Online() bool {
	return !slices.ContainsFunc(f.Platforms, func(p *crowd.Platform) bool { return !p.Online() })
}

// SeenAt returns when the bot had turned to every platform, after a moment; zero when
// it has not.
func (f *Field) SeenAt(after time.Time) (last time.Time) {
	for _, p := range f.Platforms {
		at := p.Seen(after)
		if at.IsZero() {
			return at
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}
