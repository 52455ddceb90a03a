package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/texts"
)

// NotifiesFlight implements connectors.Follower.
func (b *Bot) NotifiesFlight() {}

// Send delivers one part: as an edit if it replaces a message, or its deletion if the part
// is empty, otherwise as a new message. An edit that changes nothing is Sent; if the message to edit is gone, a new
// one is sent, once.
func (b *Bot) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	t, err := parseTarget(out.Address)
	if err != nil {
		return core.Delivery{Outcome: core.Refused, Reason: err.Error()}
	}
	late := context.WithoutCancel(ctx) // and without a Flight, which ends with the send
	ctx = connectors.WithFlight(ctx, out.Flight)
	var again func() // repeats an edit that a late preview may overwrite
	end := b.turns.Send(ctx, b.o.Clock, t.chat)
	defer func() { end(again) }()
	if out.Deletes() {
		return b.remove(ctx, t, out.Replaces)
	}
	b.pace.Take(t.chat)
	if out.Replaces != "" && out.File == nil {
		f := b.edit(ctx, t, out.Replaces, out.Part)
		if f == nil {
			again = func() { b.showAgain(late, t, out) }
			return b.took(t, out.Replaces)
		}
		if !f.gone() {
			return b.delivery(t, f, true)
		}
	}
	if out.Repeat {
		out.Text += repeatMark()
	}
	send := b.send
	if out.File != nil {
		send = func(ctx context.Context, t target, part core.Part, _ bool) (string, *failure) {
			return b.sendFile(ctx, t, part, out.Seq)
		}
	}
	id, f := send(ctx, t, out.Part, false)
	if f != nil && t.private() && t.thread != 0 && f.noThread() {
		t.thread = 0 // its user deleted the topic, or has no topics any more
		id, f = send(ctx, t, out.Part, false)
	}
	if f != nil && !f.vanished() {
		return b.delivery(t, f, false)
	}
	return b.took(t, id)
}

// remove deletes a message. One that is gone or cannot be deleted any more is Sent.
func (b *Bot) remove(ctx context.Context, t target, id string) core.Delivery {
	_, f := b.call(ctx, b.sends, b.o.SendTimeout, "deleteMessage", tgbotapi.Params{"chat_id": t.params()["chat_id"], "message_id": id})
	if f != nil && (f.code != http.StatusBadRequest || f.migrate != 0) {
		return b.delivery(t, f, true)
	}
	return core.Delivery{Outcome: core.Sent}
}

// showAgain repeats an edit that has overtaken a preview of the same message.
func (b *Bot) showAgain(ctx context.Context, t target, out core.Outgoing) {
	b.pace.Take(t.chat)
	if f := b.edit(ctx, t, out.Replaces, out.Part); f != nil {
		b.o.Log.WarnContext(ctx, "a late preview may have overwritten an answer", "bot", b.o.Name, "err", f)
	}
}

// repeatMark returns the note under a message that is repeated because the platform
// received the first one and did not respond.
func repeatMark() string { return "\n\n" + texts.Text("repeat") }

func (b *Bot) took(t target, id string) core.Delivery {
	b.o.Metrics.asked(b.o.Name, 0)
	if t.private() {
		b.numbers.end(t.chat) // a message takes the place of the draft
	}
	return core.Delivery{Outcome: core.Sent, MessageID: id}
}

// send makes a new message and gives its id.
func (b *Bot) send(ctx context.Context, t target, part core.Part, silent bool) (string, *failure) {
	p := t.params()
	addText(p, part)
	p["link_preview_options"] = `{"is_disabled":true}`
	if silent {
		p["disable_notification"] = "true"
	}
	addReply(p, part.ReplyTo)
	if err := addButtons(p, part.Buttons); err != nil {
		return "", &failure{status: 200, code: 400, text: err.Error()}
	}
	raw, f := b.callPlain(ctx, "sendMessage", p)
	if f != nil {
		return "", f
	}
	var m struct {
		ID int64 `json:"message_id"`
	}
	// The platform answered ok: the message exists, whatever the rest of the answer is.
	if json.Unmarshal(raw, &m) != nil || m.ID == 0 {
		return "", nil
	}
	return strconv.FormatInt(m.ID, 10), nil
}

// edit replaces the text of a message. Buttons that the part does not have go away.
func (b *Bot) edit(ctx context.Context, t target, id string, part core.Part) *failure {
	p := t.params()
	delete(p, "message_thread_id") // editMessageText has none
	p["message_id"] = id
	addText(p, part)
	p["link_preview_options"] = `{"is_disabled":true}`
	if err := addButtons(p, part.Buttons); err != nil {
		return &failure{status: 200, code: 400, text: err.Error()}
	}
	_, f := b.callPlain(ctx, "editMessageText", p)
	if f != nil && f.code == 400 && strings.Contains(f.text, "message is not modified") {
		return nil // the text is unchanged
	}
	return f
}

// callPlain makes a call, and repeats it without entities if the platform rejects one
// (for example a link): the text matters more than its style.
func (b *Bot) callPlain(ctx context.Context, method string, p tgbotapi.Params) (json.RawMessage, *failure) {
	raw, f := b.call(ctx, b.sends, b.o.SendTimeout, method, p)
	if f != nil && f.code == 400 && p["entities"] != "" && strings.Contains(strings.ToLower(f.text), "entit") {
		b.o.Log.WarnContext(ctx, "telegram refused the styles of a message; sent without", "bot", b.o.Name, "reason", f.text)
		delete(p, "entities")
		return b.call(ctx, b.sends, b.o.SendTimeout, method, p)
	}
	return raw, f
}

// gone reports whether the message to edit does not exist or is not the bot's.
func (f *failure) gone() bool {
	return f.code == 400 && (strings.Contains(f.text, "message to edit not found") ||
		strings.Contains(f.text, "message can't be edited") || strings.Contains(f.text, "MESSAGE_ID_INVALID"))
}

// vanished reports whether the message was sent and deleted before the server could return it,
// as bots that moderate a group do.
func (f *failure) vanished() bool {
	return f.code == http.StatusInternalServerError && strings.Contains(f.text, "sent message was immediately deleted")
}

// tooLarge reports whether the platform, or a proxy, does not take a request of this size.
func (f *failure) tooLarge() bool {
	return f != nil && (f.code == http.StatusRequestEntityTooLarge || f.status == http.StatusRequestEntityTooLarge)
}

// noThread reports whether the topic does not exist.
func (f *failure) noThread() bool {
	return f.code == http.StatusBadRequest && strings.Contains(f.text, "message thread not found")
}

// delivery reports what a failure means for the outbox. repeatable marks an edit:
// done twice it shows the same as done once.
//
//   - No answer: NotSent while the platform can't have the whole request,
//     Unknown as soon as it may.
//   - The platform's own JSON is obeyed: retry_after; 5xx means that it
//     failed, so the request is repeated, for a bounded time (Declined); 401 and 404 are about the token, not
//     the message, which waits for a good one; any other refusal is final.
//   - An answer that is not the platform's comes from a proxy. 502 and 504 mean
//     that the platform was asked and did not answer in time or in form (RFC
//     9110, 15.6.3 and 15.6.5): it may have the message. 5xx without that
//     meaning, redirects and 4xx pages never reached it. 413 is final: the request
//     is as large the next time.
func (b *Bot) delivery(t target, f *failure, repeatable bool) core.Delivery {
	d := core.Delivery{Reason: f.Error(), Safe: repeatable}
	switch {
	case f.status == 0 && f.unsent:
		d.Outcome = core.NotSent
	case f.status == 0:
		d.Outcome = core.Unknown
	case f.code == 429 || f.status == http.StatusTooManyRequests:
		d.Outcome, d.After = core.RetryAfter, f.after
		if d.After <= 0 {
			d.After = connectors.UnnamedWait
		}
		b.hold(t, d.After)
	case f.migrate != 0:
		d.Outcome, d.MovedTo = core.Refused, strconv.FormatInt(f.migrate, 10)
		d.Reason = "the group became a supergroup: its chat is now " + strconv.FormatInt(f.migrate, 10)
	case f.code == 401, f.code == 404:
		d.Outcome = core.NotSent
	case f.code >= 500:
		d.Outcome, d.Declined = core.NotSent, true
	case f.code == http.StatusForbidden:
		d.Outcome, d.Closed, d.Reason = core.Refused, true, forbidden(f)
	case f.code != 0, f.tooLarge():
		d.Outcome = core.Refused
	case f.status < 300, f.status == http.StatusBadGateway, f.status == http.StatusGatewayTimeout:
		d.Outcome = core.Unknown
	default:
		d.Outcome, d.Declined = core.NotSent, true
	}
	if repeatable && f.status != 0 && d.Outcome == core.Unknown {
		d.Outcome, d.Declined = core.NotSent, true
	}
	return d
}

// doubtful reports whether a message may have been created although the request failed;
// delivery explains why.
func (f *failure) doubtful() bool {
	switch {
	case f == nil || f.code != 0:
		return false
	case f.status == 0:
		return !f.unsent
	}
	return f.status < 300 || f.status == http.StatusBadGateway || f.status == http.StatusGatewayTimeout
}

// forbidden explains what keeps the bot out of a chat, or returns "".
func forbidden(f *failure) string {
	for part, means := range map[string]string{
		"blocked by the user":         "this person has blocked it",
		"user is deactivated":         "this person's account was deleted",
		"can't initiate conversation": "this person has not written to it yet",
		"bot was kicked":              "it was removed from the group",
		"bot is not a member":         "it was removed from the group",
		"chat was deleted":            "the group was deleted",
	} {
		if strings.Contains(f.text, part) {
			return means + " (" + f.Error() + ")"
		}
	}
	return f.Error()
}

// hold keeps everything from the chat for as long as the platform asks.
func (b *Bot) hold(t target, wait time.Duration) {
	b.pace.Block(t.chat, wait)
	b.o.Metrics.asked(b.o.Name, wait)
}

// Wait returns how long to wait before the next Send to that chat.
func (b *Bot) Wait(to core.Address) time.Duration {
	t, err := parseTarget(to)
	if err != nil {
		return 0
	}
	return b.pace.Wait(t.chat)
}

// asError returns f as an error; a nil f is a nil error.
func asError(f *failure) error {
	if f == nil {
		return nil
	}
	return f
}
