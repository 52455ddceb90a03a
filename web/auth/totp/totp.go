// Package totp computes and checks the codes of authenticator apps (RFC 6238: HMAC-SHA-1, six
// digits, steps of 30 seconds) and makes recovery codes. It stores nothing.
package totp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what RFC 6238 and the apps use; HMAC does not need collision resistance
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	period = 30 * time.Second
	digits = 6
	skew   = 1  // steps that a clock may be off, either way
	secret = 20 // bytes, as long as the hash
)

// RecoveryCodes is how many recovery codes an account gets.
const RecoveryCodes = 10

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewSecret returns a random secret in base32, as apps take it.
func NewSecret() string {
	b := make([]byte, secret)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return encoding.EncodeToString(b)
}

// Step returns the number of the step that t is in.
func Step(t time.Time) int64 { return t.Unix() / int64(period/time.Second) }

// Check returns the step that code belongs to, of those around now that are after the last one
// used, so that each code works once. A code may contain spaces. None is right for an empty secret,
// which is one whose key was lost.
func Check(secret, code string, now time.Time, used int64) (step int64, ok bool) {
	key, err := encoding.DecodeString(secret)
	code = strings.ReplaceAll(code, " ", "")
	if err != nil || len(key) == 0 || len(code) != digits {
		return 0, false
	}
	at := Step(now)
	for s := at - skew; s <= at+skew; s++ {
		if s > used && subtle.ConstantTimeCompare([]byte(code), []byte(compute(key, s, digits))) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// Code returns the code of a step; "" for a damaged secret.
func Code(secret string, step int64) string {
	key, err := encoding.DecodeString(secret)
	if err != nil {
		return ""
	}
	return compute(key, step, digits)
}

// compute is HOTP (RFC 4226, section 5.3) with the step as its counter.
func compute(key []byte, step int64, digits int) string {
	h := hmac.New(sha1.New, key)
	_ = binary.Write(h, binary.BigEndian, uint64(step)) //nolint:gosec // a hash takes everything; steps are positive
	sum := h.Sum(nil)
	at := sum[len(sum)-1] & 15
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	mod := uint32(1)
	for range digits {
		mod *= 10
	}
	return fmt.Sprintf("%0*d", digits, n%mod)
}

// URI returns the address that an app reads from a QR code.
func URI(issuer, name, secret string) string {
	q := url.Values{"secret": {secret}, "issuer": {issuer}, "algorithm": {"SHA1"}, "digits": {fmt.Sprint(digits)}, "period": {fmt.Sprint(int(period / time.Second))}}
	return "otpauth://totp/" + url.PathEscape(issuer+":"+name) + "?" + q.Encode()
}

// alphabet of recovery codes: no letters that look alike.
const alphabet = "abcdefghjkmnpqrstuvwxyz23456789"

// NewRecovery returns RecoveryCodes new codes, each with 16 characters (79 bits) in groups of four.
func NewRecovery() []string {
	list := make([]string, RecoveryCodes)
	for i := range list {
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
		list[i] = b.String()
	}
	return list
}

// Hash returns how a recovery code is stored. It has 79 random bits, so that a slow hash adds
// nothing. Case, spaces and dashes do not count.
func Hash(code string) string {
	code = strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(code))
	sum := sha256.Sum256([]byte("gatehouse recovery\x00" + code))
	return hex.EncodeToString(sum[:])
}

// IsRecovery reports whether a text has the form of a recovery code. Earlier versions made them of
// 12 characters.
func IsRecovery(code string) bool {
	n := len(strings.NewReplacer(" ", "", "-", "").Replace(code))
	return n == 16 || n == 12
}
