package content

import (
	"strings"
	"unicode/utf8"
)

// A message has the text of an attached file as a block of its own.
const (
	lead = "Attached file "
	cut  = "\n[the rest is left out]"
)

// Fence returns more backquotes than text has in a row, three at least.
func Fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark
}

// InMessage returns the block that gives a model the text of a file, at most the first most bytes,
// delimited as data. The name has no line end.
func InMessage(name, text string, most int) string {
	rest := ""
	if len(text) > most {
		n := most
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text, rest = text[:n], cut
	}
	mark := Fence(text)
	return lead + name + ":\n" + mark + "\n" + strings.TrimRight(text, "\n") + "\n" + mark + rest
}

// OfMessage returns the name and the text of the file that a block has from InMessage, and the note
// behind it; false for any other block.
func OfMessage(block string) (name, text, note string, ok bool) {
	head, body, found := strings.Cut(block, ":\n```")
	name, named := strings.CutPrefix(head, lead)
	if !found || !named || name == "" || strings.Contains(name, "\n") {
		return "", "", "", false
	}
	mark := "```"
	for strings.HasPrefix(body, "`") {
		mark, body = mark+"`", body[1:]
	}
	end := strings.LastIndex(body, "\n"+mark)
	if !strings.HasPrefix(body, "\n") || end < 0 {
		return "", "", "", false
	}
	note = body[end+1+len(mark):]
	if note != "" && note[0] != '\n' {
		return "", "", "", false
	}
	return name, strings.TrimPrefix(body[:end], "\n"), strings.Trim(note, "\n[]"), true
}
