package pairing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/codes"
)

func TestClaim(t *testing.T) {
	w := newWorld(t)
	w.put(dm("tg", "1", "hello?")) // the owner may have written first
	code, expires, err := w.gate.Codes.NewClaim(ctx, false)
	w.ok(err)
	if !expires.Equal(w.clock.Now().Add(codes.ClaimLife)) {
		t.Fatalf("expires %v", expires)
	}
	stored, _, _ := store.Metadata(ctx, w.db, "pairing.claim")
	if strings.Contains(stored, strings.ReplaceAll(code, "-", "")) || strings.Contains(stored, code) {
		t.Fatal("the code itself is stored")
	}
	w.mail.said()
	wantAction(t, w.put(command("tg", "1", "claim", " "+strings.ToLower(code)+" ")), core.Drop)
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "You are the owner now") {
		t.Fatalf("told %q", said)
	}
	if !slices.Equal(w.mail.freed, []string{"hello?@vault"}) {
		t.Fatalf("what the owner wrote before: %v", w.mail.freed)
	}
	if has, err := w.gate.HasOwner(ctx); !has || err != nil {
		t.Fatalf("HasOwner %v %v", has, err)
	}
	chats, err := w.gate.People.OwnerChats(ctx, w.db, "tg")
	if err != nil || len(chats) != 1 || chats[0] != (core.Address{Bot: "tg", Chat: "c1"}) {
		t.Fatalf("owner's chats %+v %v", chats, err)
	}
	wantAction(t, w.put(command("tg", "2", "claim", code)), core.Drop) // single use
	if id, _, _ := w.gate.People.User(ctx, w.db, peer("2")); id != 0 {
		t.Fatalf("a used code made user %d", id)
	}
	_, _, err = w.gate.Codes.NewClaim(ctx, false)
	wantKind(t, err, core.Conflict)
	if n := w.audits("owner.claim"); n != 1 {
		t.Fatalf("%d audit rows for one claim", n)
	}
	if w.trust(dm("tg2", "1", "")) != core.Stranger {
		t.Fatal("the claim of one bot opens another")
	}
}

// A new owner is shown the requests that came before the claim, the longest waiting
// first, and where there are many, that there are more.
func TestANewOwnerIsShownTheRequestsThatWait(t *testing.T) {
	w := newWorld(t)
	w.put(dm("tg2", "500", "to another bot"))
	w.put(dm("tg", "499", "too old"))
	w.clock.Advance(RequestLife)
	w.put(dm("tg", "1", "I am the owner"))
	shown := func() (out []string) {
		for _, r := range w.asks.opened {
			out = append(out, r.FirstMessage)
		}
		w.asks.opened = nil
		return out
	}
	var want []string
	for i := range showWaiting {
		w.clock.Advance(time.Second)
		want = append(want, fmt.Sprint("stranger ", i))
		w.put(dm("tg", fmt.Sprint(100+i), want[i]))
	}
	shown()
	w.mail.said()
	w.claim("tg", "1")
	if got := shown(); !slices.Equal(got, want) {
		t.Fatalf("the new owner is shown %q, want %q", got, want)
	}
	if said := w.mail.said(); len(said) != 1 {
		t.Fatalf("told %q", said)
	}
	w.clock.Advance(time.Second)
	w.put(dm("tg", "200", "one more"))
	shown()
	w.mail.said()
	code, _, err := w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	w.put(command("tg", "2", "claim", code))
	if got := shown(); !slices.Equal(got, want) {
		t.Fatalf("the next owner is shown %q, want %q", got, want)
	}
	if said := w.mail.said(); len(said) != 2 || said[1] != "c2: More requests wait. They are in the admin panel under Pairing." {
		t.Fatalf("told %q", said)
	}
}

// With too many questions open, requests are shown by the panel alone.
func TestANewOwnerIsNotifiedOfRequestsForWhichThereIsNoRoom(t *testing.T) {
	for _, room := range []int{0, 1} {
		w := newWorld(t)
		w.put(dm("tg", "100", "one"))
		w.put(dm("tg", "101", "two"))
		w.asks.opened, w.asks.room = nil, room+1
		w.mail.said()
		w.claim("tg", "1")
		if n := len(w.asks.opened); n != room {
			t.Errorf("with room for %d requests %d are shown", room, n)
		}
		if said := w.mail.said(); len(said) != 2 || said[1] != "c1: More requests wait. They are in the admin panel under Pairing." {
			t.Errorf("with room for %d requests: %q", room, said)
		}
	}
}

func TestAClaimWithdrawsWhatTheOwnerBeforeWasShown(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.put(dm("tg", "100", "one"))
	w.asks.withdrawn = 0
	code, _, err := w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	w.put(command("tg", "2", "claim", code))
	if w.asks.withdrawn != 1 || len(w.asks.opened) != 1 {
		t.Errorf("%d requests are withdrawn, %d are shown to the new owner", w.asks.withdrawn, len(w.asks.opened))
	}
}

// A code that replaces the owner is used up by whoever used it: the next one to
// read it in the chat's history gets nothing.
func TestClaimCodeThatReplacesTheOwnerWorksOnce(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	code, _, err := w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	wantAction(t, w.put(command("tg", "2", "claim", code)), core.Drop)
	if _, role, _ := w.gate.People.User(ctx, w.db, peer("2")); role != "owner" {
		t.Fatalf("whoever had the code is %q", role)
	}
	wantAction(t, w.put(command("tg", "3", "claim", code)), core.Drop)
	if id, role, _ := w.gate.People.User(ctx, w.db, peer("3")); id != 0 {
		t.Fatalf("a used code made user %d, %q", id, role)
	}
	if _, role, _ := w.gate.People.User(ctx, w.db, peer("2")); role != "owner" {
		t.Fatalf("the owner is %q after somebody else's try", role)
	}
}

func TestClaimReplacesTheAccountOnThatPlatformOnly(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	on := func(bot, platform, id, code string) {
		in := command(bot, id, "claim", code)
		in.From.Platform = platform
		w.put(in)
	}
	code, _, err := w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	on("dc", "discord", "900", code)
	if w.trust(dm("tg", "1", "")) != core.Vault {
		t.Fatal("a claim on Discord took the account on Telegram")
	}
	code, _, err = w.gate.Codes.NewClaim(ctx, true)
	w.ok(err)
	on("tg", "telegram", "2", code)
	if got := w.trust(dm("tg", "1", "")); got != core.Stranger {
		t.Fatalf("the replaced account still runs at %v", got)
	}
	if id, _, _ := w.gate.People.User(ctx, w.db, peer("1")); id != 0 {
		t.Fatalf("the replaced account is user %d", id)
	}
	if id, role, _ := w.gate.People.User(ctx, w.db, peer("2")); id != core.Operator || role != "owner" {
		t.Fatalf("the new one is user %d, %q", id, role)
	}
	if !slices.Contains(w.runs.runs, "tg/1") {
		t.Fatalf("the replaced account's runs go on: %v", w.runs.runs)
	}
}

func TestClaimGuessingIsLimited(t *testing.T) {
	w := newWorld(t)
	code, _, err := w.gate.Codes.NewClaim(ctx, false)
	w.ok(err)
	for range 5 {
		w.put(command("tg", "66", "claim", "AAAAAAAAAA"))
	}
	if said := w.mail.said(); len(said) != 5 || !strings.Contains(said[4], "I ignore further ones for an hour") {
		t.Fatalf("told %q", said)
	}
	w.put(command("tg", "66", "claim", code)) // even the right one
	if has, _ := w.gate.HasOwner(ctx); has || len(w.mail.said()) != 0 {
		t.Fatal("a silenced person is listened to")
	}
	for i := range 50 - 5 - 1 {
		w.put(command("tg", fmt.Sprint(1000+i), "claim", "BBBBBBBBBB"))
	}
	w.put(command("tg", "9", "claim", strings.Repeat("9", 1<<16)))
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.gate.HasOwner(ctx); has {
		t.Fatal("fifty wrong tries did not void the code")
	}
	w.clock.Advance(time.Hour + time.Minute)
	code, _, err = w.gate.Codes.NewClaim(ctx, false)
	w.ok(err)
	w.put(command("tg", "66", "claim", code)) // the hour is over
	if has, _ := w.gate.HasOwner(ctx); !has {
		t.Fatal("still silenced after an hour")
	}
	w.clock.Advance(2 * time.Hour)
	if _, err := w.gate.Expire(ctx); err != nil {
		t.Fatal(err)
	}
	if _, there, _ := store.Metadata(ctx, w.db, "pairing.triers"); there {
		t.Fatal("old tries are kept")
	}
}

// Whom the bot does not answer by its policy, or was denied, does not learn by a wrong code that
// it listens.
func TestAClaimIsNotAnsweredWhereTheBotIsSilent(t *testing.T) {
	for name, silent := range map[string]func(w *world){
		"disabled": func(w *world) { w.pol["tg"] = bots.Policy{Platform: "telegram", DM: bots.Disabled} },
		"allowlist": func(w *world) {
			w.pol["tg"] = bots.Policy{Platform: "telegram", DM: bots.Allowlist, Allowed: []string{"8"}}
		},
		"denied": func(w *world) {
			_, err := w.gate.Deny(ctx, w.put(dm("tg", "7", "let me in")).Request, panel)
			w.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			silent(w)
			w.mail.said()
			for range 6 {
				w.put(command("tg", "7", "claim", "AAAAAAAAAA"))
			}
			if said := w.mail.said(); len(said) != 0 {
				t.Errorf("said %q", said)
			}
			w.clock.Advance(2 * time.Hour)
			w.claim("tg", "7")
			if has, err := w.gate.HasOwner(ctx); err != nil || !has || len(w.mail.said()) == 0 {
				t.Errorf("the right code is not heard: %v", err)
			}
		})
	}
}

func TestClaimExpiresAndIsVoidInAGroup(t *testing.T) {
	w := newWorld(t)
	code, _, err := w.gate.Codes.NewClaim(ctx, false)
	w.ok(err)
	w.clock.Advance(codes.ClaimLife)
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.gate.HasOwner(ctx); has {
		t.Fatal("an old code works")
	}
	code, _, err = w.gate.Codes.NewClaim(ctx, false)
	w.ok(err)
	w.mail.said()
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	wantAction(t, w.put(inGroup(command("tg", "1", "claim", code), "g")), core.Drop)
	if said := w.mail.said(); len(said) != 0 {
		t.Fatalf("said in the group: %q", said)
	}
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.gate.HasOwner(ctx); has {
		t.Fatal("a code that a whole group has read still works")
	}
}
