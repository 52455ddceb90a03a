package telegramtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

func (o *one) inject(f telegramtest.Fault) {
	o.Helper()
	if _, err := o.Inject(f); err != nil {
		o.Fatal(err)
	}
}

func (o *one) texts() (out []string) {
	for _, v := range o.History(o.ada.DM()) {
		if v.FromBot() {
			out = append(out, v.Text)
		}
	}
	return out
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	say := func(text string, o *one) (reply, error) {
		return o.try(ctx, o.Token(), "sendMessage", m{"chat_id": o.first.Chat, "text": text})
	}
	for _, c := range []struct {
		fault     telegramtest.Fault
		delivered bool
		check     func(reply, error) bool
	}{
		{telegramtest.Fault{Kind: telegramtest.Reset}, false, func(_ reply, err error) bool { return lost(err) }},
		{telegramtest.Fault{Kind: telegramtest.Reset, After: true}, true, func(_ reply, err error) bool { return lost(err) }},
		{telegramtest.Fault{Kind: telegramtest.Half}, true, func(_ reply, err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{telegramtest.Fault{Kind: telegramtest.Broken}, false, func(r reply, err error) bool { return r.status == 502 && strings.Contains(fmt.Sprint(err), "<html>") }},
		{telegramtest.Fault{Kind: telegramtest.Broken, Status: 503, After: true}, true, func(r reply, _ error) bool { return r.status == 503 }},
		{telegramtest.Fault{Kind: telegramtest.Flooded, RetryAfter: 13938}, false, func(r reply, _ error) bool {
			return r.ErrorCode == 429 && r.Parameters.RetryAfter == 13938 && r.Description == "Too Many Requests: retry after 13938"
		}},
	} {
		name := fmt.Sprint(c.fault.Kind, " after=", c.fault.After)
		t.Run(name, func(t *testing.T) {
			o := world(t, noFlood)
			c.fault.Method, c.fault.Count = "SendMessage", 1
			o.inject(c.fault)
			if r, err := say("one", o); !c.check(r, err) {
				t.Errorf("got %+v, %v", r, err)
			}
			if got := len(o.texts()) == 1; got != c.delivered {
				t.Errorf("delivered: %v, want %v", got, c.delivered)
			}
			if r, err := say("two", o); err != nil || !r.OK {
				t.Errorf("the next request: %+v, %v", r, err)
			}
			log := o.Requests(0, "sendMessage")
			if len(log) != 2 || log[0].Outcome == "answered" || log[1].Outcome != "answered" || log[0].OK() != c.delivered {
				t.Errorf("the log: %+v", log)
			}
			if c.delivered && log[0].MessageID == 0 {
				t.Error("the log does not name the message that was delivered")
			}
		})
	}
}

func lost(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)
}

func TestSlowAndHangingAnswers(t *testing.T) {
	o := world(t, noFlood)
	o.inject(telegramtest.Fault{Kind: telegramtest.Slow, Method: "getMe", Delay: time.Minute, Count: 1})
	done := make(chan reply, 1)
	go func() { done <- o.call("getMe", nil) }()
	o.clock.AwaitWaiters(1)
	o.clock.Advance(time.Minute)
	if r := <-done; !r.OK {
		t.Errorf("slow: %+v", r)
	}
	o.inject(telegramtest.Fault{Kind: telegramtest.Hang, After: true, Method: "sendMessage"})
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := o.try(ctx, o.Token(), "sendMessage", m{"chat_id": o.first.Chat, "text": "seen, never answered"})
		gone <- err
	}()
	if _, err := o.AwaitMessage(context.Background(), o.ada.DM(), func(v telegramtest.Message) bool { return v.FromBot() }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a hanging answer: %v", err)
	}
	o.ClearFaults()
	o.must("sendMessage", m{"chat_id": o.first.Chat, "text": "x"}, nil)
}

func TestSkipCountAndProbability(t *testing.T) {
	o := world(t)
	o.inject(telegramtest.Fault{Kind: telegramtest.Broken, Skip: 2, Count: 1})
	var got []int
	for range 4 {
		r, _ := o.try(context.Background(), o.Token(), "getMe", nil)
		got = append(got, r.status)
	}
	if fmt.Sprint(got) != "[200 200 502 200]" {
		t.Errorf("skip 2, count 1: %v", got)
	}
	o.inject(telegramtest.Fault{Kind: telegramtest.Broken, Probability: 0.3})
	hit := 0
	for range 200 {
		if r, _ := o.try(context.Background(), o.Token(), "getMe", nil); r.status == 502 {
			hit++
		}
	}
	if hit < 35 || hit > 90 {
		t.Errorf("%d of 200 were hit, want about 60", hit)
	}
	if _, err := o.Inject(telegramtest.Fault{Kind: "boom"}); err == nil {
		t.Error("an unknown kind was accepted")
	}
}

func TestDownRefusesConnectionsAndUpBringsTheSameAddressBack(t *testing.T) {
	o := world(t, noFlood)
	url := o.URL()
	o.Down()
	if _, err := http.Get(url + "/bot" + o.Token() + "/getMe"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("down: %v", err)
	}
	o.ada.Send("meanwhile")
	if err := o.Up(); err != nil {
		t.Fatal(err)
	}
	if o.URL() != url || len(o.updates(nil)) != 2 {
		t.Error("up: another address, or updates lost")
	}
}
