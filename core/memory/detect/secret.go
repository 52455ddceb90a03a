package detect

import (
	"regexp"
	"strings"

	"gatehouse/core"
)

// A secret is a pattern of texts that are never stored.
type secret struct {
	name  string
	match func() *regexp.Regexp
}

var secrets = []secret{
	{"a key", core.Pattern(`(?:\b(?:sk|pk|rk)[-_](?:live|test|ant|proj|or)?[-_A-Za-z0-9]{12,}|\bAKIA[0-9A-Z]{12,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{8,}|\bAIza[\w-]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY|\beyJ[\w-]{8,}\.[\w-]{8,}\.|\b\d{8,10}:[A-Za-z0-9_-]{30,}\b|\bgAAAAA[\w-]{20,})`)},
	{"a key", core.Pattern(`(?i)\b(?:api|access|secret|private|auth|license|licence|ssh|wifi|wlan)[- _]?(?:key|token|schlüssel|schluessel)s?\b\W{0,4}(?:is|ist|lautet|=|:)?\W{0,4}\S{6,}\d`)},
	{"a password", core.Pattern(`(?i)\b(?:password|passwd|passphrase|pass code|passcode|passwort|kennwort|passphrase|losung)s?\b[^.\n]{0,30}?(?:\bis\b|\bist\b|\blautet\b|\bto\b|\bauf\b|=|:)\s*["'„“]?\S{3,}`)},
	{"a password", core.Pattern(`(?i)\b(?:password|passwd|passphrase|passcode|passwort|kennwort)\b\s*["'„“` + "`" + `]?\S*(?:[a-z]\S*[0-9!#$%&@^~*]|[0-9#$%&@^~*]\S*[a-z])`)},
	{"a code", core.Pattern(`(?i)\b(?:code|pin|puk|tan|otp|cvv|cvc|2fa|one[- ]time|einmal\w*|sicherheitscode|verification|bestätigungs\w*|bestaetigungs\w*)\b[^.\n]{0,30}?\b[0-9]{3,8}\b`)},
	{"a bank account", core.Pattern(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,4})?\b`)},
	{"a key", core.Pattern(`\b[0-9a-fA-F]{32,}\b`)},
}

var (
	digits = core.Pattern(`[0-9](?:[ .\-\x{a0}\x{202f}]{0,2}[0-9]){12,40}`)
	group  = core.Pattern(`[0-9]+`)
	random = core.Pattern(`[A-Za-z0-9+/_=-]{28,}`)
)

// Secret reports whether text contains a key, a password, a card number or a code, and
// what it is. Such text is not stored.
func Secret(text string) (name string, ok bool) {
	for _, s := range secrets {
		if s.match().MatchString(text) {
			return s.name, true
		}
	}
	for _, n := range digits().FindAllString(text, -1) {
		if card(n) {
			return "a card number", true
		}
	}
	for _, w := range random().FindAllString(text, -1) {
		if looksRandom(w) {
			return "a key", true
		}
	}
	return "", false
}

// card reports whether whole groups of digits, one behind the other, are the number of a
// payment card: another number, such as its date, may be before or behind it.
func card(s string) bool {
	groups := group().FindAllString(s, -1)
	for i := range groups {
		number := ""
		for _, g := range groups[i:] {
			if number += g; len(number) > 19 {
				break
			}
			if len(number) >= 13 && luhn(number) {
				return true
			}
		}
	}
	return false
}

// luhn reports whether the digits of s have the check digit of payment cards.
func luhn(s string) bool {
	sum, double := 0, false
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		d := int(s[i] - '0')
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return sum%10 == 0
}

// looksRandom reports whether a long word mixes cases and digits as keys do, which names
// of files and functions do not.
func looksRandom(w string) bool {
	changes, kind := 0, 0
	for _, r := range w {
		now := 1
		switch {
		case r >= '0' && r <= '9':
			now = 2
		case r >= 'A' && r <= 'Z':
			now = 3
		case r == '-' || r == '_' || r == '/':
			continue
		}
		if kind != 0 && now != kind {
			changes++
		}
		kind = now
	}
	return strings.ContainsAny(w, "0123456789") && changes*3 >= len(w)
}
