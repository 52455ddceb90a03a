package mcp

import (
	"context"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/core"
)

// sessions are the open sessions of the protocol.
type sessions struct {
	metrics *metrics

	mu   sync.Mutex
	open map[string][]*entry // by key, the least recently used first; at most MaxSessions each
	over bool                // there will be no more of them
}

type entry struct {
	session *sdk.ServerSession
	calls   int             // that run
	ended   context.Context // when the session ends
	end     func()
}

func newSessions(m *metrics) *sessions { return &sessions{metrics: m, open: map[string][]*entry{}} }

// begin counts the session as one of key's. When the key has too many, it ends the idle one
// that was used least recently; core.Busy without one.
func (s *sessions) begin(key string, session *sdk.ServerSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.open[key]
	if s.over {
		return core.Errorf(core.Busy, "the gateway is stopping")
	}
	if slices.ContainsFunc(list, func(e *entry) bool { return e.session == session }) {
		return nil // it began before: the library refuses it
	}
	if len(list) >= MaxSessions {
		i := slices.IndexFunc(list, func(e *entry) bool { return e.calls == 0 })
		if i < 0 {
			return core.Errorf(core.Busy, "this key has %d sessions, each with a call that runs", MaxSessions)
		}
		go func(e *entry) { _ = e.session.Close() }(list[i]) // it waits for what runs in it
		list = slices.Delete(list, i, i+1)
		s.metrics.sessions.Dec()
	}
	e := &entry{session: session}
	e.ended, e.end = context.WithCancel(context.Background())
	s.open[key] = append(list, e)
	s.metrics.sessions.Inc()
	go func() {
		_ = session.Wait() // its end is no fault
		s.remove(key, session)
	}()
	return nil
}

func (s *sessions) remove(key string, session *sdk.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.open[key]
	i := slices.IndexFunc(list, func(e *entry) bool { return e.session == session })
	if i < 0 {
		return
	}
	list[i].end()
	s.metrics.sessions.Dec()
	if s.open[key] = slices.Delete(list, i, i+1); len(s.open[key]) == 0 {
		delete(s.open, key)
	}
}

// use counts a call in a session, until done is called, and returns ctx, which then also ends
// with the session. A session that did not begin is not counted.
func (s *sessions) use(ctx context.Context, key string, session *sdk.ServerSession) (_ context.Context, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.open[key]
	i := slices.IndexFunc(list, func(e *entry) bool { return e.session == session })
	if i < 0 {
		return ctx, func() {}
	}
	e := list[i]
	e.calls++
	s.open[key] = append(slices.Delete(list, i, i+1), e)
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(e.ended, cancel)
	return ctx, func() {
		forget()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		e.calls--
	}
}

// stop ends the calls in a session of key's, which is about to end.
func (s *sessions) stop(key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.open[key] {
		if e.session.ID() == id {
			e.end()
		}
	}
}

// close ends all sessions and their calls, and waits until they have ended.
func (s *sessions) close() {
	s.mu.Lock()
	s.over = true
	var all []*sdk.ServerSession
	for _, list := range s.open {
		for _, e := range list {
			e.end()
			all = append(all, e.session)
		}
	}
	s.mu.Unlock()
	for _, session := range all {
		_ = session.Close()
	}
}
