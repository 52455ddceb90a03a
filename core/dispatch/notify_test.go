package dispatch

import (
	"testing"
	"time"

	"gatehouse/core"
)

func TestTheAnswerOfAShortOrStoppedRunEditsItsPreview(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		end  core.Event
		want bool
	}{
		{9 * time.Second, core.Done{}, false},
		{10 * time.Second, core.Done{}, true},
		{time.Hour, core.Failed{}, true},
		{time.Hour, core.Aborted{}, false},
	} {
		if got := notifies(c.took, c.end); got != c.want {
			t.Errorf("after %v, %T: %v", c.took, c.end, got)
		}
	}
}
