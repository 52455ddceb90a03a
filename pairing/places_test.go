package pairing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
)

func TestPlaceRules(t *testing.T) {
	const (
		out = core.Stranger
		box = core.Sandboxed
		vlt = core.Vault
	)
	for _, c := range []struct {
		name      string
		place     core.Trust // the group's level; out: not enabled
		own       core.Trust // the sender's own access to this group
		dm        core.Trust // the sender's access to direct messages
		owner     bool
		kind      core.MessageKind
		command   string
		addressed bool
		want      core.Trust
	}{
		{name: "not enabled, stranger", place: out, kind: core.KindMessage, addressed: true, want: out},
		{name: "not enabled, person of the DM", place: out, dm: vlt, kind: core.KindMessage, addressed: true, want: out},
		{name: "not enabled, own access", place: out, own: vlt, kind: core.KindMessage, addressed: true, want: out},
		{name: "not enabled, owner talks", place: out, owner: true, kind: core.KindMessage, addressed: true, want: out},
		{name: "not enabled, owner enables", place: out, owner: true, kind: core.KindCommand, command: "enable", addressed: true, want: box},
		{name: "not enabled, owner disables", place: out, owner: true, kind: core.KindCommand, command: "disable", addressed: true, want: box},
		{name: "not enabled, owner enables another bot", place: out, owner: true, kind: core.KindCommand, command: "enable", want: out},
		{name: "not enabled, owner's other command", place: out, owner: true, kind: core.KindCommand, command: "status", addressed: true, want: out},
		{name: "not enabled, an edit that says enable", place: out, owner: true, kind: core.KindEdit, command: "enable", addressed: true, want: out},
		{name: "not enabled, stranger enables", place: out, kind: core.KindCommand, command: "enable", addressed: true, want: out},
		{name: "not enabled, guest enables", place: out, dm: vlt, kind: core.KindCommand, command: "enable", addressed: true, want: out},
		{name: "enabled, others run at its level", place: vlt, kind: core.KindMessage, addressed: true, want: vlt},
		{name: "enabled, others, not addressed", place: vlt, kind: core.KindMessage, want: out},
		{name: "enabled, own lower than its level", place: vlt, own: box, kind: core.KindMessage, addressed: true, want: box},
		{name: "enabled, own higher than its level", place: box, own: vlt, kind: core.KindMessage, addressed: true, want: box},
		{name: "enabled, DM access counts nothing", place: box, dm: vlt, kind: core.KindMessage, addressed: true, want: box},
		{name: "enabled, the owner too", place: box, owner: true, kind: core.KindMessage, addressed: true, want: box},
		{name: "enabled, command", place: box, kind: core.KindCommand, command: "help", addressed: true, want: box},
		{name: "enabled, command for another bot", place: box, kind: core.KindCommand, command: "help", want: out},
		{name: "enabled, button", place: box, kind: core.KindCallback, want: box},
		{name: "enabled, reaction", place: box, kind: core.KindReaction, want: out},
		{name: "enabled, edit not addressed", place: box, kind: core.KindEdit, want: out},
		{name: "enabled, service", place: box, kind: core.KindService, want: out},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.owner {
				w.claim("tg", "7")
			}
			if c.dm != out {
				w.admit("tg", "7", c.dm)
			}
			if c.own != out {
				w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
					user, err := w.gate.People.Ensure(ctx, tx, "telegram", "7", "")
					if err != nil {
						return err
					}
					return w.gate.People.Put(ctx, tx, people.Grant{Bot: "tg", User: user, Scope: core.ScopeGroup, Place: "g", Trust: c.own, At: core.Stamp(tx.Time())})
				}))
			}
			if c.place != out {
				w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", c.place, panel))
			}
			w.mail.said()
			in := inGroup(dm("tg", "7", "x"), "g")
			in.Kind, in.Command, in.Addressed = c.kind, c.command, c.addressed
			v := w.put(in)
			if v.Trust != c.want || (v.Action == core.Run) != (c.want != out) || v.Action == core.Hold {
				t.Fatalf("%+v, want trust %q", v, c.want)
			}
			if got := w.trust(in); got != c.want {
				t.Fatalf("at its turn %q, want %q", got, c.want)
			}
			if said := w.mail.said(); len(said) != 0 {
				t.Fatalf("said %q", said)
			}
		})
	}
}

// A message that waits is answered as its sender edited it, where it did not have to be addressed.
func TestAnEditPassesAsItsMessageDid(t *testing.T) {
	for mention, want := range map[string]core.Action{places.MentionAll: core.Run, places.MentionOnly: core.Drop, places.MentionContext: core.Drop} {
		t.Run(mention, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
			w.ok(w.gate.Places.SetPlace(ctx, "tg", "g", places.Settings{Mention: mention}, panel))
			in := inGroup(dm("tg", "7", "x"), "g")
			in.Addressed, in.MessageID = false, "1"
			if v := w.put(in); v.Action != want || v.Overheard != (mention == places.MentionContext) {
				t.Errorf("the message: %+v", v)
			}
			in.Kind, in.Edit, in.Text = core.KindEdit, "1", "y"
			if v := w.put(in); v.Action != want || v.Overheard {
				t.Errorf("its edit: %+v", v)
			}
			in.Text = "/help"
			if v := w.put(in); v.Action != core.Drop {
				t.Errorf("an edit to another bot's command: %+v", v)
			}
		})
	}
}

func TestGroupsThatNoOneEnabledAreListedOnceAndBounded(t *testing.T) {
	w := newWorld(t)
	w.put(inGroup(dm("tg", "7", "x"), "first"))
	w.put(inGroup(dm("tg", "7", "x"), "first"))
	w.ok(w.gate.Places.Enable(ctx, "tg", "kept", "K", core.Stranger, panel))
	w.ok(w.gate.Places.Disable(ctx, "tg", "kept", panel))
	ps, err := w.gate.Places.Places(ctx)
	w.ok(err)
	if len(ps) != 2 || ps[0].Place != "first" || ps[0].Enabled || ps[0].By != "" || ps[1].Name != "K" || ps[1].Enabled || ps[1].By != "operator via panel" {
		t.Fatalf("groups %+v", ps)
	}
	for i := range 1000 {
		w.clock.Advance(time.Second)
		w.put(inGroup(dm("tg", "7", "x"), fmt.Sprint("p", i)))
	}
	ps, err = w.gate.Places.Places(ctx)
	w.ok(err)
	if len(ps) != 1000+1 || slices.ContainsFunc(ps, func(p places.Row) bool { return p.Place == "first" }) || !slices.ContainsFunc(ps, func(p places.Row) bool { return p.Place == "kept" }) {
		t.Fatalf("%d groups are kept; the oldest note should be gone, a decision should stay", len(ps))
	}
}

func TestDisabledGroupRefusesWhatWaits(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	in := inGroup(dm("tg", "7", "x"), "g")
	wantAction(t, w.put(in), core.Run)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "", core.Sandboxed, panel))
	if got := w.trust(in); got != core.Sandboxed {
		t.Fatalf("a lowered group's message runs at %v", got)
	}
	w.ok(w.gate.Places.Disable(ctx, "tg", "g", panel))
	if got := w.trust(in); got != core.Stranger {
		t.Fatalf("a disabled group's message runs at %v", got)
	}
	wantKind(t, w.gate.Places.Enable(ctx, "tg", "g", "", core.Full, panel), core.Invalid)
}

// "/enable context" changes how a group is heard, not what it may do: a level
// that the owner chose stays, also over a time in which the group was disabled.
func TestEnablingWithoutALevelKeepsTheOneThatWasChosen(t *testing.T) {
	w := newWorld(t)
	level := func() (l core.Trust) {
		w.ok(w.db.Get(t.Context(), &l, `SELECT level FROM places WHERE place = 'g'`))
		return l
	}
	w.ok(w.gate.Places.Enable(t.Context(), "tg", "g", "G", core.Stranger, panel))
	preset := level()
	chosen := core.Vault
	if preset == chosen {
		chosen = core.Sandboxed
	}
	w.ok(w.gate.Places.Enable(t.Context(), "tg", "g", "G", chosen, panel))
	w.ok(w.gate.Places.Enable(t.Context(), "tg", "g", "G", core.Stranger, panel))
	if got := level(); got != chosen {
		t.Errorf("enabled again at %s, chosen was %s", got, chosen)
	}
	w.ok(w.gate.Places.Disable(t.Context(), "tg", "g", panel))
	w.ok(w.gate.Places.Enable(t.Context(), "tg", "g", "G", core.Stranger, panel))
	if got := level(); got != chosen {
		t.Errorf("enabled after a pause at %s, chosen was %s", got, chosen)
	}
}
