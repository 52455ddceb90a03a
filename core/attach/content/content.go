// Package content describes the text of a file that came with a message: how much there
// is of it, and how it begins.
package content

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPreview is how much of a text is kept as its preview, in characters.
const MaxPreview = 200

// A Content is what is known of a file whose text was read for a turn.
type Content struct {
	Pages     int    // of a PDF; 0 for any other file
	Words     int    // of the text that was read
	Truncated bool   // the model was given less than the whole text
	Preview   string // the first MaxPreview characters of the text; "" for none
}

// Of returns the content of a file with this text.
func Of(text string) Content {
	c := Content{Words: words(text)}
	text = strings.TrimSpace(text)
	at := 0
	for n := 0; n < MaxPreview && at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	c.Preview = strings.ToValidUTF8(text[:at], "")
	return c
}

// words counts what blanks part, without a list of it: a text may have 20 MB.
func words(text string) (n int) {
	within := false
	for _, r := range text {
		blank := unicode.IsSpace(r)
		if within && blank {
			n++
		}
		within = !blank
	}
	if within {
		n++
	}
	return n
}
