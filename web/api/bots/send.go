package bots

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/api/bots/post"
	"gatehouse/web/auth"
)

// Mail sends messages of bots that answer no message. Send stores a message, or finds
// the one that was stored under its ID before: core.Conflict when that was
// different, core.NotFound for a chat that the bot may not write to,
// core.Busy when too many wait there. Sent is core.NotFound without one.
type Mail interface {
	Send(ctx context.Context, m Unasked, by core.Actor) (Posted, error)
	Sent(ctx context.Context, id string) (Posted, error)
}

// The messages that programs send.
type (
	Unasked = post.Unasked // as it is given
	Posted  = post.Posted  // as it is stored
)

// OwnerChat is the owner's direct chat with the bot.
const OwnerChat = "owner"

// MaxText bounds the text of a message, in bytes.
const MaxText = 100 << 10

// MaxSendFiles bounds the attachments of one message.
const MaxSendFiles = 5

// maxSendBody bounds the body without its files: a text of MaxText may be
// written with six bytes for one.
const maxSendBody = 1 << 20

// space makes ids from idempotency keys: the same key, the same message.
var space = uuid.MustParse("6b9b8f0e-52a4-4f0e-9d3c-0f8d7f6f2a51")

var sendID = core.Pattern(`^-?[0-9]{1,19}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// NewSendID returns the id of a message of user; the same idempotency key of the
// same caller gives the same one.
func NewSendID(user int64, caller, key string) string {
	id := uuid.NewString()
	if key != "" {
		id = uuid.NewSHA1(space, []byte("send\x00"+caller+"\x00"+key)).String()
	}
	return strconv.FormatInt(user, 10) + "-" + id
}

// sendUnasked serves POST /api/bots/{bot}/messages.
func (a *API) sendUnasked(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeSend)
	if err != nil {
		return err
	}
	key, _, err := web.IdempotencyKey(r)
	if err != nil {
		return err
	}
	bot, err := a.Find(r.PathValue("bot"))
	if err != nil {
		return err
	}
	body, err := a.readUnasked(w, r, p.User)
	if err != nil {
		return err
	}
	m := body.Unasked
	m.ID, m.Bot, m.Trust = NewSendID(p.User, p.Caller(), key), bot.Bot, p.Trust
	if !p.Governs() { // other users can send to themselves only
		m.User = &p.User
	}
	web.WarnIgnored(w, body.ignored)
	posted, err := a.Mail.Send(r.Context(), m, p.Actor())
	switch core.KindOf(err) {
	case core.Busy:
		return &web.Problem{Fault: web.TooManyRequests, Detail: core.TextOf(err), RetryAfter: 30 * time.Second, Err: err}
	case core.NotFound:
		return &web.Problem{Fault: web.NotFound, Detail: core.TextOf(err), Extra: map[string]any{"field": "chat"}, Err: err}
	}
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	w.Header().Set("Location", "/api/bots/"+posted.Bot+"/messages/"+posted.ID)
	return web.WriteJSON(w, http.StatusAccepted, posted)
}

// sentUnasked serves GET /api/bots/{bot}/messages/{id}.
func (a *API) sentUnasked(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeSend, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	none := core.Errorf(core.NotFound, "there is no such message, or it was delivered over two days ago")
	id := r.PathValue("id")
	if !sendID().MatchString(id) || !strings.HasPrefix(id, strconv.FormatInt(p.User, 10)+"-") && !p.Has(auth.ScopeAdmin) {
		return none
	}
	bot, err := a.Find(r.PathValue("bot"))
	if err != nil {
		return err
	}
	posted, err := a.Mail.Sent(r.Context(), id)
	if core.KindOf(err) == core.NotFound || err == nil && posted.Bot != bot.Bot {
		return none
	}
	if err != nil {
		return fmt.Errorf("sent: %w", err)
	}
	return web.WriteJSON(w, http.StatusOK, posted)
}
