// Package visit is what a session of the panel holds, and how long it lasts.
package visit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"gatehouse/core"
)

// How long a session of the panel lasts.
const (
	Idle     = 12 * time.Hour
	Absolute = 7 * 24 * time.Hour
)

// Max bounds the sessions; the one that would end first is deleted for a further one.
const Max = 200

// A Visit is what a session holds, as JSON in admin_sessions.data.
type Visit struct {
	User    int64  `json:"user"`
	CSRF    string `json:"csrf"`
	Started string `json:"started"`
	Seen    string `json:"seen"`
	Agent   string `json:"agent,omitempty"`   // the browser's, cut; hostile text
	Address string `json:"address,omitempty"` // where it began
	Link    bool   `json:"link,omitempty"`    // begun by a link instead of a password
	Seal    string `json:"seal"`              // of the password that it began with: it ends with that (Fits)
}

// Seal returns the seal of a session of the account whose password has the hash encoded: another
// for each stored hash. It grants nothing: backups have the hash, too.
func Seal(encoded, csrf string) string {
	key := sha256.Sum256([]byte("gatehouse device\x00" + encoded)) // stored sessions depend on this text
	m := hmac.New(sha256.New, key[:])
	_, _ = m.Write([]byte("session." + csrf)) // never fails
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Fits reports whether seal is of the password that has the hash encoded, and so whether the
// session is valid: one without a seal is not.
func Fits(encoded, csrf, seal string) bool {
	return csrf != "" && hmac.Equal([]byte(seal), []byte(Seal(encoded, csrf)))
}

// Expiry returns when v ends: idle or absolute, whichever is first. A damaged one has ended.
func (v Visit) Expiry() time.Time {
	started, err1 := core.ParseStamp(v.Started)
	seen, err2 := core.ParseStamp(v.Seen)
	if err1 != nil || err2 != nil || v.Started == "" || v.Seen == "" {
		return time.Time{}
	}
	end := started.Add(Absolute)
	if idle := seen.Add(Idle); idle.Before(end) {
		end = idle
	}
	return end
}

// A Codec is the session manager's (scs): it keeps the one value "visit". The end of a session is worked out
// from it on our clock, so the manager's own deadline isn't stored.
type Codec struct{}

// Encode returns the visit among values as JSON; the deadline is not stored.
func (Codec) Encode(_ time.Time, values map[string]any) ([]byte, error) {
	return json.Marshal(values["visit"])
}

// Decode reverses Encode, and returns the deadline of the visit.
func (Codec) Decode(b []byte) (time.Time, map[string]any, error) {
	var v Visit
	err := json.Unmarshal(b, &v)
	return v.Expiry(), map[string]any{"visit": v}, err
}
