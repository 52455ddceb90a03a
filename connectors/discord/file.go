package discord

import (
	"context"
	"io"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/markup"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

const maxSend = 10 << 20 // bytes; Reference, Uploading Files: the default limit of a request

// sendFile sends the part's file. If it is missing or too large, or the connection too slow
// for it, or it fails for the eleventh time over a connection, a text that reports it is sent instead.
func (b *Bot) sendFile(ctx context.Context, chat string, f *core.File, body wire.Body, row int64) (string, *rest.Failure) {
	r, _, err := connectors.OpenFile(b.o.Files, f.Path, maxSend)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(r, maxSend))
		r.Close()
	}
	instead := func(why string) (string, *rest.Failure) {
		body.Content = markup.Encode(core.Part{Text: connectors.NotSent(f.Name, why)})
		return b.send(ctx, chat, body)
	}
	if err != nil {
		return instead(core.TextOf(err))
	}
	id, fault := b.send(ctx, chat, &rest.Upload{Message: body, Name: connectors.FileName(f.Name), Data: data})
	switch {
	case fault == nil:
		b.failing.Done(row)
	case fault.TooLarge():
		return instead("a server on the way does not take a file of its size")
	case fault.TooSlow() && ctx.Err() == nil:
		return instead("the connection is too slow for its size")
	case fault.Repeats() && ctx.Err() == nil && b.failing.Enough(row):
		return instead("it failed again and again")
	}
	return id, fault
}
