package markdown

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// A spoiler is text between double bars: ||hidden||. It is no part of
// CommonMark; both Telegram and Discord write it like this.
type spoiler struct{ ast.BaseInline }

var kindSpoiler = ast.NewNodeKind("Spoiler")

func (*spoiler) Kind() ast.NodeKind { return kindSpoiler }

func (s *spoiler) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

type spoilerParser struct{}

func (spoilerParser) Trigger() []byte { return []byte{'|'} }

// Parse pushes a pair of bars on the delimiter stack; the parser matches
// pairs by the same flanking rules as emphasis, so "a || b" stays as it is.
func (spoilerParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 2, spoilerDelimiter{})
	if node == nil || node.OriginalLength != 2 || before == '|' {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

type spoilerDelimiter struct{}

func (spoilerDelimiter) IsDelimiter(b byte) bool { return b == '|' }

func (spoilerDelimiter) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (spoilerDelimiter) OnMatch(int) ast.Node { return new(spoiler) }
