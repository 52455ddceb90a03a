package ask

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A request is shown once in each chat, also when it is shown again because the
// owner has a new chat, and again after it was decided and that was undone.
func TestARequestIsShownOnceInEachChat(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	m := &mailed{}
	people := &chats{"owner"}
	p := &Pairings{Asks: ask.New(db, clock), Mail: m, People: people}
	r := core.PairingRequest{ID: "r1", Bot: "tg", Display: "Ada", PlatformUserID: "7", Code: "K7M2Q9XT", FirstMessage: "hello"}
	in := func(f func(ctx context.Context, tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return f(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	open := func(want ...string) {
		t.Helper()
		m.to = nil
		in(func(ctx context.Context, tx *store.Tx) error {
			everywhere, err := p.Open(ctx, tx, r)
			if !everywhere {
				t.Error("not shown everywhere")
			}
			return err
		})
		if !slices.Equal(m.to, want) {
			t.Errorf("shown in %q, want %q", m.to, want)
		}
	}
	open("owner")
	open()
	*people = chats{"owner", "new"}
	open("new")
	in(func(ctx context.Context, tx *store.Tx) error { return p.Close(ctx, tx, r.ID, "Ada: denied.") })
	open("owner", "new")
}

// An expired request loses its buttons, also where upkeep comes to the questions first.
func TestTheCardOfARequestThatExpiresIsReplaced(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	m, asks := &mailed{}, ask.New(db, clock)
	p := &Pairings{Asks: asks, Mail: m, People: &chats{"owner"}}
	r := core.PairingRequest{ID: "r1", Bot: "tg", ExpiresAt: clock.Now().Add(time.Hour)}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := p.Open(t.Context(), tx, r); return err }); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Hour)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		if _, err := asks.Expire(t.Context(), tx); err != nil {
			return err
		}
		return p.Close(t.Context(), tx, r.ID, "expired")
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"owner"}; !slices.Equal(m.edited, want) {
		t.Errorf("replaced in %q, want %q", m.edited, want)
	}
}

// Each edit of a card is a message of its own to the outbox, which takes none twice.
func TestACardIsEditedForEachEditAndEachCode(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	m := &mailed{}
	p := &Pairings{Asks: ask.New(db, clock), Mail: m, People: &chats{"owner"}}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		if _, err := p.Open(t.Context(), tx, core.PairingRequest{ID: "r1", Bot: "tg", Code: "A"}); err != nil {
			return err
		}
		for _, edit := range []struct {
			code string
			n    int
		}{{"B", 0}, {"B", 1}, {"C", 1}, {"C", 1}} {
			if err := p.Update(t.Context(), tx, core.PairingRequest{ID: "r1", Bot: "tg", Code: edit.code}, edit.n); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(m.keys)
	if got := slices.Compact(m.keys); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func TestRequestsAreWithdrawnFromChatsThatLostAccess(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	m, people := &mailed{}, &chats{"owner", "admin"}
	p := &Pairings{Asks: ask.New(db, clock), Mail: m, People: people}
	in := func(f func(ctx context.Context, tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return f(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"r1", "r2"} {
		in(func(ctx context.Context, tx *store.Tx) error {
			_, err := p.Open(ctx, tx, core.PairingRequest{ID: id, Bot: "tg"})
			return err
		})
	}
	*people = chats{"new", "admin"}
	for range 2 {
		in(p.Withdraw)
	}
	if want := []string{"owner", "owner"}; !slices.Equal(m.edited, want) {
		t.Errorf("edited in %q, want %q", m.edited, want)
	}
	in(func(ctx context.Context, tx *store.Tx) error {
		var open []string
		err := tx.Select(ctx, &open, `SELECT chat FROM asks WHERE state = 'open'`)
		if !slices.Equal(open, []string{"admin", "admin"}) {
			t.Errorf("open in %q", open)
		}
		return err
	})
}

func TestOpenReportsThatTooManyQuestionsWait(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	p := &Pairings{Asks: ask.New(db, clock), Mail: &mailed{}, People: &chats{"owner"}}
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range 100 {
			everywhere, err := p.Open(t.Context(), tx, core.PairingRequest{ID: fmt.Sprint("r", i), Bot: "tg"})
			if err != nil || !everywhere {
				return err
			}
		}
		t.Error("100 requests are shown")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

type chats []string

func (c *chats) OwnerChats(_ context.Context, _ store.Queryer, bot string) (out []core.Address, err error) {
	for _, chat := range *c {
		out = append(out, core.Address{Bot: bot, Chat: chat})
	}
	return out, nil
}

func (c *chats) Name(context.Context, store.Queryer, int64) (string, error) { return "", nil }

// mailed notes in which chats requests are shown, and in which they are replaced.
type mailed struct{ to, edited, keys []string }

func (m *mailed) Post(_ context.Context, _ *store.Tx, r core.Reply) error {
	if len(r.Parts[0].Buttons) > 0 {
		m.to = append(m.to, r.Chat)
	}
	m.keys = append(m.keys, fmt.Sprint(r.Key, "/", r.First))
	if r.Replaces != "" {
		m.edited = append(m.edited, r.Chat)
	}
	return nil
}

func (m *mailed) Posted(context.Context, *store.Tx, string) ([]core.Reply, error) { return nil, nil }
