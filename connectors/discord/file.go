package discord

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/markup"
	"gatehouse/core"
)

const (
	maxSend       = 10 << 20 // Reference, Uploading Files: the default limit of a request
	uploadTimeout = 2 * time.Minute
)

// An upload is a message with a file, as Create Message takes it.
type upload struct {
	message outgoing
	name    string
	data    []byte // at most maxSend
}

// multipart is the upload as a request's body (Reference, Uploading Files).
func (u *upload) multipart() (kind string, body []byte, err error) {
	return discordgo.MultipartBodyWithJSON(u.message, []*discordgo.File{{Name: u.name, Reader: bytes.NewReader(u.data)}})
}

// sendFile makes a message of the part's file. One that is gone or too large
// is told in words instead.
func (b *Bot) sendFile(ctx context.Context, chat string, f *core.File, body outgoing) (string, *failure) {
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
	return b.send(ctx, chat, &upload{body, connectors.FileName(f.Name), data})
}
