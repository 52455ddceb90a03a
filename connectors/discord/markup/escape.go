package markup

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// address matches a URL in text, without characters that Discord does not treat as
// part of it.
var address = core.Pattern("https?://[^\\s<>\"|`\\\\\\x{200b}]+")

// plain writes text outside code: URLs as links, everything else escaped.
func (e *encoder) plain(s string) {
	for s != "" {
		at := address().FindStringIndex(s)
		if at == nil {
			e.escape(s)
			return
		}
		url := strings.TrimRight(s[at[0]:at[1]], ".,:;!?'*_~()[]{}")
		if e.has(core.StyleLink) && e.hidesNow() || !bare(url) || at[0] > 0 && wordBefore(s[:at[0]]) {
			e.escape(s[:at[1]])
			s = s[at[1]:]
			continue
		}
		e.escape(s[:at[0]])
		e.bare(url)
		s = s[at[0]+len(url):]
	}
}

func (e *encoder) hidesNow() bool {
	i := slices.IndexFunc(e.want, func(s core.Span) bool { return s.Style == core.StyleLink })
	return e.hides(e.want[i])
}

func bare(url string) bool {
	_, rest, ok := strings.Cut(url, "://")
	return ok && rest != ""
}

func wordBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// bare writes a URL between < and >, where Discord parses no markup. Bold, italic
// and strike are closed before it and opened again after it.
func (e *encoder) bare(url string) {
	e.styles(slices.DeleteFunc(slices.Clone(e.want), func(s core.Span) bool {
		return s.Style == core.StyleBold || s.Style == core.StyleItalic || s.Style == core.StyleStrike
	}))
	e.glue('<')
	e.raw("<" + url + ">")
	e.lineStart = false
}

// escape writes s so that it is shown unchanged.
func (e *encoder) escape(s string) {
	if s == "" {
		return
	}
	e.styles(e.want)
	for i := 0; i < len(s); {
		c := s[i]
		if c == '\n' {
			e.raw("\n")
			if e.quote {
				e.raw("> ")
			}
			e.lineStart = true
			i++
			continue
		}
		if c < utf8.RuneSelf && (special(s, i, e.lineStart) || e.named && emojiStart().MatchString(s[i:])) {
			e.glue('\\')
			e.raw(`\`)
		} else {
			e.glue(c)
		}
		n := 1
		if c >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(s[i:])
		}
		e.raw(s[i : i+n])
		if c != ' ' && c != '\t' && (c < '0' || c > '9' || !e.lineStart) {
			e.lineStart = false
		}
		i += n
	}
}

// special reports whether Discord would parse the character at i as markup.
func special(s string, i int, lineStart bool) bool {
	switch s[i] {
	case '\\', '*', '_', '~', '|', '`', '<', '[':
		return true
	case '@':
		return strings.HasPrefix(s[i:], "@everyone") || strings.HasPrefix(s[i:], "@here")
	case ':':
		return emoji().MatchString(s[i:]) || strings.HasPrefix(s[i:], "://")
	case '#', '>', '-', '+':
		return lineStart
	case '.', ')':
		return lineStart && i > 0 && s[i-1] >= '0' && s[i-1] <= '9'
	}
	return false
}

// emoji matches a name between colons, which the client shows as a picture.
var emoji = core.Pattern(`^:[A-Za-z0-9_+\-~]+:`)

// emojiStart matches what a style's marker and more text may make the name of an
// emoji; emojiPart matches such text.
var (
	emojiStart = core.Pattern(`^:[A-Za-z0-9_+\-~]*$`)
	emojiPart  = core.Pattern(`^[A-Za-z0-9_+\-~:]`)
)
