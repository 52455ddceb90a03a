package outbox

import (
	"testing"
	"time"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// Another gateway may have replaced one that was frozen between the mark of a send and the send.
func TestAMarkThatIsOldIsNotSentByWhoMayHaveBeenReplaced(t *testing.T) {
	db := storetest.Open(t, nil)
	b := New(db, Options{})
	now := time.Now()
	for name, at := range map[string]time.Time{"frozen": now.Add(-maxMark - time.Second), "suspended, which the monotonic clock does not count": now.Round(0).Add(-maxMark - time.Second)} {
		if got := b.stale(&marked{at: at}); got != store.OnServer(db.Path()) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if b.stale(&marked{at: now}) {
		t.Error("a mark of now is old")
	}
}
