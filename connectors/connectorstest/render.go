package connectorstest

import (
	"strings"
	"testing"

	"gatehouse/connectors"
)

// Answer returns a typical 10 kB explanation by a model: paragraphs, bold text,
// headings, a list, a block of code.
func Answer() string {
	const sentence = "The leaves of green tea are steamed or pan fired soon after they are picked, which keeps them green and their taste fresh. "
	var b strings.Builder
	for n := range 4 {
		b.WriteString("## Part " + string(rune('A'+n)) + "\n\n")
		for k := range 4 {
			b.WriteString(strings.Repeat(sentence, 4))
			if k == 1 {
				b.WriteString("Mind the **temperature** most of all: `70 °C` will do.")
			}
			b.WriteString("\n\n")
		}
		switch n {
		case 1:
			b.WriteString(strings.Repeat("- warm the pot first, then pour the water away\n", 5) + "\n")
		case 2:
			b.WriteString("```go\n" + strings.Repeat("\tbrew(leaves, water, 3*time.Minute)\n", 20) + "```\n\n")
		}
	}
	return b.String() + strings.Repeat(sentence, 20)[:10_000-b.Len()]
}

// maxAllocations bounds the allocations of rendering Answer on any platform.
const maxAllocations = 200

// Allocations tests that rendering Answer makes few allocations: previews render a
// growing answer repeatedly.
func Allocations(t *testing.T, r connectors.Renderer) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates too, and so do goroutines that it slows down; .ci/counts runs this test without it")
	}
	source := Answer()
	n := testing.AllocsPerRun(20, func() { r.Render(source) })
	t.Logf("%.0f allocations for %d bytes in %d parts", n, len(source), len(r.Render(source)))
	if n > maxAllocations {
		t.Errorf("rendering 10 kB takes %.0f allocations, want at most %d", n, maxAllocations)
	}
}

// Rendering measures the rendering of Answer.
func Rendering(b *testing.B, r connectors.Renderer) {
	source := Answer()
	b.ReportAllocs()
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		r.Render(source)
	}
}
