package document_test

import (
	"context"
	"fmt"
	"testing"

	"gatehouse/core/store/storetest"
)

// Each transaction leaves a part of the index, and searches read all parts. A transaction
// that merged them itself would keep messages waiting.
func TestPut_MergesTheIndexOfWordsBetweenItsTransactions(t *testing.T) {
	storetest.SQLiteOnly(t, "its index of words")
	x := open(t)
	paused := 0
	x.Pause(func(context.Context) { paused++ })
	parts := func() (n int) {
		if err := x.db.Get(t.Context(), &n, `SELECT count(DISTINCT segid) FROM document_words_idx`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	most := 0
	for i := range 100 {
		x.put(fmt.Sprintf("n/%d.md", i), fmt.Sprintf("some words of the note %d", i))
		if i == 10 && parts() != 11 {
			t.Errorf("%d parts after 11 puts: one has merged them", parts())
		}
		most = max(most, parts())
	}
	if most > 24 || paused == 0 {
		t.Errorf("%d parts at most, %d pauses while they were merged", most, paused)
	}
}
