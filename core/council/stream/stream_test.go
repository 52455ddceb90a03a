package stream

import (
	"strings"
	"testing"

	"gatehouse/core/council/choice"
)

// However an answer is cut into pieces, what is shown is the answer without its report.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"", "It is so.", "a\n\nREPORT: {\"confidence\": 0.5, \"domain\": \"x\"}", "REPORT: no", "a\nREPORT: {}\nb", "```\ncode\n```", "a\nREP"} {
		f.Add(text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		var shown strings.Builder
		x := &Filter{Show: func(s string) { shown.WriteString(s) }}
		for rest := text; rest != ""; {
			n := min(int(size%7)+1, len(rest))
			x.Push(rest[:n])
			rest = rest[n:]
		}
		x.End()
		if want, _, _ := choice.SplitReport(text); shown.String() != want {
			t.Errorf("shown %q, want %q", shown.String(), want)
		}
	})
}

func TestAnAnswerIsSplitBetweenWords(t *testing.T) {
	text := strings.Repeat("some words ", 200)
	all := Pieces(text)
	if strings.Join(all, "") != text || len(all) < 2 {
		t.Errorf("%d pieces", len(all))
	}
	for _, p := range all {
		if len(p) > maxPiece {
			t.Errorf("a piece of %d bytes", len(p))
		}
	}
}
