package pairing

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/codes"
)

func (w *world) invite(inv codes.Invitation) (code string) {
	w.t.Helper()
	code, made, err := w.gate.Codes.Invite(ctx, inv, core.Actor{User: core.Operator, Via: "cli"})
	w.ok(err)
	if made.ID == "" || made.ExpiresAt.IsZero() || made.UsesLeft == 0 {
		w.t.Fatalf("made: %+v", made)
	}
	return code
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	w.ok(w.db.Get(ctx, &n, query, args...))
	return n
}

func TestAnInvitationEndsAndSoDoesTheAccessThatItGave(t *testing.T) {
	w := newWorld(t)
	code := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, Lasts: 48 * time.Hour, UsesLeft: 2, ExpiresAt: w.clock.Now().Add(24 * time.Hour)})
	w.put(command("dc", "9", "pair", code)) // another bot's
	if got := strings.Join(w.mail.said(), "|"); !strings.Contains(got, "invalid") {
		t.Errorf("an invitation to another bot: %q", got)
	}
	w.put(command("tg", "1", "pair", strings.ToLower(strings.ReplaceAll(code, "-", " ")))) // as people type
	if got := w.trust(dm("tg", "1", "x")); got != core.Vault {
		t.Fatalf("invited at %v", got)
	}
	if got := w.trust(inGroup(dm("tg", "1", "x"), "g")); got != core.Stranger {
		t.Errorf("it opened a group, at %v", got)
	}
	if got := w.trust(dm("tg2", "1", "x")); got != core.Stranger {
		t.Errorf("it opened another bot, at %v", got)
	}
	if list, err := w.gate.Codes.Invites(ctx); err != nil || len(list) != 1 || list[0].UsesLeft != 1 {
		t.Errorf("invitations: %+v, %v", list, err)
	}
	w.clock.Advance(24 * time.Hour)
	w.mail.said()
	w.put(command("tg", "2", "pair", code))
	if got := strings.Join(w.mail.said(), "|"); !strings.Contains(got, "invalid") || w.trust(dm("tg", "2", "x")) != core.Stranger {
		t.Errorf("an invitation that is over: %q", got)
	}
	if list, err := w.gate.Codes.Invites(ctx); err != nil || len(list) != 0 {
		t.Errorf("invitations: %+v, %v", list, err)
	}
	if _, err := w.gate.Expire(ctx); err != nil || w.count(`SELECT count(*) FROM invites`) != 0 {
		t.Error("an invitation that is over is kept")
	}
	w.clock.Advance(24 * time.Hour)
	if got := w.trust(dm("tg", "1", "x")); got != core.Stranger {
		t.Errorf("after two days still %v", got)
	}
	for _, inv := range []codes.Invitation{{Bot: "nobody"}, {Bot: "tg", Trust: core.Full}, {Bot: "tg", UsesLeft: -1}, {Bot: "tg", Scope: core.ScopeGroup}, {Bot: "tg", Lasts: time.Second},
		{Bot: "tg", ExpiresAt: w.clock.Now()}, {Bot: "tg", ExpiresAt: w.clock.Now().AddDate(2, 0, 0)}, {Bot: "tg", Place: "g"}, {Bot: "tg", Scope: "all"}} {
		_, _, err := w.gate.Codes.Invite(ctx, inv, core.Actor{User: core.Operator})
		wantKind(t, err, core.Invalid)
	}
}

// The link of an invitation is a /start: it works for those with access to direct messages too,
// and their other links are not tries of codes.
func TestALinkOfAnInvitationToAGroupWorksForSomeoneWithAccess(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.mail.said()
	for range 6 {
		if v := w.put(command("tg", "7", "start", "another-link")); v.Action != core.Run {
			t.Fatalf("a /start with another payload: %+v", v)
		}
	}
	code := w.invite(codes.Invitation{Bot: "tg", Scope: core.ScopeGroup, Place: "g", Trust: core.Sandboxed})
	v := w.put(command("tg", "7", "start", code))
	if said := strings.Join(w.mail.said(), "|"); v.Action == core.Run || !strings.Contains(said, "Your invitation is accepted") {
		t.Errorf("the link: %+v, %q", v, said)
	}
	if list, err := w.gate.Codes.Invites(ctx); err != nil || len(list) != 0 {
		t.Errorf("it is not used up: %+v, %v", list, err)
	}
	if got := w.trust(inGroup(dm("tg", "7", "x"), "g")); got != core.Sandboxed {
		t.Errorf("in the group: %v", got)
	}
	w.put(command("tg", "7", "start", w.invite(codes.Invitation{Bot: "tg"})))
	if said := strings.Join(w.mail.said(), "|"); !strings.Contains(said, "You have access already") {
		t.Errorf("an invitation to direct messages: %q", said)
	}
}

// What docs/chat.md states of invitations is what is accepted.
func TestTheBoundsOfInvitations(t *testing.T) {
	w := newWorld(t)
	docs, err := os.ReadFile("../docs/chat.md")
	w.ok(err)
	for _, stated := range []string{"for how many users (at most 1,000)", "for how long each gets access (at most ten years)", "It is valid for a week by default, at most for a year"} {
		if !strings.Contains(string(docs), stated) {
			t.Errorf("docs/chat.md does not state %q", stated)
		}
	}
	const year = 365 * 24 * time.Hour
	w.invite(codes.Invitation{Bot: "tg", UsesLeft: 1000, Lasts: 10 * year, ExpiresAt: w.clock.Now().Add(year)})
	for _, inv := range []codes.Invitation{{Bot: "tg", UsesLeft: 1001}, {Bot: "tg", Lasts: 10*year + time.Second}, {Bot: "tg", ExpiresAt: w.clock.Now().Add(year + time.Second)}} {
		_, _, err := w.gate.Codes.Invite(ctx, inv, core.Actor{User: core.Operator})
		wantKind(t, err, core.Invalid)
	}
}

func TestAnInvitationIsUsedUpHoweverManyTryAtOnce(t *testing.T) {
	w := newWorld(t)
	code := w.invite(codes.Invitation{Bot: "tg", UsesLeft: 3})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			in := command("tg", string(rune('a'+i)), "start", code)
			in.UpdateID = "x" + in.From.ID
			_ = w.db.Tx(ctx, func(tx *store.Tx) error { _, err := w.gate.Admit(ctx, tx, &in); return err })
		})
	}
	wg.Wait()
	if n := w.count(`SELECT count(*) FROM access WHERE bot = 'tg'`); n != 3 {
		t.Errorf("%d people came in by an invitation for 3", n)
	}
	if n := w.audits("invite.use"); n != 3 {
		t.Errorf("%d uses are in the audit log", n)
	}
}

func TestNoCodeOfAnInvitationOrLinkIsKeptOrLogged(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.admit("tg", "1", core.Sandboxed)
	invited := w.invite(codes.Invitation{Bot: "tg"})
	user, _, err := w.gate.People.User(ctx, w.db, peer("1"))
	w.ok(err)
	linked, _, err := w.gate.Codes.NewLink(ctx, user, core.Address{Bot: "tg", Chat: "c1"})
	w.ok(err)
	w.put(inGroup(command("tg", "2", "pair", invited), "g"))
	for _, code := range []string{invited, linked, codes.Plain(invited), codes.Plain(linked)} {
		for _, table := range []string{"invites", "link_codes", "audit_events", "metadata"} {
			var rows []string
			w.ok(w.db.Select(ctx, &rows, map[string]string{"invites": `SELECT id || hash FROM invites`, "link_codes": `SELECT hash || chat FROM link_codes`,
				"audit_events": `SELECT subject || coalesce(detail, '') FROM audit_events`, "metadata": `SELECT coalesce(value, '') FROM metadata`}[table]))
			if strings.Contains(strings.Join(rows, "\n"), code) {
				t.Errorf("%s keeps a code", table)
			}
		}
		if strings.Contains(log.String(), code) {
			t.Error("a code is in the log")
		}
	}
	if !strings.Contains(log.String(), "void") || w.count(`SELECT count(*) FROM invites`) != 0 {
		t.Error("a code that a group has read still works")
	}
}

func onDiscord(id, name, args string) core.Inbound {
	in := command("dc", id, name, args)
	in.From.Platform = "discord"
	return in
}

// Lessons of elsewhere: a grant of one account or bot must not become another's.
func TestALinkGivesNoOneWhatWasNotTheirs(t *testing.T) {
	var merged [][2]int64
	w := newWorld(t, func(o *Options) {
		o.Merge = func(_ context.Context, _ *store.Tx, from, to int64) error {
			merged = append(merged, [2]int64{from, to})
			return nil
		}
	})
	link := func(p core.Peer, bot, chat string) string {
		user, _, err := w.gate.People.User(ctx, w.db, p)
		w.ok(err)
		code, _, err := w.gate.Codes.NewLink(ctx, user, core.Address{Bot: bot, Chat: chat})
		w.ok(err)
		return code
	}
	yes := func(id, code string) core.Inbound {
		w.put(onDiscord(id, "link", code))
		in := onDiscord(id, "link", "yes")
		w.put(in)
		return in
	}
	w.admit("tg", "1", core.Vault)
	first := link(peer("1"), "tg", "c1")
	code := link(peer("1"), "tg", "c1") // voids the first
	yes("5", first)
	if w.count(`SELECT count(*) FROM identities WHERE platform = 'discord'`) != 0 {
		t.Error("a code that was replaced still links")
	}
	w.put(command("tg", "2", "link", code)) // a second account on the same platform
	w.put(command("tg", "2", "link", "yes"))
	if w.trust(dm("tg", "2", "x")) != core.Stranger {
		t.Error("a second account has what the first was given")
	}
	yes("5", code)
	msg := onDiscord("5", "", "x")
	msg.Kind = core.KindMessage
	if got := w.trust(msg); got != core.Stranger {
		t.Errorf("linked, and at %v where nobody let them in", got)
	}
	if a, _, _ := w.gate.People.User(ctx, w.db, msg.From); a == 0 || len(merged) != 0 {
		t.Errorf("the account is user %d's; merged %v", a, merged)
	}
	yes("6", code) // once
	if w.count(`SELECT count(*) FROM identities WHERE platform = 'discord'`) != 1 {
		t.Error("a code linked twice")
	}

	w.clock.Advance(time.Minute)
	w.admit("tg", "3", core.Sandboxed)
	late := link(peer("3"), "tg", "c3")
	w.clock.Advance(codes.LinkLife)
	yes("7", late)
	if w.count(`SELECT count(*) FROM identities WHERE platform = 'discord'`) != 1 {
		t.Error("a code that is over still links")
	}

	// the owner's account is nobody's to take, and what a blocked one says is not heard
	w.claim("tg", "4")
	taken := link(peer("3"), "tg", "c3")
	in := yes("4", link(peer("4"), "tg", "c4"))
	if got, role, _ := w.gate.People.User(ctx, w.db, in.From); got != core.Operator || role != "owner" {
		t.Errorf("the owner's second account is user %d (%s)", got, role)
	}
	yes("4", taken)
	if got, _, _ := w.gate.People.User(ctx, w.db, in.From); got != core.Operator {
		t.Errorf("the owner's account became user %d's", got)
	}
	if n := w.audits("identity.link"); n != 2 {
		t.Errorf("%d links in the audit log", n)
	}
}

// The attack: somebody with access makes a link code and passes it off as an
// invitation, or has it typed by somebody who does not know what it does.
func TestALinkCodePassedOffAsAnInvitationTakesNoOnesConversations(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Merge = func(_ context.Context, _ *store.Tx, from, to int64) error {
			t.Errorf("user %d's things are user %d's now", from, to)
			return nil
		}
	})
	w.admit("tg", "1", core.Sandboxed) // who attacks
	mallory, _, err := w.gate.People.User(ctx, w.db, peer("1"))
	w.ok(err)
	fresh := func() string {
		code, _, err := w.gate.Codes.NewLink(ctx, mallory, core.Address{Bot: "tg", Chat: "c1"})
		w.ok(err)
		return code
	}
	alone := func(how string) {
		t.Helper()
		if n := w.count(`SELECT count(*) FROM identities WHERE user_id = ` + fmt.Sprint(mallory)); n != 1 {
			t.Fatalf("%s: the attacker has %d accounts", how, n)
		}
	}
	victim := func(name, args string) string {
		t.Helper()
		before := len(w.mail.posts)
		w.put(onDiscord("5", name, args))
		if len(w.mail.posts) != before+1 {
			t.Fatalf("/%s %s: %d replies", name, args, len(w.mail.posts)-before)
		}
		return w.mail.posts[before].Parts[0].Text
	}

	code := fresh()
	for _, name := range []string{"pair", "start"} {
		code = fresh()
		if said := victim(name, code); !strings.Contains(said, "not an invitation") {
			t.Errorf("/%s with a link code says %q", name, said)
		}
		alone("/" + name)
	}
	if said := victim("link", code); !strings.Contains(said, "invalid") {
		t.Errorf("a code that was passed off still works: %q", said)
	}

	code = fresh()
	if said := victim("link", "yes"); !strings.Contains(said, "invalid") {
		t.Errorf("a yes to nothing: %q", said)
	}
	said := victim("link", code)
	for _, want := range []string{"telegram", "P1", "number 1", "all conversations", "cannot be undone", "/link yes"} {
		if !strings.Contains(said, want) {
			t.Errorf("what is asked lacks %q: %s", want, said)
		}
	}
	alone("the code alone")
	w.put(onDiscord("6", "link", "yes")) // not who was asked
	alone("another's yes")
	fresh() // the attacker swaps the code behind the question
	if said := victim("link", "yes"); !strings.Contains(said, "invalid") {
		t.Errorf("a yes to a code that was replaced: %q", said)
	}
	alone("a replaced code")
	victim("link", fresh())
	w.clock.Advance(codes.LinkLife)
	victim("link", "yes")
	alone("a late yes")
}

func TestAWithdrawnInvitationLetsNoOneIn(t *testing.T) {
	w := newWorld(t)
	code, _, err := w.gate.Codes.Invite(ctx, codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 100}, core.Actor{User: 7, Via: "panel"})
	w.ok(err)
	others := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault})
	w.put(command("tg", "1", "pair", code))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.gate.Codes.Withdraw(ctx, tx, 7) }))
	w.mail.said()
	w.put(command("tg", "2", "start", code))
	w.put(command("tg", "2", "pair", code))
	if got := strings.Join(w.mail.said(), "|"); !strings.Contains(got, "invalid") || w.trust(dm("tg", "2", "x")) != core.Stranger {
		t.Errorf("the code lets in: %q", got)
	}
	if w.trust(dm("tg", "1", "x")) != core.Vault {
		t.Error("who used it before lost their access")
	}
	if w.put(command("tg", "3", "pair", others)); w.trust(dm("tg", "3", "x")) != core.Vault {
		t.Error("the owner's invitation ended, too")
	}
}
