package llm

import (
	"iter"
	"strings"
)

// StopSequence is the Stop of an answer that StopAt has ended.
const StopSequence = "stop_sequence"

// StopAt returns an answer's text up to the first of stops, which is left out
// itself; then the answer is broken off, so that its usage stays unknown. Text
// that may be the beginning of one of them waits until that is decided. Without
// stops it is deltas as they are.
func StopAt(deltas iter.Seq2[Delta, error], stops []string) iter.Seq2[Delta, error] {
	if len(stops) == 0 {
		return deltas
	}
	return func(yield func(Delta, error) bool) {
		held := ""
		for d, err := range deltas {
			if err == nil && d.Text != "" && d.Call == nil && d.Stop == "" && d.Usage == nil {
				held += d.Text
				at := first(held, stops)
				if at >= 0 {
					d.Text = held[:at]
					if d == (Delta{}) || yield(d, nil) {
						yield(Delta{Stop: StopSequence}, nil)
					}
					return
				}
				keep := begun(held, stops)
				d.Text, held = held[:len(held)-keep], held[len(held)-keep:]
				if d == (Delta{}) {
					continue
				}
			} else if held != "" && (err != nil || d.Thinking == "" && d.Notice == "") {
				if !yield(Delta{Text: held}, nil) {
					return
				}
				held = ""
			}
			if !yield(d, err) {
				return
			}
		}
		if held != "" {
			yield(Delta{Text: held}, nil)
		}
	}
}

// first returns where the earliest of stops begins in text; -1 without.
func first(text string, stops []string) int {
	at := -1
	for _, s := range stops {
		if i := strings.Index(text, s); s != "" && i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// begun returns how many bytes at the end of text may be the beginning of a stop.
func begun(text string, stops []string) (most int) {
	for _, s := range stops {
		for n := min(len(s)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, s[:n]) {
				most = n
			}
		}
	}
	return most
}
