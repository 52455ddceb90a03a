package discord

import (
	"cmp"
	"context"
	"encoding/json"
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
	// backfillTries is how often one channel is asked for before it is left.
	backfillTries = 5
	// marksEvery is how often Memory is written when only known channels moved.
	marksEvery = 5 * time.Second
)

// A mark is how far a channel has been stored.
type mark struct {
	Channel string `json:"c"`
	Guild   string `json:"g,omitempty"` // "" for a direct message
	Place   string `json:"p,omitempty"` // of a thread: the channel it hangs in
	Message string `json:"m"`
}

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
		m := mark{Channel: in.Chat, Message: before(in.MessageID)}
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

// remember moves the marks of the known channels in a stored page. It deletes those of
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
		if newer(in.MessageID, m.Message) {
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

// before returns the snowflake directly before id.
func before(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n < 2 {
		return "1"
	}
	return strconv.FormatUint(n-1, 10)
}

// newer compares two snowflakes.
func newer(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
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
	for _, m := range r.memory() {
		if err := r.readBack(ctx, m); err != nil {
			return err
		}
	}
	r.saveMarks(ctx, true)
	return nil
}

// readBack stores what a channel holds behind its mark.
func (r *receiver) readBack(ctx context.Context, m mark) error {
	after := m.Message
	if oldest := snowflake(r.bot.o.Clock.Now().Add(-backfillAge)); newer(oldest, after) {
		after = oldest
	}
	for range backfillPages {
		list, err := r.behind(ctx, m.Channel, after)
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
// or closed to us is forgotten; one that can't be asked for is left after some
// tries, as the others and the live events wait.
func (r *receiver) behind(ctx context.Context, channel, after string) ([]json.RawMessage, error) {
	b := r.bot
	for n := 1; ; n++ {
		var list []json.RawMessage
		f := b.api.Call(ctx, "GET", "/channels/"+channel+"/messages?limit="+strconv.Itoa(backfillPage)+"&after="+after, nil, &list)
		switch {
		case f == nil:
			slices.SortStableFunc(list, func(x, y json.RawMessage) int {
				x2, y2 := messageID(x), messageID(y)
				return cmp.Or(cmp.Compare(len(x2), len(y2)), cmp.Compare(x2, y2))
			})
			return list, nil
		case f.Hidden():
			r.marks.Remove(channel)
			r.marksDirty = true
			return nil, nil
		case n >= backfillTries && !f.RefusesToken():
			b.o.Log.WarnContext(ctx, "channel not read back", "bot", b.o.Name, "channel", channel, "err", f)
			return nil, nil
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

// snowflake returns the smallest id that the platform assigns at t (Reference,
// Snowflakes: milliseconds since 2015, shifted by 22 bits).
func snowflake(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-wire.Epoch)<<22, 10)
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
