package pairing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/pairing/bots"
)

func TestFirstMessageIsHeldAndAnsweredAfterApproval(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		v := w.put(dm("tg", "7", fmt.Sprint("message ", i)))
		if i < maxHeld {
			wantAction(t, v, core.Hold)
		} else {
			wantAction(t, v, core.Drop)
		}
	}
	r := w.pending()
	if r.Held != maxHeld || r.FirstMessage != "message 0" || len(r.Code) != 8 || r.Display != "P7" {
		t.Fatalf("request %+v", r)
	}
	said := w.mail.said()
	if len(said) != 1 || !strings.Contains(said[0], r.Code) || !strings.HasPrefix(said[0], "c7: ") {
		t.Fatalf("the stranger was told %q", said)
	}
	if len(w.asks.opened) != 1 || w.asks.opened[0].Code != r.Code {
		t.Fatalf("the owner was shown %+v", w.asks.opened)
	}
	got, err := w.gate.Approve(ctx, r.Code[:4]+"-"+strings.ToLower(r.Code[4:]), core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if got.Status != "approved" || got.ApprovedTrustLevel != core.Vault || got.ResolvedBy != "operator via panel" {
		t.Fatalf("approved request %+v", got)
	}
	want := []string{"message 0@vault", "message 1@vault", "message 2@vault", "message 3@vault", "message 4@vault"}
	if !slices.Equal(w.mail.freed, want) {
		t.Fatalf("freed %q, want %q", w.mail.freed, want)
	}
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "Your request was approved") {
		t.Fatalf("the person was told %q", said)
	}
	if len(w.asks.closed) != 1 || w.asks.closed[0] != r.ID+" P7: approved as vault by operator via panel." {
		t.Fatalf("the owner's buttons ended as %q", w.asks.closed)
	}
	if v := w.put(dm("tg", "7", "and now?")); v.Action != core.Run || v.Trust != core.Vault {
		t.Fatalf("after approval %+v", v)
	}
	if n := w.audits("pairing.approve"); n != 1 {
		t.Fatalf("%d audit rows for one approval", n)
	}
}

// The owner is shown the first message as its sender edited it last, whatever else
// is edited, also when the bot's policy has changed since.
func TestAnEditOfTheFirstHeldMessageIsShownToTheOwner(t *testing.T) {
	w := newWorld(t)
	write := func(id, text string, kind core.MessageKind) core.Verdict {
		in := dm("tg", "7", text)
		in.MessageID, in.Kind = id, kind
		return w.put(in)
	}
	picture := dm("tg", "7", "")
	picture.MessageID = "1"
	w.put(picture)
	write("2", "hi", core.KindMessage)
	write("3", "hi", core.KindMessage)
	for _, c := range []struct{ id, text, first string }{
		{"9", "of an unknown message", "hi"},
		{"3", "the second text", "hi"},
		{"2", "the first text", "the first text"},
		{"1", "a caption", "a caption"},
	} {
		wantAction(t, write(c.id, c.text, core.KindEdit), core.Drop)
		if r := w.pending(); r.FirstMessage != c.first || r.Held != 3 {
			t.Errorf("after the edit %q the owner is shown %+v", c.text, r)
		}
	}
	w.pol["tg"] = bots.Policy{Platform: "telegram", DM: bots.Disabled}
	wantAction(t, write("1", "another caption", core.KindEdit), core.Drop)
	r := w.pending()
	if r.FirstMessage != "another caption" {
		t.Errorf("under another policy the owner is shown %+v", r)
	}
	_, err := w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if want := []string{"another caption@vault", "the first text@vault", "the second text@vault"}; !slices.Equal(w.mail.freed, want) {
		t.Errorf("freed %q, want %q", w.mail.freed, want)
	}
}

// The owner sees the edits of a message in chat at most every 30 seconds, the newest
// at last.
func TestEditsOfAHeldMessageAreShownInChatTogether(t *testing.T) {
	w := newWorld(t)
	write := func(text string, kind core.MessageKind) {
		in := dm("tg", "7", text)
		in.MessageID, in.Kind = "1", kind
		w.put(in)
	}
	refresh := func(want int) {
		t.Helper()
		if n, err := w.gate.RefreshCards(ctx); err != nil || n != want {
			t.Errorf("%d requests are shown again, %v, want %d", n, err, want)
		}
	}
	write("one", core.KindMessage)
	refresh(0)
	for _, text := range []string{"two", "three", "four"} {
		write(text, core.KindEdit)
		w.clock.Advance(time.Second)
	}
	refresh(0)
	if want := []string{"1 two"}; !slices.Equal(w.asks.shown, want) {
		t.Errorf("shown %q, want %q", w.asks.shown, want)
	}
	w.clock.Advance(cardEvery)
	refresh(1)
	refresh(0)
	w.clock.Advance(cardEvery)
	write("four", core.KindEdit) // no other text
	write("five", core.KindEdit)
	if want := []string{"1 two", "3 four", "5 five"}; !slices.Equal(w.asks.shown, want) {
		t.Errorf("shown %q, want %q", w.asks.shown, want)
	}
	write("six", core.KindEdit)
	w.clock.Advance(cardEvery)
	r := w.pending()
	_, err := w.gate.Deny(ctx, r.ID, panel)
	w.ok(err)
	refresh(0)
	_, err = w.gate.Undo(ctx, r.ID, panel)
	w.ok(err)
	refresh(0) // it was shown as it is
}

func TestEditsOfAStrangerCountLikeTheirMessages(t *testing.T) {
	w := newWorld(t)
	write := func(id int, text string, kind core.MessageKind) core.Verdict {
		in := dm("tg", "7", text)
		in.MessageID, in.Kind = strconv.Itoa(id), kind
		return w.put(in)
	}
	wantAction(t, write(1, "message 1", core.KindMessage), core.Hold)
	for i := 1; i < maxTaken; i++ {
		write(1, fmt.Sprint("edit ", i), core.KindEdit)
	}
	if r := w.pending(); r.FirstMessage != fmt.Sprint("edit ", maxTaken-1) {
		t.Errorf("the owner is shown %q", r.FirstMessage)
	}
	write(1, "one edit more", core.KindEdit)
	wantAction(t, write(2, "one message more", core.KindMessage), core.Drop)
	r := w.pending()
	if r.FirstMessage != fmt.Sprint("edit ", maxTaken-1) || r.Held != 1 {
		t.Errorf("over the limit the owner is shown %+v", r)
	}
	_, err := w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if want := []string{r.FirstMessage + "@vault"}; !slices.Equal(w.mail.freed, want) {
		t.Errorf("freed %q, want what the owner was shown: %q", w.mail.freed, want)
	}
}

func TestCodeRotatesAfterAnHourAndIsReportedOncePerTenMinutes(t *testing.T) {
	w := newWorld(t)
	w.put(dm("tg", "7", "a"))
	first := w.pending().Code
	w.clock.Advance(9 * time.Minute)
	w.put(dm("tg", "7", "b"))
	if said := w.mail.said(); len(said) != 1 {
		t.Fatalf("told %d times in nine minutes", len(said))
	}
	w.clock.Advance(50 * time.Minute)
	w.put(command("tg", "7", "start", ""))
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], first) {
		t.Fatalf("after 59 minutes told %q, want the same code %s", said, first)
	}
	w.clock.Advance(11 * time.Minute)
	if _, err := w.gate.Approve(ctx, first, core.Approval{}, panel); core.KindOf(err) != core.NotFound {
		t.Fatalf("an old code approved: %v", err)
	}
	w.put(command("tg", "7", "help", ""))
	second := w.pending().Code
	if said := w.mail.said(); second == first || len(said) != 1 || !strings.Contains(said[0], second) {
		t.Fatalf("after 70 minutes told %q; code %s then %s", said, first, second)
	}
	w.clock.Advance(-48 * time.Hour) // a clock set back must not silence anybody for days
	w.put(dm("tg", "7", "c"))
	if said := w.mail.said(); len(said) != 1 {
		t.Fatalf("with the clock set back told %q", said)
	}
}

// The stranger names the code to the owner, who looks for it on the card.
func TestTheOwnersCardShowsTheCodeThatTheStrangerHasNow(t *testing.T) {
	w := newWorld(t)
	refreshed := func(want int) {
		t.Helper()
		if n, err := w.gate.RefreshCards(ctx); err != nil || n != want {
			t.Errorf("%d cards are edited, %v, want %d", n, err, want)
		}
	}
	w.put(dm("tg", "7", "a"))
	w.clock.Advance(15 * time.Minute)
	w.put(dm("tg", "7", "b")) // the same code again
	refreshed(0)
	w.clock.Advance(CodeLife)
	w.put(dm("tg", "7", "c"))
	refreshed(1)
	if want := []string{w.pending().Code}; !slices.Equal(w.asks.codes, want) {
		t.Errorf("the card shows %q, want %q", w.asks.codes, want)
	}
	refreshed(0)
}

func TestRequestLivesFourteenDays(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	w.clock.Advance(RequestLife - time.Minute)
	if n, err := w.gate.Expire(ctx); n != 0 || err != nil {
		t.Fatalf("expired %d, %v before its time", n, err)
	}
	w.clock.Advance(2 * time.Minute)
	_, err := w.gate.Approve(ctx, v.Request, core.Approval{}, panel)
	wantKind(t, err, core.Conflict)
	if n, err := w.gate.Expire(ctx); n != 1 || err != nil {
		t.Fatalf("expired %d, %v", n, err)
	}
	if len(w.mail.held) != 0 {
		t.Fatalf("still held: %v", w.mail.held)
	}
	wantAction(t, w.put(dm("tg", "7", "again")), core.Hold)
	if w.pending().ID == v.Request {
		t.Fatal("the expired request was revived")
	}
}

func TestDeniedOnceToldThenSilenceThenMayAskAgain(t *testing.T) {
	w := newWorld(t)
	for range 3 { // any number of times
		v := w.put(dm("tg", "7", "a"))
		wantAction(t, v, core.Hold)
		w.mail.said()
		_, err := w.gate.Deny(ctx, v.Request, panel)
		w.ok(err)
		if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "denied") {
			t.Fatalf("told %q", said)
		}
		w.clock.Advance(CoolOff - time.Minute)
		wantAction(t, w.put(dm("tg", "7", "b")), core.Drop)
		wantAction(t, w.put(command("tg", "7", "start", "")), core.Drop)
		if said := w.mail.said(); len(said) != 0 {
			t.Fatalf("in the cool-off told %q", said)
		}
		if _, err := w.gate.Expire(ctx); err != nil || len(w.mail.held) != 0 {
			t.Fatalf("what a denied person wrote is kept: %v, %v", w.mail.held, err)
		}
		w.clock.Advance(2 * time.Minute)
	}
	if n := w.audits("pairing.deny"); n != 3 {
		t.Fatalf("%d audit rows for three denials", n)
	}
}

func TestUndoWithinTenSeconds(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	for name, decide := range map[string]func() error{
		"deny":  func() error { _, err := w.gate.Deny(ctx, v.Request, panel); return err },
		"block": func() error { _, err := w.gate.Block(ctx, v.Request, panel); return err },
	} {
		w.ok(decide())
		if len(w.mail.held[v.Request]) == 0 {
			t.Fatalf("%s lost the message before it could be undone", name)
		}
		if r, err := w.gate.Request(ctx, v.Request); err != nil || r.Blocked != (name == "block") {
			t.Fatalf("after %s: %+v %v", name, r, err)
		}
		w.clock.Advance(9 * time.Second)
		r, err := w.gate.Undo(ctx, v.Request, panel)
		w.ok(err)
		if r.Status != "pending" || r.Blocked || w.trust(dm("tg", "7", "")) != core.Stranger {
			t.Fatalf("after undoing %s: %+v", name, r)
		}
		if v := w.put(dm("tg", "7", "b")); v.Action != core.Hold {
			t.Fatalf("after undoing %s the person gets %+v", name, v)
		}
	}
	if n, _ := w.gate.People.Access(ctx, 0); len(n) != 0 {
		t.Fatalf("access left: %+v", n)
	}
	if bl, _ := w.gate.People.Blocks(ctx); len(bl) != 0 {
		t.Fatalf("blocks left: %+v", bl)
	}
	_, err := w.gate.Deny(ctx, v.Request, panel)
	w.ok(err)
	w.clock.Advance(11 * time.Second)
	_, err = w.gate.Undo(ctx, v.Request, panel)
	wantKind(t, err, core.Conflict)
}

// The held messages are released with the approval: their answers may be out.
func TestAnApprovalIsRevokedNotUndone(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.gate.Approve(ctx, v.Request, core.Approval{}, panel)
	w.ok(err)
	_, err = w.gate.Undo(ctx, v.Request, panel)
	wantKind(t, err, core.Conflict)
	if !strings.Contains(err.Error(), "revoke the access instead") || w.trust(dm("tg", "7", "")) != core.Sandboxed {
		t.Fatalf("%v; trust %v", err, w.trust(dm("tg", "7", "")))
	}
}

func TestABlockIsShownAsABlockWithItsName(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.gate.Block(ctx, v.Request, panel)
	w.ok(err)
	if len(w.asks.closed) != 1 || w.asks.closed[0] != v.Request+" P7: blocked by operator via panel." {
		t.Errorf("the owner's buttons ended as %q", w.asks.closed)
	}
	_, err = w.gate.Deny(ctx, v.Request, panel)
	if err == nil || !strings.Contains(err.Error(), "already blocked by operator via panel") {
		t.Errorf("a decision after it: %v", err)
	}
	w.ok(w.gate.People.BlockUser(ctx, bots.Every, "telegram", "99", panel)) // never wrote
	w.put(dm("tg", "8", "b"))
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "8", panel))
	blocks, err := w.gate.People.Blocks(ctx)
	w.ok(err)
	names := map[string]string{}
	for _, b := range blocks {
		names[b.PlatformUserID] = b.Display
	}
	if want := map[string]string{"7": "P7", "8": "P8", "99": ""}; !maps.Equal(names, want) {
		t.Errorf("blocked are %v, want %v", names, want)
	}
	requests, err := w.gate.Requests(ctx, "denied", 10)
	w.ok(err)
	for _, r := range requests {
		if !r.Blocked {
			t.Errorf("the request of %s is not shown as blocked", r.PlatformUserID)
		}
	}
	if len(requests) != 2 {
		t.Errorf("%d denied requests", len(requests))
	}
}

func TestFloodOfStrangersPutsOutNoRealRequest(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.put(dm("tg", fmt.Sprint(1000+i), "spam"))
	}
	rs, err := w.gate.Requests(ctx, "pending", 0)
	w.ok(err)
	if len(rs) != maxPending {
		t.Fatalf("%d wait, want %d", len(rs), maxPending)
	}
	for _, r := range rs {
		if r.PlatformUserID >= "1100" {
			t.Fatalf("%s came after the list was full and put out an earlier one", r.PlatformUserID)
		}
	}
	wantAction(t, w.put(dm("tg2", "5", "another bot's list is its own")), core.Hold)
	w.clock.Advance(25 * time.Hour)
	wantAction(t, w.put(dm("tg", "7", "a day later")), core.Hold)
	rs, err = w.gate.Requests(ctx, "pending", 0)
	w.ok(err)
	if len(rs) != maxPending+1 { // and the other bot's
		t.Fatalf("%d wait, want %d", len(rs), maxPending+1)
	}
	for i := range 300 { // whoever empties the list is not flooded without end
		rs, err := w.gate.Requests(ctx, "pending", 1)
		w.ok(err)
		_, err = w.gate.Deny(ctx, rs[0].ID, panel)
		w.ok(err)
		w.put(dm("tg", fmt.Sprint(5000+i), "spam"))
	}
	var n int
	w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM pairing_requests WHERE bot = 'tg' AND created_at > $1`, core.Stamp(w.clock.Now().Add(-time.Hour))))
	if n > newPerHour {
		t.Fatalf("%d new requests in an hour", n)
	}
}

// A key at sandboxed that approves without naming a level gives no more than its own.
func TestAnApprovalGivesNoMoreThanItsBoundAlsoByThePreset(t *testing.T) {
	w := newWorld(t)
	w.pol["tg"] = bots.Policy{Platform: "telegram", DM: bots.Pairing, DMTrust: core.Vault}
	w.put(dm("tg", "1", "hello"))
	id := w.pending().ID
	for _, a := range []core.Approval{{Most: core.Sandboxed}, {Trust: core.Vault, Most: core.Sandboxed}} {
		if _, err := w.gate.Approve(ctx, id, a, core.Actor{User: 7, Via: "api"}); core.KindOf(err) != core.Denied {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if w.pending().ID != id || w.trust(dm("tg", "1", "x")) != core.Stranger {
		t.Error("the request does not wait any more")
	}
	if _, err := w.gate.Approve(ctx, id, core.Approval{Trust: core.Sandboxed, Most: core.Sandboxed}, core.Actor{User: 7, Via: "api"}); err != nil || w.trust(dm("tg", "1", "x")) != core.Sandboxed {
		t.Errorf("within it: %v", err)
	}
}
