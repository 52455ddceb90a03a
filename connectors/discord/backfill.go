package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/readback"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

const (
	// maxMarks limits the channels that are read back after an outage, to those
	// in which users wrote to the bot most recently.
	maxMarks = 500
	// marksEvery is how often Memory is written when only known channels moved.
	marksEvery = 5 * time.Second
)

type mark = readback.Mark

func (r *receiver) loadMarks(ctx context.Context) error {
	if r.bot.o.Memory == nil {
		return nil
	}
	raw, err := r.bot.o.Memory.Load(ctx, r.bot.cursorName())
	if err != nil || raw == "" {
		return err
	}
	var list []*mark
	if json.Unmarshal([]byte(raw), &list) != nil {
		r.bot.o.Log.WarnContext(ctx, "memory of channels ignored", "bot", r.bot.o.Name)
		return nil
	}
	list = slices.DeleteFunc(list, func(m *mark) bool { return m == nil || !wire.IsID(m.Channel) || !wire.IsID(m.Message) })
	for _, m := range slices.Backward(list) { // the most recently used is first
		r.marks.Put(m.Channel, m)
	}
	for _, m := range list {
		if m.Owed {
			r.back.Owe(m)
		}
	}
	return nil
}

// meet records the channels of a page before the page is stored, also if that cannot be
// saved. A channel is recorded when a user writes to the bot there.
func (r *receiver) meet(ctx context.Context, page []core.Inbound) {
	found := false
	for _, in := range page {
		if _, known := r.marks.Get(in.Chat); known || in.Chat == r.gone || !markable(in) || !in.Addressed || in.From.Bot || in.From.Shared {
			continue
		}
		m := r.back.Mark(in.Chat) // if others took its place among the marks
		if m == nil {
			m = &mark{Channel: in.Chat, Message: wire.Before(in.MessageID)}
		}
		if in.Group() {
			if m.Guild = r.bot.decoder.GuildOf(in.Chat); m.Guild == "" {
				continue
			}
			if in.Place != in.Chat {
				m.Place = in.Place
			}
		}
		r.marks.Put(in.Chat, m)
		r.marksDirty, found = true, true
	}
	if found {
		r.saveMarks(ctx, true)
	}
}

func markable(in core.Inbound) bool {
	return in.Malformed == "" && (in.Kind == core.KindMessage || in.Kind == core.KindCommand) && wire.IsID(in.MessageID)
}

// remember moves the marks of the known channels in a stored page, but of those that are to be
// read back. It deletes those of a server that the bot was removed from, because the next
// session would report the removal again.
func (r *receiver) remember(page []core.Inbound) {
	for _, in := range page {
		if in.Standing == core.StandingRemoved {
			r.lose(in.Places)
		}
		m, known := r.marks.Get(in.Chat)
		if !known || !markable(in) {
			continue
		}
		if wire.Newer(in.MessageID, m.Message) && !m.Owed {
			m.Message = in.MessageID
			r.marksDirty = true
		}
	}
}

// lose forgets the marks of places.
func (r *receiver) lose(places []string) {
	for _, m := range r.memory() {
		if slices.Contains(places, cmp.Or(m.Place, m.Channel)) {
			r.marks.Remove(m.Channel)
			m.Gone, r.marksDirty = true, true
		}
	}
}

// memory returns the marks, most recently used first, and behind them those of owed channels
// whose places others have taken.
func (r *receiver) memory() []*mark {
	list := make([]*mark, 0, r.marks.Len())
	known := map[string]bool{}
	for id, m := range r.marks.All() {
		list, known[id] = append(list, m), true
	}
	for _, m := range r.back.Marks() {
		if !known[m.Channel] && !m.Gone {
			list = append(list, m)
		}
	}
	return list
}

// saveMarks writes the marks to Memory when they have moved and it is time.
// What is lost of them is read back twice and dropped as a repeat. It returns false if they
// cannot be written.
func (r *receiver) saveMarks(ctx context.Context, now bool) bool {
	b := r.bot
	if b.o.Memory == nil || !r.marksDirty || !now && b.o.Clock.Now().Sub(r.marksSaved) < marksEvery {
		return true
	}
	raw, err := json.Marshal(r.memory())
	if err == nil {
		err = b.o.Memory.Save(ctx, b.cursorName(), string(raw))
	}
	if err != nil {
		b.o.Log.WarnContext(ctx, "memory of channels not saved", "bot", b.o.Name, "err", err)
		return false
	}
	r.marksDirty, r.marksSaved = false, b.o.Clock.Now()
	return true
}

// owe has all known channels read back. It returns when Memory has that, so that a crash skips
// none.
func (r *receiver) owe(ctx context.Context) error {
	r.back.Renew()
	for _, m := range r.memory() {
		r.back.Owe(m)
		r.marksDirty = true
	}
	for !r.saveMarks(ctx, true) {
		r.stuck++ // until the session is stored
		r.report(core.BotState{State: core.Degraded, Reason: storeReason, LastError: "the memory of channels is not saved"})
		if !core.Sleep(ctx, r.bot.o.Clock, connectors.Backoff(r.stuck, r.bot.o.Random)) {
			return ctx.Err()
		}
	}
	return nil
}

// readBack goes on with reading channels back, beside the events. It is to be called again at
// wake, and after a page. Requests end with asking.
func (r *receiver) readBack(ctx, asking context.Context) (wake <-chan time.Time, err error) {
	for len(r.back.Pages()) > 0 {
		if err := r.take(ctx, <-r.back.Pages()); err != nil {
			return nil, err
		}
	}
	if !r.up.Load() {
		return nil, nil
	}
	over, late := r.back.Late()
	if err := r.release(ctx, late); err != nil {
		return nil, err
	}
	for _, m := range over {
		if err := r.finish(ctx, m); err != nil {
			return nil, err
		}
	}
	return r.back.Ask(asking, r.at.ID), nil
}

// take stores a page that was read back. A channel that is gone or closed to us is forgotten. What
// came before the page is stored before it: a slash command stays before what followed it.
func (r *receiver) take(ctx context.Context, p readback.Page) error {
	for page := r.intake.page(); len(page) > 0 && ctx.Err() == nil; page = r.intake.page() {
		if err := r.handle(ctx, page); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	m := r.back.Take(p)
	if m == nil {
		return nil
	}
	if p.Err != nil {
		if p.Err.RefusesToken() {
			return r.bot.denied("401 " + p.Err.Text)
		}
		if p.Hidden {
			r.marks.Remove(m.Channel)
			m.Gone = true
			return r.finish(ctx, m)
		}
		return nil
	}
	if len(p.Rows) > 0 {
		if err := r.store(ctx, p.Rows, nil); err != nil {
			return err
		}
	}
	r.marksDirty = true
	if r.back.Stored(p) {
		return r.finish(ctx, m)
	}
	return nil
}

// finish ends the reading of a channel, and stores what was held of it.
func (r *receiver) finish(ctx context.Context, m *mark) error {
	r.marksDirty = true
	if m.Gone {
		r.gone = m.Channel
		defer func() { r.gone = "" }()
	}
	if err := r.release(ctx, r.back.Finish(m)); err != nil {
		return err
	}
	if r.back.Done() { // which were used last is known again
		list := r.memory()
		slices.SortStableFunc(list, func(x, y *mark) int { return wire.Compare(x.Message, y.Message) })
		for _, m := range list {
			r.marks.Get(m.Channel)
		}
	}
	r.saveMarks(ctx, r.back.Done())
	return nil
}

// release stores what was held, and the position behind it.
func (r *receiver) release(ctx context.Context, held []core.Inbound) error {
	if len(held) == 0 {
		return nil
	}
	return r.put(ctx, held, r.storable())
}

// storable returns the last event with none behind it that is held.
func (r *receiver) storable() int64 { return max(r.at.Seq, r.back.Storable(r.seen)) }
