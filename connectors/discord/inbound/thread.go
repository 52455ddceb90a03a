package inbound

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// starterTimeout is how long a message may wait for its thread's starter message.
const starterTimeout = 3 * time.Second

// topicOf returns the name of a thread, with the tags of a forum post: "Roses [help, garden]".
func topicOf(c, parent wire.Channel) string {
	var tags []string
	for _, id := range c.Applied.V {
		for _, t := range parent.Available.V {
			if t.ID == id && t.Name != "" {
				tags = append(tags, t.Name)
			}
		}
	}
	name := c.Name
	if len(tags) > 0 {
		name += " [" + strings.Join(tags, ", ") + "]"
	}
	return core.CleanName(name)
}

// root returns the beginning of a message's thread: its title, and the text of its
// starter message, whose id is the thread's own. For a forum post that message is in
// the thread, otherwise in the parent channel. What cannot be read is omitted.
func (d *Decoder) root(ctx context.Context, m *wire.Message, in *core.Inbound) *core.Quote {
	if in.Thread == "" || in.Topic == "" || !in.Addressed || in.Kind != core.KindMessage || in.Quote != nil {
		return in.Quote
	}
	q := core.Quote{Text: in.Topic, Root: true}
	if m.ID == in.Thread { // it is the starter message
		return &q
	}
	first, known := d.places.began(in.Thread)
	if !known {
		first, known = d.starter(ctx, in)
	}
	if known {
		d.places.begin(in.Thread, first)
	}
	if first.text != "" {
		q.Name, q.Text = first.by, core.CutRunes(in.Topic+"\n\n"+first.text, core.MaxQuote)
	}
	return &q
}

// A beginning is a thread's starter message; zero where it has none.
type beginning struct{ by, text string }

// starter requests the starter message of a thread. It reports false if the platform
// does not answer now, so that the next message asks again.
func (d *Decoder) starter(ctx context.Context, in *core.Inbound) (beginning, bool) {
	at := in.Place
	if parent, ok := d.places.channel(in.Place); ok && parent.HoldsPosts() {
		at = in.Thread
	}
	ctx, cancel := context.WithTimeout(ctx, starterTimeout)
	defer cancel()
	var m wire.Message
	f := d.o.API.Call(ctx, http.MethodGet, "/channels/"+at+"/messages/"+in.Thread, nil, &m)
	if f != nil || m.Author == nil {
		return beginning{}, f == nil || f.Hidden()
	}
	by := m.Author.Peer().Name
	switch {
	case m.Forwards():
		by = "" // the platform does not name who wrote it
	case m.Author.ID == d.o.ID:
		by = d.name()
	}
	return beginning{by, core.CutRunes(d.readable(m.Text(), &m), core.MaxQuote)}, true
}

func (p *places) began(thread string) (beginning, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roots.Get(thread)
}

func (p *places) begin(thread string, first beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots.Put(thread, first)
}
