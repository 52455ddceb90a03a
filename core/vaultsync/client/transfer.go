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
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"gatehouse/core"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
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
	err = core.Errorf(kind, "the server answers %d %s: %s", res.StatusCode, core.CleanName(problem.Title), core.CleanName(problem.Detail))
	return nil, orLater(res, &answered{res.StatusCode, err})
}

// maxListing limits an answer, in bytes.
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

// sendBatch sends files by one request.
func (c *Client) sendBatch(ctx context.Context, names []string) (did bool, err error) {
	c.step("send")
	r, w := io.Pipe()
	b := sentBatch{Client: c, form: multipart.NewWriter(w), as: map[string]content{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, name := range names {
			if err := b.write(name); err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
		_ = w.CloseWithError(b.form.Close()) // nil is the end
	}()
	res, err := c.request(ctx, http.MethodPost, "/api/sync/push?device="+url.QueryEscape(c.o.Device), b.form.FormDataContentType(), r, "application/json")
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
		if hash, ok := b.as[done.Path]; ok {
			c.took(done, hash)
			did = true
		}
	}
	for _, text := range out.Errors {
		if b.hasChanged(text) {
			did = true // the next pass sends what it has now
			continue
		}
		c.r.Errors = append(c.r.Errors, text)
	}
	return did, nil
}

// A sentBatch is files that are being sent.
type sentBatch struct {
	*Client
	form    *multipart.Writer
	as      map[string]content // what was sent of each
	changed []string           // files that have changed since the scan, which the server refuses
}

// hasChanged reports whether an error of the server is about a file that has changed.
func (b *sentBatch) hasChanged(text string) bool {
	return slices.ContainsFunc(b.changed, func(name string) bool { return strings.HasPrefix(text, name+": ") })
}

// write writes a file to a push. One that is gone by now is left out.
func (b *sentBatch) write(name string) error {
	f, err := b.tree.Open(name)
	if err != nil || f == nil {
		return nil // the next pass finds what became of it
	}
	defer f.Close()
	k := b.state.Files[name]
	meta, err := json.Marshal(wire.Meta{Path: name, BaseHash: k.Base.String(), Hash: k.Local.String(), Size: k.size})
	if err != nil {
		return err
	}
	if err := b.form.WriteField("meta", string(meta)); err != nil {
		return err
	}
	part, err := b.form.CreateFormFile("content", "content")
	if err != nil {
		return err
	}
	h := wire.New()
	b.as[name] = k.Local
	_, err = io.Copy(io.MultiWriter(part, h), f)
	if wire.Sum(h) != k.Local.String() {
		b.changed = append(b.changed, name)
	}
	return err
}

// took notes that the server has what was sent, in the file itself or next to it.
func (c *Client) took(done wire.Done, sent content) {
	k := c.state.of(done.Path)
	k.Base, k.Remote = sent, contentOf(done.Hash)
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

// deleteRest is deleteOut for all files but those that have another name now under which the
// server does not have them yet.
func (c *Client) deleteRest(ctx context.Context, names []string) (did bool, err error) {
	return c.deleteOut(ctx, slices.DeleteFunc(names, func(name string) bool { return c.unsent[c.state.Files[name].Base] }))
}

// deleteOut deletes files on the server that were deleted here.
func (c *Client) deleteOut(ctx context.Context, names []string) (did bool, err error) {
	for part := range slices.Chunk(names, batchFiles) {
		var order struct {
			Device string      `json:"device"`
			Files  []wire.Meta `json:"files"`
		}
		order.Device = c.o.Device
		for _, name := range part {
			order.Files = append(order.Files, wire.Meta{Path: name, BaseHash: c.state.Files[name].Base.String()})
		}
		c.step("delete out")
		var out wire.Result
		if err := c.call(ctx, http.MethodDelete, "/api/sync/files", order, &out); err != nil {
			return did, err
		}
		c.step("deleted out")
		for _, done := range out.Files {
			c.state.of(done.Path).Remote = contentOf(done.Hash)
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
		err := c.tree.Delete(name, k.Local.String())
		if errors.Is(err, place.ErrChanged) {
			continue // changed in this moment: the next pass sends it
		}
		if err != nil {
			c.r.Errors = append(c.r.Errors, name+": "+err.Error())
			continue
		}
		k.Local, k.Mark, did = none, mark{}, true
		c.r.DeletedHere++
	}
	return did, nil
}

// saveEvery is how often the state is saved while files are sent or arrive: it has all files,
// so that saving it behind each request would take longer than the requests.
const saveEvery = 5 * time.Second

// fetchBatch fetches files by one request.
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
			if !meta.Missing { // a missing one was deleted in this moment: the next listing has it
				c.hold(meta.Path, c.state.of(meta.Path).Remote.String(), "the server does not send it: "+core.CutRunes(meta.Error, 300))
			}
			continue
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
