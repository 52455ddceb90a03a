package chat

import (
	"log/slog"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/places"
)

func TestMain(m *testing.M) { storetest.Main(m) }

type ignored struct{}

func (ignored) Decided(*store.Tx, string, string, ...core.Topic) {}
func (ignored) Forget(core.Address, bool)                        {}

// What /enable refuses changes nothing: a group that is closed stays so, and one that is
// enabled keeps its level and settings.
func TestARefusedEnableLeavesTheGroupClosed(t *testing.T) {
	db := storetest.Open(t, nil)
	b := bots.New(func() []bots.Bot { return []bots.Bot{{Name: "tg", Platform: "telegram"}} }, func(string) bots.Policy { return bots.Policy{Platform: "telegram"} })
	g := &groups{db, places.New(db, b, ignored{}, slog.New(slog.DiscardHandler)), ignored{}}
	at := core.Address{Bot: "tg", Chat: "g", Place: "g"}
	enable := func(args string) error {
		_, err := g.enable(t.Context(), command.Request{User: 1, Role: core.RoleOwner, Call: command.Call{In: &core.Inbound{Address: at, Text: args, PlaceName: "Garden"}}})
		return err
	}
	row := func() (r places.Row) {
		rows, err := g.groups.Places(t.Context())
		if err != nil || len(rows) > 1 {
			t.Fatalf("%+v, %v", rows, err)
		}
		for _, r = range rows {
			r.At = r.At.UTC()
		}
		return r
	}
	refused := map[string]string{"vault 20/48h": "a second to a day", "vault context 20000/60s": "10,000", "all 5/1ms": "a second to a day", "full": "sandboxed or vault", "vault 20/x": "20/60s", "vault valut": "“valut”"}
	for args, want := range refused {
		if err := enable(args); !strings.Contains(core.TextOf(err), want) {
			t.Errorf("/enable %s: %v, want %q", args, err, want)
		}
		if r := row(); r.Enabled || r.By != "" {
			t.Errorf("/enable %s was refused, and the group is %+v", args, r)
		}
	}
	if err := enable("sandboxed mention 20/60s"); err != nil {
		t.Fatal(err)
	}
	before := row()
	for args := range refused {
		if err := enable(args); err == nil {
			t.Errorf("/enable %s is accepted in an enabled group", args)
		}
		if now := row(); now != before {
			t.Errorf("/enable %s was refused, and the group is %+v, was %+v", args, now, before)
		}
	}
}
