package openai

import "strings"

// The marks of thinking in the text of open models (DeepSeek R1, Qwen 3 and others) where
// the server does not separate it.
const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// thinking separates the thinking that an answer begins with from its text. The zero value
// is ready. A mark elsewhere in an answer is text.
type thinking struct {
	state int    // thinkUndecided, thinkInside, thinkAfter or thinkOver
	held  string // may be a part of a mark; shorter than a mark, without the blanks before it
}

const (
	thinkUndecided = iota // nothing but blanks came
	thinkInside
	thinkAfter // behind the mark: blanks are left out
	thinkOver
)

// split takes the next piece of the answer's content.
func (t *thinking) split(piece string) (thought, text string) {
	piece, t.held = t.held+piece, ""
	if t.state == thinkUndecided {
		begin := strings.TrimLeft(piece, " \t\r\n")
		switch {
		case strings.HasPrefix(begin, thinkBegin):
			t.state, piece = thinkInside, begin[len(thinkBegin):]
		case strings.HasPrefix(thinkBegin, begin) && len(piece) < maxHeld:
			t.held = piece
			return "", ""
		default:
			t.state = thinkOver
		}
	}
	if t.state == thinkInside {
		inside, rest, ended := strings.Cut(piece, thinkEnd)
		if !ended {
			keep := len(inside) - markAt(inside, thinkEnd)
			t.held = inside[keep:]
			return inside[:keep], ""
		}
		t.state, thought, piece = thinkAfter, inside, rest
	}
	if t.state == thinkAfter {
		if piece = strings.TrimLeft(piece, " \t\r\n"); piece != "" {
			t.state = thinkOver
		}
	}
	return thought, piece
}

// maxHeld bounds the blanks before a mark, in bytes.
const maxHeld = 256

// rest returns what was held when the answer ends.
func (t *thinking) rest() (thought, text string) {
	held := t.held
	t.held = ""
	if t.state == thinkInside {
		return held, ""
	}
	return "", held
}

// markAt returns how many bytes at the end of text may be the beginning of mark.
func markAt(text, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}
