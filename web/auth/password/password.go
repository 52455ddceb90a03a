// Package password makes and checks passwords: argon2id hashes, one at a time, and one-time passwords.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"gatehouse/core"
)

// Parameters of argon2id: OWASP's password storage cheat sheet, 19 MiB and two
// passes. The memory is why only one hash is made at a time.
const (
	argonMemory  = 19 << 10 // KiB
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
)

// maxHashing bounds the sign-ins on each lane.
const maxHashing = 8

// Bounds of a password, in bytes.
const (
	Min = 12
	Max = 256
)

// A Lane is one of the two queues in front of the hasher.
type Lane int

const (
	Unknown Lane = iota // anyone may fill it
	Known               // of known devices and of who is signed in: it overtakes the other
)

// ErrFull is returned by Alone when the lane is full; FullWait is how long the caller
// is asked to wait then.
var ErrFull = errors.New("too many sign-ins at once")

// FullWait: see ErrFull.
const FullWait = 2 * time.Second

// A Hasher makes one hash at a time.
type Hasher struct {
	Memory  uint32           // KiB of each hash; set before use
	waiting [2]chan struct{} // by lane: at most maxHashing wait
	first   chan struct{}    // of those on Unknown one waits for turn
	turn    chan struct{}    // one holds it
}

// New returns a Hasher at the real cost.
func New() *Hasher {
	return &Hasher{Memory: argonMemory, waiting: [2]chan struct{}{make(chan struct{}, maxHashing), make(chan struct{}, maxHashing)},
		first: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
}

// alone runs f when no other sign-in hashes. A full Lane is a Refusal with the time to wait.
// On Known at most two sign-ins of unknown devices are in front of f.
func (h *Hasher) Alone(ctx context.Context, l Lane, f func() error) error {
	select {
	case h.waiting[l] <- struct{}{}:
		defer func() { <-h.waiting[l] }()
	default:
		return ErrFull
	}
	queues := []chan struct{}{h.first, h.turn}
	if l == Known {
		queues = queues[1:]
	}
	for _, q := range queues {
		select {
		case q <- struct{}{}:
			defer func() { <-q }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer debug.FreeOSMemory() // sign-ins are rare: give the 19 MiB back at once
	return f()
}

// Hash returns the hash that is stored for a password. Call it within Alone.
func (h *Hasher) Hash(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails since Go 1.24
	key := argon2.IDKey([]byte(password), salt, argonTime, h.Memory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.Memory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// Verify reports whether password made encoded. A damaged hash fits nothing.
func Verify(encoded, password string) bool {
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var version int
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil ||
		memory > 256<<10 || passes == 0 || passes > 16 || threads == 0 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) < 16 || len(want) > 64 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// Nobody returns a hash to verify against when the account doesn't exist, so
// that the duration reveals nothing. No one knows its password.
func (h *Hasher) Nobody() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.Memory, argonTime, argonThreads,
		strings.Repeat("A", 22), strings.Repeat("A", 43))
}

// alphabet of one-time passwords: no letters that look alike.
const alphabet = "abcdefghjkmnpqrstuvwxyz23456789"

// OneTime returns a new one-time password: it has 16 characters, 79 bits, in groups of four.
func OneTime() string {
	var b strings.Builder
	for b.Len() < 19 {
		if b.Len()%5 == 4 {
			b.WriteByte('-')
			continue
		}
		var c [1]byte
		_, _ = rand.Read(c[:])
		if int(c[0]) < 256/len(alphabet)*len(alphabet) { // no letter likelier than another
			b.WriteByte(alphabet[int(c[0])%len(alphabet)])
		}
	}
	return b.String()
}

// Check returns why p cannot be a password, as core.Invalid.
func Check(p string) error {
	switch {
	case len(p) < Min:
		return core.Errorf(core.Invalid, "the password needs at least %d characters", Min)
	case len(p) > Max:
		return core.Errorf(core.Invalid, "the password may have at most %d bytes", Max)
	}
	return nil
}
