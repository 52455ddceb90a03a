package chunk

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"gatehouse/core/agent/frontmatter"
)

// What is read as Markdown; beyond it a text is split as plain text.
const (
	maxMarkdown = 2 << 20 // bytes
	maxNesting  = 32      // markers of quotes and lists at the start of one line
	maxIndent   = 128     // columns before a line's text
	maxFront    = 16 << 10
	maxLevels   = 6
)

// blocks parses the structure alone: what is inside of a paragraph stays as it is.
var blocks = parser.NewParser(parser.WithBlockParsers(
	util.Prioritized(parser.NewSetextHeadingParser(), 100),
	util.Prioritized(parser.NewThematicBreakParser(), 200),
	util.Prioritized(parser.NewListParser(), 300),
	util.Prioritized(parser.NewListItemParser(), 400),
	util.Prioritized(parser.NewCodeBlockParser(), 500),
	util.Prioritized(parser.NewATXHeadingParser(), 600),
	util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
	util.Prioritized(parser.NewBlockquoteParser(), 800),
	util.Prioritized(parser.NewParagraphParser(), 1000),
))

// markdown splits Markdown. Front matter begins with the first byte of the file, not
// behind control characters.
func markdown(source string) (out Text) {
	front, body, first := front{}, clean(source), 1
	if strings.HasPrefix(strings.TrimPrefix(source, "\ufeff"), "---") {
		front, body, first = frontMatter(body)
	}
	out.Title, out.Tags = front.Title, front.tags()
	if len(body) > maxMarkdown || nested(body) {
		out.Chunks = join(paragraphs(body, first))
		return out
	}
	r := sections{src: []byte(body), line: first}
	root := blocks.Parse(text.NewReader(r.src))
	for node := root.FirstChild(); node != nil; node = node.NextSibling() {
		r.block(node)
	}
	r.end(len(r.src))
	if out.Title == "" {
		out.Title = r.title
	}
	out.Chunks = join(r.pieces)
	out.Tags = addTags(out.Tags, r.pieces)
	return out
}

// entryID is what a heading of a journal or a chat log begins with: it is no text, and
// such a heading is no title.
var entryID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^para:[a-z0-9]{6,12}( |$)`) })

// sections collects the blocks of a document under their headings.
type sections struct {
	src    []byte
	pieces []piece
	title  string // the first heading
	levels [maxLevels]string

	from int // where the block that is being read begins
	line int // of from
	code bool
}

// block ends the block before node and begins the one of node. A block reaches to the
// next one, so that nothing between them is lost.
func (s *sections) block(node ast.Node) {
	at, ok := begin(node, len(s.src))
	if !ok {
		return // an empty one: it belongs to the block before
	}
	for at > 0 && s.src[at-1] != '\n' { // the markers in front
		at--
	}
	_, fenced := node.(*ast.FencedCodeBlock)
	if fenced && at > 0 { // the line of the fence
		for at--; at > 0 && s.src[at-1] != '\n'; {
			at--
		}
	}
	s.end(at)
	s.code = fenced || node.Kind() == ast.KindCodeBlock
	if h, ok := node.(*ast.Heading); ok {
		s.heading(h)
		end := s.headingEnd(h)
		s.line += strings.Count(string(s.src[s.from:end]), "\n")
		s.from = end
	}
}

// headingEnd returns where the line behind a heading begins.
func (s *sections) headingEnd(h *ast.Heading) int {
	next := func(at int) int {
		if i := bytes.IndexByte(s.src[at:], '\n'); i >= 0 {
			return at + i + 1
		}
		return len(s.src)
	}
	end := next(max(s.from, h.Lines().At(h.Lines().Len()-1).Stop-1))
	under := strings.TrimSpace(string(s.src[end:next(end)]))
	if atx := strings.HasPrefix(strings.TrimSpace(string(s.src[s.from:end])), "#"); !atx && under != "" && strings.Trim(under, string(under[0])) == "" {
		end = next(end) // the line below the text
	}
	return end
}

// end adds what lies between the last block's beginning and at.
func (s *sections) end(at int) {
	if at <= s.from {
		return
	}
	block := string(s.src[s.from:at])
	if strings.TrimSpace(block) != "" {
		lead := len(block) - len(strings.TrimLeft(block, "\n"))
		s.pieces = append(s.pieces, piece{text: trim(block), line: s.line + lead, path: s.path(), code: s.code})
	}
	s.line += strings.Count(block, "\n")
	s.from, s.code = at, false
}

// heading sets the headings above what follows. A heading alone is a passage too: what
// is below it has it in front.
func (s *sections) heading(h *ast.Heading) {
	var b strings.Builder
	for i := range h.Lines().Len() {
		seg := h.Lines().At(i)
		b.Write(seg.Value(s.src))
		b.WriteByte(' ')
	}
	name := strings.Join(strings.Fields(b.String()), " ")
	if id := entryID().FindString(name); id != "" {
		name = name[len(id):] // an entry of a day: its time states more
	} else if s.title == "" {
		s.title = name
	}
	level := min(h.Level, maxLevels)
	s.levels[level-1] = name
	clear(s.levels[level:])
	s.pieces = append(s.pieces, piece{text: name, line: s.line, path: s.above(level - 1)})
}

func (s *sections) path() string { return s.above(maxLevels) }

// above returns the headings of the first n levels, outermost first.
func (s *sections) above(n int) string {
	var names []string
	for _, name := range s.levels[:n] {
		if name != "" {
			names = append(names, name)
		}
	}
	return cut(strings.Join(names, " > "), maxPath)
}

// begin returns where the first line of a block is.
func begin(node ast.Node, size int) (at int, ok bool) {
	for depth := 0; node != nil && depth < 4*maxNesting; depth++ {
		if node.Type() == ast.TypeBlock && node.Lines() != nil && node.Lines().Len() > 0 {
			return min(node.Lines().At(0).Start, size), true
		}
		child := node.FirstChild()
		for child != nil && child.Type() == ast.TypeBlock && child.FirstChild() == nil && (child.Lines() == nil || child.Lines().Len() == 0) {
			child = child.NextSibling() // an empty item of a list
		}
		node = child
	}
	return 0, false
}

// nested reports whether a line opens quotes and lists, or is indented, too deep: their
// parser's time grows with the depth of each line.
func nested(s string) bool {
	for line := range strings.Lines(s) {
		if isBreak(line) {
			continue
		}
		markers, column := 0, 0
		for i := 0; i < len(line) && strings.IndexByte(" \t>-+*.)0123456789", line[i]) >= 0; i++ {
			switch line[i] {
			case '\t':
				column += 4
			case '>', '-', '+', '*', '.', ')':
				markers++
				column++
			default:
				column++
			}
			if column > maxIndent && strings.Trim(line[:i+1], " \t") == "" {
				return true
			}
			if markers > maxNesting {
				return true
			}
		}
	}
	return false
}

// isBreak reports whether a line is a thematic break, however long: of one of its marks
// and blanks alone. Other marks, and several kinds of them, open lists.
func isBreak(line string) bool {
	return strings.Trim(line, "- \t\n") == "" || strings.Trim(line, "* \t\n") == ""
}

// A front is the part of YAML front matter that is used.
type front struct {
	Title string
	Tags  any // a list, or one text with commas or spaces
}

// frontMatter returns the front matter of a document, and the rest with the number of
// its first line. What is no YAML stays in the text.
func frontMatter(source string) (f front, body string, first int) {
	rest, ok := strings.CutPrefix(source, "---\n")
	if !ok {
		return front{}, source, 1
	}
	head, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix(rest, "\n---"); !ok {
			return front{}, source, 1
		}
		body = ""
	}
	if len(head) > maxFront || !f.read(head) {
		return front{}, source, 1
	}
	return f, body, strings.Count(head, "\n") + 4
}

// read reports whether head could be read. Aliases are refused: a few lines of them
// expand without limit.
func (f *front) read(head string) bool {
	h, fault := frontmatter.Read("", head, 1)
	if fault != nil {
		return false
	}
	for key, into := range map[string]any{"title": &f.Title, "tags": &f.Tags} {
		if h.Has(key) && !h.Null(key) && h.DecodeKey(key, into) != nil {
			return false
		}
	}
	return true
}

func (f front) tags() []string {
	var list []string
	switch t := f.Tags.(type) {
	case string:
		list = strings.FieldsFunc(t, func(r rune) bool { return r == ',' || r == ' ' })
	case []any:
		for _, one := range t {
			if s, ok := one.(string); ok {
				list = append(list, s)
			}
		}
	}
	var out []string
	for _, tag := range list {
		out = addTag(out, tag)
	}
	return out
}

// tagged finds #tags in Markdown: a letter must be among their characters.
var tagged = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)#([\p{L}\p{N}_/-]{1,64})`) })

func addTags(tags []string, pieces []piece) []string {
	for _, p := range pieces {
		if p.code || len(tags) == maxTags {
			continue
		}
		for _, m := range tagged().FindAllStringSubmatch(p.text, maxTags) {
			if strings.ContainsFunc(m[1], func(r rune) bool { return r > '9' && r != '_' }) {
				tags = addTag(tags, m[1])
			}
		}
	}
	return tags
}

func addTag(tags []string, tag string) []string {
	tag = strings.ToLower(cut(strings.TrimPrefix(strings.TrimSpace(clean(tag)), "#"), 64))
	if tag == "" || len(tags) == maxTags || slices.Contains(tags, tag) {
		return tags
	}
	return append(tags, tag)
}
