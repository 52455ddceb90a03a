package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// permissionStream serves GET /api/permissions/stream.
func (a *API) permissionStream(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return web.Refuse(web.MethodNotAllowed, "a stream is read with GET")
	}
	release, err := a.Streams.Take(p.Caller())
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer a.Streams.Watch(auth.Narrow(r, auth.ScopeAdmin), stop)() // before the answer begins: who has read of it may count on it
	rang := a.Bell.Listen(ctx, core.TopicApprovals)                // before the first update: nothing that follows is missed
	s, err := a.Streams.Start(w, r, true)
	if err != nil {
		return err
	}
	defer s.Close()
	defer context.AfterFunc(s.Context(), stop)()
	o := watcher{api: a, who: p, stream: s, shown: map[string]call{}}
	if err := o.send(map[string]string{"type": "connected"}); err != nil {
		return nil
	}
	for {
		if err := o.update(ctx); err != nil {
			if ctx.Err() == nil {
				a.Log.ErrorContext(ctx, "permission stream", "err", err)
			}
			return nil // the reader comes back, and what waits is replayed
		}
		select {
		case _, open := <-rang:
			if !open {
				return nil
			}
		case <-a.Clock.After(web.Heartbeat): // what rings no bell here: another node, someone forgotten
		case <-ctx.Done():
			return nil
		}
	}
}

// A watcher is one reader of the permission stream. It holds no queue: a
// slow reader delays only itself, and is cut off by the stream's patience.
type watcher struct {
	api    *API
	who    auth.Principal
	stream *web.Stream
	shown  map[string]call // what waits, as the reader knows it; at most maxAsks
}

// update sends what has changed since the last update. A call that was settled
// in between is not shown.
func (o *watcher) update(ctx context.Context) error {
	rows, err := o.api.Asks.Pending(ctx, maxAsks)
	if err != nil {
		return err
	}
	now := make(map[string]call, len(rows))
	for _, w := range rows {
		now[w.Request.ID] = callOf(w, o.who)
	}
	var gone []call
	for id, c := range o.shown {
		if _, waits := now[id]; !waits {
			gone = append(gone, c)
		}
	}
	core.Sort(gone, func(x, y call) int { return x.At.Compare(y.At) })
	for _, c := range gone {
		if err := o.over(ctx, c); err != nil {
			return err
		}
	}
	for _, w := range rows {
		if _, known := o.shown[w.Request.ID]; known {
			continue
		}
		c := now[w.Request.ID]
		if err := o.send(map[string]any{"type": "permissionRequest", "request": c}); err != nil {
			return err
		}
		c.Diff = nil // it is not needed for the outcome
		o.shown[c.ID] = c
	}
	return nil
}

// over reports the outcome of a call.
func (o *watcher) over(ctx context.Context, c call) error {
	ask, err := o.api.Asks.Ask(ctx, c.ID)
	if err != nil && core.KindOf(err) != core.NotFound {
		return err
	}
	s := settledCall(ask, c)
	switch {
	case err != nil: // its person was forgotten
		s.Decision = "withdrawn"
	case s.Decision == "": // it has expired, and that is not stored yet
		s.Decision = "timeout"
	}
	s.Type = "permissionDenied"
	if s.Decision == "granted" {
		s.Type = "permissionGranted"
	}
	delete(o.shown, c.ID)
	return o.send(s)
}

func (o *watcher) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("permission event: %w", err)
	}
	return o.stream.Send("", data)
}
