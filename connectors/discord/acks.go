package discord

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/core"
)

// ackTime is how long a pressed button may stay unanswered
// (Interactions, Responding: "within 3 seconds").
const ackTime = 3 * time.Second

// acks are the pressed buttons whose first answer is under way. There is an
// entry from before a page is stored until that answer has ended, so the map
// is bounded by the presses of some seconds.
type acks struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

// expect notes the buttons pressed in page and gives their callback ids.
func (a *acks) expect(page []core.Inbound) (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, in := range page {
		id := strings.TrimPrefix(in.Slot, slotPrefix)
		if in.Callback != nil {
			id = in.Callback.ID
		}
		if id == "" || a.open[id] != nil {
			continue
		}
		if a.open == nil {
			a.open = map[string]chan struct{}{}
		}
		a.open[id] = make(chan struct{})
		ids = append(ids, id)
	}
	return ids
}

// drop ends the entries of ids.
func (a *acks) drop(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if c := a.open[id]; c != nil {
			close(c)
			delete(a.open, id)
		}
	}
}

// wait returns when no first answer to id is under way.
func (a *acks) wait(ctx context.Context, id string) {
	a.mu.Lock()
	c := a.open[id]
	a.mu.Unlock()
	if c != nil {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
}

// press takes a callback id apart: interaction, application, token.
func press(id string) (interaction, application, token string, ok bool) {
	p := strings.SplitN(id, "/", 3)
	if len(p) != 3 || !isID(p[0]) || p[2] == "" || strings.ContainsAny(p[2], "/?# ") || p[1] != "" && !isID(p[1]) {
		return "", "", "", false
	}
	return p[0], p[1], p[2], true
}

// deferral tells the platform that a pressed button, which is stored, was
// heard. It changes nothing that people see; what is to be said follows by
// Acknowledge. A press that is too old, as after a resume, needs none.
func (b *Bot) deferral(ctx context.Context, id string) {
	defer b.acks.drop([]string{id})
	interaction, _, token, ok := press(id)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	f := b.call(ctx, "POST", "/interactions/"+interaction+"/"+token+"/callback",
		map[string]any{"type": int(discordgo.InteractionResponseDeferredMessageUpdate)}, nil)
	if f != nil {
		b.o.Log.WarnContext(ctx, "discord button not answered", "bot", b.o.Name, "err", strings.ReplaceAll(f.Error(), token, "[interaction]"))
	}
}

// maxNotice is the longest text shown to who pressed a button; more than any
// notice needs.
const maxNotice = 200

// Acknowledge answers a pressed button: with text by a message that only who
// pressed it sees, without text it was answered when it was stored. One whose
// token has ended (15 minutes) needs no answer any more.
func (b *Bot) Acknowledge(ctx context.Context, _ core.Address, callbackID, text string) error {
	_, application, token, ok := press(callbackID)
	if !ok {
		return errCallback
	}
	if text == "" {
		return nil
	}
	b.acks.wait(ctx, callbackID)
	if application == "" {
		application = b.id
	}
	f := b.call(ctx, "POST", "/webhooks/"+application+"/"+token, whisper(text), nil)
	if f == nil || f.code == discordgo.ErrCodeUnknownWebhook || f.code == discordgo.ErrCodeInvalidWebhookTokenProvided ||
		f.code == discordgo.ErrCodeUnknownInteraction {
		return nil
	}
	f.text = strings.ReplaceAll(f.text, token, "[interaction]")
	return f
}
