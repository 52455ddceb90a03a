package telegramtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

func TestAnOffsetConfirmsWhatLiesBelow(t *testing.T) {
	o := world(t)
	o.ada.Send("two")
	o.ada.Send("three")
	us := o.updates(nil)
	if len(us) != 3 || us[0].Message.Text != "hello" || us[1].ID != us[0].ID+1 {
		t.Fatalf("first poll: %+v", us)
	}
	if again := o.updates(nil); len(again) != 3 {
		t.Errorf("unconfirmed updates come again: got %d of 3", len(again))
	}
	if got := o.updates(m{"limit": 2, "offset": us[0].ID}); len(got) != 2 {
		t.Errorf("limit 2: got %d", len(got))
	}
	if got := o.updates(m{"offset": us[2].ID}); len(got) != 1 || got[0].Message.Text != "three" {
		t.Errorf("offset of the third: %+v", got)
	}
	if got := o.updates(m{"offset": us[0].ID}); len(got) != 1 {
		t.Errorf("confirmed updates came back: %+v", got)
	}
	o.ada.Send("four")
	o.ada.Send("five")
	if got := o.updates(m{"offset": -1}); len(got) != 1 || got[0].Message.Text != "five" {
		t.Errorf("offset -1: %+v", got)
	}
	if n := o.Bot().Pending(); n != 1 {
		t.Errorf("a negative offset forgets the rest: %d wait", n)
	}
}

func TestALimitIsBetween1And100(t *testing.T) {
	o := world(t)
	for range 149 {
		o.ada.Send("x")
	}
	for limit, want := range map[int]int{0: 1, -5: 1, 1: 1, 100: 100, 1000: 100} {
		if got := o.updates(m{"limit": limit}); len(got) != want {
			t.Errorf("limit %d: %d updates, want %d", limit, len(got), want)
		}
	}
}

func TestAskingForTheSameAtOnceGetsOneUpdate(t *testing.T) {
	o := world(t)
	o.ada.Send("two")
	o.updates(nil)
	var us []update
	o.must("getUpdates", nil, &us)
	if len(us) != 1 {
		t.Errorf("%d updates within half a second of the same poll, want 1", len(us))
	}
}

func TestUpdatesAreKeptADay(t *testing.T) {
	o := world(t)
	o.clock.Advance(23 * time.Hour)
	o.ada.Send("late")
	if n := o.Bot().Pending(); n != 2 {
		t.Errorf("after 23 h %d wait, want 2", n)
	}
	o.clock.Advance(time.Hour)
	if got := o.updates(nil); len(got) != 1 || got[0].Message.Text != "late" {
		t.Errorf("after 24 h: %+v", got)
	}
}

func TestUpdateIDsRestartAfterAnIdleWeek(t *testing.T) {
	o := world(t)
	first := o.updates(nil)[0].ID
	o.clock.Advance(6 * 24 * time.Hour)
	o.ada.Send("six days later")
	if got := o.updates(nil); got[0].ID != first+1 {
		t.Errorf("after six days: %d, want %d", got[0].ID, first+1)
	}
	o.clock.Advance(7 * 24 * time.Hour)
	o.ada.Send("a week later")
	us := o.updates(nil)
	if len(us) != 1 || us[0].ID == first+2 {
		t.Errorf("after a week: %+v, first was %d", us, first)
	}
	o.Bot().SetNextUpdateID(50)
	o.ada.Send("lower than before")
	if got := o.updates(m{"offset": first + 2}); len(got) != 0 || o.Bot().Pending() != 0 {
		t.Errorf("an old offset above new ids confirms them: %+v", got)
	}
	was := o.Bot().NextUpdateID()
	o.Bot().IdleWeek()
	if o.ada.Send("now"); o.updates(nil)[0].ID == was {
		t.Error("IdleWeek kept the count")
	}
}

func TestALongPollWakesUpAndTimesOut(t *testing.T) {
	o := world(t)
	o.updates(m{"offset": -1})
	last := o.updates(nil)[0].ID
	got := make(chan reply, 1)
	poll := func() {
		r, err := o.try(context.Background(), o.Token(), "getUpdates", m{"offset": last + 1, "timeout": 30})
		if err != nil {
			t.Error(err)
		}
		got <- r
	}
	go poll()
	o.clock.AwaitWaiters(1)
	o.ada.Send("wake up")
	if r := <-got; !bytes.Contains(r.Result, []byte("wake up")) {
		t.Errorf("woken poll: %s", r.Result)
	}
	last++
	go poll()
	o.clock.AwaitWaiters(2)
	o.clock.Advance(30 * time.Second)
	if r := <-got; string(r.Result) != "[]" {
		t.Errorf("a poll without news ends empty: %s", r.Result)
	}
}

func TestASecondPollerEndsTheFirst(t *testing.T) {
	o := world(t)
	last := o.updates(nil)[0].ID
	const want = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	first, second := make(chan reply, 1), make(chan reply, 1)
	start := func(c chan reply) {
		go func() {
			r, err := o.try(context.Background(), o.Token(), "getUpdates", m{"offset": last + 1, "timeout": 50})
			if err != nil {
				t.Error(err)
			}
			c <- r
		}()
	}
	start(first)
	o.clock.AwaitWaiters(1)
	start(second)
	if r := <-first; r.ErrorCode != 409 || r.Description != want {
		t.Errorf("the first poll: %d %q", r.ErrorCode, r.Description)
	}
	o.clock.AwaitWaiters(2)
	o.ada.Send("for the second")
	if r := <-second; !r.OK || !bytes.Contains(r.Result, []byte("for the second")) {
		t.Errorf("the second poll: %+v", r)
	}
}

func TestAWebhookAndPollingExcludeOneAnother(t *testing.T) {
	o := world(t)
	last := o.updates(nil)[0].ID
	got := make(chan reply, 1)
	go func() {
		r, _ := o.try(context.Background(), o.Token(), "getUpdates", m{"offset": last + 1, "timeout": 50})
		got <- r
	}()
	o.clock.AwaitWaiters(1)
	o.must("setWebhook", m{"url": "https://example.com/hook"}, nil)
	if r := <-got; r.ErrorCode != 409 || r.Description != "Conflict: terminated by setWebhook request" {
		t.Errorf("the waiting poll: %d %q", r.ErrorCode, r.Description)
	}
	o.clock.Advance(4 * time.Second)
	o.refused("getUpdates", nil, 409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	var info struct{ URL string }
	if o.must("getWebhookInfo", nil, &info); info.URL != "https://example.com/hook" {
		t.Errorf("webhook: %+v", info)
	}
	o.must("deleteWebhook", nil, nil)
	o.must("getUpdates", nil, nil)
}

func TestRevokingATokenEndsItsPoll(t *testing.T) {
	o := world(t)
	last := o.updates(nil)[0].ID
	got := make(chan reply, 1)
	token := o.Token()
	go func() {
		r, _ := o.try(context.Background(), token, "getUpdates", m{"offset": last + 1, "timeout": 50})
		got <- r
	}()
	o.clock.AwaitWaiters(1)
	o.Bot().Revoke()
	if r := <-got; r.ErrorCode != 401 || r.Description != "Unauthorized" {
		t.Errorf("the waiting poll: %d %q", r.ErrorCode, r.Description)
	}
}

func TestAllowedUpdatesAreRememberedAndReactionsAreOffByDefault(t *testing.T) {
	o := world(t)
	kinds := func() string {
		var b strings.Builder
		for _, u := range o.updates(nil) {
			switch {
			case u.Message != nil:
				b.WriteString("m")
			case u.Edited != nil:
				b.WriteString("e")
			case u.React != nil:
				b.WriteString("r")
			}
		}
		return b.String()
	}
	do := func() {
		o.ada.Edit(o.ada.DM(), o.first.ID, "hello again "+o.clock.Now().String())
		o.ada.React(o.ada.DM(), o.first.ID, "👍")
	}
	do()
	if got := kinds(); got != "me" {
		t.Errorf("by default: %q", got)
	}
	o.updates(m{"offset": -1, "allowed_updates": []string{"message_reaction"}})
	do()
	if got := kinds(); got != "er" {
		t.Errorf("reactions only, after one edit from before: %q", got)
	}
	o.updates(m{"offset": -1, "allowed_updates": []string{}})
	do()
	if got := kinds(); got != "re" {
		t.Errorf("an empty list is the default again: %q", got)
	}
}

func TestRawUpdatesComeAsTheyAre(t *testing.T) {
	o := world(t)
	o.updates(m{"offset": -1})
	for _, raw := range []string{
		`{"update_id":{id},"message":"no object"}`,
		`{"update_id":{id},"hologram":{"from":1}}`,
		`{"update_id":{id},"message":{"message_id":1,"chat":{"id":9007199254740993,"type":"private"},"date":1,"text":"big"}}`,
		`{"update_id":"not a number"}`,
	} {
		id := o.Bot().InjectRaw(raw)
		got := rawUpdates(o)
		want := strings.ReplaceAll(raw, "{id}", jsonOf(id))
		if string(got[len(got)-1]) != want {
			t.Errorf("got %s, want %s", got[len(got)-1], want)
		}
	}
	o.Bot().SetNextUpdateID(1 << 60)
	o.ada.Send("huge")
	if us := o.updates(m{"offset": int64(1) << 60}); len(us) != 1 || us[0].ID != 1<<60 {
		t.Errorf("an id beyond 2^53: %+v", us)
	}
}

func TestPrivacyModeKeepsUnaddressedLinesFromTheBot(t *testing.T) {
	o := world(t, noFlood, func(opt *telegramtest.Options) { opt.Bots = []telegramtest.BotAccount{{Privacy: true}} })
	g := o.NewGroup(telegramtest.Supergroup, "Club", o.ada)
	o.updates(m{"offset": -1})
	var mine sent
	o.must("sendMessage", m{"chat_id": g.ID(), "text": "I am here"}, &mine)
	post := func(out telegramtest.Outgoing) {
		t.Helper()
		if _, err := o.ada.Post(g.Conversation(), out); err != nil {
			t.Fatal(err)
		}
	}
	post(telegramtest.Outgoing{Text: "nobody in particular"})
	post(telegramtest.Outgoing{Text: "hey @Gatehouse_Bot"})
	post(telegramtest.Outgoing{Text: "@gatehouse_bottle is somebody else"})
	post(telegramtest.Outgoing{Text: "answering", ReplyTo: mine.MessageID})
	post(telegramtest.Outgoing{Text: "/help@gatehouse_bot"})
	post(telegramtest.Outgoing{Text: "/help@other_bot"})
	post(telegramtest.Outgoing{Text: "/general"})
	var got []string
	for _, u := range o.updates(nil) {
		if u.Message != nil && u.Message.Text != "" {
			got = append(got, u.Message.Text)
		}
	}
	if want := "hey @Gatehouse_Bot|answering|/help@gatehouse_bot|/general"; strings.Join(got, "|") != want {
		t.Errorf("the bot hears %q\nwant %q", strings.Join(got, "|"), want)
	}
}

func TestSharedSendersAndForwards(t *testing.T) {
	o := world(t)
	g := o.NewGroup(telegramtest.Supergroup, "Club", o.ada)
	if _, err := o.ada.Post(g.Conversation(), telegramtest.Outgoing{Text: "hidden", Anonymous: true}); err != nil {
		t.Fatal(err)
	}
	g.ChannelPost(-1009999999999, "News", "read all about it")
	ben := o.NewUser("Ben")
	o.ada.Post(o.ada.DM(), telegramtest.Outgoing{Text: "he said", Forward: ben.ID()})
	all, _ := json.Marshal(rawUpdates(o))
	for _, want := range []string{`"id":1087968824`, `"sender_chat":{"id":-1009999999999,"type":"channel","title":"News"}`, `"is_automatic_forward":true`, `"forward_origin":{"type":"user"`} {
		if !strings.Contains(string(all), want) {
			t.Errorf("no update has %s", want)
		}
	}
}
