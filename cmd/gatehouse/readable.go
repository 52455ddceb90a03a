package main

import (
	"sync"
	"time"

	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/vault"
)

// readable decides which files of the vault prompts, answers and local/quote may
// show a user. It is asked for every file, so it reads .parachuteignore again at
// most once a second. It is safe for concurrent use.
type readable struct {
	vault    *vault.Vault
	clock    core.Clock
	settings *live.Settings

	mu    sync.Mutex
	at    time.Time // of lines
	lines permission.Ignore
}

// forget has mayRead read .parachuteignore again.
func (r *readable) forget() {
	r.mu.Lock()
	r.at = time.Time{}
	r.mu.Unlock()
}

// mayRead reports whether the user may read the path at this trust.
func (r *readable) mayRead(trust core.Trust, user int64, path string) bool {
	return r.may(trust, user, path, false)
}

// may reports whether the user may read the path at this trust, or write it.
func (r *readable) may(trust core.Trust, user int64, path string, write bool) bool {
	r.mu.Lock()
	if now := r.clock.Now(); r.at.IsZero() || now.Sub(r.at).Abs() > time.Second {
		r.lines, r.at = permission.ParseIgnore(permission.IgnoreLines(r.vault)), now
	}
	lines := r.lines
	r.mu.Unlock()
	mayRead, mayWrite := permission.Profile{User: user, Trust: trust, GuestRead: r.settings.Now().GuestRead}.Within(lines)
	if write {
		return mayWrite(path)
	}
	return mayRead(path)
}
