package admin_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/web"
)

// listen opens the event stream and returns its lines; it is open when listen
// returns.
func (s *site) listen() *bufio.Scanner {
	s.t.Helper()
	req, err := http.NewRequest("GET", s.url+"/admin/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("events: %d %s\n%s", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	return bufio.NewScanner(res.Body)
}

func TestEventsNameWhatChangedAndNothingElse(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	lines := s.listen()
	s.world.ring(core.TopicQueue, core.TopicPairing)
	var got []string
	for len(got) < 2 && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			got = append(got, data)
		}
	}
	if strings.Join(got, " ") != "queue pairing" {
		t.Errorf("events = %q", got)
	}
}

func TestEveryTopicRefreshesAPageAndTheStreamCarriesIt(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.listen()
	s.world.mu.Lock()
	carried := s.world.topics
	s.world.mu.Unlock()
	named := map[string]bool{}
	for _, path := range s.pages() {
		_, rest, _ := strings.Cut(s.get(path).body, ` data-topics="`)
		topics, _, _ := strings.Cut(rest, `"`)
		for _, name := range strings.Fields(topics) {
			named[name] = true
			if !slices.ContainsFunc(carried, func(topic core.Topic) bool { return topic.String() == name }) {
				t.Errorf("GET %s is refreshed when %q rings, which the stream does not carry: %q", path, name, carried)
			}
		}
	}
	for _, topic := range core.Topics() {
		if !named[topic.String()] {
			t.Errorf("no page is refreshed when %q rings", topic)
		}
	}
}

func TestTheEventStreamEndsWithItsSession(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := newSite(t, clock, nil).enter()
	lines := s.listen()
	other := s.client()
	other, s.http = s.http, other
	s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}})
	s.do("POST", "/admin/logout", url.Values{"csrf": {s.csrf()}, "everywhere": {"1"}})
	s.http = other
	clock.AwaitWaiters(2) // the heartbeat's and the session check's
	clock.Advance(web.Heartbeat)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}

func TestEventStreamsAreBounded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	for range 64 {
		s.listen()
	}
	if a := s.get("/admin/events"); a.status != http.StatusServiceUnavailable {
		t.Errorf("the 65th stream: status %d, want 503", a.status)
	}
}
