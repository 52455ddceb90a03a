package readback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// newReader returns a Reader whose requests f responds to, before Ask returns.
func newReader(t *testing.T, f http.HandlerFunc) (*Reader, *coretest.Clock, *bytes.Buffer) {
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	clock, log := coretest.NewClock(time.Now()), new(bytes.Buffer)
	return New(Options{
		API: rest.New(rest.Options{Token: "t", Base: srv.URL, Transport: http.DefaultTransport, Timeout: time.Minute}), Clock: clock,
		Decode: func(_ context.Context, e gateway.Event, _ string) (core.Inbound, bool, error) {
			return core.Inbound{Kind: core.KindMessage, MessageID: messageID(e.Data), UpdateID: "message:" + messageID(e.Data)}, true, nil
		},
		Log: slog.New(slog.NewTextHandler(log, nil)), Random: func(n int64) int64 { return n - 1 }, Beside: func(_ string, f func()) { f() },
	}), clock, log
}

func TestWhatIsOlderThanADayIsNotReadBack(t *testing.T) {
	var after string
	r, clock, _ := newReader(t, func(w http.ResponseWriter, req *http.Request) {
		after = req.FormValue("after")
		fmt.Fprint(w, "[]")
	})
	day := wire.Snowflake(clock.Now().Add(-24 * time.Hour))
	for last, want := range map[string]string{"1": day, wire.Snowflake(clock.Now().Add(-time.Hour)): wire.Snowflake(clock.Now().Add(-time.Hour))} {
		r.Owe(&Mark{Channel: "11", Message: last})
		r.Ask(t.Context(), "s")
		p := <-r.Pages()
		if m := r.Take(p); p.Err != nil || !r.Stored(p) || len(r.Finish(m)) != 0 || after != want {
			t.Errorf("from %s on: read from %s on, want %s; %v", last, after, want, p.Err)
		}
	}
}

// A channel in which very much was missed does not hold the others, nor what is new in it, for ever.
func TestOfOneChannelAThousandMessagesAreReadBack(t *testing.T) {
	r, clock, log := newReader(t, func(w http.ResponseWriter, req *http.Request) {
		after, err := strconv.ParseInt(req.FormValue("after"), 10, 64)
		if err != nil || req.FormValue("limit") != "100" {
			t.Errorf("asked for %v", req.URL)
		}
		var page []map[string]string
		for n := range 100 {
			page = append(page, map[string]string{"id": fmt.Sprint(after + 1 + int64(n))})
		}
		slices.Reverse(page)
		_ = json.NewEncoder(w).Encode(page)
	})
	first := wire.Snowflake(clock.Now())
	m := &Mark{Channel: "11", Message: first}
	r.Owe(m)
	if !r.Hold(core.Inbound{Address: core.Address{Chat: "11"}, Kind: core.KindMessage, UpdateID: "message:9"}, 9) {
		t.Fatal("it is not held")
	}
	var rows []core.Inbound
	for n, last := 0, false; n < 20 && !last; n++ {
		last = r.back(t, &rows)
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || len(rows) != 1000 || rows[0].MessageID != fmt.Sprint(from+1) || rows[999].MessageID != fmt.Sprint(from+1000) || m.Message != rows[999].MessageID {
		t.Errorf("%d were read, up to %s", len(rows), m.Message)
	}
	if held := r.Finish(m); len(held) != 1 || !strings.Contains(log.String(), "not all of a channel was read back") {
		t.Errorf("held: %v; log: %s", held, log)
	}
}

// back reads a page of the one owed channel, and reports whether it was the last.
func (r *Reader) back(t *testing.T, rows *[]core.Inbound) (last bool) {
	t.Helper()
	r.Ask(t.Context(), "s")
	p := <-r.Pages()
	if r.Take(p) == nil || p.Err != nil {
		t.Fatal(p.Err)
	}
	*rows = append(*rows, p.Rows...)
	return r.Stored(p)
}

type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

// Without a connection every request would end alike: there is one try after the other, with all channels.
func TestWithoutAConnectionAllChannelsWait(t *testing.T) {
	r, clock, _ := newReader(t, nil)
	r.o.API = rest.New(rest.Options{Token: "t", Base: "http://localhost", Transport: nowhere{}, Timeout: time.Minute})
	for n := range 2 * readers {
		r.Owe(&Mark{Channel: fmt.Sprint(11 + n), Message: "1"})
	}
	ask := func() (n int) {
		r.Ask(t.Context(), "s")
		for ; len(r.Pages()) > 0; n++ {
			p := <-r.Pages()
			if r.Take(p); !p.Err.Offline() {
				t.Fatalf("%+v", p.Err)
			}
		}
		return n
	}
	if n := ask(); n != readers {
		t.Fatalf("%d are asked for", n)
	}
	clock.Advance(7 * time.Second) // after four tries: 8 s
	if n := ask(); n != 0 {
		t.Errorf("%d are asked for too early", n)
	}
	clock.Advance(2 * time.Second)
	if n := ask(); n != readers {
		t.Errorf("then %d are asked for", n)
	}
}

// That something in a message is not found does not mean that its channel is gone.
func TestAMessageThatCannotBeLookedUpDoesNotHaveItsChannelForgotten(t *testing.T) {
	r, clock, _ := newReader(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"id":"12"}]`) })
	decode := r.o.Decode
	r.o.Decode = func(context.Context, gateway.Event, string) (core.Inbound, bool, error) {
		return core.Inbound{}, false, &rest.Failure{Status: 404, Platform: true, Text: "Unknown Channel"}
	}
	r.Owe(&Mark{Channel: "11", Message: "1"})
	r.Ask(t.Context(), "s")
	if p := <-r.Pages(); r.Take(p) == nil || p.Err == nil || p.Hidden {
		t.Errorf("%+v", p)
	}
	r.o.Decode = decode
	clock.Advance(time.Minute)
	var rows []core.Inbound
	if last := r.back(t, &rows); !last || len(rows) != 1 {
		t.Errorf("then %v", rows)
	}
}
