// Package entry has para-IDs as words: what an id is, and what has one. The registry is
// package paraid.
package entry

import (
	"crypto/rand"
	"time"

	"gatehouse/core"
)

// Types of entries.
const (
	Journal = "journal"  // an entry of a day file
	Chat    = "chat"     // a conversation; its path is the session's id
	ChatLog = "chat-log" // an entry of a chat log
)

// Length is the number of characters of new ids.
const Length = 12

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// Random returns a new id that no registry has been asked about. Among a billion ids
// the chance that it is taken is one in four billion; Mint checks it.
func Random() string {
	// Bytes from 252 on would make the first characters of the alphabet more frequent.
	const even = 256 - 256%len(alphabet)
	id, buf := make([]byte, 0, Length), make([]byte, 2*Length)
	for len(id) < Length {
		_, _ = rand.Read(buf) // never fails
		for _, b := range buf {
			if int(b) < even && len(id) < Length {
				id = append(id, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(id)
}

// Valid reports whether id is a para-ID: 12 of a-z0-9, or 6 or 8 of them, as older
// versions of the original system made them.
func Valid(id string) bool {
	if len(id) != Length && len(id) != 8 && len(id) != 6 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// An Entry is one row of the registry.
type Entry struct {
	ID      string
	Type    string
	Path    string // of the file, relative to the vault; of a chat the session's id
	User    int64  // whose it is
	Created time.Time
}

// Limits of an Entry, in bytes.
const (
	maxType = 32
	MaxPath = 1024
)

// keyless is the user of a program of this machine without a key (auth.LocalUser).
const keyless = -1

// Check returns core.Invalid for what the registry does not take.
func (e Entry) Check() error {
	if !Valid(e.ID) || e.Type == "" || len(e.Type) > maxType || e.Path == "" || len(e.Path) > MaxPath || e.User < keyless {
		return core.Errorf(core.Invalid, "%q is not an entry of the registry of ids", e.ID)
	}
	return nil
}
