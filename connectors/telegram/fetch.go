package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/texts"
)

const (
	maxFetch     = 20 << 20 // Bot API, getFile: "bots can download files of up to 20MB in size"
	fetchTimeout = 2 * time.Minute
	platformName = "Telegram" // to users
)

// Fetch writes the bytes of a file that came with a message to w, at most 20
// MB. They come from the configured server only, and no redirect is followed.
func (b *Bot) Fetch(ctx context.Context, f core.File, w io.Writer) error {
	if f.Size > maxFetch {
		return tooLarge()
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	path, err := b.filePath(ctx, f.Ref)
	if err != nil {
		return err
	}
	return b.download(ctx, path, w)
}

func tooLarge() error {
	return texts.Error(core.TooLarge, "fetch_large", texts.With{"Most": core.ByteSize(maxFetch), "Platform": platformName})
}

// filePath asks where the file lies now: the address works for an hour.
func (b *Bot) filePath(ctx context.Context, id string) (string, error) {
	raw, f := b.call(ctx, b.sends, b.o.SendTimeout, "getFile", tgbotapi.Params{"file_id": id})
	switch {
	case f != nil && f.code == 400 && strings.Contains(f.text, "too big"):
		return "", tooLarge()
	case f != nil && f.code == 400:
		return "", texts.Error(core.NotFound, "fetch_gone", texts.With{"Platform": platformName})
	case f != nil:
		return "", f
	}
	var at struct {
		Path string `json:"file_path"`
	}
	if json.Unmarshal(raw, &at) != nil || at.Path == "" {
		return "", errors.New("the answer to getFile names no path")
	}
	if strings.HasPrefix(at.Path, "/") {
		return "", texts.Error(core.Invalid, "fetch_local", texts.With{"Platform": platformName})
	}
	return at.Path, nil
}

func (b *Bot) download(ctx context.Context, path string, w io.Writer) error {
	at := b.base + "/file/bot" + b.o.Token + "/" + (&url.URL{Path: path}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return b.safe(err)
	}
	resp, err := b.sends.t.Load().RoundTrip(req)
	if err != nil {
		return b.safe(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a download from Telegram: HTTP status %d", resp.StatusCode)
	}
	more, err := connectors.Download(w, resp, maxFetch)
	if err != nil {
		return b.safe(err)
	}
	if more {
		return tooLarge()
	}
	return nil
}
