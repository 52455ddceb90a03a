package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
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
	MinPassword = 12
	MaxPassword = 256
)

// A lane is one of the two queues in front of the hasher.
type lane int

const (
	laneUnknown lane = iota // anyone may fill it
	laneKnown               // of known devices and of who is signed in: it overtakes the other
)

// fullWait is what a sign-in is asked to wait that finds its lane full.
const fullWait = 2 * time.Second

// A hasher makes one hash at a time.
type hasher struct {
	memory  uint32           // KiB of each hash
	waiting [2]chan struct{} // by lane: at most maxHashing wait
	first   chan struct{}    // of those on laneUnknown one waits for turn
	turn    chan struct{}    // one holds it
}

func newHasher() *hasher {
	return &hasher{memory: argonMemory, waiting: [2]chan struct{}{make(chan struct{}, maxHashing), make(chan struct{}, maxHashing)},
		first: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
}

// alone runs f when no other sign-in hashes. A full lane is a Refusal with the time to wait.
// On laneKnown at most two sign-ins of unknown devices are in front of f.
func (h *hasher) alone(ctx context.Context, l lane, f func() error) error {
	select {
	case h.waiting[l] <- struct{}{}:
		defer func() { <-h.waiting[l] }()
	default:
		return refuse("too-many-requests", fullWait, "too many sign-ins at once; try again in a moment")
	}
	queues := []chan struct{}{h.first, h.turn}
	if l == laneKnown {
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

func (h *hasher) hash(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails since Go 1.24
	key := argon2.IDKey([]byte(password), salt, argonTime, h.memory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// verify reports whether password made encoded. A damaged hash fits nothing.
func verify(encoded, password string) bool {
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

// nobody returns a hash to verify against when the account doesn't exist, so
// that the duration reveals nothing. No one knows its password.
func (h *hasher) nobody() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, argonTime, argonThreads,
		strings.Repeat("A", 22), strings.Repeat("A", 43))
}

// alphabet of one-time passwords: no letters that look alike.
const alphabet = "abcdefghjkmnpqrstuvwxyz23456789"

// oneTimePassword has 16 characters, 79 bits, in groups of four.
func oneTimePassword() string {
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

func checkPassword(p string) error {
	switch {
	case len(p) < MinPassword:
		return core.Errorf(core.Invalid, "the password needs at least %d characters", MinPassword)
	case len(p) > MaxPassword:
		return core.Errorf(core.Invalid, "the password may have at most %d bytes", MaxPassword)
	}
	return nil
}
