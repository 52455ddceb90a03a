package readback

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// pageSize is the most that one request returns (Get Channel Messages).
const pageSize = 100

// A Page is a part of a channel's history, oldest first, or why there is none.
type Page struct {
	Rows   []core.Inbound
	Err    *rest.Failure
	Hidden bool // Err means that the channel is gone or closed to the bot

	channel string
	last    string // the last message of the page
	more    bool
}

// ask requests the next page of a channel.
func (r *Reader) ask(ctx context.Context, session string, o *owed) {
	o.asking = true
	r.asking++
	m, pages := *o.mark, r.pages
	if oldest := wire.Snowflake(r.o.Clock.Now().Add(-maxAge)); wire.Newer(oldest, m.Message) {
		m.Message = oldest
	}
	r.o.Beside("read a channel back", func() {
		p := Page{Err: &rest.Failure{Text: "it panicked"}}
		defer func() {
			p.channel = m.Channel
			pages <- p // has room for all that are asked for
		}()
		p = r.o.page(ctx, m, session)
	})
}

// page reads what is behind a mark.
func (o *Options) page(ctx context.Context, m Mark, session string) Page {
	var list []json.RawMessage
	if f := o.API.Call(ctx, "GET", "/channels/"+m.Channel+"/messages?limit="+strconv.Itoa(pageSize)+"&after="+m.Message, nil, &list); f != nil {
		return Page{Err: f, Hidden: f.Hidden()}
	}
	slices.SortStableFunc(list, func(x, y json.RawMessage) int { return wire.Compare(messageID(x), messageID(y)) })
	var p Page
	for _, raw := range list {
		in, ok, err := o.Decode(ctx, missed(raw, m), session)
		if err != nil {
			f := &rest.Failure{Text: err.Error()}
			errors.As(err, &f)
			return Page{Err: f}
		}
		if ok {
			p.Rows = append(p.Rows, in)
		}
		p.last = messageID(raw)
	}
	p.more = len(list) == pageSize && wire.Newer(p.last, m.Message)
	return p
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

// missed returns the event of a message that was read back, which does not name its guild.
func missed(raw json.RawMessage, at Mark) gateway.Event {
	e := gateway.Event{Type: "MESSAGE_CREATE", Data: raw}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, new(wire.Message)) == nil && json.Unmarshal(raw, &fields) == nil {
		fields["channel_id"], fields["guild_id"] = json.RawMessage(strconv.Quote(at.Channel)), json.RawMessage(strconv.Quote(at.Guild))
		if whole, err := json.Marshal(fields); err == nil {
			e.Data = whole
		}
	}
	return e
}
