package ask

import (
	"context"
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
		in(func(ctx context.Context, tx *store.Tx) error { return p.Open(ctx, tx, r) })
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

type chats []string

func (c *chats) OwnerChats(_ context.Context, _ store.Queryer, bot string) (out []core.Address, err error) {
	for _, chat := range *c {
		out = append(out, core.Address{Bot: bot, Chat: chat})
	}
	return out, nil
}

func (c *chats) Name(context.Context, store.Queryer, int64) (string, error) { return "", nil }

// mailed notes in which chats requests are shown.
type mailed struct{ to []string }

func (m *mailed) Post(_ context.Context, _ *store.Tx, r core.Reply) error {
	if len(r.Parts[0].Buttons) > 0 {
		m.to = append(m.to, r.Chat)
	}
	return nil
}

func (m *mailed) Posted(context.Context, *store.Tx, string) ([]core.Reply, error) { return nil, nil }
