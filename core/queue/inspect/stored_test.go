package inspect

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A turn that waits is known to who asks for its chat, its run and its sender, and to no other.
func TestATurnWaitsUntilItIsDone(t *testing.T) {
	db := storetest.Open(t, nil)
	r := New(db, Options{Clock: core.System{}})
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i, state := range []string{"ready", "done"} {
			if _, err := tx.Exec(t.Context(), `INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, run, state, received_at, sent_at)
				VALUES ('api', $1, $2, 'l', 'message', $1, 'user:2', $3, $4, $5, $5)`, string(rune('0'+i)), "chat "+state, "run "+state, state, core.Stamp(tx.Time())); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		chat, sender, run string
		want              bool
	}{
		{"chat ready", "", "", true}, {"chat ready", "user:2", "", true}, {"chat ready", "", "run ready", true},
		{"chat ready", "user:3", "", false}, {"chat ready", "", "run done", false}, {"chat done", "", "", false}, {"chat done", "user:2", "run done", false},
	} {
		if got, err := r.Waits(t.Context(), "api", c.chat, c.sender, c.run); err != nil || got != c.want {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	if n, err := r.Queued(t.Context(), "api", "user:2", 9); err != nil || n != 1 {
		t.Errorf("%d wait, want 1: %v", n, err)
	}
}

// What waits in a conversation is its own turns and the messages of its chat, and no others: what was written
// behind a command that leaves it is another conversation's.
func TestTheRowsThatWaitInAConversation(t *testing.T) {
	db := storetest.Open(t, nil)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i, x := range []struct{ bot, chat, kind, state, payload, stopped string }{
			{"api", "s", "message", "done", "", ""}, {"api", "s", "message", "ready", "", ""}, {"family", "c", "message", "limited", "", ""}, {"family", "s", "message", "ready", "", ""},
			{"schedule", "s", "message", "ready", "", ""}, {"family", "c", "command", "ready", `{"command":"model"}`, ""}, {"family", "c", "message", "ready", "", "t"},
			{"other", "c", "message", "ready", "", ""}, {"api", "t", "message", "ready", "", ""}, {"family", "c", "message", "held", "", ""}, {"family", "c", "message", "ready", "", "s"},
			{"family", "c", "message", "ready", "", "s interrupted"}, {"family", "c", "command", "ready", `{"command":"new"}`, ""}, {"family", "c", "message", "ready", "", ""}, {"api", "s", "message", "ready", "", ""},
		} {
			if _, err := tx.Exec(t.Context(), `INSERT INTO inbox (seq, bot, update_id, chat, lane, kind, message_id, sender, run, payload, stopped, state, received_at, sent_at)
					VALUES ($1, $2, $3, $4, 'l', $5, $3, 'user:2', 'r', $6, $7, $8, $9, $9)`, i+1, x.bot, string(rune('a'+i)), x.chat, x.kind, x.payload, x.stopped, x.state, core.Stamp(tx.Time())); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   core.Address
		want []int64
	}{{core.Address{Bot: "family", Chat: "c"}, []int64{2, 3, 5, 7, 15}}, {core.Address{}, []int64{2, 5, 15}}} {
		if got, err := Waiting(t.Context(), db, "s", c.at, func(command string) bool { return command == "new" }); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("with the chat %+v: %v %v", c.at, got, err)
		}
	}
	if got, err := WaitingOf(t.Context(), db, "r"); err != nil || !slices.Equal(got, []int64{2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15}) {
		t.Errorf("of the run: %v %v", got, err)
	}
}

func TestWhatWaitsIsFoundWithoutWhatHasEnded(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db := storetest.Open(t, nil)
	for query, args := range map[string][]any{queued: {"api", "user:2", 9}, waiting: {"api", "c", "", ""}, waitingRows: {"api", "schedule", "s", "bot", "c", 9}} {
		for _, p := range storetest.Plan(t, db, query, args...) {
			if strings.Contains(p.Detail, "inbox") && !strings.Contains(p.Detail, "inbox_lane") {
				t.Errorf("%s\n\ttakes: %s", query, p.Detail)
			}
		}
	}
}
