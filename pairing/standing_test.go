package pairing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/pairing/places"
)

// stand hands the gate a change of the bot's own standing in a group.
func (w *world) stand(what core.Standing, place string) {
	w.t.Helper()
	in := inGroup(core.Inbound{Address: core.Address{Bot: "tg"}, Kind: core.KindService, From: peer("66"), Standing: what}, place)
	in.Chat = place
	wantAction(w.t, w.put(in), core.Drop)
}

// heard are the texts said to the owner since the last call.
func (w *world) heard() string { return strings.Join(w.mail.said(), "\n") }

func TestAGroupThatTheBotIsRemovedFromIsDisabledAndTheOwnerToldOnce(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.ok(w.gate.Places.Enable(ctx, "tg", "-5", "Garden", core.Vault, panel))
	w.ok(w.gate.Places.SetPlace(ctx, "tg", "-5", places.Settings{Mention: places.MentionAll}, panel))
	ask := inGroup(dm("tg", "7", "hello"), "-5")
	wantAction(t, w.put(ask), core.Run)
	w.heard()
	w.stand(core.StandingRemoved, "-5")
	w.stand(core.StandingRemoved, "-5") // a second event says nothing new
	if got := w.heard(); strings.Count(got, "I was removed from “Group -5”") != 1 || !strings.HasPrefix(got, "c1: ") {
		t.Errorf("the owner hears %q", got)
	}
	wantAction(t, w.put(ask), core.Drop)
	w.stand(core.StandingAdded, "-5") // by whoever it may be
	wantAction(t, w.put(ask), core.Drop)
	if got := w.heard(); !strings.Contains(got, "I was added to the group “Group -5”") {
		t.Errorf("the owner hears %q", got)
	}
	w.ok(w.gate.Places.Enable(ctx, "tg", "-5", "", core.Vault, panel))
	wantAction(t, w.put(ask), core.Run)
	if set, err := w.gate.Places.Place(ctx, w.db, "tg", "-5"); err != nil || set.Mention != places.MentionAll {
		t.Errorf("the settings are %+v, %v", set, err)
	}
	if n := w.audits("place.disable"); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func TestAGroupThatNoOneDecidedAboutIsForgottenInSilence(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.stand(core.StandingAdded, "-5")
	if rows, err := w.gate.Places.Places(ctx); err != nil || len(rows) != 1 || rows[0].Enabled {
		t.Errorf("the panel offers %+v, %v", rows, err)
	}
	w.heard()
	w.stand(core.StandingPromoted, "-5")
	w.stand(core.StandingMuted, "-5")
	w.stand(core.StandingRemoved, "-5")
	if got := w.heard(); got != "" {
		t.Errorf("the owner hears %q", got)
	}
	if rows, err := w.gate.Places.Places(ctx); err != nil || len(rows) != 0 {
		t.Errorf("the panel offers %+v, %v", rows, err)
	}
}

func TestStrangersWhoAddTheBotToManyGroupsDoNotFloodTheOwner(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.heard()
	for i := range 100 {
		w.stand(core.StandingAdded, fmt.Sprint(-100-i))
	}
	w.stand(core.StandingRemoved, "-100")
	w.stand(core.StandingAdded, "-100") // the same again on the same day
	if n := strings.Count(w.heard(), "I was added"); n != maxAdded {
		t.Errorf("the owner hears of %d groups", n)
	}
	w.clock.Advance(2 * time.Hour)
	w.stand(core.StandingAdded, "-300")
	if n := strings.Count(w.heard(), "I was added"); n != 1 {
		t.Errorf("two hours later the owner hears of %d", n)
	}
}

func TestAPromotionKeepsTheGroupAsItIs(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.ok(w.gate.Places.Enable(ctx, "tg", "-5", "Garden", core.Vault, panel))
	w.heard()
	w.stand(core.StandingPromoted, "-5")
	w.stand(core.StandingMuted, "-5")
	w.stand(core.StandingAdded, "-5") // it became a supergroup: the bot is added to where it was moved
	if got := w.heard(); !strings.Contains(got, "an administrator of “Group -5”") || !strings.Contains(got, "I cannot write") || strings.Contains(got, "added") {
		t.Errorf("the owner hears %q", got)
	}
	wantAction(t, w.put(inGroup(dm("tg", "7", "hello"), "-5")), core.Run)
}

func TestAPersonWhoBlocksTheBotKeepsTheirAccessAndTheOwnerHears(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.admit("tg", "7", core.Sandboxed)
	w.put(dm("tg", "8", "a stranger"))
	w.heard()
	block := func(what core.Standing, id string) {
		in := dm("tg", id, "")
		in.Kind, in.Standing = core.KindService, what
		wantAction(t, w.put(in), core.Drop)
	}
	block(core.StandingBlocked, "8") // a stranger's doing is nobody's business
	block(core.StandingBlocked, "1") // nor is the owner told that they did it themselves
	if got := w.heard(); got != "" {
		t.Errorf("the owner hears %q", got)
	}
	block(core.StandingBlocked, "7")
	block(core.StandingBlocked, "7")
	block(core.StandingUnblocked, "7")
	if got := w.heard(); strings.Count(got, "“P7” (id 7) has blocked me") != 1 || strings.Count(got, "“P7” (id 7) has unblocked me") != 1 {
		t.Errorf("the owner hears %q", got)
	}
	if len(w.runs.runs) == 0 || !strings.HasPrefix(w.runs.runs[0], "tg/") {
		t.Errorf("what was being made for them goes on: %v", w.runs.runs)
	}
	wantAction(t, w.put(dm("tg", "7", "back")), core.Run)
}

func TestAServerTakesItsChannelsAlong(t *testing.T) {
	w := newWorld(t)
	w.claim("dc", "1")
	for _, id := range []string{"11", "12", "13"} {
		w.ok(w.gate.Places.Enable(ctx, "dc", id, "Club #"+id, core.Sandboxed, panel))
	}
	w.heard()
	in := core.Inbound{Address: core.Address{Bot: "dc"}, Kind: core.KindService, From: core.Peer{Platform: "discord"}, PlaceName: "Club",
		Standing: core.StandingRemoved, Places: []string{"11", "12"}}
	wantAction(t, w.put(in), core.Drop)
	if got := w.heard(); strings.Count(got, "I was removed from “Club”") != 1 {
		t.Errorf("the owner hears %q", got)
	}
	for id, want := range map[string]core.Action{"11": core.Drop, "12": core.Drop, "13": core.Run} {
		if v := w.put(inGroup(dm("dc", "7", "hello"), id)); v.Action != want {
			t.Errorf("channel %s: %+v", id, v)
		}
	}
	in.Standing = core.StandingAdded
	w.put(in)
	if got := w.heard(); !strings.Contains(got, "I was added to the server “Club”") {
		t.Errorf("the owner hears %q", got)
	}
}
