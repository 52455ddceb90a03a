package discordtest

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"
)

// A window counts what happens in a fixed span that begins with the first event.
type window struct {
	limit int
	per   time.Duration
	used  int
	ends  time.Time
}

// take spends one; false and the wait when none is left.
func (w *window) take(now time.Time) (time.Duration, bool) {
	if !now.Before(w.ends) {
		w.used, w.ends = 0, now.Add(w.per)
	}
	if w.used >= w.limit {
		return w.ends.Sub(now), false
	}
	w.used++
	return 0, true
}

const (
	// maxBuckets bounds the rate limits remembered per bot; the whole map is
	// forgotten when it is full, as a restart of the platform would.
	maxBuckets  = 100_000
	globalLimit = 50 // [limits] "Global Rate Limit": 50 requests per second
)

// spend takes one from the global limit and from the route's bucket and
// returns the bucket's headers ([limits] "Header Format"). A bucket belongs to
// a route and its top-level resource.
func (s *Server) spend(c *call) (http.Header, *apiError) {
	b := c.bot
	if b == nil {
		b = s.hookBot(c)
	}
	if s.floodOff || b == nil {
		return nil, nil
	}
	if !c.route.noGlobe {
		if b.global.limit == 0 {
			b.global = window{limit: globalLimit, per: time.Second}
		}
		if wait, ok := b.global.take(c.now); !ok {
			return nil, &apiError{status: 429, wait: wait, global: true, scope: "global"}
		}
	}
	if !c.route.bucket {
		return nil, nil
	}
	major := c.args["channel"]
	if major == "" {
		major = c.args["guild"] + c.args["token"]
	}
	key := c.route.name + " " + major
	w := b.buckets[key]
	if w == nil {
		if len(b.buckets) >= maxBuckets {
			b.buckets = map[string]*window{}
		}
		w = &window{limit: c.route.limit, per: c.route.per}
		b.buckets[key] = w
	}
	wait, ok := w.take(c.now)
	h := w.header(c.route.name, c.now)
	if !ok {
		return h, &apiError{status: 429, wait: wait, scope: "user"}
	}
	return h, nil
}

// hookBot returns the bot whose interaction token a request carries.
func (s *Server) hookBot(c *call) *bot {
	if id, err := ParseID(c.args["app"]); err == nil {
		return s.byBot[id]
	}
	return nil
}

func (w *window) header(name string, now time.Time) http.Header {
	left := w.ends.Sub(now)
	sum := fnv.New128a()
	sum.Write([]byte(name))
	h := http.Header{}
	h.Set("X-RateLimit-Limit", strconv.Itoa(w.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(w.limit-w.used))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(w.ends.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", sum.Sum(nil)))
	h.Set("Date", now.UTC().Format(http.TimeFormat)) // clients take the difference to Reset
	return h
}

// count notes an answer for the limit on invalid requests: 10,000 answers with
// 401, 403 or 429 in 10 minutes shut the address out ([limits] "Invalid
// Request Limit aka Cloudflare bans"; for how long is ours: 10 minutes).
func (s *Server) count(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(a)
}

func (s *Server) countLocked(a answer) {
	if s.floodOff || a.Status != 401 && a.Status != 403 && a.Status != 429 {
		return
	}
	now := s.clock.Now()
	if _, ok := s.wrong.take(now); !ok {
		s.bannedUntil = now.Add(10 * time.Minute)
	}
}

// SetFlood switches the platform's limits on or off, as Options.FloodOff does.
func (s *Server) SetFlood(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floodOff = !on
}

// Exhaust leaves nothing of one rate limit for wait: "global", or a route's
// name with a channel (0 for routes without one). The next request meets it.
func (b Bot) Exhaust(name string, in ID, wait time.Duration) {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.clock.Now().Add(wait)
	if name == "global" {
		b.b.global = window{limit: globalLimit, used: globalLimit, per: time.Second, ends: until}
		return
	}
	key := name + " "
	if in != 0 {
		key += in.String()
	}
	for _, r := range routes {
		if r.name == name && r.bucket {
			b.b.buckets[key] = &window{limit: r.limit, used: r.limit, per: r.per, ends: until}
		}
	}
}
