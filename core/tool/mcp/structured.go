package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxValues bounds the values of structured content that are searched for in the text.
const maxValues = 2000

// isSaid reports whether parts, a result's text, contain every value of data, its
// structured content. The protocol wants both to say the same, but the forms differ:
// the same JSON, the bare value of {"result": …}, one block of text for each item
// of a list, or sentences. Names of members and null do not count.
func isSaid(data any, parts []string) bool {
	text := strings.Join(parts, "\n")
	if utf8.RuneCountInString(text) > MaxOutput {
		return true // it fills the result alone
	}
	for _, p := range parts { // as JSON it may be escaped in another way
		var value any
		if json.Unmarshal([]byte(p), &value) == nil {
			if reflect.DeepEqual(value, data) {
				return true
			}
			text += "\n" + plainJSON(value)
		}
	}
	left := maxValues
	return strings.TrimSpace(text) != "" && saysAll(text, data, &left)
}

func saysAll(text string, data any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := data.(type) {
	case map[string]any:
		for _, member := range v {
			if !saysAll(text, member, left) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !saysAll(text, item, left) {
				return false
			}
		}
		return true
	case string:
		return contains(text, v) || contains(text, strings.TrimSuffix(strings.TrimPrefix(plainJSON(v), `"`), `"`))
	case float64:
		return contains(text, strconv.FormatFloat(v, 'f', -1, 64)) || contains(text, plainJSON(v))
	case bool:
		return contains(strings.ToLower(text), strconv.FormatBool(v))
	}
	return data == nil
}

// plainJSON returns v as JSON that escapes only what must be.
func plainJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// contains reports whether value is in text as whole words: 4 is not in 42.
func contains(text, value string) bool {
	first, _ := utf8.DecodeRuneInString(value)
	last, _ := utf8.DecodeLastRuneInString(value)
	for at := 0; ; at++ {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(value):])
		if !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after)) {
			return true
		}
		if at >= len(text) {
			return false
		}
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
