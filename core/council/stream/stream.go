// Package stream shows the answer of a council's member: while it comes, without the report
// at its end, or in pieces once it is chosen.
package stream

import (
	"strings"

	"gatehouse/core/council/choice"
)

// A Filter passes an answer on while it comes, without the report at its end.
type Filter struct {
	Show func(string)
	text string // of this message
	done int    // bytes of text that were passed on
}

// Push takes the next piece. What may be the beginning of a report waits.
func (f *Filter) Push(piece string) {
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

func (f *Filter) pass(to int) {
	if to > f.done {
		f.Show(f.text[f.done:to])
		f.done = to
	}
}

// Next ends a message that is followed by calls of tools.
func (f *Filter) Next() {
	f.End()
	f.text, f.done = "", 0
}

// End passes on what is left of the message, without a report.
func (f *Filter) End() {
	text, _, _ := choice.SplitReport(f.text)
	f.pass(len(text))
}

// maxPiece is the size of the pieces in which a chosen answer is shown, in bytes.
const maxPiece = 400

// Pieces splits a text between words.
func Pieces(text string) (list []string) {
	for len(text) > maxPiece {
		i := strings.LastIndexAny(text[:maxPiece], " \n")
		if i <= 0 {
			break
		}
		list, text = append(list, text[:i+1]), text[i+1:]
	}
	return append(list, text)
}
