package session_test

import (
	"fmt"
	"testing"

	"gatehouse/core/session"
	"gatehouse/core/store/storetest"
)

// Each commit leaves a part of the index of words. A turn that merged them would make others
// wait, so that upkeep does.
func TestUpkeepMergesTheIndexOfWordsAndNoTurnDoes(t *testing.T) {
	storetest.SQLiteOnly(t, "its index of words")
	h := open(t)
	parts := func() int { return h.number(`SELECT count(DISTINCT segid) FROM session_words_idx`) }
	s := h.resolve(chat(5, "c")).Session
	before := parts()
	for i := range 20 {
		h.says(s, fmt.Sprint("r", i), fmt.Sprint("question ", i), "an answer")
	}
	if n := parts() - before; n != 20 {
		t.Errorf("20 turns leave %d parts: some have merged them", n)
	}
	h.fill()
	if n := parts(); n > 6 {
		t.Errorf("%d parts after upkeep", n)
	}
	if found, _ := h.search(session.Filter{User: 5, Search: "question 7"}); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
