package discord

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

// rootTime is how long a message may wait for what its thread began with.
const rootTime = 3 * time.Second

// topicOf returns the name of a thread, for a post with its tags: "Roses [help, garden]".
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
func (b *Bot) root(ctx context.Context, m *wire.Message, in *core.Inbound) *core.Quote {
	if in.Thread == "" || in.Topic == "" || !in.Addressed || in.Kind != core.KindMessage || in.Quote != nil {
		return in.Quote
	}
	q := core.Quote{Text: in.Topic, Root: true}
	if m.ID == in.Thread { // it is the starter message
		return &q
	}
	first, known := b.places.began(in.Thread)
	if !known {
		first, known = b.starter(ctx, in)
	}
	if known {
		b.places.begin(in.Thread, first)
	}
	if first.words != "" {
		q.Name, q.Text = first.by, core.CutRunes(in.Topic+"\n\n"+first.words, core.MaxQuote)
	}
	return &q
}

// A beginning is a thread's starter message; zero where it has none.
type beginning struct{ by, words string }

// starter asks for the message that a thread began with; false when the
// platform does not say now.
func (b *Bot) starter(ctx context.Context, in *core.Inbound) (beginning, bool) {
	at := in.Place
	if parent, ok := b.places.channel(in.Place); ok && parent.HoldsPosts() {
		at = in.Thread
	}
	ctx, cancel := context.WithTimeout(ctx, rootTime)
	defer cancel()
	var m wire.Message
	f := b.api.Call(ctx, http.MethodGet, "/channels/"+at+"/messages/"+in.Thread, nil, &m)
	if f != nil || m.Author == nil {
		return beginning{}, f == nil || f.Hidden()
	}
	by := m.Author.Peer().Name
	if m.Author.ID == b.id {
		by = b.name()
	}
	return beginning{by, core.CutRunes(b.readable(m.Content, &m), core.MaxQuote)}, true
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

// unarchive opens an archived thread, so that a message in it can be edited; a new
// message does so automatically. It reports false for a locked thread.

func (b *Bot) unarchive(ctx context.Context, thread string) bool {
	return b.api.Call(ctx, http.MethodPatch, "/channels/"+thread, map[string]bool{"archived": false}, nil) == nil
}
