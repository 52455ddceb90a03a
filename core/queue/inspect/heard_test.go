package inspect

import (
	"strconv"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// When people were last heard of is one statement, whoever is asked about.
func TestWhenPeopleWereLastHeardOfIsOneStatement(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	r := New(db, Options{Clock: clock})
	early, late := clock.Now().Add(-time.Hour).UTC(), clock.Now().Add(-time.Minute).UTC()
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i, r := range []struct {
			bot, sender string
			kind        core.MessageKind
			counts      int
			at          time.Time
		}{
			{"telegram", "7", core.KindMessage, 1, early}, {"telegram", "7", core.KindMessage, 1, late}, {"telegram", "7", "command", 1, clock.Now()},
			{"telegram", "7", core.KindMessage, 0, clock.Now()}, {"family", "7", core.KindMessage, 1, early}, {"telegram", "8", core.KindMessage, 1, late},
		} {
			if _, err := tx.Exec(t.Context(), `INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, state, received_at, sent_at, counts)
				VALUES ($1, $2, 'c', 'l', $3, $2, $4, 'done', $5, $5, $6)`, r.bot, strconv.Itoa(i), r.kind, r.sender, core.Stamp(r.at), r.counts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := []Writer{{"telegram", "7"}, {"family", "7"}, {"family", "8"}, {"telegram", "'; DROP TABLE inbox"}}
	for range 200 {
		ask = append(ask, Writer{"telegram", strconv.Itoa(len(ask) + 100)})
	}
	before := db.Reads()
	got, err := r.HeardFrom(t.Context(), ask)
	if n := db.Reads() - before; err != nil || n != 1 || len(got) != 2 || !got[ask[0]].Equal(late) || !got[ask[1]].Equal(early) {
		t.Errorf("%d statements: %v, %v", n, got, err)
	}
	if got, err := r.HeardFrom(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("nobody: %v, %v", got, err)
	}
}
