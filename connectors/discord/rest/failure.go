package rest

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"gatehouse/core"
)

// Codes that discordgo does not name (JSON Error Codes).
const (
	CodeInvalidForm    = 50035 // Invalid Form Body: for example, a reply to a system message
	CodeThreadArchived = 50083
	codeNoCommonGuild  = 50278 // Cannot send messages to this user due to having no mutual guilds
	codeThreadLocked   = 160005
	codeTooManyThreads = 160006
)

// Gone reports whether the message to edit does not exist or is not the bot's.
func (f *Failure) Gone() bool {
	return f.Code == discordgo.ErrCodeUnknownMessage || f.Code == discordgo.ErrCodeCannotEditFromAnotherUser
}

// TooLarge reports whether the platform, or a proxy, does not take a request of this size.
func (f *Failure) TooLarge() bool { return f != nil && f.Status == http.StatusRequestEntityTooLarge }

// TooSlow reports whether the time for a request ended while it was being written.
func (f *Failure) TooSlow() bool { return f != nil && f.slow }

// Offline reports whether no connection was made.
func (f *Failure) Offline() bool { return f != nil && f.offline }

// Repeats reports whether a request was made over a connection, and is to be made again: the
// platform, or what is on the way, may never take it.
func (f *Failure) Repeats() bool {
	return f != nil && !f.offline && f.Delivery(false, false).Outcome == core.NotSent
}

// Expired reports whether the token of an interaction has ended.
func (f *Failure) Expired() bool {
	return f.Code == discordgo.ErrCodeUnknownWebhook || f.Code == discordgo.ErrCodeInvalidWebhookTokenProvided ||
		f.Code == discordgo.ErrCodeUnknownInteraction
}

// Hidden reports whether the platform itself means that the resource does not exist or
// is not visible to the bot.
func (f *Failure) Hidden() bool {
	return f != nil && f.Platform && (f.Status == http.StatusForbidden || f.Status == http.StatusNotFound)
}

// Doubtful reports whether a message may have been created although the request
// failed; Delivery explains why.
func (f *Failure) Doubtful() bool {
	if f == nil || f.Status == 0 && f.Unsent {
		return false
	}
	return f.Status < 300 || f.Status == http.StatusBadGateway || f.Status == http.StatusGatewayTimeout
}

// Delivery returns the outcome of a send that failed with f. safe: a repeated request
// shows one message (a nonce, an edit). idempotent: repeating it has no further effect
// (an edit). A 429 is RetryAfter without a duration.
//
//   - No response: NotSent while the platform cannot have the whole request, Unknown
//     as soon as it may.
//   - 429 is obeyed, from any source. Of the platform's own JSON, 5xx means that it
//     failed, and is repeated for a bounded time (Declined); 401 concerns the token, so the message waits for a valid one; any other
//     refusal is final.
//   - A response that is not the platform's comes from a proxy. 502 and 504 mean that
//     the platform received the request and did not respond in time or in form (RFC
//     9110, 15.6.3 and 15.6.5): it may have the message. Other 5xx, redirects and 4xx
//     pages never reached it. 413 is final: the request is as large the next time.
func (f *Failure) Delivery(safe, idempotent bool) core.Delivery {
	d := core.Delivery{Reason: f.Error(), Safe: safe}
	switch {
	case f.Status == 0 && f.Unsent:
		d.Outcome = core.NotSent
	case f.Status == 0:
		d.Outcome = core.Unknown
	case f.Status == http.StatusTooManyRequests:
		d.Outcome, d.All = core.RetryAfter, f.Global
	case f.Status < 300, f.Status == http.StatusBadGateway, f.Status == http.StatusGatewayTimeout:
		d.Outcome = core.Unknown
	case f.Status >= 500, f.Status == 401, !f.Platform && !f.TooLarge():
		d.Outcome, d.Declined = core.NotSent, !f.RefusesToken()
	default:
		d.Outcome, d.Reason, d.Closed = core.Refused, f.reason(), f.closed()
	}
	if idempotent && f.Status != 0 && d.Outcome == core.Unknown {
		d.Outcome, d.Declined = core.NotSent, true
	}
	return d
}

// reason explains a refusal where the platform's text does not.
func (f *Failure) reason() string {
	switch f.Code {
	case discordgo.ErrCodeCannotSendMessagesToThisUser, codeNoCommonGuild:
		return fmt.Sprintf("Discord does not let the bot write to this person: they have closed direct messages, left the common server or blocked the bot (%d)", f.Code)
	case discordgo.ErrCodeMissingAccess, discordgo.ErrCodeMissingPermissions:
		return fmt.Sprintf("the bot may not write in this channel: give its role View Channel, Send Messages, Send Messages in Threads and Attach Files there (%d)", f.Code)
	case discordgo.ErrCodeUnknownChannel:
		return "the channel was deleted (10003)"
	}
	return cmp.Or(f.threadReason(), f.Error())
}

// threadReason explains a refusal by a thread, or returns "".
func (f *Failure) threadReason() string {
	switch f.Code {
	case codeThreadLocked:
		return "the thread is locked: have a moderator unlock it, or give the bot's role Manage Threads (160005)"
	case CodeThreadArchived:
		return "the thread is archived and locked, so that the bot cannot open it again: ask a moderator to, or give the bot's role Manage Threads (50083)"
	case codeTooManyThreads:
		return "the server has reached its limit of active threads, so that this one cannot be opened again: archive others (160006)"
	}
	return ""
}

// closed reports whether the chat refuses every message until the bot gets access
// again.
func (f *Failure) closed() bool {
	switch f.Code {
	case discordgo.ErrCodeCannotSendMessagesToThisUser, codeNoCommonGuild, discordgo.ErrCodeMissingAccess, discordgo.ErrCodeUnknownChannel:
		return true
	}
	return false
}
