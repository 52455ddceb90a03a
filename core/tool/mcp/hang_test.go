package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/tool/mcp"
)

// offered is what a turn at full trust is offered; it fails if the turn waits.
func (h *house) offered(t *testing.T) mcp.Offer {
	t.Helper()
	offers := make(chan mcp.Offer, 1)
	turn := h.turn(t, core.Full, 1, "run")
	go func() { offers <- h.servers.Equip(t.Context(), turn, nil) }()
	select {
	case o := <-offers:
		return o
	case <-time.After(patience):
		t.Fatal("the turn waits for a server that is not connected")
		return mcp.Offer{}
	}
}

func TestATurnWaitsForAHangingServerOnceAndBriefly(t *testing.T) {
	clock := coretest.NewClock(time.Unix(1e9, 0))
	h := newHouse(t, clock, nil, `"slow": {"command": "{SERVER}", "args": ["-wait", "{V}/go"]}, `+notes)
	first := make(chan mcp.Offer, 1)
	turn := h.turn(t, core.Full, 1, "run")
	go func() { first <- h.servers.Equip(t.Context(), turn, nil) }()
	clock.AwaitWaiters(2) // the first wait, and the limit of a start
	until(t, "the first turn has waited", func() bool {
		clock.Advance(mcp.FirstWait) // again for the limits of starts that began later: they are far longer
		return len(first) == 1
	})
	o := <-first
	const connecting = "The MCP server slow is not available: it is still connecting"
	if !slices.ContainsFunc(o.Warnings, func(w core.Warning) bool { return strings.Contains(w.Message, connecting) }) {
		t.Errorf("%v", o.Warnings)
	}
	until(t, "the other one answers", func() bool { return h.servers.Health()[1].State == mcp.Ready })
	// The clock stands still: who waits now waits for good.
	if o := h.offered(t); !slices.Equal(o.Servers, []string{"notes"}) || len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0].Message, connecting) {
		t.Errorf("%v %v", o.Servers, o.Warnings)
	}
	if got := h.servers.Health()[0]; got.State != mcp.Starting {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the slow one answers", func() bool { return h.servers.Health()[0].State == mcp.Ready })
	if o := h.offered(t); !slices.Equal(o.Servers, []string{"slow", "notes"}) || len(o.Warnings) > 0 {
		t.Errorf("%v %v", o.Servers, o.Warnings)
	}
}

func TestAServerThatNeverAnswersHasFailedAfterAMinute(t *testing.T) {
	clock := coretest.NewClock(time.Unix(1e9, 0))
	hang := make(chan struct{})
	var asked atomic.Int32
	site := newSite(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		})
	})
	defer close(hang)
	h := newHouse(t, clock, nil, fmt.Sprintf(`"site": {"url": %q}`, site.URL))
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { h.servers.Watch(ctx); close(watched) }()
	defer func() { cancel(); <-watched }()
	until(t, "it is asked without a turn", func() bool { return asked.Load() == 1 })
	if got := h.servers.Health()[0]; got.State != mcp.Starting {
		t.Errorf("%+v", got)
	}
	until(t, "it has failed", func() bool {
		clock.Advance(5 * time.Second)
		return h.servers.Health()[0].State == mcp.Failing
	})
	if got := h.servers.Health()[0]; got.Error != "it did not answer within 1m0s" {
		t.Errorf("%+v", got)
	}
	h.offered(t) // however it is, no turn waits
}

// A looked clock notes when Watch begins to wait for its next look.
type looked struct {
	*coretest.Clock
	sleeps chan struct{}
}

func (c looked) After(d time.Duration) <-chan time.Time {
	timer := c.Clock.After(d)
	if d == mcp.LookEvery {
		select {
		case c.sleeps <- struct{}{}:
		default: // no one counts any more
		}
	}
	return timer
}

func TestAFailingServerIsTriedAtGrowingIntervalsAndJoinsWithoutATurn(t *testing.T) {
	clock := looked{coretest.NewClock(time.Unix(1e9, 0)), make(chan struct{}, 1)}
	var up atomic.Bool
	var asked atomic.Int32
	site := newSite(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !up.Load() {
				asked.Add(1)
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	h := newHouse(t, clock, nil, fmt.Sprintf(`"site": {"url": %q}`, site.URL))
	began := clock.Now()
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { h.servers.Watch(ctx); close(watched) }()
	defer func() { cancel(); <-watched }()
	// Each look of Watch, and the try that it begins, end before the clock moves on, so the time of each
	// try is known.
	step := func() {
		select {
		case <-clock.sleeps:
		case <-time.After(patience):
			t.Fatal("Watch does not look any more")
		}
		until(t, "no try is running", func() bool { return h.servers.Health()[0].State != mcp.Starting && !h.servers.Trying() })
		clock.Advance(mcp.LookEvery)
	}
	var tries []time.Duration
	for n := int32(0); clock.Now().Sub(began) < 30*time.Minute; step() {
		if now := asked.Load(); now > n {
			n = now
			tries = append(tries, clock.Now().Sub(began))
		}
	}
	if len(tries) < 8 || len(tries) > 20 {
		t.Errorf("%d tries in half an hour: %v", len(tries), tries)
	}
	got := h.servers.Health()[0]
	if got.State != mcp.Failing || got.Since.Sub(began) > 10*time.Second || got.Next.IsZero() || got.Next.Sub(clock.Now()) > 5*time.Minute {
		t.Errorf("%+v", got)
	}
	n := asked.Load()
	if o := h.offered(t); len(o.Tools) > 0 || len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0].Message, "Service Unavailable (tried again in ") {
		t.Errorf("%v", o.Warnings)
	}
	if asked.Load() != n {
		t.Error("a turn tries a server before its time")
	}
	up.Store(true)
	until(t, "it is connected", func() bool {
		clock.Advance(5 * time.Second)
		return h.servers.Health()[0].State == mcp.Ready
	})
	if o := h.offered(t); len(o.Warnings) > 0 || len(o.Tools) != 3 {
		t.Errorf("%v %v", names(o), o.Warnings)
	}
}

func TestBelowFullAHangingProgramDelaysNoTurnAndItsToolsAreLearntWithoutARun(t *testing.T) {
	clock := coretest.NewClock(time.Unix(1e9, 0))
	h := newHouse(t, clock, box(t), `"slow": {"command": "{SERVER}", "args": ["-wait", "{V}/go"], "trust": "vault"}`)
	equip := func(run string) mcp.Offer {
		offers := make(chan mcp.Offer, 1)
		turn := h.turn(t, core.Vault, 7, run)
		go func() { offers <- h.servers.Equip(t.Context(), turn, nil) }()
		if run == "one" {
			clock.AwaitWaiters(1)
			clock.Advance(mcp.FirstWait)
		}
		select {
		case o := <-offers:
			return o
		case <-time.After(patience):
			t.Fatal("the turn waits")
			return mcp.Offer{}
		}
	}
	for _, run := range []string{"one", "two"} {
		if o := equip(run); len(o.Tools) > 0 || len(o.Warnings) != 1 {
			t.Errorf("%v %v", names(o), o.Warnings)
		}
		h.servers.End(run) // the run is shorter than the program's start
	}
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "its tools are known, and its program has ended", func() bool {
		return h.servers.Health()[0].Tools > 0 && inSandboxes(t, h) == 0
	})
	if o := equip("three"); len(o.Tools) == 0 || len(o.Warnings) > 0 {
		t.Errorf("%v", o.Warnings)
	}
	h.servers.End("three")
}

// A server that does one thing after the other names its tools only after the call.
func TestACallIsNotEndedByAServerThatDoesNotNameItsToolsMeanwhile(t *testing.T) {
	clock := coretest.NewClock(time.Unix(1e9, 0))
	var deaf atomic.Bool
	began, asked, release := make(chan struct{}), make(chan struct{}, 8), make(chan struct{})
	site := newSite(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			switch r.Body = io.NopCloser(bytes.NewReader(b)); {
			case deaf.Load() && bytes.Contains(b, []byte(`"tools/list"`)):
				asked <- struct{}{}
				select {
				case <-r.Context().Done():
				case <-release:
				}
			case bytes.Contains(b, []byte(`"tools/call"`)):
				close(began)
				<-release
			}
			next.ServeHTTP(w, r)
		})
	})
	h := newHouse(t, clock, nil, fmt.Sprintf(`"site": {"url": %q}`, site.URL))
	h.servers.Equip(t.Context(), h.turn(t, core.Full, 1, "run"), nil)
	until(t, "it answers", func() bool { return h.servers.Health()[0].State == mcp.Ready })
	o := h.offered(t)
	deaf.Store(true)
	done := make(chan string, 1)
	turn := h.turn(t, core.Full, 1, "run")
	go func() {
		_, said := do(t, turn, o, "mcp__site__echo", `{"text": "hello"}`)
		done <- said
	}()
	<-began
	clock.Advance(10 * time.Minute)
	h.offered(t)
	<-asked
	until(t, "it has not named its tools", func() bool {
		clock.Advance(10 * time.Second)
		return strings.Contains(h.log.String(), "does not name its tools") || strings.Contains(h.log.String(), "failed")
	})
	if o := h.offered(t); len(o.Tools) != 3 || len(o.Warnings) > 0 {
		t.Errorf("%v %v", names(o), o.Warnings)
	}
	close(release)
	if said := <-done; said != "hello" {
		t.Errorf("%q", said)
	}
	if got := h.servers.Health()[0]; got.State != mcp.Ready {
		t.Errorf("%+v", got)
	}
}
