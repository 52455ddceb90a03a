package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/core/vaultsync/wire"
)

// list finds out what the server has.
func (c *Client) list(ctx context.Context) error {
	since := c.state.Cursor
	for {
		l, err := c.changes(ctx, since)
		if err != nil {
			return err
		}
		c.apply(&l, c.restored(&l))
		if l.Complete || c.digest() == l.Digest {
			c.state.Cursor, c.state.Epoch, c.contradicted = l.Cursor, l.Epoch, false
			return nil
		}
		since = "" // what this device knows is not what the server had: compare all
	}
}

// restored reports whether the server was restored from a backup, or may have been: it is in
// another epoch, or its changes have not told of one that its files show.
func (c *Client) restored(l *wire.Listing) bool {
	foreign := l.Epoch != c.state.Epoch && l.Epoch != "" && c.state.Epoch != ""
	return foreign || c.contradicted || behind(l.Cursor, c.state.Cursor)
}

// behind reports whether a cursor is before one that the server gave earlier: its database
// was restored from a backup.
func behind(now, was string) bool {
	n, err1 := strconv.ParseInt(now, 10, 64)
	w, err2 := strconv.ParseInt(was, 10, 64)
	return errors.Join(err1, err2) == nil && n < w
}

// changes fetches a listing and notes what it has of each file, for apply.
func (c *Client) changes(ctx context.Context, since string) (l wire.Listing, err error) {
	for _, k := range c.state.Files {
		k.listed = unlisted
	}
	q := url.Values{"since": {since}, "include_binary": {"true"}}
	if since != "" && c.state.Epoch != "" {
		q.Set("epoch", c.state.Epoch)
	}
	all := since == "" && c.state.Cursor != "" // asked for behind the changes
	res, err := c.request(ctx, http.MethodGet, "/api/sync/changes?"+q.Encode(), "", nil, "application/json")
	if err != nil {
		return l, err
	}
	defer res.Body.Close()
	l, err = wire.Read(io.LimitReader(res.Body, maxListing), func(f wire.File, gone bool) error {
		switch k := c.state.Files[f.Path]; {
		case gone && k != nil && k.listed == unlisted:
			k.listed = deleted
		case !gone && wire.Synced(f.Path) && wire.ValidHash(f.Hash):
			k = c.state.of(f.Path)
			if now := contentOf(f.Hash); all && k.Remote != none && k.Remote != now {
				c.contradicted = true
			}
			k.Remote, k.listed = contentOf(f.Hash), present
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("read the server's answer: %w", err)
	}
	return l, err
}

// apply brings what is known to what a listing has noted. If the server was restored, what
// differs there is older: it does not replace what was edited since, both are kept.
func (c *Client) apply(l *wire.Listing, restored bool) {
	for _, k := range c.state.Files {
		switch {
		case k.listed == deleted:
			k.Remote = none
		case k.listed == unlisted && l.Complete:
			// No one deleted it as far as the server knows: it has lost it, or this key may not
			// see it any more. It stays here.
			k.Remote, k.Base = none, none
		}
		if restored && k.Remote != k.Base {
			k.Base = none
		}
	}
}

// digest returns the digest of what the server has, as far as this device knows.
func (c *Client) digest() string {
	d := wire.NewDigest()
	for _, name := range c.state.names() {
		if k := c.state.Files[name]; k.Remote != none {
			d.Add(name, k.Remote.String())
		}
	}
	return d.Sum()
}
