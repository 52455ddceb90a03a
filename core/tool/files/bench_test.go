package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
)

// BenchmarkCalls is what one call costs in process, with deciding what it
// touches: small files, so that hardly anything but the tool itself is
// measured. Write and Edit wait for the disk as well.
func BenchmarkCalls(b *testing.B) {
	v := newBench(b, core.Vault)
	for i := range 100 {
		v.put(fmt.Sprintf("Notes/%02d/n%d.md", i%10, i), strings.Repeat("a line of a note\n", 50))
	}
	v.put("a.md", "one two\n")
	for _, c := range []struct {
		name  string
		input in
	}{
		{"Read", in{"file_path": "a.md"}},
		{"Edit", in{"file_path": "a.md", "old_string": "one", "new_string": "one"}},
		{"Write", in{"file_path": "a.md", "content": "one two\n"}},
		{"Glob", in{"pattern": "**/*.md"}},
		{"Grep", in{"pattern": "nothing like it"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := v.call("Read", in{"file_path": "a.md"}); err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				if c.name == "Edit" { // there and back
					pair := []string{"one", "two"}
					c.input = in{"file_path": "a.md", "old_string": pair[i%2] + " " + pair[(i+1)%2], "new_string": pair[(i+1)%2] + " " + pair[i%2]}
				}
				began := time.Now()
				if _, err := v.call(c.name, c.input); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
		})
	}
}

// BenchmarkGrepLargeVault searches 2,000 notes of 10 kB each.
func BenchmarkGrepLargeVault(b *testing.B) {
	v := newBench(b, core.Vault)
	text := strings.Repeat("some words of a note that is read every day\n", 230)
	for i := range 2000 {
		v.put(fmt.Sprintf("N%02d/n%d.md", i%50, i), text)
	}
	b.ReportAllocs()
	for b.Loop() {
		v.ok("Grep", in{"pattern": `wor(d|k)s? of (?i)NOTHING`})
	}
}
