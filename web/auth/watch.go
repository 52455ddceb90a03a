package auth

import (
	"context"
	"net/http"
	"time"

	"gatehouse/web/auth/watch"
)

// Watch has gone called, once, when the caller of r would not be let in any more: for what
// outlives a key or a session. It is checked every quarter of a minute, in one query for all
// keys, until forget is called. It prolongs nothing but the key's last use. When the store
// can't be asked no one is gone: a fault is no revocation.
func (d *Door) Watch(r *http.Request, gone func()) (forget func()) {
	p, known := From(r.Context())
	if !known || p.Key == LocalKey {
		return func() {}
	}
	c := &watch.Caller{Key: p.Key, Sum: p.sum, User: p.User, Gone: gone}
	if p.Session {
		c.Key, c.R = "", &http.Request{Host: r.Host, Header: http.Header{"Cookie": r.Header["Cookie"]}}
	}
	return d.watch.Add(c)
}

// Look checks all streams now: when sessions or keys have ended.
func (d *Door) Look() { d.watch.Look() }

// letIn returns the callers of all that would be let in now.
func (d *Door) letIn(ctx context.Context, all []*watch.Caller) map[*watch.Caller]bool {
	in, failed := d.keys.live(ctx, all)
	if failed != nil {
		in = make(map[*watch.Caller]bool, len(all))
	}
	sessions := map[string]bool{} // by cookie, as far as asked
	for _, c := range all {
		if c.R == nil {
			in[c] = in[c] || failed != nil
			continue
		}
		cookie := c.R.Header.Get("Cookie")
		known, asked := sessions[cookie]
		if !asked {
			_, v, ok, err := d.admins.load(c.R.WithContext(ctx))
			known = err != nil || ok && v.User == c.User
			sessions[cookie] = known
		}
		in[c] = known
	}
	return in
}

// live returns the callers of all that have access by key now. Their keys count as used.
func (k *Keys) live(ctx context.Context, all []*watch.Caller) (map[*watch.Caller]bool, error) {
	var rs []keyRecord
	if err := k.db.Select(ctx, &rs, keyColumns); err != nil { // at most MaxKeys
		return nil, err
	}
	now, known, live := k.clock.Now(), make(map[string]keyRecord, len(rs)), make(map[*watch.Caller]bool, len(all))
	for _, r := range rs {
		known[r.ID] = r
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range all {
		if live[c] = known[c.Key].opens(c.Sum, now); live[c] {
			k.use(c.Key, now)
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
