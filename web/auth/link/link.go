// Package link keeps the one link that signs in to the panel without a password.
package link

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// Life is how long a link signs in.
const Life = 15 * time.Minute

// A Link works once. Only the sum of its token is kept, in memory. The zero value is
// none. Its methods may be called concurrently.
type Link struct {
	mu    sync.Mutex
	sum   [sha256.Size]byte
	until time.Time // zero: there is none
}

// Set makes token the link's, for Life, in place of the one before.
func (l *Link) Set(token string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum, l.until = sha256.Sum256([]byte(token)), now.Add(Life)
}

// Use runs f where token is the link's, and reports whether it is. The link is used up once f returns
// nil. Others wait until then, so that f succeeds at most once.
func (l *Link) Use(token string, now time.Time, f func() error) (ok bool, err error) {
	sum := sha256.Sum256([]byte(token))
	l.mu.Lock()
	defer l.mu.Unlock()
	if subtle.ConstantTimeCompare(sum[:], l.sum[:]) != 1 || !now.Before(l.until) {
		return false, nil
	}
	if err = f(); err == nil {
		l.until = time.Time{}
	}
	return true, err
}
