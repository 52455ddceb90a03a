package turns

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
)

var runID = core.Pattern(`^[A-Za-z0-9-]{1,64}$`)

// events serves GET /api/chat/{id}/events.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat, auth.ScopeRead)
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return web.Refuse(web.MethodNotAllowed, "a stream is read with GET")
	}
	session, err := a.Sessions.Find(r, p)
	if err != nil {
		return err
	}
	others, err := a.ofOthers(r.Context(), p, session)
	if err != nil {
		return err
	}
	f := bus.Follow{Session: session, Run: r.URL.Query().Get("run"), LastID: r.Header.Get("Last-Event-ID")}
	if len(f.LastID) > 128 {
		return core.Errorf(core.Invalid, "the Last-Event-ID is too long")
	}
	if f.Run != "" && !runID().MatchString(f.Run) {
		return core.Errorf(core.Invalid, "this is not a run id")
	}
	release, err := a.Streams.Take(p.Caller())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(web.Lasting(r.Context()))
	over := func() { stop(); release() }
	events, ended, leave, err := a.join(ctx, f)
	if err != nil {
		over()
		return err
	}
	if ended {
		defer over()
		return a.replay(w, r, events, stop)
	}
	forget := a.watch(r, others, stop)
	over = func() { forget(); stop(); release() }
	err = a.Streams.Run(w, r, f.Run == "", func(s *web.Stream) {
		defer over()
		defer context.AfterFunc(s.Context(), stop)()
		a.copyEvents(s, events, asIs)
	})
	if err != nil {
		leave()
		over()
	}
	return err
}

// ofOthers reports whether a session that p may see is another user's, for which p needs the scopes
// admin and read.
func (a *API) ofOthers(ctx context.Context, p auth.Principal, session string) (bool, error) {
	if !p.ReadsEveryone() {
		return false, nil
	}
	owner, err := a.Sessions.Owner(ctx, session)
	if core.KindOf(err) == core.NotFound { // it has just been enqueued, which its owner alone sees
		return false, nil
	}
	return owner != p.User, err
}

// watch has gone called when the caller of r may not follow the session any more: their own needs
// chat or read, another user's both admin and read.
func (a *API) watch(r *http.Request, others bool, gone func()) (forget func()) {
	if !others {
		return a.Streams.Watch(auth.Narrow(r, auth.ScopeChat, auth.ScopeRead), gone)
	}
	admin, read := a.Streams.Watch(auth.Narrow(r, auth.ScopeAdmin), gone), a.Streams.Watch(auth.Narrow(r, auth.ScopeRead), gone)
	return func() { admin(); read() }
}

// replay sends what is kept of a run that has ended, or 204 when the reader has
// all of it, after which an EventSource does not reconnect.
func (a *API) replay(w http.ResponseWriter, r *http.Request, events entries, stop func()) error {
	var s *web.Stream
	for e, err := range events {
		if err != nil {
			if s != nil {
				return nil // the reader comes back by id
			}
			return err
		}
		if s == nil {
			if s, err = a.Streams.Start(w, r, false); err != nil {
				return err
			}
			defer s.Close()
			defer context.AfterFunc(s.Context(), stop)()
		}
		if s.Send(e.ID(), e.Data) != nil {
			return nil
		}
	}
	if s == nil && r.Context().Err() == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// abort serves POST /api/chat/{id}/abort.
func (a *API) abort(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	session, err := a.Sessions.Find(r, p)
	if err != nil {
		return err
	}
	aborted, err := a.stop(r, session)
	if err != nil {
		return err
	}
	if aborted {
		if err := a.Audit.Did(r.Context(), p.Actor(), "run.abort", session); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"session_id": session, "aborted": aborted})
}

// stop stops the run of a session, or the one that the request names, which may wait in its
// lane. It reports whether there was one to stop.
func (a *API) stop(r *http.Request, session string) (bool, error) {
	run := r.URL.Query().Get("run")
	if run == "" {
		return a.Runs.Abort(session), nil
	}
	if !runID().MatchString(run) {
		return false, core.Errorf(core.Invalid, "this is not a run id")
	}
	going := slices.ContainsFunc(a.Follower.Active(), func(i bus.Info) bool { return i.Run == run && i.Session == session })
	if !going {
		state, err := a.statusOf(r.Context(), &turn{session: session, run: run})
		if err != nil || state != "queued" {
			return false, err
		}
	}
	return true, a.Runs.AbortRun(r.Context(), session, run)
}

// A streamInfo is one run that is going on.
type streamInfo struct {
	SessionID string    `json:"session_id"`
	RunID     string    `json:"run_id"`
	Bot       string    `json:"bot"`
	Attempt   int       `json:"attempt"`
	StartedAt time.Time `json:"started_at"`
}

// status serves GET /api/chat/{id}/stream-status.
func (a *API) status(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat, auth.ScopeRead)
	if err != nil {
		return err
	}
	session, err := a.Sessions.Find(r, p)
	if err != nil {
		return err
	}
	for _, i := range a.Follower.Active() {
		if i.Session == session {
			return web.WriteJSON(w, http.StatusOK, map[string]any{"session_id": session, "active": true,
				"run_id": i.Run, "attempt": i.Attempt, "started_at": i.Started})
		}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"session_id": session, "active": false})
}

// active serves GET /api/chat/active-streams.
func (a *API) active(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	streams := []streamInfo{}
	for _, i := range a.Follower.Active() {
		if i.User == p.User || p.ReadsEveryone() {
			streams = append(streams, streamInfo{i.Session, i.Run, i.Bot, i.Attempt, i.Started})
		}
	}
	core.Sort(streams, func(x, y streamInfo) int { return x.StartedAt.Compare(y.StartedAt) })
	return web.WriteJSON(w, http.StatusOK, map[string]any{"streams": streams})
}
