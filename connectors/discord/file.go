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

// sendFile sends the part's file. If it is missing or too large, a text that reports it is
// sent instead.
func (b *Bot) sendFile(ctx context.Context, chat string, f *core.File, body wire.Body) (string, *rest.Failure) {
	r, _, err := connectors.OpenFile(b.o.Files, f.Path, maxSend)
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(r, maxSend))
		r.Close()
	}
	if err != nil {
		body.Content = markup.Encode(core.Part{Text: connectors.NotSent(f.Name, core.TextOf(err))})
		return b.send(ctx, chat, body)
	}
	return b.send(ctx, chat, &rest.Upload{Message: body, Name: connectors.FileName(f.Name), Data: data})
}
