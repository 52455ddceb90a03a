package content_test

import (
	"strings"
	"testing"

	"gatehouse/core/attach/content"
)

func TestABlockOfAFileIsReadAsItWasWritten(t *testing.T) {
	for _, text := range []string{"tea", "tea\nmilk", "", "a ``` fence\n```\nin it\n````", "```"} {
		name, got, note, ok := content.OfMessage(content.InMessage("a: b.txt", text, 100))
		if !ok || name != "a: b.txt" || got != text || note != "" {
			t.Errorf("%q: %q %q %q %v", text, name, got, note, ok)
		}
	}
	if _, got, note, ok := content.OfMessage(content.InMessage("long.txt", strings.Repeat("ä", 60), 101)); !ok || got != strings.Repeat("ä", 50) || note != "the rest is left out" {
		t.Errorf("%q %q %v", got, note, ok)
	}
	if _, _, note, ok := content.OfMessage(content.InMessage("a.pdf", "x", 9) + "\n[2 of 5 pages; the rest is left out]"); !ok || note != "2 of 5 pages; the rest is left out" {
		t.Errorf("%q %v", note, ok)
	}
	for _, other := range []string{"", "tea", "Attached file a.txt:", "Attached file a.txt:\n```", "Attached file a.txt:\n```\ntea", "Attached file \n:\n```\ntea\n```", "See: Attached file a.txt:\n```\ntea\n```", "Attached file a.txt:\n```\ntea\n``` and more"} {
		if name, _, _, ok := content.OfMessage(other); ok {
			t.Errorf("%q is taken for the file %q", other, name)
		}
	}
}
