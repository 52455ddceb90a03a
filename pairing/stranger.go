package pairing

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/codes"
)

// stranger handles a direct message of a user who may request access: one request per
// user, with the first messages held and the code sent at intervals.
func (g *Gate) stranger(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Verdict, error) {
	g.changes.Denied(tx, ruleStranger)
	if in.Kind != core.KindMessage && in.Kind != core.KindCommand || !in.From.Person() {
		return core.Verdict{}, nil
	}
	r, err := g.waiting(ctx, tx, in)
	if errors.Is(err, store.ErrNoRows) {
		var full bool
		if r, full, err = g.newRequest(ctx, tx, in); full {
			g.changes.Denied(tx, ruleFlood)
			return core.Verdict{}, err
		}
	}
	if err != nil {
		return core.Verdict{}, err
	}
	if err := g.notice(ctx, tx, in, &r); err != nil {
		return core.Verdict{}, err
	}
	if in.Kind != core.KindMessage {
		return core.Verdict{}, nil
	}
	return g.hold(ctx, tx, in, &r)
}

// waiting returns the sender's request that waits; one whose time has ended is
// expired first and does not count.
func (g *Gate) waiting(ctx context.Context, tx *store.Tx, in *core.Inbound) (request, error) {
	r, err := oneRequest(ctx, tx, ` WHERE bot = $1 AND platform_user_id = $2 AND scope = $3 AND place = $4 AND status = 'pending'`,
		in.Bot, in.From.ID, string(in.Scope()), in.Place)
	if err != nil || r.Expires > core.Stamp(tx.Time()) {
		return r, err
	}
	if err := g.requests.expire(ctx, tx, r); err != nil {
		return r, err
	}
	return request{}, store.ErrNoRows
}

// newRequest makes a request and shows it to the owner, unless there is no
// room for one (full).
func (g *Gate) newRequest(ctx context.Context, tx *store.Tx, in *core.Inbound) (r request, full bool, err error) {
	if room, err := g.room(ctx, tx, in.Bot); err != nil || !room {
		return r, err == nil, err
	}
	now := tx.Time()
	r = request{
		ID: strings.ToLower(rand.Text()[:16]), Bot: in.Bot, Platform: in.From.Platform, PlatformUserID: in.From.ID,
		Display: core.CleanName(in.From.Name), PlatformChatID: in.Chat, Scope: in.Scope(), Place: in.Place,
		Status: "pending", Code: codes.Random(8), CodeExpires: core.Stamp(now.Add(CodeLife)),
		Expires: core.Stamp(now.Add(RequestLife)), Created: core.Stamp(now), FirstMessage: firstMessage(in),
	}
	_, err = tx.Exec(ctx, `INSERT INTO pairing_requests (id, bot, platform, platform_user_id, platform_user_display, platform_chat_id, scope, place,
			status, code, code_expires_at, expires_at, created_at, first_message)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		r.ID, r.Bot, r.Platform, r.PlatformUserID, r.Display, r.PlatformChatID, string(r.Scope), r.Place,
		r.Status, r.Code, r.CodeExpires, r.Expires, r.Created, r.FirstMessage)
	if err != nil {
		return r, false, err
	}
	if err := store.Audit(ctx, tx, core.Actor{Via: "chat"}, "pairing.request", r.ID, map[string]any{"bot": r.Bot}); err != nil {
		return r, false, err
	}
	g.changes.Decided(tx, r.Bot, "requested", core.TopicPairing)
	return r, false, g.requests.openAsk(ctx, tx, r.public())
}

// room reports whether bot may take one more request. Of maxPending open ones only one
// older than a day is replaced, so that a flood of strangers displaces no real one.
func (g *Gate) room(ctx context.Context, tx *store.Tx, bot string) (bool, error) {
	now := tx.Time()
	var n struct {
		Pending int `db:"pending"`
		Lately  int `db:"lately"`
	}
	err := tx.Get(ctx, &n, `SELECT (SELECT count(*) FROM pairing_requests WHERE status = 'pending' AND bot = $1) AS pending,
		(SELECT count(*) FROM pairing_requests WHERE status IN ('pending', 'approved', 'denied', 'expired') AND created_at > $2 AND bot = $1) AS lately`,
		bot, core.Stamp(now.Add(-time.Hour)))
	if err != nil || n.Lately >= newPerHour {
		return false, err
	}
	if n.Pending < maxPending {
		return true, nil
	}
	old, err := oneRequest(ctx, tx, ` WHERE status = 'pending' AND created_at < $1 AND bot = $2 ORDER BY created_at LIMIT 1`,
		core.Stamp(now.Add(-giveWay)), bot)
	if errors.Is(err, store.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, g.requests.expire(ctx, tx, old)
}

// notice sends the stranger the code, at most once per replyEvery. An expired code is
// replaced when the new one can be sent; RefreshCards shows it to the owner.
func (g *Gate) notice(ctx context.Context, tx *store.Tx, in *core.Inbound, r *request) error {
	now := tx.Time()
	if !due(r.Replied, now, replyEvery) {
		return nil
	}
	if r.CodeExpires <= core.Stamp(now) {
		r.Code, r.CodeExpires = codes.Random(8), core.Stamp(now.Add(CodeLife))
		g.changes.Decided(tx, r.Bot, "", core.TopicPairing)
	}
	r.Replied = core.Stamp(now)
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET card_stale = CASE WHEN code = $1 THEN card_stale ELSE 1 END, code = $1, code_expires_at = $2, replied_at = $3, platform_chat_id = $4 WHERE id = $5`,
		r.Code, r.CodeExpires, r.Replied, in.Chat, r.ID)
	if err != nil {
		return err
	}
	text := "code"
	if in.Kind == core.KindCommand && (in.Command == "start" || in.Command == "help") {
		text = in.Command
	}
	return g.notices.Reply(ctx, tx, in, "pair:"+r.ID+":"+in.UpdateID, text, texts.Words{Code: r.Code, Name: in.From.Name})
}

// hold keeps a message with its request: the first maxHeld, of at most maxTaken messages
// and edits.
func (g *Gate) hold(ctx context.Context, tx *store.Tx, in *core.Inbound, r *request) (core.Verdict, error) {
	if r.Attempts >= maxHeld || r.Attempts+r.Edits >= maxTaken {
		g.changes.Denied(tx, ruleFlood)
		return core.Verdict{}, nil
	}
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET attempts = attempts + 1, first_message = CASE WHEN first_message = '' THEN $1 ELSE first_message END WHERE id = $2`,
		firstMessage(in), r.ID)
	if err != nil {
		return core.Verdict{}, err
	}
	g.changes.Decided(tx, r.Bot, "", core.TopicPairing)
	return core.Verdict{Action: core.Hold, Request: r.ID}, nil
}

// firstMessage returns what the owner is shown of a message: cut, without characters
// that would change how the text around it looks.
func firstMessage(in *core.Inbound) string {
	if in.Kind != core.KindMessage {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == unicode.ReplacementChar:
			return -1
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return r
	}, core.CutRunes(in.Text, 4*firstBytes))
	if text = strings.TrimSpace(text); text == "" && in.Unsupported != "" {
		text = "[" + core.CleanName(in.Unsupported) + "]"
	}
	return core.CutRunes(text, firstBytes-len("…"))
}
