// Package sealed encrypts the text of single columns. Each value is AES-256-GCM
// ciphertext that names its key and is bound to its table, column and row: a value that
// is copied to another place does not open there. The keys are in one file outside the vault
// (Open, Create), which no backup contains: what they sign (Sign) cannot be made from a copy
// of the database.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/core"
)

// A Place is where a value is stored. Table and Column are constants of the owner and
// hold no "|"; Row is the row's key, which does not change while the row exists.
type Place struct{ Table, Column, Row string }

// data is the associated data of the ciphertext.
func (p Place) data() []byte { return []byte(p.Table + "|" + p.Column + "|" + p.Row) }

// A value is "s1.KEY.CIPHERTEXT": the format's version, the id of its key, and the nonce
// with the ciphertext as unpadded base64url.
const (
	version = "s1."
	idSize  = 8 // characters of a key's id
)

// Errors of Open. The text of the column is in none of them.
var (
	// ErrNotSealed reports a value that Seal did not make.
	ErrNotSealed = errors.New("the value is not encrypted")
	// ErrDamaged reports a value that was changed, or belongs to another place.
	ErrDamaged = errors.New("the encrypted value is damaged or belongs to another row")
)

// keySize is the length of a key, in bytes.
const keySize = 32

// A key is one line of the file, with what is derived from it.
type key struct {
	id   string
	root []byte
	aead cipher.AEAD
	mac  []byte // key of Sign
}

func newKey(root []byte) (*key, error) {
	if len(root) != keySize {
		return nil, fmt.Errorf("a key has %d bytes, want %d", len(root), keySize)
	}
	sum := sha256.Sum256(append([]byte("gatehouse content key id\n"), root...))
	k := &key{id: hex.EncodeToString(sum[:])[:idSize], root: root}
	seal, err := hkdf.Key(sha256.New, root, nil, "gatehouse content 1 seal", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(seal)
	if err != nil {
		return nil, err
	}
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	k.mac, err = hkdf.Key(sha256.New, root, nil, "gatehouse content 1 sign", keySize)
	return k, err
}

func randomKey() (*key, error) {
	root := make([]byte, keySize)
	_, _ = rand.Read(root) // never fails
	return newKey(root)
}

// A Box seals with its first key and opens with all of them. It is safe for concurrent use.
type Box struct {
	path string
	mu   sync.Mutex             // of changes to the file
	keys atomic.Pointer[[]*key] // at most maxKeys; the first one seals
}

func (b *Box) all() []*key { return *b.keys.Load() }

// ID returns the id of the key that seals.
func (b *Box) ID() string { return b.all()[0].id }

// IDs returns the ids of all keys, the one that seals first.
func (b *Box) IDs() []string {
	var ids []string
	for _, k := range b.all() {
		ids = append(ids, k.id)
	}
	return ids
}

// Has reports whether the file has the key with this id.
func (b *Box) Has(id string) bool { return b.find(id) != nil }

func (b *Box) find(id string) *key {
	for _, k := range b.all() {
		if k.id == id {
			return k
		}
	}
	return nil
}

// Seal returns text encrypted for its place. Empty text stays empty, so that a column's
// default needs no key; whether there is text is no secret.
func (b *Box) Seal(at Place, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if strings.Contains(at.Table+at.Column, "|") || at.Table == "" || at.Column == "" || at.Row == "" {
		return "", fmt.Errorf("seal a value of %q.%q: a place has a table, a column and a row", at.Table, at.Column)
	}
	k := b.all()[0]
	return version + k.id + "." + base64.RawURLEncoding.EncodeToString(k.aead.Seal(nil, nil, []byte(text), at.data())), nil
}

// Open returns the text that Seal encrypted for this place. It returns ErrNotSealed for
// other text, ErrDamaged for a value that was changed or is of another place, and
// core.Invalid, naming the key, where the file lacks it.
func (b *Box) Open(at Place, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	id, sealed, ok := parse(value)
	if !ok {
		return "", ErrNotSealed
	}
	k := b.find(id)
	if k == nil {
		return "", core.Errorf(core.Invalid, "the key %s of the encrypted columns is not in %s: add its line from a copy of the file", id, b.path)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // the decoder skips line breaks
		return "", ErrDamaged
	}
	text, err := k.aead.Open(nil, nil, raw, at.data())
	if err != nil {
		return "", ErrDamaged
	}
	return string(text), nil
}

func (k *key) sign(text string) []byte {
	m := hmac.New(sha256.New, k.mac)
	_, _ = m.Write([]byte(text)) // never fails
	return m.Sum(nil)
}

// Sign returns what shows that a holder of the key file wrote text, as base64url. Each use
// begins its texts with a word of its own, so that no text of another use is taken for one.
func (b *Box) Sign(text string) string {
	return base64.RawURLEncoding.EncodeToString(b.all()[0].sign(text))
}

// Signed reports whether mac is Sign's of text, with any key of the file.
func (b *Box) Signed(text, mac string) bool {
	given, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil {
		return false
	}
	ok := false
	for _, k := range b.all() {
		ok = hmac.Equal(given, k.sign(text)) || ok
	}
	return ok
}

// KeyOf returns the id of the key that a value is encrypted with, "" for other text.
func KeyOf(value string) string {
	id, _, _ := parse(value)
	return id
}

func parse(value string) (id, sealed string, ok bool) {
	rest, found := strings.CutPrefix(value, version)
	if id, sealed, ok = strings.Cut(rest, "."); !found || !ok || len(id) != idSize {
		return "", "", false
	}
	if _, err := hex.DecodeString(id); err != nil {
		return "", "", false
	}
	return id, sealed, true
}

// Like returns a pattern for LIKE that matches the values of one key; "" matches those of
// every key.
func Like(id string) string {
	if id == "" {
		return version + "%"
	}
	return version + id + ".%"
}
