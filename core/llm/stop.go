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
		// release yields the text held, up to a stop; false after a stop or when the
		// reader has left.
		release := func() bool {
			text, at := held, first(held, stops)
			held = ""
			if at < 0 {
				return text == "" || yield(Delta{Text: text}, nil)
			}
			if at == 0 || yield(Delta{Text: text[:at]}, nil) {
				yield(Delta{Stop: StopSequence}, nil)
			}
			return false
		}
		for d, err := range deltas {
			if err == nil && d.Text != "" && d.Call == nil && d.Stop == "" && d.Usage == nil {
				held += d.Text
				sure := len(held) - begun(held, stops) // before it no stop can begin that is not whole
				if at := first(held, stops); at >= 0 && at <= sure {
					d.Text = held[:at]
					if d == (Delta{}) || yield(d, nil) {
						yield(Delta{Stop: StopSequence}, nil)
					}
					return
				}
				d.Text, held = held[:sure], held[sure:]
				if d == (Delta{}) {
					continue
				}
			} else if err != nil || d.Notice == "" && d.Unread == "" {
				if !release() {
					return
				}
			}
			if !yield(d, err) {
				return
			}
		}
		release()
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
