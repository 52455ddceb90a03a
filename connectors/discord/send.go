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
	"gatehouse/connectors/discord/markup"
	"gatehouse/core"
	"gatehouse/core/texts"
)

var (
	errAddress  = errors.New("the address is not one of Discord's")
	errCallback = errors.New("the callback is not one of Discord's")
)

// An outgoing is the body of Create Message and Edit Message. discordgo's own
// type has no nonce.
type outgoing struct {
	Content         string                            `json:"content"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags            `json:"flags,omitempty"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	Components      []row                             `json:"components"`
}

// noMentions lets nothing in a text ping anybody.
var noMentions = &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}

const repeatRoom = 24 // kept free in every part, for repeatMark

// repeatMark stands under a message that may be there already.
func repeatMark() string { return "\n\n" + texts.Text("repeat") }

// Send delivers one part: as an edit where it replaces a message, else anew.
// An edit whose message is gone is sent anew, once. A part with a number (Seq)
// carries a nonce that the platform enforces for some minutes: sent again, it
// is shown once.
func (b *Bot) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	if !isID(out.Chat) {
		return core.Delivery{Outcome: core.Refused, Reason: errAddress.Error()}
	}
	body, err := compose(out.Part, "")
	if err != nil {
		return core.Delivery{Outcome: core.Refused, Reason: err.Error()}
	}
	var again func() *failure // what a late preview may stand over
	end := b.turns.Send(ctx, b.o.Clock, out.Chat)
	defer func() { end(b.showAgain(ctx, out.Chat, again)) }()
	b.pace.Take(out.Chat)
	late := context.WithoutCancel(ctx)
	slot := out.Replaces
	if strings.HasPrefix(slot, slotPrefix) && out.File == nil {
		id, f := b.fill(ctx, slot, body)
		if f == nil {
			again = func() *failure { _, f := b.fill(late, slot, body); return f }
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: id}
		}
		if !f.ended() {
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
			again = func() *failure { return b.edit(late, out.Chat, out.Replaces, body) }
			b.o.Metrics.asked(b.o.Name, 0)
			return core.Delivery{Outcome: core.Sent, MessageID: out.Replaces}
		}
		if !f.gone() {
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
	var f *failure
	if out.File != nil {
		id, f = b.sendFile(ctx, out.Chat, out.File, body)
	} else {
		id, f = b.send(ctx, out.Chat, body)
	}
	if f != nil {
		return b.delivery(out.Chat, f, body.EnforceNonce, false)
	}
	b.o.Metrics.asked(b.o.Name, 0)
	return core.Delivery{Outcome: core.Sent, MessageID: id}
}

const maxNonce = 25 // Create Message

// showAgain repeats an edit that has overtaken a preview of the same message.
func (b *Bot) showAgain(ctx context.Context, chat string, again func() *failure) func() {
	if again == nil {
		return nil
	}
	return func() {
		b.pace.Take(chat)
		if f := again(); f != nil {
			b.o.Log.WarnContext(ctx, "a late preview may stand over an answer", "bot", b.o.Name, "err", f)
		}
	}
}

// nonce names an outbox row, in at most 25 characters. What the row says is
// mixed in, so that the first rows of a new database are not taken for those
// of one that was thrown away minutes ago.
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
func compose(part core.Part, extra string) (outgoing, error) {
	words, ok := markup.Fit(part, extra)
	if !ok {
		return outgoing{}, fmt.Errorf("the text is longer than the %d characters that Discord takes", markup.MaxText)
	}
	rows, err := components(part.Buttons)
	if err != nil {
		return outgoing{}, err
	}
	out := outgoing{Content: words, AllowedMentions: noMentions, Flags: discordgo.MessageFlagsSuppressEmbeds, Components: rows}
	if isID(part.ReplyTo) {
		no := false
		out.Reference = &discordgo.MessageReference{MessageID: part.ReplyTo, FailIfNotExists: &no}
	}
	return out, nil
}

// send makes a new message, an outgoing or an *upload, and gives its id. Where
// the platform does not let us answer the message that is quoted, it is sent
// without quoting.
func (b *Bot) send(ctx context.Context, chat string, body any) (string, *failure) {
	var m struct {
		ID string `json:"id"`
	}
	e, f := b.exchange(ctx, "POST", "/channels/"+chat+"/messages", body, &m)
	b.pace.Block(chat, e.spent())
	if f != nil && (f.code == discordgo.ErrCodeCannotReplyWithoutPermissionToReadMessageHistory || f.code == errForm && strings.Contains(f.text, `"message_reference"`)) {
		switch o := body.(type) {
		case outgoing:
			if o.Reference != nil {
				o.Reference = nil
				return b.send(ctx, chat, o)
			}
		case *upload:
			if o.message.Reference != nil {
				o.message.Reference = nil
				return b.send(ctx, chat, o)
			}
		}
	}
	return m.ID, f
}

// Codes that the library has no name for.
const (
	errForm    = 50035 // Invalid Form Body: a system message can't be answered, among others
	errNoGuild = 50278 // Cannot send messages to this user due to having no mutual guilds
)

// edit replaces a message's words. Buttons that the part does not have go away.
func (b *Bot) edit(ctx context.Context, chat, id string, body outgoing) *failure {
	if !isID(id) {
		return &failure{status: 404, told: true, code: discordgo.ErrCodeUnknownMessage, text: "no message has the id " + strconv.Quote(core.CutRunes(id, 40))}
	}
	body.Reference = nil
	body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	e, f := b.exchange(ctx, "PATCH", "/channels/"+chat+"/messages/"+id, body, nil)
	if f != nil && f.code == errThreadArchived && b.unarchive(ctx, chat) {
		e, f = b.exchange(ctx, "PATCH", "/channels/"+chat+"/messages/"+id, body, nil)
	}
	b.pace.Block(chat, e.spent())
	return f
}

// gone reports whether the message to edit is no longer there, or not ours to edit.
func (f *failure) gone() bool {
	return f.code == discordgo.ErrCodeUnknownMessage || f.code == discordgo.ErrCodeCannotEditFromAnotherUser
}

// unnamedWait is the pause after a 429 that names none.
const unnamedWait = 5 * time.Second

// delivery says what a failure means for the outbox. safe: sent again it is
// shown once (a nonce, an edit). idempotent: doing it again is the same as
// having done it (an edit).
//
//   - No answer: NotSent while the platform can't have the whole request,
//     Unknown as soon as it may.
//   - 429 is obeyed, from whomever it comes. The platform's own JSON: 5xx is
//     its word that it failed; 401 is about the token, not the message, which
//     waits for a good one; any other refusal is final.
//   - An answer that is not the platform's comes from what stands before it.
//     502 and 504 say that the platform was asked and did not answer in time or
//     in form (RFC 9110, 15.6.3 and 15.6.5): it may have the message. 5xx
//     without that meaning, redirects and 4xx pages never reached it.
func (b *Bot) delivery(chat string, f *failure, safe, idempotent bool) core.Delivery {
	d := core.Delivery{Reason: f.Error(), Safe: safe}
	switch {
	case f.status == 0 && f.unsent:
		d.Outcome = core.NotSent
	case f.status == 0:
		d.Outcome = core.Unknown
	case f.status == http.StatusTooManyRequests:
		d.Outcome, d.After = core.RetryAfter, b.held(chat, f)
	case f.status < 300, f.status == http.StatusBadGateway, f.status == http.StatusGatewayTimeout:
		d.Outcome = core.Unknown
	case f.status >= 500, f.status == 401, !f.told:
		d.Outcome = core.NotSent
	default:
		d.Outcome, d.Reason, d.Closed = core.Refused, reason(f), f.shut()
	}
	if idempotent && f.status != 0 && d.Outcome == core.Unknown {
		d.Outcome = core.NotSent
	}
	return d
}

// reason says what a refusal means, where the platform's words don't.
func reason(f *failure) string {
	switch f.code {
	case discordgo.ErrCodeCannotSendMessagesToThisUser, errNoGuild:
		return fmt.Sprintf("Discord does not let the bot write to this person: they have closed direct messages, left the common server or blocked the bot (%d)", f.code)
	case discordgo.ErrCodeMissingAccess, discordgo.ErrCodeMissingPermissions:
		return fmt.Sprintf("the bot may not write in this channel: give its role View Channel, Send Messages, Send Messages in Threads and Attach Files there (%d)", f.code)
	case discordgo.ErrCodeUnknownChannel:
		return "the channel is gone (10003)"
	}
	return cmp.Or(threadReason(f), f.Error())
}

// shut reports whether the chat will take nothing else either until somebody
// lets the bot in again.
func (f *failure) shut() bool {
	switch f.code {
	case discordgo.ErrCodeCannotSendMessagesToThisUser, errNoGuild, discordgo.ErrCodeMissingAccess, discordgo.ErrCodeUnknownChannel:
		return true
	}
	return false
}

// held keeps everything from the channel, or the whole bot from writing, for as
// long as the platform asks.
func (b *Bot) held(chat string, f *failure) time.Duration {
	wait := cmp.Or(f.after, unnamedWait)
	if f.global {
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

// Repeats is how long a part with a number can be sent again and be shown once.
func (b *Bot) Repeats() time.Duration { return nonceLife }

// Wait is how long to wait before the next Send to that chat.
func (b *Bot) Wait(to core.Address) time.Duration { return b.pace.Wait(to.Chat) }

// previewTimeout is how long a preview may take.
const previewTimeout = 5 * time.Second

// Preview shows an answer that is not final, as a silent message that is
// edited in place; see connectors.Previewer.
func (b *Bot) Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error) {
	if !isID(to.Chat) {
		return id, errAddress
	}
	if part.Text == "" && isID(id) {
		return "", asError(b.call(ctx, "DELETE", "/channels/"+to.Chat+"/messages/"+id, nil, nil))
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
	if strings.HasPrefix(id, slotPrefix) {
		if _, f := b.fill(short, id, body); f == nil || !f.ended() {
			end()
			return id, b.dropped(to.Chat, f)
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
	if f.doubtful() && ctx.Err() == nil {
		// It may stand there all the same, and would for good beside the final: asked
		// again with the same nonce, the platform makes no other and tells its id.
		if shown, f = b.send(ctx, to.Chat, body); f.doubtful() {
			end()
			return "", fmt.Errorf("%w: %w", core.ErrInDoubt, f)
		}
	}
	if end() && shown != "" {
		// A final came meanwhile, which can't know of this new message.
		return "", asError(b.call(ctx, "DELETE", "/channels/"+to.Chat+"/messages/"+shown, nil, nil))
	}
	return shown, b.dropped(to.Chat, f)
}

// doubtful reports whether a message may stand there though its making failed;
// delivery says why.
func (f *failure) doubtful() bool {
	if f == nil || f.status == 0 && f.unsent {
		return false
	}
	return f.status < 300 || f.status == http.StatusBadGateway || f.status == http.StatusGatewayTimeout
}

// dropped turns a refusal for pace into ErrNotNow.
func (b *Bot) dropped(chat string, f *failure) error {
	if f != nil && f.status == http.StatusTooManyRequests {
		b.held(chat, f)
		return connectors.ErrNotNow
	}
	return asError(f)
}

// Typing shows "… is typing" for ten seconds (Trigger Typing Indicator).
func (b *Bot) Typing(ctx context.Context, to core.Address) error {
	if !isID(to.Chat) {
		return errAddress
	}
	if !b.pace.Try(to.Chat, typingShare) {
		return connectors.ErrNotNow
	}
	return b.dropped(to.Chat, b.call(ctx, "POST", "/channels/"+to.Chat+"/typing", nil, nil))
}
