package search

import (
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
)

// maxPattern bounds a glob or a regular expression, in bytes.
const maxPattern = 1000

// compileGlob makes a regular expression of a doublestar glob: * and ? stay
// within a name, ** as a whole element goes over directories, [a-z] and {a,b}
// choose. Globs come from models, and so from strangers: an expression of RE2
// takes time in proportion to the path, where trying out every brace and star
// takes as long as someone wants it to.
func compileGlob(what, g string) (*regexp.Regexp, error) {
	wrong := core.Errorf(core.Invalid, "%s is not a glob: * and ? within a name, ** over folders, [a-z], {a,b}", what)
	switch {
	case g == "":
		return nil, core.Errorf(core.Invalid, "%s is empty", what)
	case len(g) > maxPattern:
		return nil, core.Errorf(core.Invalid, "%s is longer than %d bytes", what, maxPattern)
	case !doublestar.ValidatePattern(g):
		return nil, wrong
	}
	re, err := regexp.Compile(`(?s)\A` + expression(g) + `\z`)
	if err != nil {
		return nil, wrong
	}
	return re, nil
}

// expression translates a valid glob.
func expression(g string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(g); {
		rest := g[i:]
		switch begins := i == 0 || strings.IndexByte("/{,", g[i-1]) >= 0; {
		case strings.HasPrefix(rest, "/**") && ends(rest[3:]) && !strings.HasPrefix(rest[3:], "/"):
			b.WriteString("(?:/.*)?") // a/** is also a
			i += 3
		case strings.HasPrefix(rest, "**/") && begins:
			b.WriteString("(?:[^/]*/)*")
			i += 3
		case strings.HasPrefix(rest, "**") && begins && ends(rest[2:]):
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i += len(rest) - len(strings.TrimLeft(rest, "*"))
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '[':
			n := class(&b, rest)
			i += n
		case rest[0] == '{':
			b.WriteString("(?:")
			depth++
			i++
		case rest[0] == '}' && depth > 0:
			b.WriteByte(')')
			depth--
			i++
		case rest[0] == ',' && depth > 0:
			b.WriteByte('|')
			i++
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			b.WriteString(quoted(rest[0]))
			i++
		}
	}
	return b.String()
}

// ends: an element of a path ends here.
func ends(rest string) bool { return rest == "" || strings.IndexByte("/,}", rest[0]) >= 0 }

// quoted returns one byte; those of longer characters match themselves.
func quoted(c byte) string {
	if c < 0x80 {
		return regexp.QuoteMeta(string(rune(c)))
	}
	return string([]byte{c})
}

// class translates [a-z], [^a] or [!a] and returns how long it is.
func class(b *strings.Builder, g string) int {
	b.WriteByte('[')
	i := 1
	if i < len(g) && (g[i] == '^' || g[i] == '!') {
		b.WriteString("^/")
		i++
	}
	for ; i < len(g) && g[i] != ']'; i++ {
		switch c := g[i]; {
		case c == '\\' && i+1 < len(g):
			i++
			b.WriteString(`\` + string(g[i]))
		case c == '[' || c == '^' || c == '&' || c == '~':
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(']')
	return i + 1
}
