package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

const (
	// maxMarks limits the channels that are read back after an outage, to those
	// in which users wrote to the bot most recently.
	maxMarks = 500
	// backfillPage is the most that one request gives (Get Channel Messages).
	backfillPage = 100
	// backfillPages bounds what is read back of one channel.
	backfillPages = 10
	// backfillAge is how old a missed message may be and still be answered.
	backfillAge = 24 * time.Hour
	// backfillTries is how often the platform may fail to answer for one channel before the
	// others are read.
	backfillTries = 5
	// owedEvery is how often a channel is read that could not be when it was its turn.
	owedEvery = 30 * time.Second
	// marksEvery is how often Memory is written when only known channels moved.
	marksEvery = 5 * time.Second
)

// A mark is how far a channel has been stored.
type mark struct {
	Channel string `json:"c"`
	Guild   string `json:"g,omitempty"` // "" for a direct message
	Place   string `json:"p,omitempty"` // of a thread: the channel it hangs in
	Message string `json:"m"`
	Owed    bool   `json:"o,omitempty"` // what is behind Message could not be read back
}

// errOwed means that a channel could not be read back now.
var errOwed = errors.New("channel not read back")

func (r *receiver) loadMarks(ctx context.Context) error {
	if r.bot.o.Memory == nil {
		return nil
	}
	raw, err := r.bot.o.Memory.Load(ctx, r.bot.cursorName())
	if err != nil || raw == "" {
		return err
	}
	var list []mark
	if json.Unmarshal([]byte(raw), &list) != nil {
		r.bot.o.Log.WarnContext(ctx, "memory of channels ignored", "bot", r.bot.o.Name)
		return nil
	}
	for _, m := range slices.Backward(list) { // the most recently used is first
		if wire.IsID(m.Channel) && wire.IsID(m.Message) {
			r.marks.Put(m.Channel, m)
			r.owing = r.owing || m.Owed
		}
	}
	return nil
}

// meet records the channels of a page before the page is stored. A channel is
// recorded when a user writes to the bot there.
func (r *receiver) meet(ctx context.Context, page []core.Inbound) {
	found := false
	for _, in := range page {
		if _, known := r.marks.Get(in.Chat); known || !markable(in) || !in.Addressed || in.From.Bot || in.From.Shared {
			continue
		}
		m := mark{Channel: in.Chat, Message: wire.Before(in.MessageID)}
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

// remember moves the marks of the known channels in a stored page, of those that were read back. It deletes those of
// a server that the bot was removed from, because the next session would report the
// removal again.
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
		r.marks.Put(in.Chat, m)
	}
}

// lose forgets the marks of places.
func (r *receiver) lose(places []string) {
	for _, m := range r.memory() {
		if slices.Contains(places, cmp.Or(m.Place, m.Channel)) {
			r.marks.Remove(m.Channel)
			r.marksDirty = true
		}
	}
}

// memory returns the marks, most recently used first.
func (r *receiver) memory() []mark {
	list := make([]mark, 0, r.marks.Len())
	for _, m := range r.marks.All() {
		list = append(list, m)
	}
	return list
}

// saveMarks writes the marks to Memory when they have moved and it is time.
// What is lost of them is read back twice and dropped as a repeat.
func (r *receiver) saveMarks(ctx context.Context, now bool) {
	b := r.bot
	if b.o.Memory == nil || !r.marksDirty || !now && b.o.Clock.Now().Sub(r.marksSaved) < marksEvery {
		return
	}
	raw, err := json.Marshal(r.memory())
	if err == nil {
		err = b.o.Memory.Save(ctx, b.cursorName(), string(raw))
	}
	if err != nil {
		b.o.Log.WarnContext(ctx, "memory of channels not saved", "bot", b.o.Name, "err", err)
		return
	}
	r.marksDirty, r.marksSaved = false, b.o.Clock.Now()
}

// backfill reads what came to the known channels while no session lived. It
// runs before the new session's events, so that each channel keeps its order;
// what both bring is stored once.
func (r *receiver) backfill(ctx context.Context) error {
	r.owing = false
	for _, m := range r.memory() {
		if err := r.readBack(ctx, m, backfillTries); err != nil {
			return err
		}
	}
	r.saveMarks(ctx, true)
	return nil
}

// readOwed reads the channels that could not be read back, once each.
func (r *receiver) readOwed(ctx context.Context) error {
	now := r.bot.o.Clock.Now()
	if !r.owing || now.Sub(r.owedAt).Abs() < owedEvery {
		return nil
	}
	r.owing, r.owedAt = false, now
	for _, m := range r.memory() {
		if !m.Owed {
			continue
		}
		if err := r.readBack(ctx, m, 1); err != nil {
			return err
		}
	}
	r.saveMarks(ctx, true)
	return nil
}

// readBack stores what a channel holds behind its mark, or has that done later where the platform
// does not answer for it.
func (r *receiver) readBack(ctx context.Context, m mark, tries int) error {
	m.Owed = false
	r.marks.Put(m.Channel, m)
	err := r.readAll(ctx, m, tries)
	if now, known := r.marks.Get(m.Channel); known && err != nil {
		now.Owed, r.owing, r.owedAt = true, true, r.bot.o.Clock.Now()
		r.marks.Put(m.Channel, now)
	}
	r.marksDirty = true
	if errors.Is(err, errOwed) {
		return nil
	}
	return err
}

func (r *receiver) readAll(ctx context.Context, m mark, tries int) error {
	after := m.Message
	if oldest := wire.Snowflake(r.bot.o.Clock.Now().Add(-backfillAge)); wire.Newer(oldest, after) {
		after = oldest
	}
	for range backfillPages {
		list, err := r.behind(ctx, m.Channel, after, tries)
		if err != nil || len(list) == 0 {
			return err
		}
		var page []core.Inbound
		for _, raw := range list {
			in, ok, err := r.missed(ctx, raw, m)
			if err != nil {
				return err
			}
			if ok {
				page = append(page, in)
			}
		}
		if len(page) > 0 {
			if err := r.store(ctx, page, nil); err != nil {
				return err
			}
			r.remember(page)
		}
		if len(list) < backfillPage {
			return nil
		}
		after = messageID(list[len(list)-1])
	}
	r.bot.o.Log.WarnContext(ctx, "not all of a channel was read back", "bot", r.bot.o.Name, "channel", m.Channel, "messages", backfillPages*backfillPage)
	return nil
}

// behind asks for one page of a channel, oldest first. A channel that is gone
// or closed to us is forgotten. One for which the platform fails to answer tries times is errOwed, as
// the others and the live events wait; only with one try its absence, or its pace, is no reason to wait.
func (r *receiver) behind(ctx context.Context, channel, after string, tries int) ([]json.RawMessage, error) {
	b := r.bot
	failed := 0
	for n := 1; ; n++ {
		var list []json.RawMessage
		f := b.api.Call(ctx, "GET", "/channels/"+channel+"/messages?limit="+strconv.Itoa(backfillPage)+"&after="+after, nil, &list)
		if f == nil {
			slices.SortStableFunc(list, func(x, y json.RawMessage) int {
				return wire.Compare(messageID(x), messageID(y))
			})
			return list, nil
		}
		if f.Hidden() {
			r.marks.Remove(channel)
			r.marksDirty = true
			return nil, nil
		}
		if tries == 1 || f.Status != 0 && f.Status != http.StatusTooManyRequests {
			failed++
		}
		if failed >= tries && !f.RefusesToken() && ctx.Err() == nil {
			b.o.Log.WarnContext(ctx, "channel not read back; it is read later", "bot", b.o.Name, "channel", channel, "err", f)
			return nil, errOwed
		}
		if err := r.await(ctx, f, n); err != nil {
			return nil, err
		}
	}
}

func messageID(raw json.RawMessage) string {
	var m struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &m) != nil || !wire.IsID(m.ID) {
		return "0"
	}
	return m.ID
}

// missed decodes a message that was read back, which names neither its guild nor its
// position in the stream.
func (r *receiver) missed(ctx context.Context, raw json.RawMessage, at mark) (core.Inbound, bool, error) {
	var m wire.Message
	e := gateway.Event{Type: "MESSAGE_CREATE", Data: raw}
	if json.Unmarshal(raw, &m) == nil {
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &fields) == nil {
			fields["channel_id"], fields["guild_id"] = json.RawMessage(strconv.Quote(at.Channel)), json.RawMessage(strconv.Quote(at.Guild))
			if whole, err := json.Marshal(fields); err == nil {
				e.Data = whole
			}
		}
	}
	return r.decode(ctx, e)
}
