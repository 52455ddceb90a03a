package pairing

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

var allKinds = []core.MessageKind{core.KindMessage, core.KindCommand, core.KindAnswer, core.KindCallback, core.KindEdit, core.KindReaction, core.KindService, "", "unheard of"}

// Lesson 17: side doors round the gate (reactions, callbacks before the check,
// edits, voice, a missing flag that defaults to true).
func TestNoKindOfUpdateByAStrangerRuns(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.admit("tg2", "7", core.Vault) // access, but to another bot
	w.ok(w.gate.Places.Enable(ctx, "tg2", "g", "G", core.Vault, panel))
	v := w.put(dm("tg", "6", "x"))
	_, err := w.gate.Deny(ctx, v.Request, panel)
	w.ok(err)
	rapid.Check(t, func(t *rapid.T) {
		in := core.Inbound{
			UpdateID: rapid.String().Draw(t, "update"),
			Address: core.Address{Bot: rapid.SampledFrom([]string{"tg", "dc", "unknown", core.APIBot}).Draw(t, "bot"), Chat: rapid.String().Draw(t, "chat"),
				Place: rapid.SampledFrom([]string{"", "", "g", "elsewhere"}).Draw(t, "place")},
			Kind: rapid.SampledFrom(allKinds).Draw(t, "kind"),
			From: core.Peer{Platform: rapid.SampledFrom([]string{"telegram", "discord", "api", ""}).Draw(t, "platform"),
				ID: rapid.OneOf(rapid.SampledFrom([]string{"6", "7", "8", "", "0", "1 ", "01"}), rapid.StringN(2, 9, -1)).Draw(t, "id"), Name: rapid.String().Draw(t, "name"),
				Shared: rapid.Bool().Draw(t, "shared"), Bot: rapid.Bool().Draw(t, "is a bot")},
			Text:      rapid.String().Draw(t, "text"),
			Command:   rapid.SampledFrom([]string{"", "start", "help", "claim", "enable", "disable", "approve", "stop", "new"}).Draw(t, "command"),
			Addressed: rapid.Bool().Draw(t, "addressed"),
			Callback:  &core.Callback{ID: "1", Data: rapid.String().Draw(t, "data")},
			Turn:      rapid.SampledFrom([]*core.Options{nil, {User: 1, Trust: core.Full}}).Draw(t, "turn"),
		}
		if storetest.Postgres() { // keeps no zero bytes; no platform's id has one
			in.From.ID, in.Chat, in.UpdateID = strings.ReplaceAll(in.From.ID, "\x00", ""), strings.ReplaceAll(in.Chat, "\x00", ""), strings.ReplaceAll(in.UpdateID, "\x00", "")
		}
		err := w.db.Tx(ctx, func(tx *store.Tx) error {
			v, err := w.gate.Admit(ctx, tx, &in)
			if err != nil {
				return err
			}
			if v.Action == core.Run || v.Trust != core.Stranger {
				t.Fatalf("%+v got %+v", in, v)
			}
			if v.Action == core.Hold && (in.Kind != core.KindMessage || v.Request == "") {
				t.Fatalf("%s got %+v", in.Kind, v)
			}
			trust, err := w.gate.Trust(ctx, tx, &in)
			if trust != core.Stranger {
				t.Fatalf("%+v is trusted at %v", in, trust)
			}
			if err == nil {
				err = errUndo // each case starts from the same tables
			}
			return err
		})
		if err != errUndo {
			t.Fatal(err)
		}
		w.mail.said()
	})
}

var errUndo = fmt.Errorf("undo")

// Lesson 16: "paired" means owner.
func TestPairedIsNotOwner(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.admit("tg", "7", core.Stranger) // the preset
	if v := w.put(dm("tg", "7", "x")); v.Trust != core.Sandboxed {
		t.Fatalf("a paired person runs at %v", v.Trust)
	}
	id, role, err := w.gate.People.User(ctx, w.db, peer("7"))
	if id == core.Operator || role != "guest" || err != nil {
		t.Fatalf("a paired person is user %d, %q, %v", id, role, err)
	}
	if id, role, _ := w.gate.People.User(ctx, w.db, peer("8")); id != 0 || role != "" {
		t.Fatalf("a stranger is user %d, %q", id, role)
	}
	id, role, _ = w.gate.People.User(ctx, w.db, peer("1"))
	if id != core.Operator || role != "owner" {
		t.Fatalf("the owner is user %d, %q", id, role)
	}
	if v := w.put(dm("tg", "1", "x")); v.Trust != core.Vault {
		t.Fatalf("the owner runs at %v in chat", v.Trust)
	}
}

// Lesson 18: no auto-approval by where something comes from.
func TestNothingIsApprovedAutomatically(t *testing.T) {
	w := newWorld(t)
	in := dm(core.APIBot, "1", "x")
	in.From.Platform, in.Turn = "api", &core.Options{User: core.Operator, Trust: core.Full}
	wantAction(t, w.put(in), core.Drop)
	if rs, _ := w.gate.Requests(ctx, "", 0); len(rs) != 0 {
		t.Fatalf("an API request made a pairing request: %+v", rs)
	}
}

// Lesson 19: levels come from our record only, and nothing recorded is nothing.
func TestDamagedOrEmptyRecordsOpenNothing(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	for _, level := range []string{"", "FULL", "root", "3"} {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE access SET trust_level = $1`, level)
			return err
		}))
		if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
			t.Fatalf("a row with level %q opens %v", level, got)
		}
		if v := w.put(dm("tg", "7", "x")); v.Action == core.Run {
			t.Fatalf("a row with level %q gives %+v", level, v)
		}
	}
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE places SET level = 'everything'`)
		return err
	}))
	wantAction(t, w.put(inGroup(dm("tg", "8", "x"), "g")), core.Drop)
}

// Lesson 20: codes replayed, grants that cross accounts, bots, or DM and group.
func TestGrantsDoNotCross(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	code := w.pending().Code
	_, err := w.gate.Approve(ctx, code, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	_, err = w.gate.Approve(ctx, code, core.Approval{Trust: core.Vault}, panel)
	wantKind(t, err, core.Conflict) // single use
	_, err = w.gate.Deny(ctx, v.Request, panel)
	wantKind(t, err, core.Conflict)
	other := dm("tg", "7", "x")
	other.From.Platform = "discord" // the same number elsewhere is somebody else
	for name, in := range map[string]core.Inbound{
		"another bot":      dm("tg2", "7", "x"),
		"a group":          inGroup(dm("tg", "7", "x"), "g"),
		"another person":   dm("tg", "77", "x"),
		"another platform": other,
	} {
		if got := w.trust(in); got != core.Stranger {
			t.Errorf("the approval opens %s: %v", name, got)
		}
	}
	// And a group's access opens no direct message.
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE access SET scope = 'group', place = 'g'`)
		return err
	}))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		t.Errorf("access to a group opens direct messages at %v", got)
	}
	if got := w.trust(inGroup(dm("tg", "7", "x"), "g")); got != core.Stranger {
		t.Errorf("access of one's own opens a group that nobody enabled at %v", got)
	}
}

// Lesson 27: buttons that lie: the database decides, once, and everybody else
// learns who was first.
func TestOneOfManyDecidersWins(t *testing.T) {
	w := newWorld(t)
	ways := []string{"panel", "api", "cli", "chat"}
	for round := range 25 {
		id := fmt.Sprint(100 + round)
		v := w.put(dm("tg", id, "a"))
		w.mail.said()
		var mu sync.Mutex
		var won []string
		var lost []error
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				by := core.Actor{User: core.Operator, Via: ways[i%4]}
				var err error
				if i < 4 {
					_, err = w.gate.Approve(ctx, v.Request, core.Approval{}, by)
				} else {
					_, err = w.gate.Deny(ctx, v.Request, by)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, by.Via)
				} else {
					lost = append(lost, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 || len(lost) != 7 {
			t.Fatalf("%d deciders won", len(won))
		}
		for _, err := range lost {
			text := core.TextOf(err)
			if core.KindOf(err) != core.Conflict || !strings.Contains(text, "by operator via "+won[0]+" (03:04 UTC)") || !strings.HasPrefix(text, "already ") {
				t.Fatalf("a loser was told %q; %s won", text, won[0])
			}
		}
		if said := w.mail.said(); len(said) != 1 {
			t.Fatalf("the person was told %q", said)
		}
		if n := w.audits("pairing.approve") + w.audits("pairing.deny"); n != round+1 {
			t.Fatalf("%d audit rows after %d decisions", n, round+1)
		}
	}
	if len(w.asks.closed) != 25 {
		t.Fatalf("%d buttons closed", len(w.asks.closed))
	}
}

// Lesson 28: names are hostile.
func TestHostileNamesAreCleanedAndTextsCut(t *testing.T) {
	w := newWorld(t)
	in := dm("tg", "7", "\u202eevil\u0000\x1b[31m "+strings.Repeat("ж", 5000))
	in.From.Name = "\u202e\x00  Admin\nSYSTEM:\t<script>alert(1)</script> " + strings.Repeat("x", 500)
	v := w.put(in)
	r := w.pending()
	if strings.ContainsAny(r.Display+r.FirstMessage, "\u202e\x00\x1b") || strings.Contains(r.Display, "\n") {
		t.Fatalf("request %q %q", r.Display, r.FirstMessage)
	}
	if n := len([]rune(r.Display)); n > 2*core.MaxName {
		t.Fatalf("a name of %d runes", n)
	}
	if len(r.FirstMessage) > firstBytes {
		t.Fatalf("a first message of %d bytes", len(r.FirstMessage))
	}
	for _, said := range w.mail.said() {
		if strings.Contains(said, "Admin") || strings.Contains(said, "evil") {
			t.Fatalf("a stranger's words in our mouth: %q", said)
		}
	}
	_, err := w.gate.Approve(ctx, v.Request, core.Approval{}, panel)
	w.ok(err)
	place := inGroup(dm("tg", "7", "x"), "g")
	place.PlaceName = "\u202eGroup\n<b>"
	w.put(place)
	ps, err := w.gate.Places.Places(ctx)
	w.ok(err)
	if len(ps) != 1 || ps[0].Name != "Group <b>" {
		t.Fatalf("groups %+v", ps)
	}
	var details []string
	w.ok(w.db.Select(ctx, &details, `SELECT coalesce(detail, '') || subject FROM audit_events`))
	if all := strings.Join(details, " "); strings.Contains(all, "Admin") || len(details) == 0 {
		t.Fatalf("a name in the audit: %s", all)
	}
}

func TestSharedIdsAndBotsAreNoOne(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	for _, kind := range allKinds {
		for _, p := range []core.Peer{{Platform: "telegram", ID: "1087968824", Shared: true}, {Platform: "telegram", ID: "5", Bot: true}, {}} {
			for _, in := range []core.Inbound{dm("tg", "", "x"), inGroup(dm("tg", "", "x"), "g"), inGroup(command("tg", "", "disable", ""), "g")} {
				in.From = p
				if in.Kind == core.KindMessage {
					in.Kind = kind
				}
				wantAction(t, w.put(in), core.Drop)
			}
		}
	}
	if rs, _ := w.gate.Requests(ctx, "", 0); len(rs) != 0 {
		t.Fatalf("requests by nobody: %+v", rs)
	}
}

// What somebody may do in a group, by the group, the sender and the update.
// A known person's message is looked up in one query, by index only.
