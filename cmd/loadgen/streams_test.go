package main

import (
	"bufio"
	"math"
	"strings"
	"testing"

	"gatehouse/cmd/loadgen/report"
)

// A part that cannot have its open files says what is missing, and its goal is
// not met in the report.
func TestStreamsThatCannotBeOpenedAreReported(t *testing.T) {
	note := fewFiles(math.MaxUint64)
	if !strings.Contains(note, "hard limit of open files") || fewFiles(1) != "" {
		t.Fatalf("%q, %q", note, fewFiles(1))
	}
	var page strings.Builder
	r := report.Report{Result: report.Result{Streams: &report.Streams{Note: note}}}
	if err := r.Write(&page, false, ""); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); !strings.Contains(text, note) || !strings.Contains(text, "missed by being unknown") {
		t.Errorf("the report says nothing of it:\n%s", text)
	}
}

// A line is found whatever comes before it, however long that is.
func TestALineOfAStreamIsFoundBehindLongOnes(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("id: 1\nx"+strings.Repeat("data: ", 500)+"\n: \n\ndata: {}\n"), 16)
	if err := lineOf(r, "data: "); err != nil {
		t.Fatal(err)
	}
	if rest, err := r.ReadString('\n'); err == nil || rest != "" {
		t.Errorf("after it came %q", rest)
	}
}
