package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store/storetest"
)

// A cluster is two gateways, of which one serves and the other stands by, with one vault
// and a database on a pair of servers. The clock of the second is minutes ahead. People write on both platforms and programs ask over
// the API while something fails.
type cluster struct {
	*rig
	primary, second *pgServer
	lines           [2][]*cable // from each gateway to the servers
	nodes           [2]*child
	exes, addrs     [2]string
	databases       [2]string // as each gateway reaches it
	http            *http.Client

	asks  sync.Mutex
	asked int // questions of programs
}

// away is how long something is away that does not say so itself.
const away = 2 * time.Second

func newCluster(t *testing.T) *cluster {
	t.Helper()
	primary, second := pair(t)
	c := &cluster{rig: newRig(t, program(t), "queue", population{telegram: 8, direct: 5, channels: 3}, telegramtest.Options{}), primary: primary, second: second}
	at := func(hosts string) string {
		return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Host: hosts[1:], Path: "gatehouse", RawQuery: "sslmode=disable&target_session_attrs=primary"}).String()
	}
	direct := ""
	for i := range c.lines {
		hosts := ""
		for _, s := range []*pgServer{primary, second} {
			in, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			port, _ := strconv.Atoi(s.port)
			c.lines[i] = append(c.lines[i], lay(t, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, in))
			hosts += "," + in.Addr().String()
			if i == 0 {
				direct += ",127.0.0.1:" + s.port
			}
		}
		c.databases[i] = at(hosts)
	}
	c.database = at(direct)
	c.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: away}}
	c.enable()
	c.exes = [2]string{c.exe, aheadProgram(t)}
	for i := range c.nodes {
		c.addrs[i] = freePort(t)
		c.begin(i)
		c.serving()
	}
	c.pauses()
	return c
}

// ahead is by how much the clock of one gateway differs from the other's.
const ahead = 5 * time.Minute

// aheadProgram is the program with a clock that is ahead.
func aheadProgram(t *testing.T) string {
	t.Helper()
	const file = "../../core/clock.go"
	real, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(real)
	if err != nil {
		t.Fatal(err)
	}
	with := bytes.Replace(source, []byte("return time.Now() }"), fmt.Appendf(nil, "return time.Now().Add(%d) }", ahead), 1)
	if bytes.Equal(with, source) {
		t.Fatal("the clock is not where it was")
	}
	dir := t.TempDir()
	clock, overlay := filepath.Join(dir, "clock.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {real: clock}})
	if err := errors.Join(err, os.WriteFile(clock, with, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	return program(t, "-overlay", overlay)
}

// begin starts a gateway that waits as long as the other one serves.
func (c *cluster) begin(i int) {
	c.t.Helper()
	env := c.settings()
	env["ADDR"], env["DATABASE_URL"] = c.addrs[i], c.databases[i]
	c.births.Add(1)
	n := startLogged(c.t, c.dir, fmt.Sprint("log", i), env, c.exes[i], "serve", "--standby")
	c.mu.Lock()
	c.nodes[i], c.child = n, n
	c.mu.Unlock()
	n.says(c.t, `"msg":"s`) // "serving", "standing by"
}

// pauses has the model stop in the middle of its answers for some milliseconds.
func (c *cluster) pauses() {
	c.hooks(nil, nil, func(_ int, out float64) {
		if out == .5 {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = 0 // all children
}

// status is that of a node's /readyz; 0 if it does not answer.
func (c *cluster) status(i int) int {
	ctx, cancel := context.WithTimeout(c.t.Context(), away)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.addrs[i]+"/readyz", nil)
	c.sql(err)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// serving waits until a gateway serves, and returns which.
func (c *cluster) serving() int {
	c.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for i := range c.nodes {
			if c.nodes[i] != nil && c.status(i) == http.StatusOK {
				return i
			}
		}
	}
	c.t.Fatalf("no gateway serves\n%s\n\n%s", c.nodes[0].tail(), c.nodes[1].tail())
	return 0
}

// notices waits until a gateway that served knows that it cannot go on.
func (c *cluster) notices(i int) {
	c.t.Helper()
	for end := time.Now().Add(patience); c.status(i) == http.StatusOK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("the gateway takes itself for ready\n%s", c.nodes[i].tail())
		}
	}
}

// round has something fail while people and programs are served, and holds the rules
// against what is left.
func (c *cluster) round(name string, fail func(serving int)) {
	c.t.Helper()
	serving := c.serving()
	over, load := make(chan struct{}), sync.WaitGroup{}
	load.Go(func() {
		for n := 0; ; n++ {
			c.post(rand.IntN(len(c.chats)))
			if n > 0 && !sleeps(over, 25*time.Millisecond) {
				return
			}
		}
	})
	for client := range 3 {
		load.Go(func() {
			for !c.t.Failed() {
				c.ask(client)
				if !sleeps(over, 25*time.Millisecond) {
					return
				}
			}
		})
	}
	before := c.modelCalls()
	c.wait(patience, func() bool { return c.calls > before+10 })
	begun := time.Now()
	token := c.post(0)
	answered := make(chan time.Duration, 1)
	go func() {
		c.wait(patience, func() bool { return c.seen[token] || c.doubt[token] })
		answered <- time.Since(begun)
	}()
	fail(serving)
	c.serving()
	close(over)
	load.Wait()
	unknown := c.settle()
	c.prove()
	c.t.Logf("%s: a message of that moment was answered after %s; %d answers unknown so far", name, (<-answered).Round(time.Millisecond), unknown)
}

// sleeps waits, and reports false as soon as over is closed.
func sleeps(over <-chan struct{}, d time.Duration) bool {
	select {
	case <-over:
		return false
	case <-time.After(d):
		return true
	}
}

// settle waits until everybody is answered and nothing is under way; it returns how many
// answers may not have arrived, all of them on Telegram, which does not know a message again.
func (c *cluster) settle() (unknown int) {
	c.t.Helper()
	db := c.openCopy()
	defer db.Close()
	last := time.Now()
	for missing := -1; ; {
		var rows []outboxState
		c.sql(db.Select(&rows, `SELECT key, ordinal, bot, chat, body, state FROM outbox WHERE state = 'unknown'`))
		unknown = len(rows)
		c.mu.Lock()
		for _, o := range rows {
			if o.Bot != "telegram" {
				c.t.Errorf("an answer on %s is unknown: %s", o.Bot, o.Body)
			}
			c.sending[o.id()] = true
			for _, token := range crashToken.FindAllString(o.Body, -1) {
				c.doubt[token] = true
			}
		}
		left := c.missing()
		c.changed.Broadcast()
		c.mu.Unlock()
		var busy int
		c.sql(db.Get(&busy, `SELECT (SELECT count(*) FROM lane WHERE owner <> '' OR pending <> 0) + (SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending'))`))
		switch {
		case len(left)+busy == 0:
			return unknown
		case len(left)+busy != missing:
			missing, last = len(left)+busy, time.Now()
		case time.Since(last) > 2*leaseTime:
			c.t.Fatalf("%d messages are without answer, %d lanes and replies are busy: %v\n%s\n\n%s", len(left), busy, left[:min(len(left), 20)], c.nodes[0].tail(), c.nodes[1].tail())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// faults are what happens to a cluster.
func (c *cluster) faults() []fault {
	freeze := func(i int) func() {
		c.nodes[i].signal(c.t, syscall.SIGSTOP)
		return func() { c.nodes[i].signal(c.t, syscall.SIGCONT) }
	}
	kill := func(i int) {
		c.nodes[i].kill()
		<-c.nodes[i].done
		c.serving()
		c.begin(i)
	}
	return []fault{
		{"the gateway is killed", kill},
		{"the gateway is updated", func(i int) {
			c.nodes[i].signal(c.t, syscall.SIGTERM)
			if code := c.nodes[i].gone(c.t, patience); code != exitClean {
				c.t.Errorf("exit code %d after SIGTERM\n%s", code, c.nodes[i].tail())
			}
			c.serving()
			c.begin(i)
		}},
		{"the gateway is frozen", func(i int) {
			wake := freeze(i)
			time.Sleep(away)
			wake()
		}},
		{"the gateway is frozen until the server has ended its sessions", func(i int) {
			wake := freeze(i)
			c.primary.do(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gatehouse' AND pid <> pg_backend_pid()`)
			wake()
		}},
		{"the gateway is frozen and then killed", func(i int) {
			freeze(i)
			time.Sleep(away)
			kill(i)
		}},
		{"the gateway is frozen until another one has its place", func(i int) {
			wake := freeze(i)
			c.replaces(i)
			wake()
			c.replaced(i)
		}},
		{"the gateway alone cannot reach the database", func(i int) { c.cutOff(i, (*cable).cut) }},
		{"the gateway alone hears nothing from the database", func(i int) { c.cutOff(i, (*cable).silence) }},
		{"the database cannot be reached", func(i int) {
			c.each((*cable).cut)
			c.notices(i)
			c.each((*cable).mend)
		}},
		{"nothing comes back from the database", func(int) {
			c.each((*cable).silence)
			time.Sleep(away)
			c.each((*cable).mend)
		}},
		{"the database is slow", func(int) {
			c.each(func(l *cable) { l.slow(100 * time.Millisecond) })
			time.Sleep(away)
			c.each(func(l *cable) { l.slow(0) })
		}},
		{"the server of the database starts anew", func(int) {
			c.primary.run("pg_ctl", "-D", c.primary.data, "-w", "-m", "fast", "restart")
		}},
		{"the server of the database is replaced by its standby", func(int) { c.failover() }},
		{"the disk of the database is full", c.fills},
		{"the platforms cannot be reached", func(int) {
			c.mu.Lock()
			c.onRequest = func(req) bool { return true }
			c.mu.Unlock()
			time.Sleep(away)
			c.mu.Lock()
			c.onRequest = nil
			c.mu.Unlock()
		}},
	}
}

type fault struct {
	name string
	fail func(serving int)
}

func (c *cluster) each(f func(*cable)) {
	for _, lines := range c.lines {
		for _, l := range lines {
			f(l)
		}
	}
}

// cutOff has a gateway lose its lines to the servers until the other one has its place.
func (c *cluster) cutOff(i int, lose func(*cable)) {
	c.t.Helper()
	c.known(i)
	for _, l := range c.lines[i] {
		lose(l)
	}
	c.replaces(i)
	c.nodes[i].says(c.t, "the bots receive nothing")
	for _, l := range c.lines[i] {
		l.mend()
	}
	c.replaced(i)
}

// known waits until a gateway that serves has noted that the other one stands by.
func (c *cluster) known(i int) {
	c.t.Helper()
	db := c.openCopy()
	defer db.Close()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var known bool
		c.sql(db.Get(&known, `SELECT EXISTS (SELECT 1 FROM nodes AS n, nodes AS o WHERE n.state = 'serving' AND n.address = $1 AND o.state = 'standby' AND n.seen > o.started)`, c.addrs[i]))
		if known {
			return
		}
		if time.Now().After(end) {
			c.t.Fatal("no gateway stands by")
		}
	}
}

// replaces waits until the other gateway serves.
func (c *cluster) replaces(i int) {
	c.t.Helper()
	for end := time.Now().Add(patience); c.status(1-i) != http.StatusOK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("the other gateway does not serve\n%s\n\n%s", c.nodes[i].tail(), c.nodes[1-i].tail())
		}
	}
}

// replaced waits until a gateway has ended because another one has its place, and has it stand by.
func (c *cluster) replaced(i int) {
	c.t.Helper()
	if code := c.nodes[i].gone(c.t, patience); code != exitFailure {
		c.t.Errorf("a gateway that was replaced ends with %d\n%s", code, c.nodes[i].tail())
	}
	c.begin(i)
}

// failover stops the primary as a crash does, promotes its standby, and has the old primary
// come back as the standby of the new one.
func (c *cluster) failover() {
	c.t.Helper()
	c.primary.run("pg_ctl", "-D", c.primary.data, "-m", "immediate", "stop")
	c.second.run("pg_ctl", "-D", c.second.data, "-w", "promote")
	c.primary, c.second = c.second, c.primary
	c.sql(os.RemoveAll(c.second.data))
	c.primary.run("pg_basebackup", "-d", "host=127.0.0.1 user=postgres port="+c.primary.port, "-D", c.second.data, "-R", "-c", "fast", "--no-sync")
	c.second.start()
	c.primary.do(`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
}

// Whatever fails around two gateways and their two database servers, each message on both
// platforms is answered once and in order, and so is each question of a program, whose
// stream has no gap. GATEHOUSE_TEST_ROUNDS (make cluster) says how often each fault happens.
func TestPostgres_WhateverFailsAroundAClusterNothingIsLostDoubledOrOutOfOrder(t *testing.T) {
	storetest.PostgresOnly(t, "two machines share a server")
	t.Parallel()
	c := newCluster(t)
	faults := c.faults()
	for round := range number(t, "GATEHOUSE_TEST_ROUNDS", 1) {
		t.Logf("round %d", round+1)
		rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for f := range slices.Values(faults) {
			c.round(f.name, f.fail)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d questions of programs", c.asked)
	if log, err := os.ReadFile(filepath.Join(c.dir, "log1")); err != nil || !bytes.Contains(log, []byte(`"moved"`)) {
		t.Errorf("the clock of the second gateway was never wrong: %v", err)
	}
}
