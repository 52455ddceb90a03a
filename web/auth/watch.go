package auth

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	lookEvery = 15 * time.Second // how often Watch checks
	lookWait  = 5 * time.Second  // for one check of the store
)

// A watch looks for all streams at once whether their callers would still be
// let in, with one goroutine, which is there while a stream is.
type watch struct {
	door *Door

	mu    sync.Mutex
	all   map[*watched]struct{} // bounded by the open streams
	going bool
	empty chan struct{} // holds a token when the last has gone
}

// A watched caller came by a key or, where key is "", by an admin session.
type watched struct {
	key  string
	sum  string // the digest of the key's secret that was sent
	user int64
	r    *http.Request // with its address and the session's cookie alone
	gone func()
}

// Watch has gone called, once, when the caller of r would not be let in any more: for what
// outlives a key or a session. It is checked every quarter of a minute, in one query for all
// keys, until forget is called. It prolongs nothing but the key's last use. When the store
// can't be asked no one is gone: a fault is no revocation.
func (d *Door) Watch(r *http.Request, gone func()) (forget func()) {
	p, known := From(r.Context())
	if !known || p.Key == LocalKey {
		return func() {}
	}
	w := &watched{key: p.Key, sum: p.sum, user: p.User, gone: gone}
	if p.Session {
		w.key, w.r = "", &http.Request{Host: r.Host, Header: http.Header{"Cookie": r.Header["Cookie"]}}
	}
	return d.watch.add(w)
}

func (x *watch) add(w *watched) (forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[w] = struct{}{}
	if !x.going {
		x.going = true
		go x.run()
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if delete(x.all, w); len(x.all) == 0 {
			select {
			case x.empty <- struct{}{}:
			default:
			}
		}
	}
}

func (x *watch) run() {
	for x.more() {
		select {
		case <-x.door.o.Clock.After(lookEvery):
			x.look()
		case <-x.empty:
		}
	}
}

func (x *watch) more() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.going = len(x.all) > 0
	return x.going
}

// Look checks all streams now: when sessions or keys have ended.
func (d *Door) Look() { d.watch.look() }

// look notifies those without access.
func (x *watch) look() {
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	defer cancel()
	x.mu.Lock()
	all := make([]*watched, 0, len(x.all))
	for w := range x.all {
		all = append(all, w)
	}
	x.mu.Unlock()
	keys, failed := x.door.keys.live(ctx, all)
	sessions := map[string]bool{} // by cookie, as far as asked
	for _, w := range all {
		in := failed != nil
		switch {
		case w.r == nil:
			in = in || keys[w]
		default:
			cookie := w.r.Header.Get("Cookie")
			known, asked := sessions[cookie]
			if !asked {
				known = x.session(ctx, w)
				sessions[cookie] = known
			}
			in = known
		}
		if !in {
			w.gone()
		}
	}
}

func (x *watch) session(ctx context.Context, w *watched) bool {
	_, v, ok, err := x.door.admins.load(w.r.WithContext(ctx))
	return err != nil || ok && v.User == w.user
}

// live returns which of all have access by key now. Their keys count as used.
func (k *Keys) live(ctx context.Context, all []*watched) (map[*watched]bool, error) {
	var rs []keyRecord
	if err := k.db.Select(ctx, &rs, keyColumns); err != nil { // at most MaxKeys
		return nil, err
	}
	now, known, live := k.clock.Now(), make(map[string]keyRecord, len(rs)), make(map[*watched]bool, len(all))
	for _, r := range rs {
		known[r.ID] = r
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range all {
		if live[w] = known[w.key].opens(w.sum, now); live[w] {
			k.use(w.key, now)
		}
	}
	return live, nil
}

// use notes that a key was used; k.mu is held.
func (k *Keys) use(id string, at time.Time) {
	if _, known := k.used[id]; known || len(k.used) < maxUsed {
		k.used[id] = at
	}
}
