package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/connectors/markdown"
	"gatehouse/core"
)

const (
	maxSend    = 50 << 20 // Bot API, sendDocument: "files of any type of up to 50 MB in size"
	maxPhoto   = 10 << 20 // Bot API, sendPhoto
	maxCaption = 1024     // UTF-16 units after entity parsing
)

// uploadTimeout is how long an upload of size bytes may take: three minutes, and what it takes at
// 64 KiB per second.
func uploadTimeout(size int64) time.Duration {
	return 3*time.Minute + time.Duration(size>>16)*time.Second
}

// sendFile sends the part's file with its text as caption: a picture as a photo, unless
// the platform rejects its dimensions, anything else as a document. If the file is
// missing or too large, or the connection too slow for it, or it fails for the eleventh time over a connection, a text that reports it is sent
// instead.
func (b *Bot) sendFile(ctx context.Context, t target, part core.Part, row int64) (string, *failure) {
	instead := func(why string) (string, *failure) {
		return b.send(ctx, t, core.Part{Text: connectors.NotSent(part.File.Name, why), ReplyTo: part.ReplyTo, Buttons: part.Buttons}, false)
	}
	f, size, err := connectors.OpenFile(b.o.Files, part.File.Path, maxSend)
	if err != nil {
		return instead(core.TextOf(err))
	}
	defer f.Close()
	id, fault := b.sendOpen(ctx, t, part, f, size)
	switch {
	case fault == nil:
		b.failing.Done(row)
	case fault.tooLarge():
		return instead("a server on the way does not take a file of its size")
	case fault.slow && ctx.Err() == nil:
		return instead("the connection is too slow for its size")
	case !fault.offline && ctx.Err() == nil && b.delivery(t, fault, false).Outcome == core.NotSent && b.failing.Enough(row):
		return instead("it failed again and again")
	}
	return id, fault
}

// sendOpen sends the part's file, which was opened.
func (b *Bot) sendOpen(ctx context.Context, t target, part core.Part, f fs.File, size int64) (string, *failure) {
	p := t.params()
	if markdown.UTF16Len(part.Text) > maxCaption { // no part has so long a one; a unit is at least a byte
		part.Text, part.Spans = core.CutRunes(part.Text, maxCaption-1), nil
	}
	p["caption"] = part.Text
	if e := entities(part.Spans); e != "" {
		p["caption_entities"] = e
	}
	addReply(p, part.ReplyTo)
	if err := addButtons(p, part.Buttons); err != nil {
		return "", &failure{status: 200, code: 400, text: err.Error()}
	}
	if kind, err := photo(f, size); err == nil && kind {
		id, fault := b.upload(ctx, "sendPhoto", "photo", p, part.File.Name, f, size)
		if fault == nil || fault.code != http.StatusBadRequest {
			return id, fault
		}
		b.o.Log.InfoContext(ctx, "telegram takes a picture as a document only", "bot", b.o.Name, "reason", fault.text)
		if f, _, err = connectors.OpenFile(b.o.Files, part.File.Path, maxSend); err != nil {
			return "", &failure{unsent: true, text: "the file cannot be opened again", cause: err}
		}
		defer f.Close()
	}
	return b.upload(ctx, "sendDocument", "document", p, part.File.Name, f, size)
}

// photo reports whether f, read from the start, is a picture of a kind and
// size that sendPhoto takes; f is at its start again.
func photo(f fs.File, size int64) (bool, error) {
	s, ok := f.(io.Seeker)
	if !ok || size > maxPhoto {
		return false, nil
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	switch http.DetectContentType(head[:n]) {
	case "image/jpeg", "image/png", "image/webp":
		return true, nil
	}
	return false, nil
}

// upload makes the request by the library and gives the new message's id.
func (b *Bot) upload(ctx context.Context, method, field string, p tgbotapi.Params, name string, r io.Reader, size int64) (string, *failure) {
	ctx, cancel := context.WithTimeout(ctx, b.uploadTimeout(size))
	defer cancel()
	e := &exchange{ctx: ctx, bot: b, line: b.sends}
	api := tgbotapi.BotAPI{Token: b.o.Token, Client: e}
	api.SetAPIEndpoint(b.endpoint)
	// Hidden from the library, which would close it when it likes.
	file := tgbotapi.FileReader{Name: connectors.FileName(name), Reader: struct{ io.Reader }{r}}
	resp, err := api.UploadFiles(method, p, []tgbotapi.RequestFile{{Name: field, Data: file}})
	if err != nil {
		return "", b.failed(e, err)
	}
	var m struct {
		ID int64 `json:"message_id"`
	}
	if json.Unmarshal(resp.Result, &m) != nil || m.ID == 0 {
		return "", nil
	}
	return strconv.FormatInt(m.ID, 10), nil
}

// addReply has the message quote the one it answers.
func addReply(p tgbotapi.Params, id string) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > 0 {
		p["reply_parameters"] = fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, n)
	}
}
