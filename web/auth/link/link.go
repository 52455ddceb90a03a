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

// Take reports whether token is the link's, which is used up then.
func (l *Link) Take(token string, now time.Time) bool {
	sum := sha256.Sum256([]byte(token))
	l.mu.Lock()
	defer l.mu.Unlock()
	if subtle.ConstantTimeCompare(sum[:], l.sum[:]) != 1 || !now.Before(l.until) {
		return false
	}
	l.until = time.Time{}
	return true
}
