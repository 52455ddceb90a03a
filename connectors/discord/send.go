package discord

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/interactions"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

var errAddress = errors.New("the address is not one of Discord's")

const repeatRoom = 24 // kept free in every part, for repeatMark

// repeatMark returns the note under a message that may be a repeat.
func repeatMark() string { return "\n\n" + texts.Text("repeat") }

// NotifiesFlight implements connectors.Follower.
func (b *Bot) NotifiesFlight() {}

// Send delivers one part: as an edit if it replaces a message, or its deletion if the part
// is empty, otherwise as a new message. If the message to edit is gone, it sends a new one, once. A part with a
// number (Seq) has a nonce that the platform enforces for some minutes: repeated, it is
// shown once.
func (b *Bot) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	if !wire.IsID(out.Chat) {
		return core.Delivery{Outcome: core.Refused, Reason: errAddress.Error()}
	}
	body, err := compose(out.Part, "")
	if err != nil {
		return core.Delivery{Outcome: core.Refused, Reason: err.Error()}
	}
	late := context.WithoutCancel(ctx) // and without a Flight, which ends with the send
	ctx = connectors.WithFlight(ctx, out.Flight)
	var again func() *rest.Failure // repeats an edit that a late preview may overwrite
	end := b.turns.Send(ctx, b.o.Clock, out.Chat)
	defer func() { end(b.showAgain(late, out.Chat, again)) }()
	if out.Deletes() {
		return b.remove(ctx, out.Chat, out.Replaces)
	}
	b.pace.Take(out.Chat)
	slot := out.Replaces
	if interactions.IsSlot(slot) && out.File == nil {
		id, f := b.answers.Fill(ctx, slot, body)
		if f == nil {
			again = func() *rest.Failure { _, f := b.answers.Fill(late, slot, body); return f }
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: id}
		}
		if !interactions.Ended(f) {
			return b.delivery(out.Chat, f, true, true)
		}
		out.Replaces = ""
	}
	if out.Aside != "" {
		return b.sendAside(ctx, out, body)
	}
	if out.Replaces != "" && out.File == nil {
		f := b.edit(ctx, out.Chat, out.Replaces, body)
		if f == nil {
			again = func() *rest.Failure { return b.edit(late, out.Chat, out.Replaces, body) }
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: out.Replaces}
		}
		if !f.Gone() {
			return b.delivery(out.Chat, f, true, true)
		}
	}
	if out.Repeat {
		if marked, ok := markup.Fit(out.Part, repeatMark()); ok {
			body.Content = marked
		}
	}
	if out.Seq > 0 {
		body.Nonce, body.EnforceNonce = nonce(out), true
	}
	var id string
	var f *rest.Failure
	if out.File != nil {
		id, f = b.sendFile(ctx, out.Chat, out.File, body, out.Seq)
	} else {
		id, f = b.send(ctx, out.Chat, body)
	}
	if f != nil {
		return b.delivery(out.Chat, f, body.EnforceNonce, false)
	}
	b.o.Metrics.asked(b.o.Name, 0)
	return core.Delivery{Outcome: core.Sent, MessageID: id}
}

// remove deletes a message of the bot. One that is gone, or that the platform does not let
// it delete, is Sent: no one can do more about it.
func (b *Bot) remove(ctx context.Context, chat, id string) core.Delivery {
	if !wire.IsID(id) {
		return core.Delivery{Outcome: core.Sent}
	}
	f := b.api.Call(ctx, http.MethodDelete, "/channels/"+chat+"/messages/"+id, nil, nil)
	if f == nil || f.Gone() {
		return core.Delivery{Outcome: core.Sent}
	}
	d := b.delivery(chat, f, true, true)
	if d.Outcome == core.Refused && !d.Closed {
		b.o.Log.WarnContext(ctx, "discord preview not deleted", "bot", b.o.Name, "err", f)
		return core.Delivery{Outcome: core.Sent}
	}
	return d
}

const maxNonce = 25 // Create Message

// showAgain repeats an edit that has overtaken a preview of the same message.
func (b *Bot) showAgain(ctx context.Context, chat string, again func() *rest.Failure) func() {
	if again == nil {
		return nil
	}
	return func() {
		b.pace.Take(chat)
		if f := again(); f != nil {
			b.o.Log.WarnContext(ctx, "a late preview may have overwritten an answer", "bot", b.o.Name, "err", f)
		}
	}
}

// nonce returns a name for an outbox row, at most 25 characters. It contains a hash of
// the row's text, so that the first rows of a new database differ from those of a
// database that was deleted minutes before.
func nonce(out core.Outgoing) string {
	raw, err := json.Marshal(out.Part)
	if err != nil {
		raw = []byte(out.Text)
	}
	sum := sha256.Sum256(append([]byte(out.Chat+"\x00"), raw...))
	n := strconv.FormatInt(out.Seq, 36) + "-" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:8])
	return n[:min(len(n), maxNonce)]
}

// compose writes a part as the platform takes it.
func compose(part core.Part, extra string) (wire.Body, error) {
	words, ok := markup.Fit(part, extra)
	if !ok {
		return wire.Body{}, fmt.Errorf("the text is longer than the %d characters that Discord takes", markup.MaxText)
	}
	rows, err := interactions.Layout(part.Buttons)
	if err != nil {
		return wire.Body{}, err
	}
	out := wire.Body{Content: words, AllowedMentions: wire.NoMentions, Flags: discordgo.MessageFlagsSuppressEmbeds, Components: rows}
	if wire.IsID(part.ReplyTo) {
		no := false
		out.Reference = &discordgo.MessageReference{MessageID: part.ReplyTo, FailIfNotExists: &no}
	}
	return out, nil
}

// send makes a new message, an wire.Body or an *rest.Upload, and gives its id. Where
// the platform does not let us answer the message that is quoted, it is sent
// without quoting.
func (b *Bot) send(ctx context.Context, chat string, body any) (string, *rest.Failure) {
	var m struct {
		ID string `json:"id"`
	}
	e, f := b.api.Exchange(ctx, "POST", "/channels/"+chat+"/messages", body, &m)
	b.pace.Block(chat, e.Spent())
	if f != nil && (f.Code == discordgo.ErrCodeCannotReplyWithoutPermissionToReadMessageHistory || f.Code == rest.CodeInvalidForm && strings.Contains(f.Text, `"message_reference"`)) {
		switch o := body.(type) {
		case wire.Body:
			if o.Reference != nil {
				o.Reference = nil
				return b.send(ctx, chat, o)
			}
		case *rest.Upload:
			if m, ok := o.Message.(wire.Body); ok && m.Reference != nil {
				m.Reference = nil
				o.Message = m
				return b.send(ctx, chat, o)
			}
		}
	}
	return m.ID, f
}

// edit replaces a message's text and buttons.
func (b *Bot) edit(ctx context.Context, chat, id string, body wire.Body) *rest.Failure {
	if !wire.IsID(id) {
		return &rest.Failure{Status: 404, Platform: true, Code: discordgo.ErrCodeUnknownMessage, Text: "no message has the id " + strconv.Quote(core.CutRunes(id, 40))}
	}
	body.Reference = nil
	body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	e, f := b.api.Exchange(ctx, "PATCH", "/channels/"+chat+"/messages/"+id, body, nil)
	if f != nil && f.Code == rest.CodeThreadArchived && b.unarchive(ctx, chat) {
		e, f = b.api.Exchange(ctx, "PATCH", "/channels/"+chat+"/messages/"+id, body, nil)
	}
	b.pace.Block(chat, e.Spent())
	return f
}

// unarchive opens an archived thread, so that a message in it can be edited; a new
// message does so automatically. It reports false for a locked thread.
func (b *Bot) unarchive(ctx context.Context, thread string) bool {
	return b.api.Call(ctx, http.MethodPatch, "/channels/"+thread, map[string]bool{"archived": false}, nil) == nil
}

// delivery returns the outcome of a send that failed; see rest.Failure.Delivery. It
// obeys a request to wait.
func (b *Bot) delivery(chat string, f *rest.Failure, safe, idempotent bool) core.Delivery {
	d := f.Delivery(safe, idempotent)
	if d.Outcome == core.RetryAfter {
		d.After = b.held(chat, f)
	}
	return d
}

// held keeps everything from the channel, or the whole bot from writing, for as
// long as the platform asks.
func (b *Bot) held(chat string, f *rest.Failure) time.Duration {
	wait := cmp.Or(f.After, connectors.UnnamedWait)
	if f.Global {
		b.pace.BlockAll(wait)
	} else {
		b.pace.Block(chat, wait)
	}
	b.o.Metrics.asked(b.o.Name, wait)
	return wait
}

// nonceLife is how long a nonce is relied on. The platform enforces it for
// "the past few minutes" (Create Message, enforce_nonce).
const nonceLife = 2 * time.Minute

// Repeats returns how long a part with a number can be repeated and is shown once.
func (b *Bot) Repeats() time.Duration { return nonceLife }

// Wait returns how long to wait before the next Send to that chat.
func (b *Bot) Wait(to core.Address) time.Duration { return b.pace.Wait(to.Chat) }

// previewTimeout is how long a preview may take.
const previewTimeout = 5 * time.Second

// Preview shows an answer that is not final, as a silent message that is
// edited in place; see connectors.Previewer.
func (b *Bot) Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error) {
	if !wire.IsID(to.Chat) {
		return id, errAddress
	}
	if part.Text == "" && wire.IsID(id) {
		return "", rest.AsError(b.api.Call(ctx, "DELETE", "/channels/"+to.Chat+"/messages/"+id, nil, nil))
	}
	body, err := compose(part, "")
	if err != nil {
		return id, err
	}
	end, ok := b.turns.Preview(to.Chat)
	if !ok {
		return id, connectors.ErrNotNow
	}
	if !b.pace.Try(to.Chat, 1) {
		end()
		return id, connectors.ErrNotNow
	}
	short, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	if interactions.IsSlot(id) {
		shown, f := b.answers.Preview(short, id, body)
		if f == nil && shown != id && b.edit(short, to.Chat, shown, body) != nil {
			shown = id // in a channel that the bot cannot see, the slot alone reaches it
		}
		if f == nil || !interactions.Ended(f) {
			end()
			return shown, b.dropped(to.Chat, f)
		}
		id = "" // it waited so long that the sign is gone
	}
	if id != "" {
		f := b.edit(short, to.Chat, id, body)
		end()
		return id, b.dropped(to.Chat, f)
	}
	body.Flags |= discordgo.MessageFlagsSuppressNotifications
	body.Nonce, body.EnforceNonce = "p"+rand.Text()[:maxNonce-1], true
	shown, f := b.send(short, to.Chat, body)
	if f.Doubtful() && ctx.Err() == nil {
		// The preview may exist, and would stay next to the final answer. Repeated with
		// the same nonce, the request creates no other message and returns its id.
		if shown, f = b.send(ctx, to.Chat, body); f.Doubtful() {
			end()
			return "", fmt.Errorf("%w: %w", core.ErrInDoubt, f)
		}
	}
	if end() && shown != "" {
		// A final answer was sent concurrently and does not know this new message.
		return "", rest.AsError(b.api.Call(ctx, "DELETE", "/channels/"+to.Chat+"/messages/"+shown, nil, nil))
	}
	return shown, b.dropped(to.Chat, f)
}

// dropped turns a refusal for pace into ErrNotNow.
func (b *Bot) dropped(chat string, f *rest.Failure) error {
	if f != nil && f.Status == http.StatusTooManyRequests {
		b.held(chat, f)
		return connectors.ErrNotNow
	}
	return rest.AsError(f)
}

// Typing shows "… is typing" for ten seconds (Trigger Typing Indicator).
func (b *Bot) Typing(ctx context.Context, to core.Address) error {
	if !wire.IsID(to.Chat) {
		return errAddress
	}
	if !b.pace.Try(to.Chat, typingShare) {
		return connectors.ErrNotNow
	}
	return b.dropped(to.Chat, b.api.Call(ctx, "POST", "/channels/"+to.Chat+"/typing", nil, nil))
}

// Acknowledge answers a pressed button; see interactions.Responder.Acknowledge.
func (b *Bot) Acknowledge(ctx context.Context, _ core.Address, callbackID, text string) error {
	return b.answers.Acknowledge(ctx, callbackID, text)
}

// sendAside sends a further part of an answer that only one user may see. It is never
// sent to the chat.
func (b *Bot) sendAside(ctx context.Context, out core.Outgoing, body wire.Body) core.Delivery {
	if out.File != nil {
		return core.Delivery{Outcome: core.Refused, Reason: "a file cannot be shown to one person alone"}
	}
	edit := wire.IsID(out.Replaces)
	if edit {
		id, f := b.answers.Whisper(ctx, out.Aside, out.Replaces, body)
		if f == nil {
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: id}
		}
		if !interactions.Ended(f) {
			return b.delivery(out.Chat, f, true, true)
		}
	}
	if out.Repeat {
		if marked, ok := markup.Fit(out.Part, repeatMark()); ok {
			body.Content = marked
		}
	}
	id, f := b.answers.Whisper(ctx, out.Aside, "", body)
	switch {
	case f == nil:
		b.o.Metrics.asked(b.o.Name, 0)
		return core.Delivery{Outcome: core.Sent, MessageID: id}
	case interactions.Ended(f):
		return core.Delivery{Outcome: core.Refused, Reason: "one person alone may see it, and the platform shows them no more of it", Late: !edit}
	}
	return b.delivery(out.Chat, f, false, false)
}
