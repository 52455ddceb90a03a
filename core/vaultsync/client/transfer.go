package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"gatehouse/core"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// Sizes of one request.
const (
	batchFiles = 200
	batchBytes = 64 << 20
)

// request makes a request. An answer that is no 200 is an error.
func (c *Client) request(ctx context.Context, method, at, media string, body io.Reader, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.o.Server+at, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.o.Key)
	req.Header.Set("Accept", accept)
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	var problem struct{ Title, Detail string }
	_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&problem)
	kind := core.Busy
	if res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests {
		kind = core.Denied
	}
	return nil, orLater(res, core.Errorf(kind, "the server answers %d %s: %s", res.StatusCode, core.CleanName(problem.Title), core.CleanName(problem.Detail)))
}

// maxListing limits an answer of JSON, in bytes.
const maxListing = 512 << 20

// call makes a request with JSON and decodes the answer.
func (c *Client) call(ctx context.Context, method, at string, in, out any) error {
	var body io.Reader
	media := ""
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body, media = bytes.NewReader(data), "application/json"
	}
	res, err := c.request(ctx, method, at, media, body, "application/json")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxListing)).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

// list finds out what the server has.
func (c *Client) list(ctx context.Context) error {
	since := c.state.Cursor
	for {
		var l wire.Listing
		q := url.Values{"since": {since}, "include_binary": {"true"}}
		if err := c.call(ctx, http.MethodGet, "/api/sync/changes?"+q.Encode(), nil, &l); err != nil {
			return err
		}
		c.apply(&l, behind(l.Cursor, c.state.Cursor))
		if l.Complete || c.digest() == l.Digest {
			c.state.Cursor = l.Cursor
			return nil
		}
		since = "" // what this device knows is not what the server had: compare all
	}
}

// behind reports whether a cursor is before one that the server gave earlier: its database
// was restored from a backup.
func behind(now, was string) bool {
	n, err1 := strconv.ParseInt(now, 10, 64)
	w, err2 := strconv.ParseInt(was, 10, 64)
	return errors.Join(err1, err2) == nil && n < w
}

// apply notes a listing. If the server was restored, what differs there is older: it does
// not replace what was edited since, both are kept.
func (c *Client) apply(l *wire.Listing, restored bool) {
	deleted := map[string]bool{} // at most those of the listing
	for _, f := range l.Deleted {
		deleted[f.Path] = true
	}
	there := map[string]string{} // at most wire.MaxFiles
	for _, f := range l.Files {
		if wire.Synced(f.Path) && wire.ValidHash(f.Hash) {
			there[f.Path] = f.Hash
			c.state.of(f.Path)
		}
	}
	for name, k := range c.state.Files {
		switch hash, listed := there[name]; {
		case listed:
			k.Remote = hash
		case deleted[name]:
			k.Remote = ""
		case l.Complete:
			// No one deleted it as far as the server knows: it has lost it, or this key may not
			// see it any more. It stays here.
			k.Remote, k.Base = "", ""
		}
		if restored && k.Remote != k.Base {
			k.Base = ""
		}
	}
}

// digest returns the digest of what the server has, as far as this device knows.
func (c *Client) digest() string {
	hashes := map[string]string{} // at most wire.MaxFiles
	for name, k := range c.state.Files {
		if k.Remote != "" {
			hashes[name] = k.Remote
		}
	}
	return wire.Digest(hashes)
}

// send sends files with what they were edited from.
func (c *Client) send(ctx context.Context, names []string) (did bool, err error) {
	for len(names) > 0 {
		n, size := 0, int64(0)
		for ; n < len(names) && n < batchFiles && (n == 0 || size < batchBytes); n++ {
			size += c.local.Files[names[n]].Size
		}
		c.o.Progress(fmt.Sprintf("sending %d of %d files", n, len(names)))
		some, err := c.sendBatch(ctx, names[:n])
		did = did || some
		if names = names[n:]; len(names) > 0 && err == nil { // else the caller saves
			err = c.save()
		}
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

func (c *Client) sendBatch(ctx context.Context, names []string) (did bool, err error) {
	c.step("send")
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	sent := map[string]string{} // what was sent of each of names
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, name := range names {
			if err := c.write(form, name, sent); err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
		_ = w.CloseWithError(form.Close()) // nil is the end
	}()
	res, err := c.request(ctx, http.MethodPost, "/api/sync/push?device="+url.QueryEscape(c.o.Device), form.FormDataContentType(), r, "application/json")
	_ = r.Close()
	<-ended
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	var out wire.Result
	if err := json.NewDecoder(io.LimitReader(res.Body, maxListing)).Decode(&out); err != nil {
		return false, fmt.Errorf("read the server's answer: %w", err)
	}
	c.step("sent")
	for _, done := range out.Files {
		if hash, ok := sent[done.Path]; ok {
			c.took(done, hash)
			did = true
		}
	}
	c.r.Errors = append(c.r.Errors, out.Errors...)
	return did, nil
}

// write writes a file to a push. One that is gone by now is left out.
func (c *Client) write(form *multipart.Writer, name string, sent map[string]string) error {
	f, err := c.tree.Open(name)
	if err != nil || f == nil {
		return nil // the next pass finds what became of it
	}
	defer f.Close()
	k := c.state.Files[name]
	meta, err := json.Marshal(wire.Meta{Path: name, BaseHash: k.Base, Hash: k.Local, Size: c.local.Files[name].Size})
	if err != nil {
		return err
	}
	if err := form.WriteField("meta", string(meta)); err != nil {
		return err
	}
	part, err := form.CreateFormFile("content", "content")
	if err == nil {
		sent[name] = k.Local
		_, err = io.Copy(part, f)
	}
	return err
}

// took notes that the server has what was sent, in the file itself or next to it.
func (c *Client) took(done wire.Done, sent string) {
	k := c.state.of(done.Path)
	k.Base, k.Remote = sent, done.Hash
	switch done.Outcome {
	case wire.Merged:
		c.r.Merged = append(c.r.Merged, done)
	case wire.Copied:
		c.r.Copies = append(c.r.Copies, done)
	}
	c.r.Sent++
}

// respelled is deleteOut for files that have another spelling of their name now. On a
// server whose file system takes both for one, a later deletion would be of the new file.
func (c *Client) respelled(ctx context.Context, names []string) (did bool, err error) {
	if len(names) == 0 {
		return false, nil
	}
	now := map[string]bool{} // at most wire.MaxFiles
	for _, name := range c.todo(send) {
		now[folded(name)] = true
	}
	return c.deleteOut(ctx, slices.DeleteFunc(names, func(name string) bool { return !now[folded(name)] }))
}

func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }

// deleteOut deletes files on the server that were deleted here.
func (c *Client) deleteOut(ctx context.Context, names []string) (did bool, err error) {
	for part := range slices.Chunk(names, batchFiles) {
		var order struct {
			Device string      `json:"device"`
			Files  []wire.Meta `json:"files"`
		}
		order.Device = c.o.Device
		for _, name := range part {
			order.Files = append(order.Files, wire.Meta{Path: name, BaseHash: c.state.Files[name].Base})
		}
		c.step("delete out")
		var out wire.Result
		if err := c.call(ctx, http.MethodDelete, "/api/sync/files", order, &out); err != nil {
			return did, err
		}
		c.step("deleted out")
		for _, done := range out.Files {
			c.state.of(done.Path).Remote = done.Hash
			if did = true; done.Outcome == wire.Deleted {
				c.r.DeletedOut++
			}
		}
		c.r.Errors = append(c.r.Errors, out.Errors...)
	}
	return did, nil
}

// deleteHere deletes files here that were deleted on the server.
func (c *Client) deleteHere(_ context.Context, names []string) (did bool, err error) {
	for _, name := range names {
		k := c.state.Files[name]
		err := c.tree.Delete(name, k.Local)
		if errors.Is(err, place.ErrChanged) {
			continue // changed in this moment: the next pass sends it
		}
		if err != nil {
			c.r.Errors = append(c.r.Errors, name+": "+err.Error())
			continue
		}
		k.Local, k.Mark, did = "", "", true
		c.r.DeletedHere++
	}
	return did, nil
}

// saveEvery is how often the state is saved while files arrive.
const saveEvery = 5 * time.Second

// fetch fetches files.
func (c *Client) fetch(ctx context.Context, names []string) (did bool, err error) {
	saved := c.o.Clock.Now()
	for part := range slices.Chunk(names, batchFiles) {
		c.o.Progress(fmt.Sprintf("fetching %d of %d files", len(part), len(names)))
		some, err := c.fetchBatch(ctx, part)
		did = did || some
		if c.o.Clock.Now().Sub(saved).Abs() > saveEvery || err != nil {
			saved, err = c.o.Clock.Now(), errors.Join(err, c.save())
		}
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

func (c *Client) fetchBatch(ctx context.Context, names []string) (did bool, err error) {
	data, err := json.Marshal(wire.Pull{Paths: names})
	if err != nil {
		return false, err
	}
	res, err := c.request(ctx, http.MethodPost, "/api/sync/pull", "application/json", bytes.NewReader(data), "multipart/mixed")
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	media, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		return false, fmt.Errorf("the server answers with %q, not with files", core.CutRunes(media, 60))
	}
	form := multipart.NewReader(res.Body, params["boundary"])
	for {
		meta, content, err := nextFile(form)
		if err == io.EOF { // of the form: a stream that was cut off wraps it
			return did, nil
		}
		if err != nil {
			return did, fmt.Errorf("read files from the server: %w", err)
		}
		if !slices.Contains(names, meta.Path) {
			return did, fmt.Errorf("the server sends %q, which was not asked for", core.CutRunes(meta.Path, 100))
		}
		if meta.Error != "" {
			continue // deleted in this moment: the next listing has it
		}
		some, err := c.place(meta, content)
		did = did || some
		if err != nil {
			return did, err
		}
	}
}

// nextFile returns the next file of a stream; io.EOF at its end.
func nextFile(form *multipart.Reader) (meta wire.Meta, content io.Reader, err error) {
	part, err := form.NextRawPart()
	if err != nil {
		return meta, nil, err
	}
	if err := json.NewDecoder(io.LimitReader(part, 1<<20)).Decode(&meta); err != nil || meta.Error != "" {
		return meta, nil, err
	}
	if content, err = form.NextRawPart(); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return meta, content, err
}
