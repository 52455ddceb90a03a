package pairing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
)

// requests are the rows of pairing_requests, with the messages that wait for each
// and the questions that are shown to the owner.
type requests struct {
	db      *store.DB
	mail    Mail
	asks    Asks // may be nil
	changes changes
}

// request is a row of pairing_requests. Attempts counts the messages held with
// it; it goes back to 0 when they are freed or discarded.
type request struct {
	ID             string     `db:"id"`
	Bot            string     `db:"bot"`
	Platform       string     `db:"platform"`
	PlatformUserID string     `db:"platform_user_id"`
	Display        string     `db:"platform_user_display"`
	PlatformChatID string     `db:"platform_chat_id"`
	Scope          core.Scope `db:"scope"`
	Place          string     `db:"place"`
	Status         string     `db:"status"`
	Blocked        bool       `db:"blocked"`
	Trust          core.Trust `db:"approved_trust_level"`
	Created        string     `db:"created_at"`
	Resolved       string     `db:"resolved_at"`
	ResolvedBy     string     `db:"resolved_by"`
	Shut           bool       `db:"shut"` // denied, and its user is blocked there now
	Code           string     `db:"code"`
	CodeExpires    string     `db:"code_expires_at"`
	Expires        string     `db:"expires_at"`
	Attempts       int        `db:"attempts"`
	Replied        string     `db:"replied_at"`
	FirstMessage   string     `db:"first_message"`
	Edits          int        `db:"edits"`   // of the messages held with it
	CardAt         string     `db:"card_at"` // when what shows it in chat was last edited
}

const requestColumns = `SELECT id, bot, platform, platform_user_id, platform_user_display, platform_chat_id, scope, place, status, blocked,
	coalesce(approved_trust_level, '') AS approved_trust_level, created_at, coalesce(resolved_at, '') AS resolved_at,
	coalesce(resolved_by, '') AS resolved_by, code, code_expires_at, expires_at, attempts, replied_at, first_message, edits, card_at,
	status = 'denied' AND EXISTS (SELECT 1 FROM blocks b WHERE b.platform = pairing_requests.platform AND b.platform_user_id = pairing_requests.platform_user_id
		AND b.bot IN (pairing_requests.bot, '*')) AS shut FROM pairing_requests`

const newestRequests = requestColumns + ` ORDER BY created_at DESC, id LIMIT $1`

func oneRequest(ctx context.Context, q store.Queryer, where string, args ...any) (r request, err error) {
	err = q.Get(ctx, &r, requestColumns+where, args...)
	return r, err
}

// public returns r as the type that crosses package borders.
func (r *request) public() core.PairingRequest {
	p := core.PairingRequest{
		ID: r.ID, Bot: r.Bot, Platform: r.Platform, PlatformUserID: r.PlatformUserID, Display: r.Display,
		PlatformChatID: r.PlatformChatID, Scope: r.Scope, Place: r.Place, Status: r.Status, Blocked: r.Blocked || r.Shut && r.revoked(), Code: r.Code,
		CodeExpiresAt: core.TimeOf(r.CodeExpires), ExpiresAt: core.TimeOf(r.Expires), ApprovedTrustLevel: r.Trust,
		Revoked: r.revoked() && !r.Shut, CreatedAt: core.TimeOf(r.Created), ResolvedAt: core.TimeOf(r.Resolved), ResolvedBy: r.ResolvedBy, FirstMessage: r.FirstMessage,
	}
	if r.Status == "pending" {
		p.Held = r.Attempts
	}
	return p
}

// Requests lists at most limit requests (1,000 at most), newest first, denied
// ones by their decision. status is pending, approved, denied, expired, or "" for all.
func (t *requests) Requests(ctx context.Context, status string, limit int) (out []core.PairingRequest, err error) {
	var rows []request
	limit = people.Limit(limit)
	switch status {
	case "":
		err = t.db.Select(ctx, &rows, newestRequests, limit)
	case "denied": // few: each was decided by hand
		err = t.db.Select(ctx, &rows, requestColumns+` WHERE status = 'denied' ORDER BY resolved_at DESC, id LIMIT $1`, limit)
	case "pending", "approved", "expired":
		err = t.db.Select(ctx, &rows, requestColumns+` WHERE status = $1 ORDER BY created_at DESC, id LIMIT $2`, status, limit)
	default:
		return nil, core.Errorf(core.Invalid, "status %q is not one of pending, approved, denied, expired", core.CutRunes(status, 40))
	}
	if err != nil {
		return nil, fmt.Errorf("pairing requests: %w", err)
	}
	out = make([]core.PairingRequest, len(rows))
	for i := range rows {
		out[i] = rows[i].public()
	}
	return out, nil
}

// Request returns one request by its id; NotFound without one.
func (t *requests) Request(ctx context.Context, id string) (core.PairingRequest, error) {
	r, err := oneRequest(ctx, t.db, ` WHERE id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return core.PairingRequest{}, errNoRequest()
	}
	if err != nil {
		return core.PairingRequest{}, fmt.Errorf("pairing request: %w", err)
	}
	return r.public(), nil
}

func errNoRequest() error { return texts.Error(core.NotFound, "request_unknown") }

// byRef finds a request by id, or a waiting one by a code that still works.
func byRef(ctx context.Context, q store.Queryer, ref string, now time.Time) (request, error) {
	ref = strings.TrimSpace(ref)
	r, err := oneRequest(ctx, q, ` WHERE id IN ($1, $2)`, ref, strings.ToLower(ref)) // a phone begins a line with a capital
	if !errors.Is(err, store.ErrNoRows) {
		return r, err
	}
	code := codes.Plain(ref)
	if len(code) != 8 {
		return r, errNoRequest()
	}
	r, err = oneRequest(ctx, q, ` WHERE code = $1 AND status = 'pending' AND code_expires_at > $2 ORDER BY created_at LIMIT 1`, code, core.Stamp(now))
	if !errors.Is(err, store.ErrNoRows) {
		return r, err
	}
	// A code that was just decided on answers with who was first, for an hour; that of a
	// user whose access was revoked names them until they are approved again.
	r, err = oneRequest(ctx, q, ` WHERE status IN ('approved', 'denied') AND (resolved_at > $1 OR `+isRevoked+`) AND code = $2 ORDER BY resolved_at DESC LIMIT 1`,
		core.Stamp(now.Add(-CodeLife)), code)
	if errors.Is(err, store.ErrNoRows) {
		return r, core.Errorf(core.NotFound, "no waiting request has this code; a code works for an hour, then the person's next message gets a new one")
	}
	return r, err
}

// decided returns the Conflict that names who decided first.
func decided(r *request, now time.Time) error {
	switch r.Status {
	case "pending":
		return texts.Error(core.Conflict, "request_waits")
	case "expired":
		return texts.Error(core.Conflict, "request_over")
	}
	return texts.Error(core.Conflict, "request_decided", texts.With{"Denied": r.Status == "denied", "Blocked": r.Blocked, "Revoked": r.revoked(), "By": r.ResolvedBy,
		"At": texts.Time(core.TimeOf(r.Resolved), now, time.UTC)})
}
