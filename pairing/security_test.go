package pairing

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/store"
)

var allKinds = []core.MessageKind{core.KindMessage, core.KindCommand, core.KindAnswer, core.KindCallback, core.KindEdit, core.KindReaction, core.KindService, "", "unheard of"}

// Lesson 17: side doors round the gate (reactions, callbacks before the check,
// edits, voice, a missing flag that defaults to true).
func TestLesson17NoKindOfUpdateByAStrangerRuns(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.admit("tg2", "7", core.Vault) // access, but to another bot
	w.ok(w.book.Enable(ctx, "tg2", "g", "G", core.Vault, panel))
	v := w.put(dm("tg", "6", "x"))
	_, err := w.book.Deny(ctx, v.Request, panel)
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
		err := w.db.Tx(ctx, func(tx *store.Tx) error {
			v, err := w.book.Admit(ctx, tx, &in)
			if err != nil {
				return err
			}
			if v.Action == Run || v.Trust != core.Stranger {
				t.Fatalf("%+v got %+v", in, v)
			}
			if v.Action == Hold && (in.Kind != core.KindMessage || v.Request == "") {
				t.Fatalf("%s got %+v", in.Kind, v)
			}
			trust, err := w.book.Trust(ctx, tx, &in)
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
func TestLesson16PairedIsNotOwner(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.admit("tg", "7", core.Stranger) // the preset
	if v := w.put(dm("tg", "7", "x")); v.Trust != core.Sandboxed {
		t.Fatalf("a paired person runs at %v", v.Trust)
	}
	id, role, err := w.book.User(ctx, w.db, peer("7"))
	if id == core.Operator || role != "guest" || err != nil {
		t.Fatalf("a paired person is user %d, %q, %v", id, role, err)
	}
	if id, role, _ := w.book.User(ctx, w.db, peer("8")); id != 0 || role != "" {
		t.Fatalf("a stranger is user %d, %q", id, role)
	}
	id, role, _ = w.book.User(ctx, w.db, peer("1"))
	if id != core.Operator || role != "owner" {
		t.Fatalf("the owner is user %d, %q", id, role)
	}
	if v := w.put(dm("tg", "1", "x")); v.Trust != core.Vault {
		t.Fatalf("the owner runs at %v in chat", v.Trust)
	}
}

// Lesson 18: no auto-approval by where something comes from.
func TestLesson18NothingIsApprovedByItself(t *testing.T) {
	w := newWorld(t)
	in := dm(core.APIBot, "1", "x")
	in.From.Platform, in.Turn = "api", &core.Options{User: core.Operator, Trust: core.Full}
	wantAction(t, w.put(in), Drop)
	if rs, _ := w.book.Requests(ctx, "", 0); len(rs) != 0 {
		t.Fatalf("an API request made a pairing request: %+v", rs)
	}
}

// Lesson 19: levels come from our record only, and nothing recorded is nothing.
func TestLesson19DamagedOrEmptyRecordsOpenNothing(t *testing.T) {
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
		if v := w.put(dm("tg", "7", "x")); v.Action == Run {
			t.Fatalf("a row with level %q gives %+v", level, v)
		}
	}
	w.ok(w.book.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE places SET level = 'everything'`)
		return err
	}))
	wantAction(t, w.put(inGroup(dm("tg", "8", "x"), "g")), Drop)
}

// Lesson 20: codes replayed, grants that cross accounts, bots, or DM and group.
func TestLesson20GrantsDoNotCross(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	code := w.pending().Code
	_, err := w.book.Approve(ctx, code, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	_, err = w.book.Approve(ctx, code, core.Approval{Trust: core.Vault}, panel)
	wantKind(t, err, core.Conflict) // single use
	_, err = w.book.Deny(ctx, v.Request, panel)
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
func TestLesson27OneOfManyDecidersWins(t *testing.T) {
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
					_, err = w.book.Approve(ctx, v.Request, core.Approval{}, by)
				} else {
					_, err = w.book.Deny(ctx, v.Request, by)
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
			if core.KindOf(err) != core.Conflict || !strings.Contains(text, "by operator via "+won[0]+" at 03:04 UTC") || !strings.HasPrefix(text, "already ") {
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
func TestLesson28HostileNamesAreCleanedAndTextsCut(t *testing.T) {
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
	_, err := w.book.Approve(ctx, v.Request, core.Approval{}, panel)
	w.ok(err)
	place := inGroup(dm("tg", "7", "x"), "g")
	place.PlaceName = "\u202eGroup\n<b>"
	w.put(place)
	ps, err := w.book.Places(ctx)
	w.ok(err)
	if len(ps) != 1 || ps[0].Name != "Group <b>" {
		t.Fatalf("groups %+v", ps)
	}
	var detail string
	w.ok(w.db.Get(ctx, &detail, `SELECT group_concat(coalesce(detail, '') || subject) FROM audit_events`))
	if strings.Contains(detail, "Admin") {
		t.Fatalf("a name in the audit: %s", detail)
	}
}

func TestSharedIdsAndBotsAreNobody(t *testing.T) {
	w := newWorld(t)
	w.ok(w.book.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	for _, kind := range allKinds {
		for _, p := range []core.Peer{{Platform: "telegram", ID: "1087968824", Shared: true}, {Platform: "telegram", ID: "5", Bot: true}, {}} {
			for _, in := range []core.Inbound{dm("tg", "", "x"), inGroup(dm("tg", "", "x"), "g"), inGroup(command("tg", "", "disable", ""), "g")} {
				in.From = p
				if in.Kind == core.KindMessage {
					in.Kind = kind
				}
				wantAction(t, w.put(in), Drop)
			}
		}
	}
	if rs, _ := w.book.Requests(ctx, "", 0); len(rs) != 0 {
		t.Fatalf("requests by nobody: %+v", rs)
	}
}

func TestClaim(t *testing.T) {
	w := newWorld(t)
	w.put(dm("tg", "1", "hello?")) // the owner may have written first
	code, expires, err := w.book.NewClaim(ctx, false)
	w.ok(err)
	if !expires.Equal(w.clock.Now().Add(ClaimLife)) {
		t.Fatalf("expires %v", expires)
	}
	stored, _, _ := store.Metadata(ctx, w.db, claimKey)
	if strings.Contains(stored, strings.ReplaceAll(code, "-", "")) || strings.Contains(stored, code) {
		t.Fatal("the code itself is stored")
	}
	w.mail.said()
	wantAction(t, w.put(command("tg", "1", "claim", " "+strings.ToLower(code)+" ")), Drop)
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "You are the owner now") {
		t.Fatalf("told %q", said)
	}
	if !slices.Equal(w.mail.freed, []string{"hello?@vault"}) {
		t.Fatalf("what the owner wrote before: %v", w.mail.freed)
	}
	if has, err := w.book.HasOwner(ctx); !has || err != nil {
		t.Fatalf("HasOwner %v %v", has, err)
	}
	chats, err := w.book.OwnerChats(ctx, w.db, "tg")
	if err != nil || len(chats) != 1 || chats[0] != (core.Address{Bot: "tg", Chat: "c1"}) {
		t.Fatalf("owner's chats %+v %v", chats, err)
	}
	wantAction(t, w.put(command("tg", "2", "claim", code)), Drop) // single use
	if id, _, _ := w.book.User(ctx, w.db, peer("2")); id != 0 {
		t.Fatalf("a used code made user %d", id)
	}
	_, _, err = w.book.NewClaim(ctx, false)
	wantKind(t, err, core.Conflict)
	if n := w.audits("owner.claim"); n != 1 {
		t.Fatalf("%d audit rows for one claim", n)
	}
	if w.trust(dm("tg2", "1", "")) != core.Stranger {
		t.Fatal("the claim of one bot opens another")
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
	code, _, err := w.book.NewClaim(ctx, true)
	w.ok(err)
	on("dc", "discord", "900", code)
	if w.trust(dm("tg", "1", "")) != core.Vault {
		t.Fatal("a claim on Discord took the account on Telegram")
	}
	code, _, err = w.book.NewClaim(ctx, true)
	w.ok(err)
	on("tg", "telegram", "2", code)
	if got := w.trust(dm("tg", "1", "")); got != core.Stranger {
		t.Fatalf("the replaced account still runs at %v", got)
	}
	if id, _, _ := w.book.User(ctx, w.db, peer("1")); id != 0 {
		t.Fatalf("the replaced account is user %d", id)
	}
	if id, role, _ := w.book.User(ctx, w.db, peer("2")); id != core.Operator || role != "owner" {
		t.Fatalf("the new one is user %d, %q", id, role)
	}
	if !slices.Contains(w.runs.runs, "tg/1") {
		t.Fatalf("the replaced account's runs go on: %v", w.runs.runs)
	}
}

func TestClaimGuessingIsLimited(t *testing.T) {
	w := newWorld(t)
	code, _, err := w.book.NewClaim(ctx, false)
	w.ok(err)
	for range claimTries {
		w.put(command("tg", "66", "claim", "AAAAAAAAAA"))
	}
	if said := w.mail.said(); len(said) != claimTries || !strings.Contains(said[4], "not looked at for an hour") {
		t.Fatalf("told %q", said)
	}
	w.put(command("tg", "66", "claim", code)) // even the right one
	if has, _ := w.book.HasOwner(ctx); has || len(w.mail.said()) != 0 {
		t.Fatal("a silenced person is listened to")
	}
	for i := range claimVoid - claimTries - 1 {
		w.put(command("tg", fmt.Sprint(1000+i), "claim", "BBBBBBBBBB"))
	}
	w.put(command("tg", "9", "claim", strings.Repeat("9", 1<<16)))
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.book.HasOwner(ctx); has {
		t.Fatal("fifty wrong tries did not void the code")
	}
	w.clock.Advance(claimSilent + time.Minute)
	code, _, err = w.book.NewClaim(ctx, false)
	w.ok(err)
	w.put(command("tg", "66", "claim", code)) // the hour is over
	if has, _ := w.book.HasOwner(ctx); !has {
		t.Fatal("still silenced after an hour")
	}
	w.clock.Advance(2 * time.Hour)
	if _, err := w.book.Expire(ctx); err != nil {
		t.Fatal(err)
	}
	if _, there, _ := store.Metadata(ctx, w.db, triersKey); there {
		t.Fatal("old tries are kept")
	}
}

func TestClaimExpiresAndIsVoidInAGroup(t *testing.T) {
	w := newWorld(t)
	code, _, err := w.book.NewClaim(ctx, false)
	w.ok(err)
	w.clock.Advance(ClaimLife)
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.book.HasOwner(ctx); has {
		t.Fatal("an old code works")
	}
	code, _, err = w.book.NewClaim(ctx, false)
	w.ok(err)
	w.mail.said()
	w.ok(w.book.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	wantAction(t, w.put(inGroup(command("tg", "1", "claim", code), "g")), Drop)
	if said := w.mail.said(); len(said) != 0 {
		t.Fatalf("said in the group: %q", said)
	}
	w.put(command("tg", "1", "claim", code))
	if has, _ := w.book.HasOwner(ctx); has {
		t.Fatal("a code that a whole group has read still works")
	}
}

func TestOnlyTheOwnerDecidesAboutTheOwner(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	admin := core.Actor{User: 5, Via: "chat"}
	_, err := w.book.Revoke(ctx, "tg", "1", admin)
	wantKind(t, err, core.Denied)
	wantKind(t, w.book.BlockUser(ctx, "*", "telegram", "1", admin), core.Denied)
	rows, err := w.book.Access(ctx, 0)
	w.ok(err)
	wantKind(t, w.book.RemoveAccess(ctx, rows[0].ID, admin), core.Denied)
	_, err = w.book.Revoke(ctx, "tg", "1", panel) // a stolen account
	w.ok(err)
	if _, role, _ := w.book.User(ctx, w.db, peer("1")); role != "guest" {
		t.Fatalf("a revoked account is still %q", role)
	}
	wantAction(t, w.put(inGroup(command("tg", "1", "enable", ""), "g")), Drop)
}

// What somebody may do in a group, by the group, the sender and the update.
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
					user, err := w.book.ensureUser(ctx, tx, "telegram", "7", "")
					if err != nil {
						return err
					}
					return putAccess(ctx, tx, accessRow{Bot: "tg", User: user, Scope: core.ScopeGroup, Place: "g", Trust: c.own, At: core.Stamp(tx.Time())})
				}))
			}
			if c.place != out {
				w.ok(w.book.Enable(ctx, "tg", "g", "G", c.place, panel))
			}
			w.mail.said()
			in := inGroup(dm("tg", "7", "x"), "g")
			in.Kind, in.Command, in.Addressed = c.kind, c.command, c.addressed
			v := w.put(in)
			if v.Trust != c.want || (v.Action == Run) != (c.want != out) || v.Action == Hold {
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

func TestGroupsThatNobodyEnabledAreListedOnceAndBounded(t *testing.T) {
	w := newWorld(t)
	w.put(inGroup(dm("tg", "7", "x"), "first"))
	w.put(inGroup(dm("tg", "7", "x"), "first"))
	w.ok(w.book.Enable(ctx, "tg", "kept", "K", core.Stranger, panel))
	w.ok(w.book.Disable(ctx, "tg", "kept", panel))
	ps, err := w.book.Places(ctx)
	w.ok(err)
	if len(ps) != 2 || ps[0].Place != "first" || ps[0].Enabled || ps[0].By != "" || ps[1].Name != "K" || ps[1].Enabled || ps[1].By != "operator via panel" {
		t.Fatalf("groups %+v", ps)
	}
	for i := range maxSeen {
		w.clock.Advance(time.Second)
		w.put(inGroup(dm("tg", "7", "x"), fmt.Sprint("p", i)))
	}
	ps, err = w.book.Places(ctx)
	w.ok(err)
	if len(ps) != maxSeen+1 || slices.ContainsFunc(ps, func(p PlaceRow) bool { return p.Place == "first" }) || !slices.ContainsFunc(ps, func(p PlaceRow) bool { return p.Place == "kept" }) {
		t.Fatalf("%d groups are kept; the oldest note should be gone, a decision should stay", len(ps))
	}
}

func TestDisabledGroupRefusesWhatWaits(t *testing.T) {
	w := newWorld(t)
	w.ok(w.book.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	in := inGroup(dm("tg", "7", "x"), "g")
	wantAction(t, w.put(in), Run)
	w.ok(w.book.Enable(ctx, "tg", "g", "", core.Sandboxed, panel))
	if got := w.trust(in); got != core.Sandboxed {
		t.Fatalf("a lowered group's message runs at %v", got)
	}
	w.ok(w.book.Disable(ctx, "tg", "g", panel))
	if got := w.trust(in); got != core.Stranger {
		t.Fatalf("a disabled group's message runs at %v", got)
	}
	wantKind(t, w.book.Enable(ctx, "tg", "g", "", core.Full, panel), core.Invalid)
}

func TestMoveAndForget(t *testing.T) {
	w := newWorld(t)
	w.ok(w.book.Enable(ctx, "tg", "old", "G", core.Vault, panel))
	w.put(inGroup(dm("tg", "7", "x"), "new")) // seen under the new id first
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.book.Move(ctx, tx, "tg", "old", "new") }))
	if got := w.trust(inGroup(dm("tg", "9", "x"), "new")); got != core.Vault {
		t.Fatalf("after the move the group runs at %v", got)
	}
	w.admit("tg", "7", core.Vault)
	id, _, _ := w.book.User(ctx, w.db, peer("7"))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.book.Forget(ctx, tx, id) }))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		t.Fatalf("a forgotten person runs at %v", got)
	}
	w.admit("tg", "7", core.Vault)
	if again, _, _ := w.book.User(ctx, w.db, peer("7")); again == id {
		t.Fatal("a forgotten person's id was used again")
	}
	err := w.db.Tx(ctx, func(tx *store.Tx) error { return w.book.Forget(ctx, tx, core.Operator) })
	wantKind(t, err, core.Invalid)
}

func TestMetricsStartAtZeroAndCount(t *testing.T) {
	w := newWorld(t)
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, []string{"tg"})
	NewMetrics(reg, []string{"tg"}) // gatehouse_denied_total may be there already
	reg.MustRegister(w.book.Gauges())
	w.book.o.Metrics = m
	if n, err := testutil.GatherAndCount(reg, "gatehouse_pairing_total", "gatehouse_denied_total"); err != nil || n != len(Decisions)+len(Rules) {
		t.Fatalf("%d series at the start, %v", n, err)
	}
	w.put(dm("tg", "7", "x"))
	want := `
# HELP gatehouse_pairing_pending Pairing requests that wait for a decision.
# TYPE gatehouse_pairing_pending gauge
gatehouse_pairing_pending{bot="dc"} 0
gatehouse_pairing_pending{bot="tg"} 1
gatehouse_pairing_pending{bot="tg2"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gatehouse_pairing_pending"); err != nil {
		t.Fatal(err)
	}
	if got := testutil.ToFloat64(m.decisions.WithLabelValues("tg", "requested")); got != 1 {
		t.Fatalf("requested %v", got)
	}
	if got := testutil.ToFloat64(m.denied.WithLabelValues(ruleStranger)); got != 1 {
		t.Fatalf("denied %v", got)
	}
}

// A known person's message is looked up in one query, by index only.
func TestAdmitOfAKnownPersonReadsByIndex(t *testing.T) {
	w := newWorld(t)
	var plan []struct {
		ID     int    `db:"id"`
		Parent int    `db:"parent"`
		Unused int    `db:"notused"`
		Detail string `db:"detail"`
	}
	w.ok(w.db.Select(ctx, &plan, "EXPLAIN QUERY PLAN "+personQuery, "telegram", "7", "tg", "dm", ""))
	tables := 0
	for _, step := range plan {
		if strings.HasPrefix(step.Detail, "SCAN") && !strings.Contains(step.Detail, "CONSTANT ROW") && step.Detail != "SCAN one" {
			t.Errorf("step %q reads a whole table", step.Detail)
		}
		if strings.HasPrefix(step.Detail, "SEARCH") {
			tables++
		}
	}
	if tables < 4 {
		t.Errorf("plan %+v", plan)
	}
}

func BenchmarkAdmitKnownPerson(b *testing.B) {
	w := newWorld(b)
	w.admit("tg", "7", core.Vault)
	in := dm("tg", "7", "x")
	err := w.db.Tx(ctx, func(tx *store.Tx) error {
		for b.Loop() {
			if v, err := w.book.Admit(ctx, tx, &in); err != nil || v.Action != Run {
				return fmt.Errorf("%+v %v", v, err)
			}
		}
		return nil
	})
	w.ok(err)
}

func TestEveryTextRuns(t *testing.T) {
	for _, tm := range texts.Templates() {
		if tm.Name() == "texts" {
			continue
		}
		part, err := say(tm.Name(), words{Code: "ABCD2345"})
		if err != nil || part.Text == "" || len(part.Text) > 1500 {
			t.Errorf("%s: %v, %q", tm.Name(), err, part.Text)
		}
		for _, s := range part.Spans {
			if part.Text[s.Offset:s.Offset+s.Length] != "ABCD2345" {
				t.Errorf("%s: the styled piece is %q", tm.Name(), part.Text[s.Offset:s.Offset+s.Length])
			}
		}
	}
}
