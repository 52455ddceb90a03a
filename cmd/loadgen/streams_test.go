package main

import (
	"bufio"
	"math"
	"strings"
	"testing"
)

// A part that cannot have its open files says what is missing, and its goal is
// not met in the report.
func TestStreamsThatCannotBeOpenedAreReported(t *testing.T) {
	note := fewFiles(math.MaxUint64)
	if !strings.Contains(note, "hard limit of open files") || fewFiles(1) != "" {
		t.Fatalf("%q, %q", note, fewFiles(1))
	}
	for _, l := range streamGoals(&streamData{Note: note}) {
		if l.met || !strings.Contains(l.measured, "not measured") {
			t.Errorf("%+v", l)
		}
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
