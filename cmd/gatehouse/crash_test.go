package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

// The crash test's size. In its long form GATEHOUSE_TEST_ROUNDS (make crash)
// says how many rounds; GATEHOUSE_TEST_SEED repeats a run's random choices.
const (
	crashRounds   = 20
	crashMessages = 104 // in a round: 2,080 in all
)

// crashPeople are the chats of the crash test.
var crashPeople = population{telegram: 20, direct: 14, channels: 6}

// Named points at which the gateway is killed.
const (
	afterPut  = "after Put"  // the updates are stored and their confirmation is on its way
	inTheRun  = "in the run" // the model is speaking
	afterAck  = "after Ack"  // an answer is stored, its sending has not begun
	inTheSend = "in the send"
	readBack  = "in the reading back" // Discord's session is gone, and what was missed is being asked for
	anyTime   = "at random"
)

var crashPoints = []string{afterPut, inTheRun, afterAck, inTheSend, readBack, anyTime}

// Whatever moment the gateway is killed at, every message on both platforms is
// answered once, in its chat's order. Only what was being sent to Telegram at
// that moment is in doubt, is marked as such, and is not sent again by itself;
// Discord gets it again and shows it once.
func TestCrashLosesNothingAnswersNothingTwiceAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	rounds := number(t, "GATEHOUSE_TEST_ROUNDS", crashRounds)
	seed := number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("%d rounds; GATEHOUSE_TEST_SEED=%d repeats the random choices", rounds, seed)
	exe := program(t)
	for i, mode := range []string{"queue", "collect"} {
		t.Run(mode, func(t *testing.T) {
			crash(t, exe, mode, (rounds+1-i)/2, seed+i)
		})
	}
}

// crash runs so many rounds in one mode and holds the rules against what is left.
func crash(t *testing.T, exe, mode string, rounds, seed int) {
	r := newRig(t, exe, mode, crashPeople, telegramtest.Options{})
	k := newKiller(r, seed)
	k.acquaint()
	for round := range rounds {
		k.round(crashPoints[round%len(crashPoints)])
	}
	r.start()
	r.answered()
	r.stop()
	r.prove()
	k.report(rounds)
}

func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number from 1", name, text)
	}
	return n
}

// A killer ends a rig's gateway, round by round. Each round all is answered
// before the next begins, so that no message meets more than two kills.
type killer struct {
	*rig
	rand *rand.Rand
	hits map[string]int // kills that met their point

	kills, doubted, begun, undelivered, again, lost, ready, running, whole int
}

func newKiller(r *rig, seed int) *killer {
	return &killer{rig: r, rand: rand.New(rand.NewPCG(uint64(seed), 1)), hits: map[string]int{}}
}

// round kills once at a named point and once at a random moment, with people
// writing all the while.
func (k *killer) round(point string) {
	k.t.Helper()
	first := crashMessages * 2 / 3
	k.meet(point, first)
	k.meet(anyTime, crashMessages-first)
	k.start()
	k.answered()
	k.stop()
}

// meet starts the gateway, has n messages written and kills it at the point.
func (k *killer) meet(point string, n int) {
	k.t.Helper()
	trap := k.set(point)
	if point == readBack || point == anyTime && k.rand.IntN(6) == 0 {
		k.loseSession()
		k.lost++
	}
	var posts sync.WaitGroup
	early := k.rand.IntN(n + 1) // written while the gateway is down
	for range early {
		k.post(k.rand.IntN(len(k.chats)))
	}
	late := make([]int, n-early)
	for i := range late {
		late[i] = k.rand.IntN(len(k.chats))
	}
	pause := time.Duration(k.rand.IntN(2000)) * time.Microsecond
	k.start()
	posts.Go(func() {
		for _, p := range late {
			k.post(p)
			time.Sleep(pause)
		}
		if point == afterAck {
			k.overtake(trap)
		}
		for point != anyTime && !trap.dead() { // until the point is met
			k.post(k.rand.IntN(len(k.chats)))
			time.Sleep(20 * time.Millisecond)
		}
	})
	if point == anyTime {
		time.Sleep(time.Duration(k.rand.Int64N(int64(600 * time.Millisecond))))
		trap.spring()
	}
	select {
	case <-trap.sprung:
	case <-time.After(5 * time.Minute):
		k.t.Fatalf("the point %q was not met\n%s", point, k.child.tail())
	}
	<-k.child.done
	posts.Wait()
	k.hooks(nil, nil, nil)
	close(trap.over)
	k.count(point)
}

// A trap kills the child when it is sprung.
type trap struct {
	once   sync.Once
	kill   func()
	person int // of the chats: where sends are held
	sprung chan struct{}
	over   chan struct{} // closed when the child is gone: what is held may go
}

func (t *trap) spring() {
	t.once.Do(func() {
		t.kill()
		close(t.sprung)
	})
}

// dead reports whether the trap has been sprung.
func (t *trap) dead() bool {
	select {
	case <-t.sprung:
		return true
	default:
		return false
	}
}

// set lays the trap for a point. Which of several chances it takes, and how
// far the deadly request gets, is left to chance.
func (k *killer) set(point string) *trap {
	t := &trap{sprung: make(chan struct{}), over: make(chan struct{})}
	t.person = k.rand.IntN(len(k.chats))
	held := k.chats[t.person].key
	t.kill = func() {
		k.mu.Lock()
		c := k.child
		k.mu.Unlock()
		c.kill()
		<-c.done
	}
	chance, lost := 1+k.rand.IntN(3), k.rand.IntN(2) == 0
	var mu sync.Mutex
	next := func() bool { // reports the chance-th call
		mu.Lock()
		defer mu.Unlock()
		chance--
		return chance == 0
	}
	switch point {
	case afterPut:
		k.hooks(confirms(func() bool {
			if next() {
				t.spring()
			}
			return t.dead() && lost
		}), nil, nil)
	case inTheRun:
		k.hooks(nil, nil, func(_ int, out float64) {
			if out == .5 && next() {
				t.spring()
			}
		})
	case inTheSend:
		k.hooks(func(q req) bool {
			if q.method == "sendmessage" && lost && next() {
				t.spring()
			}
			return t.dead() && q.method == "sendmessage"
		}, func(q req) bool {
			if q.method == "sendmessage" && !lost && next() {
				t.spring()
			}
			return t.dead()
		}, nil)
	case readBack:
		k.hooks(func(q req) bool {
			if q.method == "readback" && next() {
				t.spring()
			}
			return t.dead() && lost
		}, nil, nil)
	case afterAck:
		// A send is held: its chat's next answers are stored behind it.
		k.hooks(func(q req) bool {
			if q.method == "sendmessage" && keyOf(q.platform, q.chat) == held {
				<-t.over
				return true
			}
			return false
		}, nil, nil)
	}
	return t
}

// confirms makes a hook that asks cut for each getUpdates that confirms more
// than the one before.
func confirms(cut func() bool) func(req) bool {
	var mu sync.Mutex
	last := int64(0)
	return func(q req) bool {
		if q.method != "getupdates" {
			return false
		}
		mu.Lock()
		more := last > 0 && q.offset() > last || last == 0 && q.offset() > 0 && q.form.Get("timeout") != "0"
		last = max(last, q.offset())
		mu.Unlock()
		return more && cut()
	}
}

// overtake has people in the trap's chat write again and again while the answer
// to the first message is held, until the model is asked about the third: then
// the answer to the second is stored, and its sending can't have begun.
func (k *killer) overtake(t *trap) {
	for range 3 {
		token := k.post(t.person)
		if !k.wait(20*time.Second, func() bool { return k.asked[token] > 0 }) {
			return
		}
	}
	t.spring()
}

// count looks at what the kill has met.
func (k *killer) count(point string) {
	k.t.Helper()
	s := k.look()
	k.note(s)
	k.kills++
	k.doubted += len(s.sending)
	k.begun += s.begun
	k.again += len(s.again)
	k.ready += len(s.ready)
	k.running += s.running
	k.whole += s.held
	k.mu.Lock()
	for _, o := range s.sending {
		for _, t := range crashToken.FindAllString(o.Body, -1) {
			if !k.seen[t] {
				k.undelivered++
				break
			}
		}
	}
	k.mu.Unlock()
	met := false
	switch point {
	case inTheRun:
		met = s.running > 0
	case afterAck:
		met = len(s.ready) > 0
	case inTheSend:
		met = len(s.sending)+s.begun+len(s.again) > 0
	default:
		met = true
	}
	if !met {
		k.t.Errorf("killed %s, but the database shows %d answers being sent, %d waiting, %d runs", point, len(s.sending)+len(s.again), len(s.ready), s.running)
	}
	k.hits[point]++
}

// report says what was met, and insists on enough of it.
func (k *killer) report(rounds int) {
	var b strings.Builder
	for _, p := range crashPoints {
		fmt.Fprintf(&b, "%d %s, ", k.hits[p], p)
		if rounds >= crashRounds/2 && k.hits[p] < 1 {
			k.t.Errorf("only %d kills %s", k.hits[p], p)
		}
	}
	messages := 0
	for _, list := range k.posted {
		messages += len(list)
	}
	k.t.Logf("%d messages, %d kills (%s); these met %d runs (%d of them between transcript and commit), %d answers stored and not begun, %d in the send to Telegram, of which %d not delivered, %d about to be sent there, %d to Discord, all sent again; Discord's session gone %d times; %d model calls, %d answers in several parts",
		messages, k.kills, strings.TrimSuffix(b.String(), ", "), k.running, k.whole, k.ready, k.doubted, k.undelivered, k.begun, k.again, k.lost, k.calls, k.tails)
	if k.tails == 0 {
		k.t.Error("no answer took several messages")
	}
	if rounds >= crashRounds/2 && messages < 100*rounds {
		k.t.Errorf("only %d messages in %d rounds", messages, rounds)
	}
}
