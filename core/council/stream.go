package council

import (
	"strings"
	"sync"

	"gatehouse/core/council/choice"
)

// A filter passes an answer on while it comes, without the report at its end.
type filter struct {
	show func(string)
	text string // of this message
	done int    // bytes of text that were passed on
}

// push takes the next piece. What may be the beginning of a report waits.
func (f *filter) push(piece string) {
	f.text += piece
	held := strings.TrimRight(f.text[f.done:], " \t\r\n`")
	start := strings.LastIndexByte(held, '\n') + 1
	line := strings.TrimSpace(held[start:])
	if strings.HasPrefix(line, reportMark) || strings.HasPrefix(reportMark, line) {
		held = strings.TrimRight(held[:start], " \t\r\n`")
	}
	f.pass(f.done + len(held))
}

// reportMark begins the line of a report.
const reportMark = "REPORT:"

func (f *filter) pass(to int) {
	if to > f.done {
		f.show(f.text[f.done:to])
		f.done = to
	}
}

// next ends a message that is followed by calls of tools.
func (f *filter) next() {
	f.end()
	f.text, f.done = "", 0
}

// end passes on what is left of the message, without a report.
func (f *filter) end() {
	text, _, _ := choice.SplitReport(f.text)
	f.pass(len(text))
}

// maxPiece is the size of the pieces in which a chosen answer is shown, in bytes.
const maxPiece = 400

// pieces splits a text between words.
func pieces(text string) (list []string) {
	for len(text) > maxPiece {
		i := strings.LastIndexAny(text[:maxPiece], " \n")
		if i <= 0 {
			break
		}
		list, text = append(list, text[:i+1]), text[i+1:]
	}
	return append(list, text)
}

// together calls f for each of list at the same time, and returns the results in
// their order.
func together[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { out[i] = f(list[i]) })
	}
	wg.Wait()
	return out
}
