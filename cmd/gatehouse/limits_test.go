package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
)

// A chat that rests costs nothing that runs: after 200 chats there are as many
// goroutines as before the first.
func TestNoGoroutineIsLeftForAChatThatRests(t *testing.T) {
	w, _ := newModelWorld(t, func(c *configs.Config) { c.TelegramDMPolicy, c.RateLimit = "open", values.Rate{} })
	warm := w.sim.NewUser("Warm")
	w.replies(warm, "hello")
	w.quiet()
	before := 1 << 30
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		before = min(before, ourGoroutines())
	}
	for i := range 200 {
		w.sim.NewUser(fmt.Sprint("Person ", i)).Send("hello")
	}
	w.until("all are answered", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'done'`) == 201 })
	w.quiet()
	w.until("there are as many goroutines of ours as before the 200 chats", func() bool { return ourGoroutines() <= before })
	if n := len(w.app.bus.Active()); n != 0 {
		t.Errorf("%d runs are still active on the bus", n)
	}
	if n := w.app.queue.Running(); n != 0 {
		t.Errorf("%d turns are still in hand", n)
	}
}

// ourGoroutines counts those that are in code of this module. Idle connections,
// which the HTTP client keeps for a while, are not.
func ourGoroutines() (n int) {
	buf := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "\ngatehouse/") {
			n++
		}
	}
	return n
}

// Streams that clients leave behind are let go.
func TestNoGoroutineIsLeftForAClientThatWent(t *testing.T) {
	w, _ := newModelWorld(t, nil)
	_, es := w.chatEvents(map[string]any{"message": "hello"}, nil)
	session := es[0].Data["id"].(string)
	for range 30 {
		resp := w.open("GET", "/api/chat/"+session+"/events", nil, nil)
		resp.Body.Close()
	}
	w.until("no stream is open", func() bool { return w.metric("gatehouse_sse_streams") == 0 })
}

// The program at rest is small.
func TestTheIdleProgramStaysUnderItsMemory(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"] = "open"
	p := h.serve(nil)
	own, all := residentKiB(t, p.cmd.Process.Pid)
	if own > 30<<10 || all > 80<<10 {
		t.Errorf("at rest %d KiB of its own, want at most 30 MiB, and %d with the program's file, want at most 80", own, all)
	}
	for i := range 50 {
		u := sim.NewUser(fmt.Sprint("Person ", i))
		m := u.Send("How long should green tea brew?")
		hear(t, sim, u.DM(), m.ID, "tea")
	}
	if own, all := residentKiB(t, p.cmd.Process.Pid); all > 120<<10 {
		t.Errorf("after 50 chats %d KiB, of them %d its own, want at most 120 MiB", all, own)
	}
}

// residentKiB is the memory of a process: its own, and with the pages of files,
// of which the kernel maps more or less as they lie in its cache.
func residentKiB(t *testing.T, pid int) (own, all int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for line := range strings.Lines(string(b)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &all)
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &own)
	}
	if own == 0 || all < own {
		t.Fatalf("RssAnon %d, VmRSS %d", own, all)
	}
	return own, all
}

// A flood of strangers is bounded: requests, held messages and answers to them.
func TestAFloodOfStrangersIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const strangers = 300
	var last *telegramtest.User
	for i := range strangers {
		last = w.sim.NewUser(fmt.Sprint("Stranger ", i))
		for range 8 {
			last.Send("let me in")
		}
	}
	w.until("all are taken in", func() bool {
		n := 0.0
		for _, o := range []string{"held", "dropped"} {
			n += max(0, w.metric("gatehouse_updates_total", "kind", "message", "outcome", o))
		}
		return n == strangers*8
	})
	w.quiet()
	pending := w.count(`SELECT count(*) FROM pairing_requests WHERE status = 'pending'`)
	if pending > 100 {
		t.Errorf("%d requests wait, want at most 100", pending)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'held'`); n > 5*pending {
		t.Errorf("%d messages are held for %d requests", n, pending)
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n > pending {
		t.Errorf("%d answers to %d strangers with a request", n, pending)
	}
	if got := w.said(last.DM(), 0); len(got) > 1 {
		t.Errorf("the last stranger was told %q", got)
	}
}
