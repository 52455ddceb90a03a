package queue

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// Random ids would scatter every message's rows over all pages of the indexes.
func TestRunIDsAscend(t *testing.T) {
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = newRun()
		if _, err := uuid.Parse(ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(ids) {
		t.Error("a later run has a smaller id")
	}
}
