// Package markuptest reads Discord's markup as its client shows it.
package markuptest

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Screen is what Discord's client shows for a message's content: an independent
// implementation of its Markdown rules (a simple-markdown grammar). Styles has one
// entry per byte of Text.
type Screen struct {
	Text   strings.Builder
	Styles []string // sorted letters: b i s c p l q S; capital letters for what we never want
}

var (
	codeBlock = regexp.MustCompile("(?s)^```(?:([A-Za-z0-9_+\\-.#]+?)\n)?\n*([^\n].*?)\n*```")
	quoteRule = regexp.MustCompile(`^(?: *> [^\n]*(?:\n *> [^\n]*)*)`)
	quoteLong = regexp.MustCompile(`(?s)^ *>>> .*`)
	quoteMark = regexp.MustCompile(`(?m)^ *> ?`)
	headRule  = regexp.MustCompile(`^ *(?:#{1,3}|-#) `)
	listRule  = regexp.MustCompile(`^ *(?:[-*+]|\d+[.)]) `)
	autoLink  = regexp.MustCompile(`^<(https?://[^ >\n]+)>`)
	bareURL   = regexp.MustCompile(`^https?://[^\s<]*[^<.,:;"'\]\s]`)
	mention   = regexp.MustCompile(`^(?:<@[!&]?\d+>|<#\d+>|<a?:\w+:\d+>|<t:-?\d+(:\w)?>|<id:\w+>|</[^>]+:\d+>|@everyone|@here)`)
	emojiRule = regexp.MustCompile(`^:[^\s:]+:`)
	linkRule  = regexp.MustCompile(`^\[((?:\[[^\]]*\]|[^\[\]])*)\]\((https?://[^\s()]+)\)`)
)

// Show parses content.
func Show(content string) *Screen {
	s := &Screen{}
	s.block(strings.TrimSpace(content), "", true)
	return s
}

func (s *Screen) put(text, styles string) {
	s.Text.WriteString(text)
	for range len(text) {
		s.Styles = append(s.Styles, styles)
	}
}

func with(styles, more string) string {
	if strings.Contains(styles, more) {
		return styles
	}
	return styles + more
}

// block reads text; start reports whether it begins a line.
func (s *Screen) block(in, styles string, start bool) {
	for i := 0; i < len(in); {
		rest := in[i:]
		if start {
			if m := quoteLong.FindString(rest); m != "" {
				s.block(strings.SplitN(m, ">>> ", 2)[1], with(styles, "Q"), true)
				return
			}
			if m := quoteRule.FindString(rest); m != "" && !strings.Contains(styles, "q") {
				s.block(quoteMark.ReplaceAllString(m, ""), with(styles, "q"), true)
				i, start = i+len(m), false
				continue
			}
			if headRule.MatchString(rest) {
				styles = with(styles, "H")
			}
			if m := listRule.FindString(rest); m != "" {
				s.put(m, with(styles, "L"))
				i, start = i+len(m), false
				continue
			}
		}
		n, ok := s.inline(rest, styles)
		if !ok {
			_, n = utf8.DecodeRuneInString(rest)
			s.put(rest[:n], styles)
		}
		start = rest[:n] == "\n"
		i += n
	}
}

// inline reads one construct that begins rest.
func (s *Screen) inline(rest, styles string) (int, bool) {
	if m := codeBlock.FindStringSubmatch(rest); m != nil {
		s.put(m[2], with(styles, "p"))
		return len(m[0]), true
	}
	if len(rest) > 1 && rest[0] == '\\' && rest[1] < 0x80 && !word(rest[1]) || strings.HasPrefix(rest, `\_`) {
		if rest[1] != ' ' && rest[1] != '\n' && rest[1] != '\t' {
			s.put(rest[1:2], styles)
			return 2, true
		}
	}
	if m := autoLink.FindStringSubmatch(rest); m != nil {
		s.put(m[1], with(styles, "l"))
		return len(m[0]), true
	}
	if m := bareURL.FindString(rest); m != "" {
		s.put(m, with(styles, "l"))
		return len(m), true
	}
	if m := mention.FindString(rest); m != "" {
		s.put(m, with(styles, "M"))
		return len(m), true
	}
	if m := linkRule.FindStringSubmatch(rest); m != nil {
		s.block(m[1], with(styles, "l"), false)
		return len(m[0]), true
	}
	for _, d := range [...]struct{ mark, style, not string }{
		{"**", "b", "*"}, {"__", "U", "_"}, {"~~", "s", "_"}, {"||", "S", ""},
	} {
		if inner, n := delimited(rest, d.mark, d.not); n > 0 {
			style := d.style
			if style == "S" {
				style = "x"
			}
			s.block(inner, with(styles, style), false)
			return n, true
		}
	}
	if inner, n := emphasis(rest); n > 0 {
		s.block(inner, with(styles, "i"), false)
		return n, true
	}
	if inner, n := inlineCode(rest); n > 0 {
		s.put(inner, with(styles, "c"))
		return n, true
	}
	if m := emojiRule.FindString(rest); m != "" && emojiName(m) {
		s.put(m, with(styles, "E"))
		return len(m), true
	}
	return 0, false
}

// emojiName reports what could be the name of an emoji; none begins or ends with
// an underscore.
func emojiName(m string) bool {
	name := strings.Trim(m, ":")
	return strings.Trim(name, "_") == name && strings.Trim(m, ":abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-") == ""
}

func word(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// delimited returns the shortest text between two marks that not does not follow.
// Escapes are skipped, as for strong; strike and spoiler don't skip them.
func delimited(rest, mark, not string) (string, int) {
	if !strings.HasPrefix(rest, mark) {
		return "", 0
	}
	escapes := mark == "**" || mark == "__"
	for j := len(mark); j < len(rest); j++ {
		if escapes && rest[j] == '\\' {
			j++
			continue
		}
		if j > len(mark) && strings.HasPrefix(rest[j:], mark) {
			end := j + len(mark)
			if not == "" || !strings.HasPrefix(rest[end:], not) {
				return rest[len(mark):j], end
			}
		}
	}
	return "", 0
}

func emphasis(rest string) (string, int) {
	if rest == "" || rest[0] != '_' && rest[0] != '*' {
		return "", 0
	}
	c := rest[0]
	if c == '*' && len(rest) > 1 && (rest[1] == ' ' || rest[1] == '\n') {
		return "", 0
	}
	for j := 1; j < len(rest); j++ {
		switch {
		case rest[j] == '\\':
			j++
		case rest[j] == c && j+1 < len(rest) && rest[j+1] == c:
			j++
		case rest[j] == c && j > 1:
			if c == '_' && j+1 < len(rest) && word(rest[j+1]) {
				return "", 0
			}
			return rest[1:j], j + 1
		}
	}
	return "", 0
}

func inlineCode(rest string) (string, int) {
	n := 0
	for n < len(rest) && rest[n] == '`' {
		n++
	}
	if n == 0 {
		return "", 0
	}
	for j := n; j < len(rest); {
		if rest[j] != '`' {
			j++
			continue
		}
		k := j
		for k < len(rest) && rest[k] == '`' {
			k++
		}
		if k-j == n {
			inner := rest[n:j]
			if strings.HasPrefix(strings.TrimLeft(inner, " "), "`") {
				inner = strings.TrimPrefix(inner, " ")
			}
			if strings.HasSuffix(strings.TrimRight(inner, " "), "`") {
				inner = strings.TrimSuffix(inner, " ")
			}
			return inner, k
		}
		j = k
	}
	return "", 0
}
