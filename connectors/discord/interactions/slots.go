package interactions

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

const (
	slotIdle = time.Minute // how long "thinking…" is shown without an answer
	// ownIDAfter is the age from which a preview can be edited as an ordinary message. The
	// token ends after 15 minutes (Interactions, Followup Messages); until then it works
	// in channels that the bot cannot see, too.
	ownIDAfter = 10 * time.Minute
	maxSlots   = 1000 // tracked at once; "thinking…" of further ones is not removed
	// slotPrefix marks a slot among message ids. A callback id follows.
	slotPrefix = "slot:"
	// original names a slot's own message among those sent with its token.
	original = "@original"
)

// IsSlot reports whether the message id represents the response to a slash command.
func IsSlot(id string) bool { return strings.HasPrefix(id, slotPrefix) }

// slots are the slash commands whose "thinking…" is shown; at most maxSlots.
type slots struct {
	mu   sync.Mutex
	open map[string]bool
}

func (s *slots) add(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSlots {
		return false
	}
	if s.open == nil {
		s.open = map[string]bool{}
	}
	s.open[slot] = true
	return true
}

// remove closes slot and reports whether it was open.
func (s *slots) remove(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok := s.open[slot]
	delete(s.open, slot)
	return ok
}

// think acknowledges a stored slash command: the platform shows "thinking…" until the
// answer arrives, for a private answer to its user alone. Without an answer it is
// removed after slotIdle.
func (r *Responder) think(ctx context.Context, in *core.Inbound) {
	id := strings.TrimPrefix(in.Slot, slotPrefix)
	defer r.Release([]string{id})
	if _, _, _, ok := parse(id); !ok {
		return
	}
	data := map[string]any{}
	if in.Aside != "" {
		data["flags"] = int(discordgo.MessageFlagsEphemeral)
	}
	tracked := r.slots.add(in.Slot)
	short, cancel := context.WithTimeout(ctx, ackTime)
	err := r.respond(short, id, discordgo.InteractionResponseDeferredChannelMessageWithSource, data)
	cancel()
	if err != nil {
		r.slots.remove(in.Slot)
		r.o.Log.WarnContext(ctx, "discord command not answered", "bot", r.o.Bot, "err", err)
		return
	}
	r.Release([]string{id})
	if tracked && core.Sleep(ctx, r.o.Clock, slotIdle) && r.abandon(ctx, in.Slot) {
		_ = r.hook(ctx, http.MethodDelete, in.Slot, original, nil, nil) // a later answer is a message of its own
	}
}

// abandon closes slot as claim does, so that its "thinking…" can be deleted, and reports
// whether it was open. An answer waits until Release, and finds it gone.
func (r *Responder) abandon(ctx context.Context, slot string) bool {
	return r.close(ctx, slot, true)
}

// claim waits until nothing else is done with slot, and closes it.
func (r *Responder) claim(ctx context.Context, slot string) { r.close(ctx, slot, false) }

// close waits until nothing else is done with slot, and closes it. It reports whether slot
// was open; then, with reserve, others wait until Release.
func (r *Responder) close(ctx context.Context, slot string, reserve bool) bool {
	id := strings.TrimPrefix(slot, slotPrefix)
	for ctx.Err() == nil {
		r.wait(ctx, id)
		if open, free := r.tryClose(slot, id, reserve); free {
			return open
		}
	}
	return false
}

// tryClose closes slot if it is free: if no response to id is pending.
func (r *Responder) tryClose(slot, id string, reserve bool) (open, free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[id] != nil {
		return false, false
	}
	open = r.slots.remove(slot)
	if open && reserve {
		r.pending[id] = make(chan struct{})
	}
	return open, true
}

// hook makes a request for a message that was sent with a slot's token; with POST it
// sends another one.
func (r *Responder) hook(ctx context.Context, method, slot, message string, body, out any) *rest.Failure {
	_, application, token, ok := parse(strings.TrimPrefix(slot, slotPrefix))
	if !ok {
		return &rest.Failure{Status: http.StatusNotFound, Platform: true, Code: discordgo.ErrCodeUnknownMessage, Text: "no such answer"}
	}
	if application == "" {
		application = r.o.ID
	}
	path := "/webhooks/" + application + "/" + token
	if method == http.MethodPost {
		path += "?wait=true"
	} else {
		path += "/messages/" + message
	}
	f := r.api.Call(ctx, method, path, body, out)
	if f != nil {
		f.Text = strings.ReplaceAll(f.Text, token, "[interaction]")
	}
	return f
}

// Fill replaces "thinking…" by an answer, and returns the message's id.
func (r *Responder) Fill(ctx context.Context, slot string, body wire.Body) (string, *rest.Failure) {
	m, f := r.fill(ctx, slot, body)
	return m.ID, f
}

// Preview replaces "thinking…" by a preview, and returns by which id the next preview or
// the answer edits it: slot, or the message's own before the token of slot ends. A
// message that one user alone sees has no other id than slot.
func (r *Responder) Preview(ctx context.Context, slot string, body wire.Body) (string, *rest.Failure) {
	m, f := r.fill(ctx, slot, body)
	public := wire.IsID(m.ID) && m.Flags&int64(discordgo.MessageFlagsEphemeral) == 0
	id, _, _, _ := parse(strings.TrimPrefix(slot, slotPrefix))
	if f == nil && public && r.o.Clock.Now().Sub(wire.Made(id)) >= ownIDAfter {
		return m.ID, nil
	}
	return slot, f
}

type filled struct {
	ID    string `json:"id"`
	Flags int64  `json:"flags"`
}

func (r *Responder) fill(ctx context.Context, slot string, body wire.Body) (m filled, f *rest.Failure) {
	r.claim(ctx, slot)
	body.Reference, body.Nonce, body.EnforceNonce = nil, "", false
	body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	f = r.hook(ctx, http.MethodPatch, slot, original, body, &m)
	return m, f
}

// Whisper sends a further part of an answer that only one user sees, or edits message,
// which is one, and returns its id.
func (r *Responder) Whisper(ctx context.Context, slot, message string, body wire.Body) (string, *rest.Failure) {
	r.wait(ctx, strings.TrimPrefix(slot, slotPrefix))
	body.Reference, body.Nonce, body.EnforceNonce = nil, "", false
	body.Flags = body.Flags&discordgo.MessageFlagsSuppressEmbeds | discordgo.MessageFlagsEphemeral
	var m struct {
		ID string `json:"id"`
	}
	method := http.MethodPost
	if message != "" {
		method = http.MethodPatch
		body.Flags &= discordgo.MessageFlagsSuppressEmbeds
	}
	f := r.hook(ctx, method, slot, message, body, &m)
	return m.ID, f
}

// Ended reports whether the message or token of a slot no longer exists.
func Ended(f *rest.Failure) bool { return f.Gone() || f.Expired() }
