package admin

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
)

// maxStreams bounds the event streams that are open at once: one per browser
// is the rule, since tabs share theirs.
const maxStreams = 64

// topics that ring the panel's bell.
var topics = []string{"pairing", "approvals", "people", "bots", "queue"}

// events sends the name of each topic on which something changed. The page
// fetches what it shows; nothing else is on this line. It ends when the
// session does.
func (p *Panel) events(w http.ResponseWriter, r *http.Request) error {
	if p.streams.Add(1) > maxStreams {
		p.streams.Add(-1)
		return core.Errorf(core.Busy, "too many pages listen at once")
	}
	defer p.streams.Add(-1)
	ctx := r.Context()
	rang := p.o.Bell.Listen(ctx, topics...) // before the first byte: nothing that follows is missed
	s, err := web.OpenStream(w, r, web.StreamOptions{Pulse: p.pulse, Metrics: p.o.Metrics, Endless: true})
	if err != nil {
		return err
	}
	defer s.Close()
	check := p.clock.After(web.Heartbeat)
	for {
		select {
		case topic, ok := <-rang:
			if !ok || s.Send("", []byte(topic)) != nil {
				return nil
			}
		case <-check:
			if !p.still(r) {
				return nil
			}
			check = p.clock.After(web.Heartbeat)
		case <-s.Context().Done():
			return nil
		}
	}
}

// still reports whether r's session is valid now. It asks with a request that
// carries nothing but what the browser sent: who r was is known already.
func (p *Panel) still(r *http.Request) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sourceTimeout)
	defer cancel()
	_, who, err := p.identify(r.WithContext(ctx))
	return err == nil && who.Session && !who.MustChange
}
