package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// space makes ids from idempotency keys: the same key, the same run.
var space = uuid.MustParse("6b9b8f0e-52a4-4f0e-9d3c-0f8d7f6f2a51")

var idempotencyKey = regexp.MustCompile(`^[!-~]{1,128}$`)

// reserved are words that addresses use where an id could stand.
var reserved = map[string]bool{"session": true, "sessions": true, "stream": true, "active-streams": true}

// A form is how the answer to POST /api/chat is given.
type form uint8

const (
	asStream form = iota
	asJSON
	asAccepted
)

// send is POST /api/chat.
func (a *API) send(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	how, err := formOf(r)
	if err != nil {
		return err
	}
	raw, err := web.ReadJSON(w, r, maxChatBody)
	if err != nil {
		return err
	}
	req, ignored, err := parseChat(raw)
	if err != nil {
		return err
	}
	in, t, err := a.inbound(r, p, req, raw, how)
	if err != nil {
		return err
	}
	if text := warning(ignored); text != "" {
		w.Header().Set("Warning", text)
	}
	if a.recent.add(t) {
		return web.Refuse(web.Conflict, "this Idempotency-Key was used with another body")
	}
	w.Header().Set("X-Run-Id", t.run)
	if how == asAccepted {
		return a.accept(w, r, in, t)
	}
	return a.answer(w, r, p, in, t, how, req.CancelOnDisconnect)
}

// formOf reads Prefer and Accept (RFC 7240, RFC 9110 section 12.5.1).
func formOf(r *http.Request) (form, error) {
	for pref := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(pref), ";"); strings.EqualFold(strings.TrimSpace(name), "respond-async") {
			return asAccepted, nil
		}
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return asStream, nil
	}
	stream, streamAt := quality(accept, "text/event-stream")
	object, objectAt := quality(accept, "application/json")
	switch {
	case stream == 0 && object == 0:
		return 0, web.Refuse(web.NotAcceptable, "this address answers with text/event-stream or application/json")
	case object > stream || object == stream && objectAt > streamAt:
		return asJSON, nil
	}
	return asStream, nil
}

// quality is how much accept likes media, and how closely it names it.
func quality(accept, media string) (q float64, closeness int) {
	kind, _, _ := strings.Cut(media, "/")
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		at := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case media:
			at = 3
		case kind + "/*":
			at = 2
		case "*/*":
			at = 1
		}
		if at <= closeness {
			continue
		}
		q, closeness = 1, at
		for param := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.ReplaceAll(param, " ", ""), "q="); ok {
				if f, err := strconv.ParseFloat(v, 64); err == nil {
					q = min(1, max(0, f))
				}
			}
		}
	}
	return q, closeness
}

// inbound makes the turn out of the request. Everything the client may not
// decide comes from the principal.
func (a *API) inbound(r *http.Request, p auth.Principal, req chatRequest, raw []byte, how form) (core.Inbound, *turn, error) {
	var none core.Inbound
	trust, err := ceiling(p, req.TrustLevel)
	if err != nil {
		return none, nil, err
	}
	if how == asAccepted && req.CancelOnDisconnect {
		return none, nil, fieldProblem(web.Invalid, "cancel_on_disconnect", "cancel_on_disconnect makes no sense together with Prefer: respond-async")
	}
	key, once := r.Header.Get("Idempotency-Key"), len(r.Header.Values("Idempotency-Key")) > 0
	if once && !idempotencyKey.MatchString(key) {
		return none, nil, core.Errorf(core.Invalid, "the Idempotency-Key must be 1 to 128 printable ASCII characters")
	}
	unique := uuid.NewString()
	t := &turn{user: p.User, run: uuid.NewString(), sum: sha256.Sum256(raw)}
	fresh := uuid.NewString()
	if once {
		unique = key
		t.run = uuid.NewSHA1(space, []byte("run\x00"+caller(p)+"\x00"+key)).String()
		fresh = uuid.NewSHA1(space, []byte("session\x00"+caller(p)+"\x00"+key)).String()
	}
	if req.SessionID == "" {
		req.SessionID = fresh
	}
	if t.session, err = a.locate(r.Context(), p, req.SessionID); err != nil {
		return none, nil, err
	}
	t.update = "key:" + caller(p) + ":" + unique
	return core.Inbound{
		UpdateID:  t.update,
		Address:   core.Address{Bot: core.APIBot, Chat: t.session},
		Kind:      core.KindMessage,
		From:      core.Peer{Platform: core.APIBot, ID: "user:" + strconv.FormatInt(p.User, 10)},
		At:        a.Clock.Now().UTC(),
		Text:      req.Message,
		Addressed: true,
		Turn: &core.Options{
			Session: req.SessionID, Run: t.run, Model: req.Model, Trust: trust, WorkingDirectory: req.WorkingDirectory,
			SystemPrompt: req.SystemPrompt, User: p.User, Key: p.Key, Respond: how == asAccepted, IdempotencyKey: key,
			Alone: how != asStream,
		},
	}, t, nil
}

// ceiling is the level a turn asks for, Stranger when it asks for none. Nobody
// asks for more than they have.
func ceiling(p auth.Principal, asked string) (core.Trust, error) {
	if asked == "" {
		return core.Stranger, nil
	}
	trust, err := core.ParseTrust(asked)
	if err == nil && trust > p.Trust {
		err = core.Errorf(core.Denied, "the trust level %s is above this key's, which is %s", trust, p.Trust)
	}
	return trust, err
}

// caller names who is limited and whose idempotency keys are meant: the key,
// or the user of an admin session.
func caller(p auth.Principal) string {
	if p.Key != "" {
		return p.Key
	}
	return "user" + strconv.FormatInt(p.User, 10)
}

// locate is the session an id means for p; an unknown one will be made.
func (a *API) locate(ctx context.Context, p auth.Principal, id string) (string, error) {
	if reserved[id] {
		return "", core.Errorf(core.Invalid, "the session id %q is reserved", id)
	}
	session, _, err := a.Sessions.Locate(ctx, p.User, id)
	return session, err
}

// accept stores the turn and answers 202.
func (a *API) accept(w http.ResponseWriter, r *http.Request, in core.Inbound, t *turn) error {
	if err := a.put(r.Context(), in, t); err != nil {
		return err
	}
	w.Header().Set("Preference-Applied", "respond-async")
	w.Header().Set("Location", "/api/chat/"+t.session+"/events?run="+t.run)
	return web.WriteJSON(w, http.StatusAccepted, map[string]string{"session_id": t.session, "run_id": t.run, "status": "queued"})
}

func (a *API) put(ctx context.Context, in core.Inbound, t *turn) error {
	if err := a.Inbox.Put(ctx, []core.Inbound{in}, nil); err != nil {
		a.recent.drop(t)
		return fmt.Errorf("put turn: %w", err)
	}
	return nil
}

// answer stores the turn and shows its run until the end. It joins the run's
// events before the turn is stored, so that none is missed.
func (a *API) answer(w http.ResponseWriter, r *http.Request, p auth.Principal, in core.Inbound, t *turn, how form, cancel bool) error {
	release, err := a.slots.take(caller(p))
	if err != nil {
		a.recent.drop(t)
		return err
	}
	defer release()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	events, _, leave, err := a.join(ctx, bus.Follow{Session: t.session, Run: t.run})
	if err != nil {
		a.recent.drop(t)
		return err
	}
	if err := a.put(ctx, in, t); err != nil {
		leave()
		return err
	}
	go a.guard(ctx, r, stop)
	over := false
	if how == asJSON {
		over, err = a.object(w, r, events, t)
	} else {
		over, err = a.stream(w, r, events, stop)
	}
	if cancel && !over && r.Context().Err() != nil {
		a.cancel(context.WithoutCancel(r.Context()), t)
	}
	return err
}

// stream sends events as they come and reports whether the last was sent.
// stop ends the events when the reader is gone.
func (a *API) stream(w http.ResponseWriter, r *http.Request, events entries, stop func()) (over bool, err error) {
	s, err := web.OpenStream(w, r, web.StreamOptions{Clock: a.Clock, Metrics: a.Metrics})
	if err != nil {
		return false, err
	}
	defer s.Close()
	defer context.AfterFunc(s.Context(), stop)()
	return a.copyEvents(s, events), nil
}

// copyEvents sends events until they end and reports whether the last one was
// a message_stop. A reader that the bus has cut off comes back by id.
func (a *API) copyEvents(s *web.Stream, events entries) (over bool) {
	for e, err := range events {
		if err != nil {
			if !errors.Is(err, bus.ErrLagged) && s.Context().Err() == nil {
				a.Log.ErrorContext(s.Context(), "follow run", "err", err)
			}
			return over
		}
		if s.Send(e.ID, e.Data) != nil {
			return over
		}
		over = e.Type == lastEvent
	}
	return over
}

// cancel stops the turn's run after its client has gone, as the client asked.
// A run that hasn't begun is waited for; its slot stays taken until then.
func (a *API) cancel(ctx context.Context, t *turn) {
	ctx, done := context.WithTimeout(ctx, maxCancelWait)
	defer done()
	go func() {
		select {
		case <-web.Stopping(ctx):
			done()
		case <-ctx.Done():
		}
	}()
	events, ended, leave, err := a.join(ctx, bus.Follow{Session: t.session, Run: t.run})
	if err != nil {
		return
	}
	defer leave()
	for e, err := range events {
		if err != nil || ended || e.Type == lastEvent {
			return
		}
		for _, i := range a.Follower.Active() {
			if i.Run == t.run {
				a.Runs.Abort(i.Session)
				return
			}
		}
	}
}

// maxCancelWait bounds how long a turn that waits in its lane is remembered for
// cancelling.
const maxCancelWait = time.Hour
