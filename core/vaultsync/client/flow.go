package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// Sizes of one request.
const (
	batchFiles = 200
	batchBytes = 64 << 20
	large      = 1 << 20 // a file is sent behind those with fewer of this
)

// maxFailed is how many requests for one file may fail one behind the other: then the others
// wait for the next run.
const maxFailed = 3

// A flow moves files one way. One that does not arrive, such as a large one on a bad line, keeps
// no other from it: it is held.
type flow struct {
	*Client
	do     action
	doing  string
	failed int // requests for one file each, one behind the other
	wait   int // files that have to wait for the next run since others failed
	run    func(ctx context.Context, names []string) (did bool, err error)
}

// send sends files with what they were edited from.
func (c *Client) send(ctx context.Context, names []string) (did bool, err error) {
	return (&flow{Client: c, do: send, doing: "sending", run: c.sendBatch}).all(ctx, names)
}

// fetch fetches files.
func (c *Client) fetch(ctx context.Context, names []string) (did bool, err error) {
	return (&flow{Client: c, do: fetch, doing: "fetching", run: c.fetchBatch}).all(ctx, names)
}

// all moves the files that are not held.
func (f *flow) all(ctx context.Context, names []string) (did bool, err error) {
	names = slices.DeleteFunc(names, f.isHeld)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(f.size(a)/large, f.size(b)/large) })
	saved := f.o.Clock.Now()
	for len(names) > 0 && f.failed < maxFailed {
		n := f.batch(names)
		f.o.Progress(fmt.Sprintf("%s %d of %d files", f.doing, n, len(names)))
		some, err := f.some(ctx, names[:n])
		did, names = did || some, names[n:]
		if f.o.Clock.Now().Sub(saved).Abs() > saveEvery || err != nil {
			saved, err = f.o.Clock.Now(), errors.Join(err, f.save())
		}
		if err != nil {
			return did, err
		}
	}
	for _, name := range names {
		f.waits(name)
	}
	if f.wait > 0 {
		f.r.Errors = append(f.r.Errors, fmt.Sprintf("%d files wait, since those before them fail", f.wait))
	}
	return did, nil
}

// batch returns how many of the files are moved by one request: a large one is alone.
func (f *flow) batch(names []string) (n int) {
	for size := int64(0); n < len(names) && n < batchFiles; n++ {
		size += f.size(names[n])
		if n > 0 && size > batchBytes {
			break
		}
	}
	return n
}

// size returns the size of a file, 0 where that is not known.
func (f *flow) size(name string) int64 {
	if f.do == send {
		return f.state.Files[name].size
	}
	return 0
}

// some moves files by one request; if that fails, each that has not arrived by one of its own.
func (f *flow) some(ctx context.Context, names []string) (did bool, err error) {
	did, err = f.run(ctx, names)
	if err == nil {
		f.failed = 0
		return did, nil
	}
	if !ofFiles(ctx, err) {
		return did, err
	}
	if len(names) == 1 {
		f.hold(names[0], f.wanted(names[0]), "it does not arrive: "+err.Error())
		f.failed++
		f.stays(names[0])
		return did, nil
	}
	for _, name := range names {
		if f.failed >= maxFailed {
			f.waits(name)
			continue
		}
		if f.state.Files[name] == nil || f.decide(name) != f.do {
			continue
		}
		one, err := f.some(ctx, []string{name})
		if did = did || one; err != nil {
			return did, err
		}
	}
	return did, nil
}

// wanted returns the content of a file that is to be moved.
func (f *flow) wanted(name string) string {
	if f.do == send {
		return f.state.Files[name].Local.String()
	}
	return f.state.Files[name].Remote.String()
}

// isHeld reports whether a file is held now, and notes it in the report.
func (f *flow) isHeld(name string) bool {
	h, ok := f.held[name]
	if !ok || h.hash != f.wanted(name) || !f.o.Clock.Now().Before(h.until) {
		return false
	}
	f.r.Errors = append(f.r.Errors, name+": "+h.why)
	f.stays(name)
	return true
}

// waits notes that a file was not tried.
func (f *flow) waits(name string) {
	f.wait++
	f.stays(name)
}

// stays notes that the server does not have a file yet.
func (f *flow) stays(name string) {
	if k := f.state.Files[name]; f.do == send && k != nil {
		f.unsent[k.Local] = true
	}
}

// ofFiles reports whether the failure of a request may be due to a file of it, and not to the
// key, to the server, to this directory, or to who ended it.
func ofFiles(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if _, ok := errors.AsType[*later](err); ok {
		return false
	}
	if _, ok := errors.AsType[*unwritten](err); ok {
		return false
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	if a, ok := errors.AsType[*answered](err); ok {
		switch a.status {
		case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
			return true
		}
		return false
	}
	return true
}

// answered is the error of an answer that is no 200.
type answered struct {
	status int
	error
}

func (a *answered) Unwrap() error { return a.error }

// unwritten is the error of a directory in which nothing can be written.
type unwritten struct{ error }

func (u *unwritten) Unwrap() error { return u.error }
