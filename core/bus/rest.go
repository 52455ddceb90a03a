package bus

import (
	"maps"
	"slices"
	"strings"
)

// Rest makes the finished runs in memory small. Runs that ended more than JustEnded ago
// and whose events are in storage are dropped; a reader that asks for one gets them from
// there. The others are copied into a few objects each, because many small ones keep
// pages of garbage in memory. Call it when there is little to do.
func (b *Bus) Rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.Clock.Now().Add(-JustEnded)
	runs, done := map[string]*Stream{}, make([]string, 0, len(b.done))
	for _, run := range b.done {
		s := b.runs[run]
		delete(b.runs, run)
		if s.ended.Before(since) && s.inStorage() {
			continue
		}
		s = s.packed()
		runs[s.info.Run], done = s, append(done, s.info.Run)
	}
	maps.Copy(runs, b.runs)
	b.runs, b.done = runs, done
}

// inStorage reports whether all events are in storage.
func (s *Stream) inStorage() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n > 0 && s.stored == s.n
}

// packed returns a copy of an ended stream that shares no memory with it. bus.mu is held.
func (s *Stream) packed() *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Stream{bus: s.bus, info: s.info.clone(), ended: s.ended, n: s.n, kept: slices.Clone(s.kept), bytes: s.bytes, stored: s.stored, owed: s.owed, sealed: true, closed: true}
	data := make([]byte, 0, s.bytes)
	for i := range p.kept {
		from := len(data)
		data = append(data, p.kept[i].data...)
		p.kept[i].data = data[from:len(data):len(data)]
	}
	return p
}

// clone returns a copy of i whose texts are in one string.
func (i Info) clone() Info {
	all := strings.Join([]string{i.Run, i.Session, i.Bot, i.Chat}, "")
	for _, text := range []*string{&i.Run, &i.Session, &i.Bot, &i.Chat} {
		n := len(*text)
		*text, all = all[:n], all[n:]
	}
	return i
}
