package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/texts"
)

const (
	maxFetch     = 10 << 20 // the default limit of attachments (Reference, Uploading Files); larger ones are of paying servers
	fetchTimeout = 2 * time.Minute
	platformName = "Discord" // in texts
)

// cdn are the hosts that the real platform keeps attachments on (Reference,
// CDN Endpoints); media is its resizing front.
var cdn = map[string]bool{"cdn.discordapp.com": true, "media.discordapp.net": true}

func tooLarge() error {
	return texts.Error(core.TooLarge, "fetch_large_here", texts.With{"Most": core.ByteSize(maxFetch), "Platform": platformName})
}

func gone() error {
	return texts.Error(core.NotFound, "fetch_gone", texts.With{"Platform": platformName})
}

// Fetch writes the bytes of a file that came with a message to w, at most 10
// MB. An address that has expired (they live for a day) is asked for again.
// The bytes come from the platform's own hosts, or from the configured server;
// no redirect is followed.
func (b *Bot) Fetch(ctx context.Context, f core.File, w io.Writer) error {
	if f.Size > maxFetch {
		return tooLarge()
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	ids, at, _ := strings.Cut(f.Ref, " ")
	expired, err := b.download(ctx, at, w)
	if !expired {
		return err
	}
	if at, err = b.fileAddress(ctx, ids); err != nil {
		return err
	}
	if expired, err = b.download(ctx, at, w); expired {
		return gone()
	}
	return err
}

// fileAddress asks for the message again, which brings fresh addresses. ids
// are channel, message and attachment.
func (b *Bot) fileAddress(ctx context.Context, ids string) (string, error) {
	part := strings.Split(ids, "/")
	if len(part) != 3 || !wire.IsID(part[0]) || !wire.IsID(part[1]) {
		return "", gone()
	}
	var m wire.Message
	f := b.api.Call(ctx, "GET", "/channels/"+part[0]+"/messages/"+part[1], nil, &m)
	switch {
	case f != nil && f.Platform && (f.Status == http.StatusNotFound || f.Status == http.StatusForbidden):
		return "", gone()
	case f != nil:
		return "", f
	}
	for _, a := range m.Attached() {
		if a.ID == part[2] {
			return a.URL, nil
		}
	}
	return "", gone()
}

// ours reports whether a file may be fetched from u.
func (b *Bot) ours(u *url.URL) bool {
	if u.User != nil {
		return false
	}
	base := strings.TrimSuffix(b.base, apiPath)
	if base == DefaultAPIURL {
		return u.Scheme == "https" && cdn[u.Host]
	}
	return u.Scheme+"://"+u.Host == base
}

// download writes the file at to w. expired reports that the platform has no file at
// that address; then nothing was written.
func (b *Bot) download(ctx context.Context, at string, w io.Writer) (expired bool, err error) {
	u, err := url.Parse(at)
	if err != nil || !b.ours(u) {
		return true, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return true, nil
	}
	resp, err := b.line.RoundTrip(req)
	if err != nil {
		return false, errors.New(b.redact.Replace(err.Error()))
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusForbidden, http.StatusGone:
		return true, nil
	default:
		return false, fmt.Errorf("a download from Discord: HTTP status %d", resp.StatusCode)
	}
	more, err := connectors.Download(w, resp, maxFetch)
	switch {
	case err != nil:
		return false, errors.New(b.redact.Replace(err.Error()))
	case more:
		return false, tooLarge()
	}
	return false, nil
}
