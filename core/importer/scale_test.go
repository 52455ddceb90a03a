package importer_test

import (
	"context"
	"io"
	"os"
	"testing"

	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
)

// BenchmarkLargeExport imports an export of Claude of 2.2 GB, with 6,300 conversations of 340 kB: go test -run '^$'
// -bench LargeExport -benchtime 1x -timeout 30m ./core/importer takes some minutes and 4 GB of the disk.
// docs/import.md has the figures of the program.
func BenchmarkLargeExport(b *testing.B) {
	const conversations = 6300
	h := open(b)
	m := importertest.New(1)
	m.Turns, m.Text = 20, 4000
	name := h.file("large.json", func(w io.Writer) error { return m.Claude(w, conversations) })
	st, err := os.Stat(name)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		most := peak(func() {
			r, err := h.Run(context.Background(), name, operator, nil, func(*report.Report) {})
			if err != nil || r.Added != conversations || r.Failed != 0 {
				b.Errorf("%+v, %v", r, err)
			}
		})
		b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
	}
}
