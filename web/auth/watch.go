package auth

import (
	"context"
	"net/http"
	"time"

	"gatehouse/web/auth/watch"
)

// Watch has gone called once when the caller of r would not be let in any more, or its key has
// none left of the scopes that r has (Narrow leaves those of which one is enough): for what
// outlives a key or a session. It is checked when a key changes and every quarter of a minute, in
// one query for all keys, until forget is called. It prolongs nothing but the key's last use. When
// the store can't be asked no one is gone: a fault is no revocation.
func (a *Authenticator) Watch(r *http.Request, gone func()) (forget func()) {
	p, known := From(r.Context())
	if !known || p.Key == LocalKey {
		return func() {}
	}
	c := &watch.Caller{Key: p.Key, Sum: p.sum, User: p.User, Scopes: p.Scopes, Gone: gone}
	if p.Session {
		c.Key, c.R = "", &http.Request{Host: r.Host, Header: http.Header{"Cookie": r.Header["Cookie"]}}
	}
	return a.watch.Add(c)
}

// Look checks all streams now: when sessions or keys have ended.
func (a *Authenticator) Look() { a.watch.Look() }

// signedIn reports whether the session of c is valid now, and still its user's.
func (a *Authenticator) signedIn(ctx context.Context, c *watch.Caller) (bool, error) {
	_, v, ok, err := a.admins.load(c.R.WithContext(ctx))
	return ok && v.User == c.User, err
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
		if live[c] = known[c.Key].opens(c.Sum, now) && c.Keeps(known[c.Key].Scopes); live[c] {
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
