// Package strict reads the JSON that models were asked for. What models return is data of
// someone else: it is bounded, and what is not exactly of the form is refused.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// MaxReply bounds a reply that is read, in bytes.
const MaxReply = 64 << 10

// maxName bounds a name in an error, in characters.
const maxName = 80

// Repair asks once more for a reply that could not be read.
func Repair(err error, schema string) string {
	return "Your reply could not be read: " + err.Error() + ". Reply again with nothing but one JSON object of this schema:\n" + schema
}

// Decode decodes a reply that is one JSON object, which may be in one code fence.
// Fields that are unknown or given twice are errors.
func Decode(reply string, into any) error {
	if len(reply) > MaxReply {
		return fmt.Errorf("the reply has more than %d bytes", MaxReply)
	}
	if !utf8.ValidString(reply) {
		return errors.New("the reply is not valid UTF-8")
	}
	reply = unfenced(strings.TrimSpace(reply))
	if !strings.HasPrefix(reply, "{") {
		return errors.New("the reply is not a JSON object")
	}
	if err := unique(json.NewDecoder(strings.NewReader(reply)), 0); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(reply))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the reply is not of this form: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("the reply has text after the JSON object")
	}
	return nil
}

func unfenced(reply string) string {
	rest, ok := strings.CutPrefix(reply, "```")
	if !ok {
		return reply
	}
	rest = strings.TrimPrefix(rest, "json")
	if inner, ok := strings.CutSuffix(rest, "```"); ok {
		return strings.TrimSpace(inner)
	}
	return reply
}

// maxDepth bounds how deep values of a reply are nested.
const maxDepth = 6

// unique refuses objects with a name twice, which decoders read differently.
func unique(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return errors.New("the reply is not valid JSON")
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	if depth >= maxDepth {
		return errors.New("the reply is nested too deep")
	}
	names := map[string]bool{} // bounded by MaxReply
	for d.More() {
		if open == '{' {
			t, err := d.Token()
			name, ok := t.(string)
			if err != nil || !ok {
				return errors.New("the reply is not valid JSON")
			}
			if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
				return errors.New("a name has other characters than letters") // the decoder takes some for letters
			}
			if name = strings.ToLower(name); names[name] {
				return fmt.Errorf("%s: given twice", core.CutRunes(name, maxName))
			}
			names[name] = true
		}
		if err := unique(d, depth+1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("the reply is not valid JSON")
	}
	return nil
}
