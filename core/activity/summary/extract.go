package summary

import (
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/transcript"
)

// Extract returns the summary of an exchange that no model wrote: the first sentence of
// the message, or of the answer where the message has no text. The same exchange always
// has the same.
func Extract(said, answer string) string {
	for _, text := range []string{said, answer} {
		if s := firstSentence(text); s != "" {
			return s
		}
	}
	return "(without text)"
}

// maxExtract is how much of a text is read for its first sentence, in bytes.
const maxExtract = 4096

// firstSentence returns the first sentence of the first line of a text that has words,
// cut to MaxSummary
// bytes.
func firstSentence(text string) string {
	if len(text) > maxExtract {
		text = strings.ToValidUTF8(text[:maxExtract], "")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(transcript.OneLine(line), "#>*-• ")
		if strings.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
			continue
		}
		return core.CutRunes(line[:sentence(line)], MaxSummary)
	}
	return ""
}

// sentence returns where the first sentence of a line ends.
func sentence(line string) int {
	words := 0
	for i, r := range line {
		end := i + len(string(r))
		switch {
		case strings.ContainsRune("。！？", r):
			return end
		case r == ' ':
			words++
		case strings.ContainsRune(".!?…", r) && (end == len(line) || line[end] == ' '):
			if r == '.' && end < len(line) && (words == 0 || abbreviated(line[:i], line[end+1:])) {
				continue // 1. or Dr.
			}
			return end
		}
	}
	return len(line)
}

// abbreviated reports whether a full stop between these ends an abbreviation, not a
// sentence.
func abbreviated(before, after string) bool {
	last := before[strings.LastIndexByte(before, ' ')+1:]
	next, _ := firstRune(after)
	return len(last) <= 1 || strings.Contains(last, ".") || unicode.IsLower(next)
}

func firstRune(s string) (rune, bool) {
	for _, r := range s {
		return r, true
	}
	return 0, false
}
