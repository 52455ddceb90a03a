package index

import "testing"

func TestMeasure_FillsEmbedsAndSearches(t *testing.T) {
	f, err := Measure(t.Context(), t.TempDir(), 35, 2)
	if err != nil {
		t.Fatal(err)
	}
	if f.Passages != 30 || f.Filled <= 0 || f.Vectors <= 0 || len(f.Words) != 6 || len(f.Hybrid) != 6 || f.Bytes == 0 {
		t.Errorf("%d passages, %f/s, %f vectors/s, %d and %d searches, %d bytes", f.Passages, f.Filled, f.Vectors, len(f.Words), len(f.Hybrid), f.Bytes)
	}
}
