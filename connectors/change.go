package connectors

import (
	"context"
	"errors"
	"io"

	"gatehouse/core"
)

// Put adds a bot while the others run, or gives a bot of that name another
// connector: the old one takes and sends nothing more from then on, requests
// under way end by themselves. The bot runs when the Hub does, unless Stop
// ended it before. Busy: the old connector does not stop; it takes no more, and
// Put may be called again. Invalid, TooLarge: as NewHub.
func (h *Hub) Put(c Connector) error { return h.change(c.Name(), h.newBot(c)) }

// Fail has a bot run and send no longer, for a reason that says what to do: it
// is failed until Put gives it a good connector, and its replies wait. A bot
// that is not there yet is added so. Errors are those of Put.
func (h *Hub) Fail(name, platform, reason string) error {
	b, err := h.bot(name)
	conn := Connector(absent{name, platform})
	if err == nil {
		conn = b.conn // what waits is still rendered for its platform
	}
	next := h.newBot(conn)
	next.refusal = reason
	return h.change(name, next)
}

// Remove ends a bot for good; NotFound and Busy as for Stop.
func (h *Hub) Remove(name string) error { return h.change(name, nil) }

// change puts next (nil: nothing) in the place of the bot of that name.
func (h *Hub) change(name string, next *bot) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	old, err := h.bot(name)
	switch {
	case err != nil && next == nil:
		return err
	case h.closed.Load():
		return core.Errorf(core.Conflict, "bot %s can't be changed: the gateway is shutting down", name)
	case !nameable(name):
		return core.Errorf(core.Invalid, "a bot can't be named %q: the name is empty or reserved", name)
	case err != nil && len(h.names()) >= MaxBots:
		return core.Errorf(core.TooLarge, "there are %d bots already, more are not possible", MaxBots)
	}
	if old != nil {
		if err := h.retire(old); err != nil {
			return err
		}
	}
	if next == nil {
		h.metrics.forget(name) // before its state goes: no scrape shows figures of a bot without a state
	}
	h.swap(name, old, next)
	if next == nil || old != nil && old.conn != next.conn {
		err = closeConn(old)
	} else {
		err = nil
	}
	if next == nil {
		h.metrics.forget(name) // what a send under way has set since
		h.tell(core.BotState{Bot: name, State: core.Stopped})
		return err
	}
	return errors.Join(err, h.enter(next, old != nil && old.off))
}

// retire ends the old connector's run and lets nobody start it again.
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

// enter starts a bot that has come, unless it is to stay off.
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
	h.tell(b.current())
	return err
}

func closeConn(b *bot) error {
	if c, ok := b.conn.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// tell has the listeners hear of a bot that came or went.
func (h *Hub) tell(s core.BotState) {
	h.listening.Lock()
	listeners := h.onChange
	h.listening.Unlock()
	for _, f := range listeners {
		f(s)
	}
}

// absent is a bot that never had a connector.
type absent struct{ name, platform string }

func (a absent) Name() string     { return a.name }
func (a absent) Platform() string { return a.platform }

func (a absent) Run(context.Context, Inbox, func(core.BotState)) error {
	return core.Errorf(core.Denied, "bot %s has no connector", a.name)
}

func (a absent) Send(context.Context, core.Outgoing) core.Delivery {
	return core.Delivery{Outcome: core.NotSent, Reason: "the bot has no connector"}
}
