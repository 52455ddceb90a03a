package discordtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"gatehouse/connectors/discord/discordtest"
)

// Many people write at once while connections break: the bot hears everything
// once and in each channel's order.
func TestNothingIsLostOrTwiceWhileConnectionsBreak(t *testing.T) {
	o := world(t, noFlood, realClock)
	const people, each = 20, 50
	var all sync.WaitGroup
	k := o.identify(discordtest.IntentDirect)
	for i := range people {
		u := o.NewUser(fmt.Sprint("P", i))
		all.Go(func() {
			for n := range each {
				u.Send(fmt.Sprint(n))
			}
		})
	}
	stop := make(chan struct{})
	var breaker sync.WaitGroup
	breaker.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				o.Bot().Drop()
			}
		}
	})
	next := map[discordtest.ID]int{}
	for got := 0; got < people*each; {
		_, b, err := k.ws.ReadMessage()
		if err != nil {
			k = &socket{T: t, ws: o.dial("/gateway/resume?v=10&encoding=json").ws, seq: k.seq, session: k.session}
			if k.ws.WriteJSON(m{"op": 6, "d": m{"token": o.Token(), "session_id": k.session, "seq": k.seq}}) != nil {
				continue
			}
			continue
		}
		var p packet
		if json.Unmarshal(b, &p); p.Op == 9 {
			t.Fatalf("the session is lost at %d: %+v", k.seq, o.GatewayLog(0, ""))
		}
		if p.S != nil {
			if *p.S != k.seq+1 {
				t.Fatalf("event %d after %d", *p.S, k.seq)
			}
			k.seq = *p.S
		}
		if p.T == "MESSAGE_CREATE" {
			var v sent
			json.Unmarshal(p.D, &v)
			if v.Content != fmt.Sprint(next[v.Channel]) {
				t.Fatalf("channel %s: %s, want %d", v.Channel, v.Content, next[v.Channel])
			}
			next[v.Channel]++
			got++
		}
	}
	close(stop)
	breaker.Wait()
	all.Wait()
}

// The log does not grow for ever, and its counts do not forget.
func TestTheLogIsBounded(t *testing.T) {
	o := world(t, noFlood, func(opt *discordtest.Options) { opt.LogSize = 10 })
	for range 25 {
		o.must("GET", "users/@me", nil, nil)
	}
	if log := o.Requests(0, ""); len(log) != 10 || log[9].Seq != 25 || o.Count("getCurrentUser") != 25 {
		t.Errorf("%d entries, %d counted", len(log), o.Count("getCurrentUser"))
	}
	for i := range 1100 {
		o.ada.Send(fmt.Sprint(i))
	}
	if h := o.History(o.dm); len(h) != 1000 || h[0].Text != "100" {
		t.Errorf("%d messages, first %q", len(h), h[0].Text)
	}
}

// A hanging request and a slow reader end with the server.
func TestCloseEndsWhatHangs(t *testing.T) {
	s := discordtest.New(discordtest.Options{})
	if _, err := s.Inject(discordtest.Fault{Kind: discordtest.Hang, Method: "getCurrentUser"}); err != nil {
		t.Fatal(err)
	}
	o := &one{T: t, Server: s}
	done := make(chan error)
	go func() {
		_, err := o.try("GET", "users/@me", nil)
		done <- err
	}()
	if r, err := s.AwaitRequest(o.soon(), 0, "getCurrentUser", nil); err != nil || r.Outcome != "hang" {
		t.Fatal(r, err)
	}
	k := o.dial("/gateway?v=10&encoding=json")
	k.want(10)
	changes := s.Subscribe(context.Background(), 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
	for range changes {
	}
	if _, _, err := k.ws.ReadMessage(); err == nil {
		t.Error("the gateway outlives the server")
	}
}
