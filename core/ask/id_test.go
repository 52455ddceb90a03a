package ask_test

import (
	"testing"

	"gatehouse/core/ask"
)

func TestIDOfIsTheSameForAName(t *testing.T) {
	t.Parallel()
	id := ask.IDOf("choice:r1")
	if id != ask.IDOf("choice:r1") || id == ask.IDOf("choice:r2") {
		t.Error("the id does not depend on the name alone")
	}
	if got, option, ok := ask.SplitData(ask.Ask{ID: id}.Data("yes")); !ok || got != id || option != "yes" {
		t.Errorf("a button of the ask is read as %q, %q, %t", got, option, ok)
	}
}
