package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// A burst is so many people who write twice at once.
type burst struct {
	latency time.Duration // of the platform
	pace    string
	people  int
}

func (b burst) String() string { return fmt.Sprintf("%v, pace %s", b.latency, b.pace) }

var bursts = []burst{
	{0, "off", 100}, {20 * time.Millisecond, "off", 100}, {100 * time.Millisecond, "off", 100},
	{0, "on", 25}, {20 * time.Millisecond, "on", 25}, {100 * time.Millisecond, "on", 25},
}

// thought is how long the model takes: the answers are ready all at once.
const thought = 200 * time.Millisecond

// Many people write at once, and the gateway is killed when some part of the answers has
// left. After the next start nobody waits in vain and nobody reads an answer twice, and
// what had not left is not in doubt. In its long form (make crash) it is killed at .05 to
// .95 of the answers, three times each.
func TestCrashNobodyWaitsInVainForAnAnswerThatWasReady(t *testing.T) {
	t.Parallel()
	exe := program(t)
	for i, b := range bursts {
		t.Run(b.String(), func(t *testing.T) {
			at, times := []float64{[]float64{.05, .5, .95}[i%3]}, 1
			if os.Getenv("GATEHOUSE_TEST_ROUNDS") != "" {
				at, times = nil, 3
				for n := 1; n < 20; n++ {
					at = append(at, float64(n)/20)
				}
			}
			r := newRig(t, exe, "queue", population{telegram: b.people}, telegramtest.Options{})
			var sum tally
			for _, part := range at {
				for range times {
					r.burst(b, part, &sum)
				}
			}
			r.prove()
			t.Logf("%d answers, %d kills: %d were marked and had not begun, %d had begun, %d are of unknown outcome, of these %d were not delivered",
				r.next-1, len(at)*times, sum.marked, sum.begun, sum.unknown, sum.undelivered)
			// Between the record that a message leaves and the call that writes it, the thread
			// may have to wait for a processor: one kill may meet that.
			if sum.undelivered > 1 || sum.unsent > 1 {
				t.Errorf("%d answers never arrived; %d of unknown outcome had not left", sum.undelivered, sum.unsent)
			}
		})
	}
}

// A tally counts the answers that a kill has met.
type tally struct{ marked, begun, unknown, unsent, undelivered int }

// burst kills the gateway when a part of the answers to a burst has arrived.
func (r *rig) burst(b burst, part float64, sum *tally) {
	r.t.Helper()
	var mu sync.Mutex
	arrived := map[string]bool{} // texts of the messages that the platform was sent
	left := max(1, int(part*float64(2*b.people)))
	think := func(_ int, out float64) {
		if out == .5 {
			time.Sleep(thought)
		}
	}
	r.hooks(func(q req) bool {
		if q.method != "sendmessage" {
			return false
		}
		mu.Lock()
		arrived[q.form.Get("text")] = true
		left--
		kill := left == 0
		mu.Unlock()
		if kill {
			r.mu.Lock()
			c := r.child
			r.mu.Unlock()
			c.kill()
		}
		time.Sleep(b.latency)
		return false
	}, nil, think)
	c := r.start("PACE", b.pace, "LIMIT_RUNS", "2000")
	c.says(r.t, `"serving"`)
	for n := range 2 * b.people {
		r.post(n)
	}
	select {
	case <-c.done:
	case <-time.After(patience):
		r.t.Fatalf("the point was not met\n%s", c.tail())
	}
	s := r.look()
	r.note(s)
	sum.marked += s.begun
	sum.begun += len(s.sending)
	r.start("PACE", b.pace, "LIMIT_RUNS", "2000").says(r.t, `"serving"`)
	r.answered()
	r.stop()
	db := r.openCopy()
	defer db.Close()
	for _, o := range s.sending {
		var state string
		r.sql(db.Get(&state, `SELECT state FROM outbox WHERE seq = $1`, o.Seq))
		if state != "unknown" {
			continue
		}
		sum.unknown++
		var body core.Part
		r.sql(json.Unmarshal([]byte(o.Body), &body))
		mu.Lock()
		had := arrived[body.Text]
		mu.Unlock()
		if !had {
			sum.unsent++
			r.t.Logf("killed at %.2f: row %d (%s, attempt %d) had not left: %.60q", part, o.Seq, o.id(), o.Attempts, body.Text)
		}
		if !r.hasSaid(body.Text) {
			sum.undelivered++
		}
	}
}

// hasSaid reports whether people have read a text of the bot.
func (r *rig) hasSaid(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.said {
		if slices.ContainsFunc(list, func(u utterance) bool { return u.text == text }) {
			return true
		}
	}
	return false
}
