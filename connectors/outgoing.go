package connectors

import (
	"context"
	"io"
	"time"

	"gatehouse/core"
)

// Send delivers one outbox row through its bot. It returns NotSent for a bot that
// Fail has stopped, whose rows wait; Refused for a bot that is not configured,
// whose rows the operator can send again; and Unknown after a panic of the
// connector, which may have sent the request.
func (h *Hub) Send(ctx context.Context, out core.Outgoing) (d core.Delivery) {
	b, err := h.bot(out.Bot)
	if err != nil {
		return core.Delivery{Outcome: core.Refused, Reason: core.TextOf(err)}
	}
	if h.closed.Load() {
		return core.Delivery{Outcome: core.NotSent, Reason: "the gateway is shutting down"}
	}
	if b.refusal != "" {
		return core.Delivery{Outcome: core.NotSent, Reason: b.refusal}
	}
	var broken error
	defer func() {
		if broken != nil {
			d = core.Delivery{Outcome: core.Unknown, Reason: broken.Error()}
		}
	}()
	defer Recover(b.hub.log, b.conn.Name(), "send", &broken)
	if _, ok := b.conn.(Follower); out.Flight != nil && !ok {
		if err := out.Flight.Writing(); err != nil {
			return core.Delivery{Outcome: core.NotSent, Reason: err.Error()}
		}
	}
	return b.conn.Send(ctx, out)
}

// Wait returns how long to wait before the next Send to a chat: 0 for an unknown
// bot and for a platform without pace.
func (h *Hub) Wait(to core.Address) time.Duration {
	b, err := h.bot(to.Bot)
	if err != nil {
		return 0
	}
	if p, ok := b.conn.(Pacer); ok {
		return p.Wait(to)
	}
	return 0
}

// Repeats returns how long a part can be sent again and be shown once: 0 for an
// unknown bot and for a platform that does not recognize parts.
func (h *Hub) Repeats(bot string) time.Duration {
	b, err := h.bot(bot)
	if err != nil {
		return 0
	}
	if r, ok := b.conn.(Repeater); ok {
		return r.Repeats()
	}
	return 0
}

// Preview shows or edits a preview; see Previewer. A platform without
// previews shows nothing and returns id as it came.
func (h *Hub) Preview(ctx context.Context, to core.Address, id string, part core.Part) (shown string, err error) {
	b, err := h.bot(to.Bot)
	if err != nil {
		return id, err
	}
	p, ok := b.conn.(Previewer)
	if !ok || b.refusal != "" {
		return id, nil
	}
	defer Recover(b.hub.log, b.conn.Name(), "preview", &err)
	return p.Preview(ctx, to, id, part)
}

// Typing shows that an answer is coming, where the platform can.
func (h *Hub) Typing(ctx context.Context, to core.Address) (err error) {
	b, err := h.bot(to.Bot)
	if err != nil {
		return err
	}
	t, ok := b.conn.(Typer)
	if !ok || b.refusal != "" {
		return nil
	}
	defer Recover(b.hub.log, b.conn.Name(), "typing", &err)
	return t.Typing(ctx, to)
}

// Acknowledge answers a pressed button, where the platform wants that.
func (h *Hub) Acknowledge(ctx context.Context, to core.Address, callbackID, text string) (err error) {
	b, err := h.bot(to.Bot)
	if err != nil {
		return err
	}
	a, ok := b.conn.(Acknowledger)
	if !ok || b.refusal != "" {
		return nil
	}
	defer Recover(b.hub.log, b.conn.Name(), "acknowledge", &err)
	return a.Acknowledge(ctx, to, callbackID, text)
}

// React sets an emoji under a message, or removes it with "", where the platform
// can do that.
func (h *Hub) React(ctx context.Context, to core.Address, messageID, emoji string) (err error) {
	b, err := h.bot(to.Bot)
	if err != nil {
		return err
	}
	r, ok := b.conn.(Reactor)
	if !ok || b.refusal != "" {
		return nil
	}
	defer Recover(b.hub.log, b.conn.Name(), "react", &err)
	return r.React(ctx, to, messageID, emoji)
}

// Fetch writes the bytes of a file that came over the bot to w; see Fetcher.
func (h *Hub) Fetch(ctx context.Context, bot string, f core.File, w io.Writer) (err error) {
	b, err := h.bot(bot)
	if err != nil {
		return err
	}
	c, ok := b.conn.(Fetcher)
	if !ok {
		return core.Errorf(core.Invalid, "files of this platform cannot be fetched")
	}
	defer Recover(b.hub.log, b.conn.Name(), "fetch", &err)
	return c.Fetch(ctx, f, w)
}

// Render returns a reply in Markdown as parts within the platform's limits. For an
// unknown bot, and a connector that is no Renderer, it returns one part with the
// unchanged text. An empty reply has no parts.
func (h *Hub) Render(to core.Address, markdown string) []core.Part {
	if b, err := h.bot(to.Bot); err == nil {
		if r, ok := b.conn.(Renderer); ok {
			return r.Render(markdown)
		}
	}
	if markdown == "" {
		return nil
	}
	return []core.Part{{Text: markdown}}
}
