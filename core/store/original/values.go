// Package original takes over a database of the original system: it recognises
// one by its columns and moves every row into our tables in one transaction.
package original

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

// ownSources are the values of sessions.source that the original system gives
// to what its one owner began or imported.
var ownSources = []string{"parachute", "claude-code", "claude", "chatgpt"}

// text returns the content of a column of type TEXT: text, a blob, or a number.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case []byte:
		return string(v), v != nil
	case string:
		return v, true
	}
	return fmt.Sprint(v), true
}

// Time returns v as core.Stamp writes times, nil if it is no time. It reads ISO
// 8601 with "T" or a space, with or without seconds, fraction and zone, a date
// alone, and seconds, milli- or microseconds since 1970. Without a zone it is
// UTC, as the original system and SQLite write.
func Time(v any) any {
	s, ok := text(v)
	if !ok {
		return nil
	}
	t, ok := parseTime(strings.ToUpper(strings.TrimSpace(s)))
	if !ok || t.UTC().Year() < 1 || t.UTC().Year() > 9999 || t.IsZero() {
		return nil
	}
	return core.Stamp(t)
}

func parseTime(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	for _, zone := range []string{" UTC", " GMT", "UTC", "GMT"} {
		if cut, ok := strings.CutSuffix(s, zone); ok {
			s = cut + "Z"
			break
		}
	}
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	s = strings.ReplaceAll(s, " ", "") // before the zone
	for _, clock := range []string{"T15:04:05", "T15:04", ""} {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07", "Z07:00:00"} {
			if clock == "" && zone != "" {
				continue
			}
			if t, err := time.Parse("2006-01-02"+clock+zone, s); err == nil {
				return t, true
			}
		}
	}
	return parseEpoch(s)
}

func parseEpoch(s string) (time.Time, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(s, "0123456789.") != "" {
		return time.Time{}, false
	}
	switch len(whole) {
	case 9, 10:
		us, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
		return time.Unix(n, us*1000), err == nil
	case 13:
		return time.UnixMilli(n), true
	case 16:
		return time.UnixMicro(n), true
	}
	return time.Time{}, false
}

// A carried is what becomes of a session's source and metadata.
type carried struct {
	metadata any    // JSON text, or nil
	trust    string // the session's ceiling
	user     int64  // core.Operator for the owner's sessions, 0 where the owner is not known
	whole    bool   // the new row has everything of the old one
}

// carry lifts metadata.trust_level into the session's own column and drops
// permissions.trust_mode ("never ask") except on the owner's sessions. level and
// linked are the columns trust_level and linked_bot_platform of versions that
// have them: of two levels the lower one counts. A level that is not known, or
// metadata that cannot be read, becomes sandboxed; the owner's session without a
// level keeps no ceiling (full), as it had none. No other session has full.
func carry(source, metadata, level, linked any) carried {
	src, _ := text(source)
	c := carried{trust: core.Sandboxed.String(), whole: true}
	if slices.Contains(ownSources, src) {
		c.user, c.trust = core.Operator, core.Full.String()
	}
	if platform, _ := text(linked); platform != "" {
		c.user, c.trust, c.whole = 0, core.Sandboxed.String(), false // the new row has no such columns
	}
	m, readable := c.read(metadata)
	named := false
	if m != nil {
		named = c.carryObject(m)
	}
	c.limit(level, named, readable)
	return c
}

// read takes metadata over and returns it if it is an object. It reports false
// for metadata that is not JSON.
func (c *carried) read(metadata any) (m map[string]json.RawMessage, readable bool) {
	raw, ok := text(metadata)
	if !ok || strings.TrimSpace(raw) == "" {
		return nil, true
	}
	if !json.Valid([]byte(raw)) {
		c.trust, c.whole = core.Sandboxed.String(), false
		return nil, false
	}
	c.metadata = raw
	if json.Unmarshal([]byte(raw), &m) != nil {
		return nil, true
	}
	return m, true
}

// carryObject does what metadata that is an object asks for, and reports whether
// it names a level.
func (c *carried) carryObject(m map[string]json.RawMessage) (named bool) {
	if foreignChat(m) {
		c.user, c.trust = 0, core.Sandboxed.String()
	}
	_, named = m["trust_level"]
	named = named && string(m["trust_level"]) != "null"
	lifted := c.lift(m)
	if c.user != core.Operator {
		dropTrustMode(m)
	}
	if lifted || c.user != core.Operator { // rewritten: a duplicate key gets one value for every reader
		c.metadata = encode(m)
	}
	return named
}

// limit lowers the ceiling to the column trust_level; for a session that is not
// the owner's the column is the ceiling if the metadata names none.
func (c *carried) limit(level any, named, readable bool) {
	have, _ := core.ParseTrust(c.trust)
	if name, ok := text(level); ok && name != "" && readable {
		column, err := core.ParseTrust(name)
		switch {
		case err != nil:
			have, c.whole = core.Sandboxed, false
		case c.user == core.Operator || named:
			have = min(have, column)
		default:
			have = column
		}
	}
	if c.user != core.Operator {
		have = min(have, core.Vault)
	}
	c.trust = have.String()
}

// foreignChat reports whether a session's metadata binds it to a chat of a
// platform: then it is not known to be the owner's, with any source.
func foreignChat(m map[string]json.RawMessage) bool {
	for k := range m {
		if strings.HasPrefix(k, "linked_bot") || strings.HasPrefix(k, "platform") {
			return true
		}
	}
	return false
}

// lift moves m's trust_level out of m, and reports whether it did.
func (c *carried) lift(m map[string]json.RawMessage) bool {
	raw, ok := m["trust_level"]
	if !ok {
		return false
	}
	var name *string
	err := json.Unmarshal(raw, &name)
	if err == nil && name == nil { // null has no meaning
		delete(m, "trust_level")
		return true
	}
	level := core.Stranger
	if err == nil {
		level, err = core.ParseTrust(*name)
	}
	if err != nil {
		c.trust = core.Sandboxed.String()
		return false // it stays in the old row
	}
	c.trust = level.String()
	delete(m, "trust_level")
	return true
}

// dropTrustMode compares names without case, as Go's decoder does.
func dropTrustMode(m map[string]json.RawMessage) {
	for k, raw := range m {
		var p map[string]json.RawMessage
		if !strings.EqualFold(k, "permissions") || json.Unmarshal(raw, &p) != nil || p == nil {
			continue
		}
		for name := range p {
			if strings.EqualFold(name, "trust_mode") {
				delete(p, name)
			}
		}
		m[k] = json.RawMessage(encode(p))
	}
}

// encode returns m as JSON; its values were read from JSON.
func encode(m map[string]json.RawMessage) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return "{}" // cannot be: names are strings and values are valid
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Functions returns the functions that the statements of an adoption call, by
// their names in SQL. Each depends on its arguments only; NULL is nil.
func Functions() map[string]any {
	return map[string]any{
		"adopt_time":  Time,
		"adopt_lower": func(v any) string { s, _ := text(v); return strings.ToLower(s) },
		"adopt_name":  func(v any) string { s, _ := text(v); return core.CleanName(s) },
		"adopt_json": func(v any) any {
			if s, ok := text(v); ok && json.Valid([]byte(s)) {
				return s
			}
			return nil
		},
		"adopt_metadata": func(source, metadata, level, linked any) any { return carry(source, metadata, level, linked).metadata },
		"adopt_trust":    func(source, metadata, level, linked any) string { return carry(source, metadata, level, linked).trust },
		"adopt_user":     func(source, metadata, level, linked any) int64 { return carry(source, metadata, level, linked).user },
		"adopt_whole":    func(source, metadata, level, linked any) bool { return carry(source, metadata, level, linked).whole },
	}
}
