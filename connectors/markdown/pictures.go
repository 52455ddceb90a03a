package markdown

import (
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A Picture is an ![alt](path) of a reply: a file that goes with it.
type Picture struct {
	Path string // as written, percent signs resolved; never an address with a scheme
	Alt  string // its text, on one line
}

// Pictures returns the source's pictures that name no address elsewhere, each path
// once, in order, at most the first most of them.
func (r *Renderer) Pictures(source string, most int) []Picture {
	source = clean(source)
	if !strings.Contains(source, "![") || len(source) > MaxSource || nested(source) || gridded(source) || crowded(source) {
		return nil
	}
	src := []byte(source)
	var out []Picture
	seen := map[string]bool{}
	_ = ast.Walk(r.parse(source, src), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		img, ok := n.(*ast.Image)
		if !ok || !entering || len(out) == most {
			return ast.WalkContinue, nil
		}
		name, err := url.PathUnescape(string(unescape(img.Destination)))
		if err != nil || name == "" || strings.Contains(name, ":") || strings.HasPrefix(name, "//") || strings.HasPrefix(name, "#") {
			return ast.WalkContinue, nil
		}
		if name = path.Clean(name); !seen[name] {
			seen[name] = true
			out = append(out, Picture{Path: name, Alt: strings.Join(strings.Fields(words(img, src)), " ")})
		}
		return ast.WalkContinue, nil
	})
	return out
}

// words returns the plain text in n.
func words(n ast.Node, src []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(unescape(t.Segment.Value(src)))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteString(words(c, src))
	}
	return b.String()
}
