package password

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// Seal authenticates said. The key is the stored hash of the password: it is
// random by its salt, never leaves the database, and changes with the password.
func Seal(encoded, said string) string {
	key := sha256.Sum256([]byte("gatehouse device\x00" + encoded))
	m := hmac.New(sha256.New, key[:])
	_, _ = m.Write([]byte(said)) // never fails
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}
