// Package proof makes and checks what a browser brings back to show what it has proven before: that
// the password of an account was entered (Ticket), or that it has signed in (Device). A proof ends with
// its time and with the password. Its key is in no copy of the database: a backup has all that is
// stored of an account, and makes no proof.
package proof

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

// A Key signs the proofs (sealed.Box).
type Key interface {
	Sign(text string) string
	Signed(text, mac string) bool
}

// A Kind is what a proof is of. One of a kind is none of another.
type Kind struct {
	name string
	life time.Duration
}

// Kinds of proofs, with how long they are valid.
var (
	Ticket = Kind{name: "code", life: 5 * time.Minute}
	Device = Kind{name: "device", life: 180 * 24 * time.Hour}
)

// Life returns how long a proof of this kind is valid.
func (k Kind) Life() time.Duration { return k.life }

// most bounds a proof, in bytes.
const most = 200

// Proofs are safe for concurrent use.
type Proofs struct {
	key   Key
	clock core.Clock
}

// New returns proofs of key; of a random one, so that they end with this process, for nil.
func New(key Key, clock core.Clock) *Proofs {
	if key == nil {
		key = random()
	}
	return &Proofs{key: key, clock: clock}
}

// Make returns a proof for the account of user, whose password has the stored hash encoded.
func (p *Proofs) Make(k Kind, user int64, encoded string) string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	c := Claim{User: user, said: fmt.Sprintf("%s.%d.%d.%s", k.name, user, p.clock.Now().Add(k.life).Unix(), base64.RawURLEncoding.EncodeToString(id))}
	return c.said + "~" + p.key.Sign(c.signed(encoded))
}

// A Claim is what a proof states. Until Proves has checked it anyone may have written it.
type Claim struct {
	User int64
	ID   string // random, of this proof
	said string
	mac  string
}

// signed is the text that is signed.
func (c Claim) signed(encoded string) string { return "sign-in\x00" + c.said + "\x00" + encoded }

// Read returns the claim of a proof of this kind; false for other text, and for one that has
// expired or lasts longer than its kind does.
func (p *Proofs) Read(k Kind, proof string) (c Claim, ok bool) {
	c.said, c.mac, _ = strings.Cut(proof, "~")
	parts := strings.Split(c.said, ".") // kind, user, end, id
	if len(proof) > most || len(parts) != 4 || parts[0] != k.name {
		return Claim{}, false
	}
	user, err1 := strconv.ParseInt(parts[1], 10, 64)
	end, err2 := strconv.ParseInt(parts[2], 10, 64)
	now := p.clock.Now()
	if err1 != nil || err2 != nil || !now.Before(time.Unix(end, 0)) || end > now.Add(k.life).Unix() {
		return Claim{}, false
	}
	c.User, c.ID = user, parts[3]
	return c, true
}

// Proves reports whether c was made here for an account whose password has the stored hash encoded.
func (p *Proofs) Proves(c Claim, encoded string) bool { return p.key.Signed(c.signed(encoded), c.mac) }

// secret is a Key of this process.
type secret [32]byte

func random() *secret {
	var s secret
	_, _ = rand.Read(s[:]) // never fails
	return &s
}

func (s *secret) Sign(text string) string {
	m := hmac.New(sha256.New, s[:])
	_, _ = m.Write([]byte(text)) // never fails
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (s *secret) Signed(text, mac string) bool { return hmac.Equal([]byte(mac), []byte(s.Sign(text))) }
