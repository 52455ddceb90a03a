package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/api/bots"
)

// Moments of a message that a program has a bot say, at which the gateway is killed.
const (
	whileTaken  = "while it is taken in"     // the program does not learn whether it was
	onceStored  = "once it is stored"        // 202 was answered
	beforeSent  = "as it leaves"             // the platform does not get it
	afterSent   = "as the platform tells it" // the platform has it, the gateway does not learn so
	sendsInTurn = 4                          // to each chat in a round
)

var sendPoints = []string{whileTaken, beforeSent, onceStored, afterSent}

// A sayer is a client that has bots say things, one after the other in each
// chat, and says each again under its Idempotency-Key until it is told that it
// is stored.
type sayer struct {
	*rig
	http   http.Client
	base   string // the gateway's address now
	key    string
	bots   map[string][2]string // by place: bot and chat
	next   int
	open   map[string][]int    // by place: what has to be said, in order
	stored map[string][]string // by place: where to ask for what became of it
}

// letIn gives everybody on Telegram access, as the owner would: a bot says
// nothing to people whom a policy alone lets in.
func (r *rig) letIn() {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), filepath.Join(r.vault, "Chat", "sessions.db"), store.Options{})
	r.sql(err)
	r.sql(db.Tx(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(r.t.Context(), `INSERT INTO access (bot, user_id, scope, trust_level, chat, at)
			SELECT i.platform, i.user_id, 'dm', 'sandboxed', i.platform_user_id, $1 FROM identities i WHERE i.platform = 'telegram'`, core.Stamp(tx.Time()))
		return err
	}))
	r.sql(db.Close())
}

var servedAt = regexp.MustCompile(`"msg":"serving","addr":"([^"]+)"`)

// begin starts the gateway and finds its address and key.
func (s *sayer) begin() *child {
	s.t.Helper()
	c := s.start()
	c.says(s.t, `"msg":"serving"`)
	b, err := os.ReadFile(c.log)
	if err != nil {
		s.t.Fatal(err)
	}
	found := servedAt.FindSubmatch(b[c.from:])
	keys, err := filepath.Glob(filepath.Join(s.dir, "run", "*", "key"))
	if err != nil || len(keys) != 1 || found == nil {
		s.t.Fatal(keys, err, c.tail())
	}
	key, err := os.ReadFile(keys[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.base, s.key = "http://"+string(found[1]), strings.TrimSpace(string(key))
	return c
}

func (s *sayer) call(method, path, once, body string) (status int, location string, m bots.Posted, err error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", m, err
	}
	req.Header.Set("X-API-Key", s.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", once)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return 0, "", m, err
	}
	defer res.Body.Close()
	err = json.NewDecoder(res.Body).Decode(&m)
	return res.StatusCode, res.Header.Get("Location"), m, err
}

// say says what is open in a place, in order, until the gateway is gone.
func (s *sayer) say(place string, taken func()) {
	s.t.Helper()
	to := s.bots[place]
	for len(s.open[place]) > 0 {
		token := tokenOf(s.open[place][0])
		body := fmt.Sprintf(`{"chat":%q,"text":"alert %s"}`, to[1], token)
		status, location, _, err := s.call("POST", "/api/bots/"+to[0]+"/messages", token, body)
		if err != nil {
			return // it is said again after the next start
		}
		if status != http.StatusAccepted {
			s.t.Fatalf("%s in %s: %d\n%s", token, place, status, s.child.tail())
		}
		s.open[place], s.stored[place] = s.open[place][1:], append(s.stored[place], location)
		taken()
	}
}

// round has something said in every place while the gateway is killed at a
// point, by chance at an earlier or later message.
func (s *sayer) round(point string, chance int) {
	s.t.Helper()
	c := s.begin()
	dead := func() { c.kill(); <-c.done }
	var left atomic.Int32
	left.Store(int32(chance))
	hit := func(q req) bool { return q.method == "sendmessage" && left.Add(-1) == 0 }
	switch point {
	case beforeSent:
		s.hooks(func(q req) bool {
			if hit(q) {
				dead()
			}
			return c.dead() && q.method == "sendmessage"
		}, nil, nil)
	case afterSent:
		s.hooks(nil, func(q req) bool {
			if hit(q) {
				dead()
			}
			return c.dead()
		}, nil)
	case whileTaken:
		go func() { // a moment of one of the requests
			time.Sleep(time.Duration(chance) * 3 * time.Millisecond)
			dead()
		}()
	}
	for place := range s.bots {
		for range sendsInTurn {
			s.open[place] = append(s.open[place], s.next)
			s.next++
		}
		s.say(place, func() {
			if point == onceStored && left.Add(-1) == 0 {
				dead()
			}
		})
	}
	select { // what is stored is sent meanwhile; where the point is not met, it is killed all the same
	case <-c.done:
	case <-time.After(time.Second):
	}
	dead()
	s.hooks(nil, nil, nil)
}

// settled is what became of a message, once that is known.
func (s *sayer) settled(location string) bots.Posted {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		status, _, m, err := s.call("GET", location, "", "")
		if err == nil && status == 200 && m.Status != "queued" && m.Status != "sending" {
			return m
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: %d %+v %v\n%s", location, status, m, err, s.child.tail())
		}
	}
}

// Whenever the gateway is killed around what a program has a bot say, all that
// was stored is said, once and in order, and what the program was not told of it
// says again without doubling it. Only a message to Telegram that was leaving is
// in doubt, is told as such, and is not sent again by itself.
func TestCrashWhatABotIsToSayIsSaidOnceAndInOrder(t *testing.T) {
	t.Parallel()
	rounds, seed := number(t, "GATEHOUSE_TEST_ROUNDS", len(sendPoints)), number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("%d rounds; GATEHOUSE_TEST_SEED=%d repeats the random choices", rounds, seed)
	r := newRig(t, program(t), "queue", population{telegram: 1, direct: 1, channels: 1}, telegramtest.Options{})
	r.acquaint()
	r.letIn()
	s := &sayer{rig: r, http: http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, next: 500_000,
		bots: map[string][2]string{}, open: map[string][]int{}, stored: map[string][]string{}}
	for _, c := range r.chats {
		if bot, chat, _ := strings.Cut(c.key, "/"); bot == "telegram" || c.Place != "" {
			s.bots[c.key] = [2]string{bot, chat}
		}
	}
	if len(s.bots) != 2 {
		t.Fatal(s.bots)
	}
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range rounds {
		s.round(sendPoints[i%len(sendPoints)], 1+random.IntN(2*sendsInTurn))
	}
	s.begin()
	for place := range s.bots {
		s.say(place, func() {})
		s.prove(place, rounds)
	}
	r.stop()
}

// prove holds what stands in a chat against what became of the messages.
func (s *sayer) prove(place string, kills int) {
	s.t.Helper()
	if len(s.stored[place]) != kills*sendsInTurn {
		s.t.Errorf("%s: %d of %d messages were stored", place, len(s.stored[place]), kills*sendsInTurn)
	}
	unknown := 0
	for _, location := range s.stored[place] {
		switch m := s.settled(location); {
		case m.Status == "unknown" && m.Bot == "telegram":
			unknown++
		case m.Status != "sent":
			s.t.Errorf("%s: %+v", place, m)
		}
	}
	if unknown > kills {
		s.t.Errorf("%s: %d messages are in doubt after %d kills", place, unknown, kills)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var said []string
	for _, u := range s.said[place] {
		if strings.Contains(u.text, "alert") {
			said = append(said, u.tokens...)
		}
	}
	if !slices.IsSorted(said) || len(slices.Compact(slices.Clone(said))) != len(said) {
		s.t.Errorf("%s: doubled, or out of order: %v", place, said)
	}
	if lost := len(s.stored[place]) - len(said); lost < 0 || lost > unknown {
		s.t.Errorf("%s: %d messages are missing and %d in doubt: %v", place, lost, unknown, said)
	}
	s.t.Logf("%s: %d said, %d in doubt", place, len(said), unknown)
}
