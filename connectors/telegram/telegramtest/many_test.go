package telegramtest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
)

func TestManyAtOnceLoseNothingAndKeepTheirOrder(t *testing.T) {
	o := world(t, noFlood, realClock)
	const people, each = 8, 150
	var writing sync.WaitGroup
	for i := range people {
		u := o.NewUser(fmt.Sprint("P", i))
		writing.Go(func() {
			for n := range each {
				u.Send(fmt.Sprint(i, " ", n))
			}
		})
	}
	next := make([]int, people)
	for got, offset := 0, int64(0); got < people*each; {
		var us []update
		o.must("getUpdates", m{"offset": offset, "timeout": 10}, &us)
		if len(us) == 0 {
			t.Fatalf("%d of %d updates came", got, people*each)
		}
		for _, u := range us {
			if offset != 0 && u.ID != offset {
				t.Fatalf("update %d after %d", u.ID, offset-1)
			}
			offset = u.ID + 1
			var i, n int
			if _, err := fmt.Sscan(u.Message.Text, &i, &n); err != nil {
				continue // Ada's first
			}
			if n != next[i] {
				t.Fatalf("person %d: message %d came, want %d", i, n, next[i])
			}
			next[i]++
			got++
		}
	}
	writing.Wait()
}

func TestTwoBotsShareThePlatformAndNothingElse(t *testing.T) {
	second := "7000000002:" + strings.Repeat("b", 35)
	o := world(t, noFlood, func(opt *telegramtest.Options) {
		opt.Bots = []telegramtest.BotAccount{{}, {Token: second, Name: "Other", Username: "other_bot"}}
	})
	if r := o.callAs(second, "sendMessage", m{"chat_id": o.ada.ID(), "text": "x"}); r.Description != "Bad Request: chat not found" {
		t.Errorf("a bot the person never met: %q", r.Description)
	}
	other := o.Bots()[1]
	if _, err := o.ada.Start(other, "invite-7"); err != nil {
		t.Fatal(err)
	}
	if other.Pending() != 1 || o.Bot().Pending() != 1 {
		t.Errorf("%d and %d updates wait, want one each", o.Bot().Pending(), other.Pending())
	}
	if r := o.callAs(second, "sendMessage", m{"chat_id": o.ada.ID(), "text": "welcome"}); !r.OK {
		t.Error(r.Description)
	}
	if len(o.History(o.ada.DM())) != 1 || len(o.History(o.ada.With(other))) != 2 {
		t.Error("the two private chats mix")
	}
}
