package agent

import (
	"strings"
	"unicode"

	"gatehouse/core"
)

// A Quoted is what someone wrote: data for a model, never instructions.
type Quoted struct {
	Name  string     // hostile text
	Trust core.Trust // Stranger for users without access of their own
	Label string     // replaces the level if the text comes from elsewhere
	Text  string     // hostile text
}

// MaxQuoted bounds one quotation, in bytes.
const MaxQuoted = 100 << 10

// String returns the text labelled with name and trust, each line marked with "> ", so
// that no line inside can pass for one outside.
func (q Quoted) String() string {
	level := q.Trust.String()
	if q.Trust == core.Stranger {
		level = "no access of their own"
	}
	if q.Label != "" {
		level = q.Label
	}
	return "From " + quoteName(SafeName(q.Name)) + " (" + level + "):\n" + mark(core.CutRunes(q.Text, MaxQuoted))
}

// mark adds "> " before every line, for any line ending, and drops control and invisible
// format characters.
func mark(text string) string {
	text = strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return '\n'
		case '\t', '\u200d': // joins emoji
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}

// roles are terms by which a name could pass for a part of the conversation.
var roles = map[string]bool{
	"system": true, "assistant": true, "user": true, "human": true, "developer": true, "tool": true,
	"operator": true, "owner": true, "admin": true, "administrator": true, "root": true, "instruction": true,
	"instructions": true, "prompt": true, "full": true, "vault": true, "sandboxed": true,
}

// SafeName returns a user's or group's name for use in a prompt: cleaned as by
// core.CleanName, without punctuation that structures text, and without names of roles
// or trust levels; "someone" if nothing is left.
func SafeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '\'' || r == '-' || r == '.' || r == '_' || r == ' ':
			return r
		case unicode.IsPunct(r) || unicode.IsSymbol(r) && r < 0x2000:
			return ' '
		}
		return r
	}, core.CleanName(name))
	words := strings.Fields(name)
	kept := words[:0]
	for _, w := range words {
		bare := strings.ToLower(strings.Trim(w, "'-._"))
		if bare == "" || roles[bare] {
			continue
		}
		kept = append(kept, w)
	}
	if len(kept) == 0 {
		return "someone"
	}
	return strings.Join(kept, " ")
}

func quoteName(s string) string { return `"` + s + `"` }
