package turns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// space makes ids from idempotency keys: the same key, the same run.
var space = uuid.MustParse("6b9b8f0e-52a4-4f0e-9d3c-0f8d7f6f2a51")

// A form is how the answer to POST /api/chat is given.
type form uint8

const (
	asStream form = iota
	asJSON
	asAccepted
)

// send serves POST /api/chat.
func (a *API) send(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	how, err := formOf(r)
	if err != nil {
		return err
	}
	return a.converse(w, r, p, how, nil)
}

// Converse serves POST /api/chat with another form of stream: write is called for every
// event, in order. An error of write ends the stream.
func (a *API) Converse(w http.ResponseWriter, r *http.Request, write func(*web.Stream, bus.Entry) error) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	return a.converse(w, r, p, asStream, write)
}

func (a *API) converse(w http.ResponseWriter, r *http.Request, p auth.Principal, how form, write func(*web.Stream, bus.Entry) error) error {
	// Before the body is read: files that come with it are written as they come.
	release, err := a.Streams.Take(p.Caller())
	if err != nil {
		return err
	}
	defer release()
	if err := a.roomFor(r.Context(), p.User); err != nil {
		return err
	}
	req, err := a.receive(w, r, p.User)
	if err != nil {
		return err
	}
	in, t, err := a.inbound(r, p, &req, how)
	if err != nil {
		a.Files.Remove(req.files)
		return err
	}
	web.WarnIgnored(w, req.ignored)
	known, clash := t.before, t.other
	if !clash {
		known, clash = a.Recent.add(t)
	}
	if t.before || known || clash { // the stored turn has files of its own
		a.Files.Remove(req.files)
		in.Files = nil
	}
	if clash {
		return web.Refuse(web.Conflict, "this Idempotency-Key was used with another body")
	}
	w.Header().Set("X-Run-Id", t.run)
	if how == asAccepted {
		return a.accept(w, r, in, t)
	}
	return a.answer(w, r, p, in, &reading{turn: t, how: how, write: write, cancel: req.CancelOnDisconnect})
}

// A reading is how the answer to a turn is read.
type reading struct {
	*turn
	how    form
	write  func(*web.Stream, bus.Entry) error // of a stream; nil: as the bus sends it
	cancel bool                               // stop the run when the reader leaves
}

// inbound makes the turn out of the request. Everything the client may not
// decide comes from the principal.
func (a *API) inbound(r *http.Request, p auth.Principal, req *uploaded, how form) (core.Inbound, *turn, error) {
	var none core.Inbound
	trust, err := ceiling(p, req.TrustLevel)
	if err != nil {
		return none, nil, err
	}
	if how == asAccepted && req.CancelOnDisconnect {
		return none, nil, web.FieldProblem(web.Invalid, "cancel_on_disconnect", "cancel_on_disconnect makes no sense together with Prefer: respond-async")
	}
	key, once, err := web.IdempotencyKey(r)
	if err != nil {
		return none, nil, err
	}
	unique := uuid.NewString()
	t := &turn{user: p.User, run: uuid.NewString(), sum: req.sum, fresh: !once}
	fresh := uuid.NewString()
	if once {
		unique = key
		t.run = uuid.NewSHA1(space, []byte("run\x00"+p.Caller()+"\x00"+key)).String()
		fresh = uuid.NewSHA1(space, []byte("session\x00"+p.Caller()+"\x00"+key)).String()
	}
	if req.SessionID == "" {
		req.SessionID = fresh
	}
	t.update = "key:" + p.Caller() + ":" + unique
	if once {
		if err := a.putBefore(r.Context(), t); err != nil {
			return none, nil, err
		}
	}
	if !t.before {
		known := false
		if t.session, known, err = a.Sessions.Locate(r.Context(), p, req.SessionID); err == nil {
			err = a.begin(r.Context(), p, &req.chatRequest, t.session, known)
		}
		if err != nil {
			return none, nil, err
		}
	}
	return core.Inbound{
		UpdateID:  t.update,
		MessageID: t.message,
		Address:   core.Address{Bot: core.APIBot, Chat: t.session},
		Kind:      core.KindMessage,
		From:      core.Peer{Platform: core.APIBot, ID: sender(p.User)},
		At:        a.Clock.Now().UTC(),
		Text:      req.Message,
		Files:     req.files,
		Addressed: true,
		Turn: &core.Options{
			Session: req.SessionID, Run: t.run, Model: req.Model, Trust: trust, WorkingDirectory: req.WorkingDirectory,
			SystemPrompt: req.SystemPrompt, User: p.User, Key: p.Key, Respond: how == asAccepted, IdempotencyKey: key,
			Alone: how != asStream, Agent: req.AgentPath, Module: req.Module, Workspace: req.Workspace,
			ContinuedFrom: req.ContinuedFrom, Initial: req.InitialContext, Contexts: req.Contexts,
		},
	}, t, nil
}

// putBefore derives t's message id from its body, and returns where a turn with the same
// Idempotency-Key was queued before, also before a restart, and whether its body
// differs.
func (a *API) putBefore(ctx context.Context, t *turn) error {
	sum := sha256.Sum256(append([]byte(t.update+"\x00"), t.sum[:]...))
	t.message = hex.EncodeToString(sum[:])
	message, session, found, err := a.Repeats.Stored(ctx, core.APIBot, t.update)
	if err != nil || !found {
		return err
	}
	t.before, t.other, t.session = true, message != "" && message != t.message, session
	return nil
}

// sender returns the peer id of a user of the API.
func sender(user int64) string { return "user:" + strconv.FormatInt(user, 10) }

// MaxQueued bounds the turns of one user that wait to be answered.
const MaxQueued = 100

// roomFor refuses a turn while too many of the user's wait.
func (a *API) roomFor(ctx context.Context, user int64) error {
	n, err := a.Repeats.Queued(ctx, core.APIBot, sender(user), MaxQueued)
	if err != nil || n < MaxQueued {
		return err
	}
	return &web.Problem{Fault: web.TooManyRequests, RetryAfter: web.RetrySoon,
		Detail: fmt.Sprintf("%d of your requests wait to be answered already", n)}
}

// ceiling returns the level a turn asks for, Stranger when it asks for none. More
// than the caller has is refused.
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

// accept stores the turn and answers 202.
func (a *API) accept(w http.ResponseWriter, r *http.Request, in core.Inbound, t *turn) error {
	if err := a.put(r.Context(), in, t); err != nil {
		return err
	}
	status, err := a.statusOf(r.Context(), t)
	if err != nil {
		return err
	}
	w.Header().Set("Preference-Applied", "respond-async")
	w.Header().Set("Location", "/api/chat/"+t.session+"/events?run="+t.run)
	return web.WriteJSON(w, http.StatusAccepted, map[string]string{"session_id": t.session, "run_id": t.run, "status": status})
}

// statusOf returns how far a turn's run is: one that repeats another may be running,
// or have ended.
func (a *API) statusOf(ctx context.Context, t *turn) (string, error) {
	if t.fresh {
		return "queued", nil
	}
	switch run, err := a.Runs.Run(ctx, t.run); {
	case core.KindOf(err) == core.NotFound:
		if waits, err := a.Recent.in(ctx, t.run, t.session); !waits && err == nil {
			return "ended", nil // before it had begun, as by a restore
		} else if err != nil {
			return "", err
		}
		return "queued", nil
	case err != nil:
		return "", err
	case run.Ended:
		return "ended", nil
	}
	return "running", nil
}

func (a *API) put(ctx context.Context, in core.Inbound, t *turn) error {
	if err := a.Inbox.Put(ctx, []core.Inbound{in}, nil); err != nil {
		a.Recent.drop(t)
		a.Files.Remove(in.Files)
		return fmt.Errorf("put turn: %w", err)
	}
	return nil
}

// answer stores the turn and shows its run until the end. It joins the run's
// events before the turn is stored, so that none is missed.
func (a *API) answer(w http.ResponseWriter, r *http.Request, p auth.Principal, in core.Inbound, t *reading) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer a.Streams.Watch(auth.Narrow(r, auth.ScopeChat), func() { a.after(ctx, lastEvents, stop) })()
	events, leave, err := a.joinTurn(ctx, t.turn)
	if err != nil {
		a.Recent.drop(t.turn)
		a.Files.Remove(in.Files)
		return err
	}
	if err := a.put(ctx, in, t.turn); err != nil {
		leave()
		return err
	}
	over := false
	if t.how == asJSON {
		over, err = a.object(w, r, events, t.turn)
	} else {
		over, err = a.stream(w, r, events, t.write, stop)
	}
	if t.cancel && !over && r.Context().Err() != nil {
		a.cancel(context.WithoutCancel(r.Context()), t.turn)
	}
	return err
}

// lastEvents is how long the answer of a caller who lost access is still sent: the run is
// aborted, and its last events report that.
const lastEvents = 15 * time.Second

// after calls stop after d, unless ctx ends before.
func (a *API) after(ctx context.Context, d time.Duration, stop func()) {
	go func() {
		if core.Sleep(ctx, a.Clock, d) {
			stop()
		}
	}()
}

// joinTurn begins to follow the run of a turn that is about to be queued.
func (a *API) joinTurn(ctx context.Context, t *turn) (events entries, leave func(), err error) {
	f := bus.Follow{Session: t.session, Run: t.run}
	if t.fresh {
		events, leave = a.joinNew(ctx, f)
		return events, leave, nil
	}
	events, _, leave, err = a.join(ctx, f)
	return events, leave, err
}

// stream sends events as they come and reports whether the last was sent.
// stop ends the events when the reader is gone.
func (a *API) stream(w http.ResponseWriter, r *http.Request, events entries, write func(*web.Stream, bus.Entry) error, stop func()) (over bool, err error) {
	s, err := a.Streams.Start(w, r, false)
	if err != nil {
		return false, err
	}
	defer s.Close()
	defer context.AfterFunc(s.Context(), stop)()
	if write != nil {
		return a.copyEvents(s, events, write), nil
	}
	return a.copyEvents(s, events, asIs), nil
}

// copyEvents sends events until they end and reports whether the last one was
// a message_stop. A reader that the bus has cut off comes back by id.
func (a *API) copyEvents(s *web.Stream, events entries, write func(*web.Stream, bus.Entry) error) (over bool) {
	for e, err := range events {
		if err != nil {
			if !errors.Is(err, bus.ErrLagged) && s.Context().Err() == nil {
				a.Log.ErrorContext(s.Context(), "follow run", "err", err)
			}
			return over
		}
		if write(s, e) != nil {
			return over
		}
		over = e.Type == lastEvent
	}
	return over
}

// asIs writes an event as the bus sends it.
func asIs(s *web.Stream, e bus.Entry) error { return s.Send(e.ID(), e.Data) }

// cancel stops the turn's run after its client has gone, as the client asked.
// A run that hasn't begun is waited for; its slot stays taken until then.
func (a *API) cancel(ctx context.Context, t *turn) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	a.after(ctx, maxCancelWait, done)
	defer web.OnStopping(ctx, done)()
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
