package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gatehouse/core"
	"gatehouse/core/voice"
	"gatehouse/core/voice/hearing"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// echoEngine says a word for each half second. A segment whose first sample is 7 fails.
type echoEngine struct{}

func (echoEngine) Transcribe(_ context.Context, pcm []int16) (string, error) {
	if len(pcm) > 0 && pcm[0] == 7 {
		return "", errors.New("the engine died")
	}
	var words []string
	for i := range len(pcm) / (voice.Rate / 2) {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	return strings.Join(words, " "), nil
}

type voiceEvent struct {
	Type, Confirmed, Tentative, Interim, Code, Message string
	Segment                                            int
	Start, End                                         float64
	Final                                              bool
}

// A speaker is a client of the stream.
type speaker struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

func (h *harness) speak(key string, header ...string) (*speaker, *http.Response, error) {
	h.t.Helper()
	ctx := h.t.Context()
	head := http.Header{"Authorization": {"Bearer " + key}}
	for i := 0; i < len(header); i += 2 {
		head.Set(header[i], header[i+1])
	}
	conn, res, err := websocket.Dial(ctx, h.url+"/api/voice", &websocket.DialOptions{HTTPHeader: head})
	if err == nil {
		h.t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return &speaker{h.t, ctx, conn}, res, err
}

// say sends a tone in messages of 100 ms, from a sample of the recording on.
func (s *speaker) say(d time.Duration, loud float64, first int16) {
	s.t.Helper()
	const n = voice.Rate / 10
	for at := 0; at < voice.Samples(d); at += n {
		data := make([]byte, 2*n)
		for i := range n {
			v := int16(loud * math.Sin(2*math.Pi*200*float64(at+i)/voice.Rate))
			if at+i == 0 && first != 0 {
				v = first
			}
			data[2*i], data[2*i+1] = byte(v), byte(uint16(v)>>8)
		}
		if err := s.conn.Write(s.ctx, websocket.MessageBinary, data); err != nil {
			return // it has ended, and its last event says why
		}
	}
}

func (s *speaker) next() (e voiceEvent) {
	s.t.Helper()
	_, data, err := s.conn.Read(s.ctx)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

func TestSpeechIsTranscribedWhileItIsSpoken(t *testing.T) {
	h := open(t, options{})
	s, _, err := h.speak(h.key(auth.ScopeChat))
	if err != nil {
		t.Fatal(err)
	}
	s.say(2500*time.Millisecond, 9000, 0)
	if e := s.next(); e.Type != "text" || e.Final || e.Interim == "" || e.End > 2.5 { // the stop was not sent
		t.Errorf("the first event is %+v", e)
	}
	s.say(1500*time.Millisecond, 9000, 0)
	s.say(time.Second, 0, 0)
	s.say(2*time.Second, 9000, 0)
	if err := s.conn.Write(s.ctx, websocket.MessageText, []byte(`{"type":"stop"}`)); err != nil {
		t.Fatal(err)
	}
	finals, was := 0, voiceEvent{}
	for e := s.next(); e.Type == "text"; e = s.next() {
		if e.Segment == was.Segment && !strings.HasPrefix(e.Confirmed, was.Confirmed) || e.End < was.End && !e.Final { // it ends where the speech did
			t.Errorf("%+v after %+v", e, was)
		}
		if was = e; e.Final {
			finals++
		}
	}
	if finals != 2 || was.Segment != 1 || !was.Final {
		t.Errorf("%d segments, the last is %+v", finals, was)
	}
	if _, _, err := s.conn.Read(s.ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Error(err)
	}
}

func TestAStreamOfSpeechSaysWhyItEnds(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeChat)
	for want, act := range map[string]func(s *speaker){
		"invalid": func(s *speaker) { _ = s.conn.Write(s.ctx, websocket.MessageBinary, []byte{1, 2, 3}) },
		"failed":  func(s *speaker) { s.say(4*time.Second, 9000, 7) },
	} {
		s, _, err := h.speak(key)
		if err != nil {
			t.Fatal(err)
		}
		act(s)
		if e := s.next(); e.Type != "error" || e.Code != want || e.Message == "" || strings.Contains(e.Message, "died") {
			t.Errorf("%s: %+v", want, e)
		}
	}
	s, _, err := h.speak(key)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.conn.Write(s.ctx, websocket.MessageBinary, make([]byte, 65<<10))
	if _, _, err := s.conn.Read(s.ctx); err == nil {
		t.Error("a message of 65 KiB is taken")
	}
}

func TestAStopOfTheServerEndsStreamsOfSpeechAndWaitsForThem(t *testing.T) {
	h := open(t, options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error, 1)
	handler := h.handler()
	go func() { stopped <- web.NewServer(handler, web.ServerOptions{Grace: time.Hour}).Run(ctx, l) }()
	h.url = "http://" + l.Addr().String()
	s, _, err := h.speak(h.key(auth.ScopeChat))
	if err != nil {
		t.Fatal(err)
	}
	s.say(time.Second, 0, 0)
	events := make(chan voiceEvent, 1)
	go func() {
		var e voiceEvent
		if _, data, err := s.conn.Read(s.ctx); err == nil {
			_ = json.Unmarshal(data, &e)
		}
		events <- e
		_, _, _ = s.conn.Read(s.ctx) // answers the end
	}()
	stop()
	if err := <-stopped; err != nil || h.api.streams.Open() != 0 {
		t.Errorf("%d streams are open after the stop, %v", h.api.streams.Open(), err)
	}
	if e := <-events; e.Code != "ended" {
		t.Errorf("%+v", e)
	}
}

func TestAStreamOfSpeechNeedsAKeyAndItsOwnOrigin(t *testing.T) {
	h := open(t, options{streams: 1})
	key := h.key(auth.ScopeChat)
	for name, c := range map[string]struct {
		key    string
		header []string
		status int
	}{
		"no key": {"", nil, 401}, "another scope": {h.key(auth.ScopeRead), nil, 403}, "another origin": {key, []string{"Origin", "https://attacker.example"}, 403},
	} {
		if _, res, err := h.speak(c.key, c.header...); err == nil || res == nil || res.StatusCode != c.status {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if _, _, err := h.speak(key); err != nil {
		t.Fatal(err)
	}
	if _, res, err := h.speak(key); err == nil || res == nil || res.StatusCode != 429 {
		t.Errorf("a second stream of the key: %v, %v", res, err)
	}
}

// One user does not keep the streams from others, not with several keys either.
func TestOneUserCannotHoldAllStreamsOfSpeech(t *testing.T) {
	h := open(t, options{})
	first, second := h.key(auth.ScopeChat), h.key(auth.ScopeChat)
	for i := range 5 {
		if _, _, err := h.speak([]string{first, second}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	if _, res, err := h.speak(second); err == nil || res == nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != "5" {
		t.Errorf("a sixth: %v %v", res, err)
	}
	s, _, err := h.speak(h.keyOf(8, core.Sandboxed, auth.ScopeChat))
	if err != nil {
		t.Fatal(err)
	}
	s.say(2500*time.Millisecond, 9000, 0)
	if e := s.next(); e.Type != "text" {
		t.Errorf("another user: %+v", e)
	}
}

// A spent is the quota of a user who has nothing left.
type spent struct{ hearing.Quota }

func (spent) Check(context.Context, int64) error { return voice.ErrQuota }

// Who has used up the day's time may ask again when the next day begins, and not before.
func TestAUsedUpQuotaOfSpeechIsRetriedTheNextDay(t *testing.T) {
	h := open(t, options{})
	h.api.Voice = hearing.New(hearing.Options{Engine: echoEngine{}, Quota: spent{}})
	h.restart()
	now := h.clock.Now().UTC()
	left := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC).Sub(now)
	_, res, err := h.speak(h.key(auth.ScopeChat))
	if err == nil || res == nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != fmt.Sprint(math.Ceil(left.Seconds())) {
		t.Errorf("%v %v, want Retry-After %v", res, err, left)
	}
}
