package page

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
)

// maxStreams bounds the event streams that are open at once: one per browser
// is the rule, since tabs share theirs.
const maxStreams = 64

// events sends the name of each topic that changed, and nothing else: the page
// fetches what it shows. The stream ends with the session.
func (f *Frame) events(w http.ResponseWriter, r *http.Request) error {
	if f.streams.Add(1) > maxStreams {
		f.streams.Add(-1)
		return core.Errorf(core.Busy, "too many pages listen at once")
	}
	defer f.streams.Add(-1)
	ctx := r.Context()
	rang := f.o.Bell.Listen(ctx, core.Topics()...) // before the first byte: nothing that follows is missed
	s, err := web.OpenStream(w, r, web.StreamOptions{Pulse: f.pulse, Metrics: f.o.Metrics, Endless: true})
	if err != nil {
		return err
	}
	defer s.Close()
	check := f.Clock.After(web.Heartbeat)
	for {
		select {
		case topic, ok := <-rang:
			if topic == core.TopicAccounts && !f.still(r) {
				return nil
			}
			if !ok || s.Send("", []byte(topic.String())) != nil {
				return nil
			}
		case <-check:
			if !f.still(r) {
				return nil
			}
			check = f.Clock.After(web.Heartbeat)
		case <-s.Context().Done():
			return nil
		}
	}
}

// still reports whether r's session is valid now. It identifies the request
// again, without what is known of r already.
func (f *Frame) still(r *http.Request) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sourceTimeout)
	defer cancel()
	r, err := f.authenticator.Identify(r.WithContext(ctx))
	if err != nil {
		return false
	}
	who, ok := Principal(r)
	return ok && !who.MustChange
}
