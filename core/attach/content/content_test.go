package content_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gatehouse/core/attach/content"
)

func TestOf_CountsWordsAndKeepsTheBeginning(t *testing.T) {
	for text, want := range map[string]content.Content{
		"":                             {},
		" \n\t ":                       {},
		"\n  Two\u00a0 words. \n":      {Words: 2, Preview: "Two\u00a0 words."},
		strings.Repeat("ü ", 300):      {Words: 300, Preview: strings.Repeat("ü ", 100)},
		"a \xff b":                     {Words: 3, Preview: "a  b"},
		strings.Repeat("語", 201) + "x": {Words: 1, Preview: strings.Repeat("語", 200)},
	} {
		if got := content.Of(text); got != want {
			t.Errorf("%.20q: %+v", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		c := content.Of(text)
		if c.Words != len(strings.Fields(text)) || utf8.RuneCountInString(c.Preview) > content.MaxPreview || !strings.Contains(text, c.Preview) {
			t.Fatalf("%q: %+v", text, c)
		}
	})
}

// A text of the largest file that is read is counted without a list of its words.
func BenchmarkOf(b *testing.B) {
	text := strings.Repeat("Tea at four, und Grüße. ", (20<<20)/26)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		content.Of(text)
	}
}
