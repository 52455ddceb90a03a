package core

import (
	"database/sql/driver"
	"fmt"
)

// Trust is what a turn may do. The zero value is a stranger, who may nothing.
// It is stored and sent as its name.
type Trust uint8

const (
	Stranger Trust = iota
	Sandboxed
	Vault
	Full
)

var trustNames = [...]string{"", "sandboxed", "vault", "full"}

// String returns the level's name; "" for a stranger.
func (t Trust) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return fmt.Sprintf("trust(%d)", uint8(t))
}

// ParseTrust knows "sandboxed", "vault" and "full"; anything else, "" too, is an Invalid
// error.
func ParseTrust(s string) (Trust, error) {
	for i, name := range trustNames {
		if i > 0 && s == name {
			return Trust(i), nil
		}
	}
	return Stranger, Errorf(Invalid, "trust level %q is not one of sandboxed, vault, full", s)
}

// MarshalText and UnmarshalText make JSON, YAML and environment use the name.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *Trust) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*t = Stranger
		return nil
	}
	*t, err = ParseTrust(string(b))
	return err
}

// Value and Scan store the name; an unknown name scans as Stranger, so that a
// damaged row opens nothing.
func (t Trust) Value() (driver.Value, error) { return t.String(), nil }

func (t *Trust) Scan(src any) error {
	*t = Stranger
	var s string
	switch v := src.(type) {
	case string:
		s = v
	case []byte:
		s = string(v)
	}
	if p, err := ParseTrust(s); err == nil {
		*t = p
	}
	return nil
}

// Least returns the lowest of the given levels.
func Least(t Trust, more ...Trust) Trust {
	for _, m := range more {
		t = min(t, m)
	}
	return t
}
