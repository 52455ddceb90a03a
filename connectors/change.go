package connectors

import (
	"context"
	"errors"
	"io"

	"gatehouse/core"
)

// Put adds a bot, or replaces the connector of the bot with that name. The old
// connector receives and sends nothing more; its running requests end. The bot
// runs if the Hub does, unless Stop has stopped it. Put returns Busy if the old
// connector does not return: it receives no more, and Put may be called again.
// Other errors are those of NewHub.
func (h *Hub) Put(c Connector) error { return h.change(c.Name(), h.newBot(c)) }

// Fail stops a bot and its sending for a reason, which reports what to do. The bot is
// failed, and its replies wait, until Put replaces its connector. An unknown bot
// is added as failed. Errors are those of Put.
func (h *Hub) Fail(name, platform, reason string) error {
	b, err := h.bot(name)
	conn := Connector(absent{name, platform})
	if err == nil {
		conn = b.conn // waiting replies are still rendered for its platform
	}
	next := h.newBot(conn)
	next.refusal = reason
	return h.change(name, next)
}

// Remove ends a bot for good; NotFound and Busy as for Stop.
func (h *Hub) Remove(name string) error { return h.change(name, nil) }

// change replaces the bot with a name by next, or removes it if next is nil.
func (h *Hub) change(name string, next *bot) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	old, err := h.bot(name)
	switch {
	case err != nil && next == nil:
		return err
	case h.closed.Load():
		return core.Errorf(core.Conflict, "bot %s cannot be changed: the gateway is shutting down", name)
	case !nameable(name):
		return core.Errorf(core.Invalid, "a bot cannot be named %q: the name is empty or reserved", name)
	case err != nil && len(h.names()) >= MaxBots:
		return core.Errorf(core.TooLarge, "there are %d bots already, more are not possible", MaxBots)
	}
	if old != nil {
		if err := h.retire(old); err != nil {
			return err
		}
	}
	if next == nil {
		h.metrics.forget(name) // before its state, so that no scrape has metrics of a bot without a state
	}
	h.swap(name, old, next)
	if next == nil || old != nil && old.conn != next.conn {
		err = closeConn(old)
	} else {
		err = nil
	}
	if next == nil {
		h.metrics.forget(name) // which a running send may have set since
		h.notify(core.BotState{Bot: name, State: core.Stopped})
		return err
	}
	return errors.Join(err, h.enter(next, old != nil && old.off))
}

// retire ends the old connector's run for good.
func (h *Hub) retire(old *bot) error {
	h.mu.Lock()
	old.retired = true
	h.mu.Unlock()
	if _, err := h.halt(old); err != nil {
		h.mu.Lock()
		old.retired = false
		h.mu.Unlock()
		return err
	}
	return nil
}

func (h *Hub) swap(name string, old, next *bot) {
	h.table.Lock()
	defer h.table.Unlock()
	if next == nil {
		delete(h.bots, name)
		return
	}
	if old != nil {
		was := old.current()
		next.state.LastSuccess, next.state.Since = was.LastSuccess, was.Since
	}
	h.bots[name] = next
}

// enter starts a new bot, unless it is to stay stopped.
func (h *Hub) enter(b *bot, off bool) error {
	h.metrics.show(b.state.Bot, core.Stopped)
	h.mu.Lock()
	b.off = off
	runs := h.run != nil && h.run.Err() == nil
	var err error
	if runs && !off {
		err = h.start(b)
	}
	h.mu.Unlock()
	h.notify(b.current())
	return err
}

func closeConn(b *bot) error {
	if c, ok := b.conn.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// notify calls the listeners for a bot that was added or removed.
func (h *Hub) notify(s core.BotState) {
	h.listening.Lock()
	listeners := h.onChange
	h.listening.Unlock()
	for _, f := range listeners {
		f(s)
	}
}

// absent is the connector of a bot that never had one.
type absent struct{ name, platform string }

func (a absent) Name() string     { return a.name }
func (a absent) Platform() string { return a.platform }

func (a absent) Run(context.Context, Inbox, func(core.BotState)) error {
	return core.Errorf(core.Denied, "bot %s has no connector", a.name)
}

func (a absent) Send(context.Context, core.Outgoing) core.Delivery {
	return core.Delivery{Outcome: core.NotSent, Reason: "the bot has no connector"}
}
