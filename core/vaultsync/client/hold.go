package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// Pauses before a file is moved again that could not be.
const (
	firstHold = time.Minute
	lastHold  = time.Hour
)

// A hold is why a file is not moved now.
type hold struct {
	hash  string // the content that could not be sent, fetched or written
	until time.Time
	pause time.Duration
	why   string
}

// hold notes that the content of a file could not be moved: others are, and this one is again
// after a pause.
func (c *Client) hold(name, hash, why string) {
	pause := firstHold
	if was, ok := c.held[name]; ok && was.hash == hash {
		pause = min(2*was.pause, lastHold)
	}
	if len(c.held) >= wire.MaxFiles {
		clear(c.held)
	}
	c.held[name] = hold{hash, c.o.Clock.Now().Add(pause), pause, why}
	c.r.Errors = append(c.r.Errors, name+": "+c.held[name].why)
}

// place gives a file the content that the server has, unless it was changed here since
// the scan.
func (c *Client) place(meta wire.Meta, content io.Reader) (did bool, err error) {
	k, in := c.state.of(meta.Path), &wire.Tracked{R: content}
	hash, err := c.tree.Put(meta.Path, in, k.Local.String(), meta.Hash)
	why, alone := place.Alone(err)
	switch {
	case in.Err != nil:
		return false, fmt.Errorf("read files from the server: %w", in.Err)
	case errors.Is(err, place.ErrChanged):
		if other := c.same(meta.Path); k.Local == none && other != "" {
			c.hold(meta.Path, meta.Hash, fmt.Sprintf("this folder takes its name for that of %s, from which it differs in case or spelling alone: rename one of them", other))
		}
		return false, nil
	case errors.Is(err, place.ErrInWay):
		c.r.Errors = append(c.r.Errors, meta.Path+": a file here has the name of a folder there, or a folder that of a file")
		return false, nil
	case core.KindOf(err) == core.Invalid: // it changed there while it was sent
		return false, nil
	case alone:
		c.hold(meta.Path, meta.Hash, "it cannot be written here: "+why.Error())
		return false, nil
	case err != nil:
		return false, &unwritten{fmt.Errorf("write %s: %w", meta.Path, err)}
	}
	delete(c.held, meta.Path)
	now := contentOf(hash)
	k.Local, k.Mark, k.Base, k.Remote = now, mark{}, now, now
	c.r.Fetched++
	return true, nil
}

// same returns the file that this directory has under another case, or spelling, of a name,
// where its file system takes both for one; "" for none.
func (c *Client) same(name string) string {
	it, err := c.tree.Top.Stat(name)
	if err != nil {
		return ""
	}
	fold := folded(name)
	for other, k := range c.state.Files {
		if other == name || k.Local == none || folded(other) != fold {
			continue
		}
		if info, err := c.tree.Top.Stat(other); err == nil && info.ID == it.ID {
			return other
		}
	}
	return ""
}

// later is the error of a server that asks to be asked later.
type later struct {
	after time.Duration
	error
}

func (l *later) Unwrap() error { return l.error }

// maxAfter limits how long a server has the client wait.
const maxAfter = time.Minute

// orLater returns err, or a *later where the server has set a time for the retry.
func orLater(res *http.Response, err error) error {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return err
	}
	s, bad := strconv.Atoi(res.Header.Get("Retry-After"))
	if bad != nil || s < 0 {
		return err
	}
	return &later{min(time.Duration(s)*time.Second, maxAfter), err}
}
