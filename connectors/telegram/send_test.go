package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

func out(to core.Address, text string) core.Outgoing {
	return core.Outgoing{Address: to, Part: core.Part{Text: text}}
}

func TestAMessageArrivesAsItWasRendered(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	asked := ada.Send("how?")
	part := b.Render("**so**, [here](https://example.org/x?a=1&b=\"2\") `x<y` 😀 ||hush||\n\n```go\nx := 1\n```\n\n> quoted ~~not~~")[0]
	part.ReplyTo = strconv.Itoa(asked.ID)
	part.Buttons = [][]core.Button{{{Label: "Yes", Data: "a:1"}, {Label: "No", Data: "a:2"}}}
	d := b.Send(t.Context(), core.Outgoing{Address: chatOf(ada.ID()), Part: part})
	if d.Outcome != core.Sent {
		t.Fatalf("delivery %+v", d)
	}
	h := s.History(ada.DM())
	m := h[len(h)-1]
	if strconv.Itoa(m.ID) != d.MessageID || m.ReplyTo != asked.ID || m.Text != part.Text {
		t.Errorf("message %+v", m)
	}
	var want []telegramtest.Entity
	for _, sp := range part.Spans {
		want = append(want, telegramtest.Entity{Type: entityTypes[sp.Style], Offset: sp.Offset, Length: sp.Length, URL: sp.URL, Language: sp.Language})
	}
	if diff := cmp.Diff(want, m.Entities); diff != "" || len(want) != 7 {
		t.Errorf("%d entities: %s", len(want), diff)
	}
	if diff := cmp.Diff([][]telegramtest.Button{{{Text: "Yes", CallbackData: "a:1"}, {Text: "No", CallbackData: "a:2"}}}, m.Buttons); diff != "" {
		t.Error(diff)
	}
	r := s.Requests(0, "sendMessage")[0]
	if r.Params["link_preview_options"] != `{"is_disabled":true}` || r.Params["parse_mode"] != "" {
		t.Errorf("asked with %v", r.Params)
	}
}

func TestAReplyToAMessageThatIsGoneIsStillSent(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("x")
	for _, id := range []string{"4711", "not a number", ""} {
		o := out(chatOf(ada.ID()), "y")
		o.ReplyTo = id
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
			t.Errorf("reply to %q: %+v", id, d)
		}
	}
}

func TestTheOutcomeReflectsWhatThePlatformMayHave(t *testing.T) {
	fault := func(f telegramtest.Fault) func(*testing.T, *telegramtest.Server, *telegramtest.User) {
		return func(t *testing.T, s *telegramtest.Server, _ *telegramtest.User) { inject(t, s, f) }
	}
	for _, c := range []struct {
		name    string
		prepare func(*testing.T, *telegramtest.Server, *telegramtest.User)
		want    core.Outcome
		reason  string
		seen    int
	}{
		{"reset before it was read", fault(telegramtest.Fault{Kind: telegramtest.Reset, Count: 1}), core.Unknown, "", 0},
		{"reset after", fault(telegramtest.Fault{Kind: telegramtest.Reset, After: true, Count: 1}), core.Unknown, "", 1},
		{"half an answer", fault(telegramtest.Fault{Kind: telegramtest.Half, Count: 1}), core.Unknown, "", 1},
		{"no answer in time", fault(telegramtest.Fault{Kind: telegramtest.Hang, Count: 1}), core.Unknown, "deadline", 0},
		{"no answer in time, done", fault(telegramtest.Fault{Kind: telegramtest.Hang, After: true, Count: 1}), core.Unknown, "deadline", 1},
		{"proxy: bad gateway", fault(telegramtest.Fault{Kind: telegramtest.Broken, Count: 1}), core.Unknown, "502", 0},
		{"proxy: bad gateway, done", fault(telegramtest.Fault{Kind: telegramtest.Broken, After: true, Count: 1}), core.Unknown, "502", 1},
		{"proxy: gateway timeout, done", fault(telegramtest.Fault{Kind: telegramtest.Broken, Status: 504, After: true, Count: 1}), core.Unknown, "504", 1},
		{"proxy: unavailable", fault(telegramtest.Fault{Kind: telegramtest.Broken, Status: 503, Count: 1}), core.NotSent, "503", 0},
		{"proxy: too large", fault(telegramtest.Fault{Kind: telegramtest.Broken, Status: 413, Count: 1}), core.Refused, "413", 0},
		{"proxy: not found", fault(telegramtest.Fault{Kind: telegramtest.Broken, Status: 404, Count: 1}), core.NotSent, "404", 0},
		{"flood", fault(telegramtest.Fault{Kind: telegramtest.Flooded, RetryAfter: 9, Count: 1}), core.RetryAfter, "429", 0},
		{"refused connection", func(_ *testing.T, s *telegramtest.Server, _ *telegramtest.User) { s.Down() }, core.NotSent, "refused", 0},
		{"blocked", func(_ *testing.T, _ *telegramtest.Server, u *telegramtest.User) { u.Block() }, core.Refused, "blocked by the user", 0},
		{"revoked", func(_ *testing.T, s *telegramtest.Server, _ *telegramtest.User) { s.Bot().Revoke() }, core.NotSent, "401", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := platform(t, telegramtest.Options{FloodOff: true})
			b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.SendTimeout = 200 * time.Millisecond })
			ada := s.NewUser("Ada")
			ada.Send("hi")
			c.prepare(t, s, ada)
			d := b.Send(t.Context(), out(chatOf(ada.ID()), "x"))
			if d.Outcome != c.want || !strings.Contains(d.Reason, c.reason) || d.Reason == "" {
				t.Errorf("%+v, want outcome %d because of %q", d, c.want, c.reason)
			}
			if n := len(s.History(ada.DM())) - 1; n != c.seen {
				t.Errorf("%d messages seen, want %d", n, c.seen)
			}
			// A connection that fails, and a token that is refused, are not about the message.
			if want := d.Outcome == core.NotSent && c.reason != "refused" && c.reason != "401"; d.Declined != want {
				t.Errorf("declined: %v, want %v", d.Declined, want)
			}
		})
	}
}

// Bots that moderate a group delete messages of others: such a message had arrived, and would be
// deleted each time again.
func TestAMessageThatAModeratorDeletesAtOnceIsNotSentAgain(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	dir := files(t, map[string][]byte{"a.txt": []byte("a")})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = os.DirFS(dir) })
	ada := s.NewUser("Ada")
	g := s.NewGroup("supergroup", "The Garden", ada)
	g.Moderate()
	file := out(chatOf(g.ID()), "")
	file.File = &core.File{Path: "a.txt", Name: "a.txt"}
	for _, o := range []core.Outgoing{out(chatOf(g.ID()), "hello"), file} {
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent || d.MessageID != "" {
			t.Errorf("%+v", d)
		}
	}
}

func TestAContextThatEndedBeforeIsNotSent(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := b.Send(ctx, out(chatOf(7), "x")); d.Outcome != core.NotSent {
		t.Errorf("delivery %+v", d)
	}
}

func TestWhatThePlatformWillNeverTakeIsRefusedWithItsReason(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	basic := s.NewGroup(telegramtest.Basic, "Old", ada)
	super := basic.Migrate(ada)
	kicked := s.NewGroup(telegramtest.Supergroup, "Out", ada)
	kicked.SetBot(s.Bot(), ada, "kicked")
	forum := s.NewGroup(telegramtest.Forum, "F", ada)
	topic := forum.NewTopic(ada, "T")
	forum.DeleteTopic(topic)
	bad := out(chatOf(ada.ID()), "x")
	bad.Buttons = [][]core.Button{{{Label: "x", Data: strings.Repeat("x", 65)}}}
	for reason, o := range map[string]core.Outgoing{
		strconv.FormatInt(super.ID(), 10): out(chatOf(basic.ID()), "x"),
		"kicked":                          out(chatOf(kicked.ID()), "x"),
		"thread not found":                out(inThread(forum.ID(), topic), "x"),
		"too long":                        out(chatOf(ada.ID()), strings.Repeat("x", 4097)),
		"text is empty":                   out(chatOf(ada.ID()), ""),
		"chat not found":                  out(chatOf(4711), "x"),
		"65 bytes":                        bad,
		"not one of Telegram's":           out(core.Address{Chat: "general"}, "x"),
	} {
		if d := b.Send(t.Context(), o); d.Outcome != core.Refused || !strings.Contains(d.Reason, reason) {
			t.Errorf("%+v, want the reason %q", d, reason)
		}
	}
}

func TestEditsAreSafeToRepeatAndFallBackToANewMessageOnce(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	to := chatOf(ada.ID())
	first := b.Send(t.Context(), out(to, "one"))
	edit := out(to, "two")
	edit.Replaces = first.MessageID
	for range 2 {
		if d := b.Send(t.Context(), edit); d.Outcome != core.Sent || d.MessageID != first.MessageID {
			t.Errorf("edit: %+v", d)
		}
	}
	edit.Replaces = "4711"
	d := b.Send(t.Context(), edit)
	if d.Outcome != core.Sent || d.MessageID == "4711" || d.MessageID == first.MessageID {
		t.Errorf("edit of a message that is gone: %+v", d)
	}
	edit.Text, edit.Replaces = "three", d.MessageID
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Broken, Method: "editMessageText", After: true, Count: 1})
	if d := b.Send(t.Context(), edit); d.Outcome != core.NotSent {
		t.Errorf("an edit may be repeated: %+v", d)
	}
	if d := b.Send(t.Context(), edit); d.Outcome != core.Sent {
		t.Errorf("repeated: %+v", d)
	}
	var texts []string
	for _, m := range s.History(ada.DM()) {
		texts = append(texts, m.Text)
	}
	if diff := cmp.Diff([]string{"hi", "two", "three"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestAStyleThePlatformDislikesDoesNotCostTheMessage(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	o := out(chatOf(ada.ID()), "here")
	o.Spans = []core.Span{{Style: core.StyleLink, Length: 4, URL: "http://localhost"}}
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
		t.Errorf("delivery %+v", d)
	}
}

func TestDraftsInPrivateChats(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	to := chatOf(ada.ID())
	numbers := map[int64]bool{}
	for round := range 3 {
		for _, text := range []string{"so", "so it", "so it goes"} {
			if id, err := b.Preview(t.Context(), to, "", core.Part{Text: text}); id != "" || err != nil {
				t.Fatalf("Preview: %q %v", id, err)
			}
			screen := s.Screen(ada.DM())
			if len(screen.Drafts) != 1 || screen.Drafts[0].Text != text {
				t.Fatalf("round %d: drafts %+v", round, screen.Drafts)
			}
			numbers[screen.Drafts[0].ID] = true
		}
		if d := b.Send(t.Context(), out(to, "so it goes.")); d.Outcome != core.Sent {
			t.Fatal(d)
		}
		if screen := s.Screen(ada.DM()); len(screen.Drafts) != 0 || len(screen.Messages) != round+2 {
			t.Errorf("after the final: %+v", screen)
		}
	}
	if len(numbers) != 3 {
		t.Errorf("%d draft numbers for 3 answers", len(numbers))
	}
}

func TestWithoutDraftsAPreviewIsAnEditedMessage(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true, NoDrafts: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	to := chatOf(ada.ID())
	for range 2 {
		id, err := b.Preview(t.Context(), to, "", core.Part{Text: "so"})
		if id == "" || err != nil {
			t.Fatalf("Preview: %q %v", id, err)
		}
		for range 2 { // the second changes nothing, which is no error
			if again, err := b.Preview(t.Context(), to, id, core.Part{Text: "so it"}); again != id || err != nil {
				t.Fatalf("Preview: %q %v", again, err)
			}
		}
		o := out(to, "so it goes")
		o.Replaces = id
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent || d.MessageID != id {
			t.Errorf("final: %+v", d)
		}
	}
	if n := s.Count("sendMessageDraft"); n != 1 {
		t.Errorf("asked for drafts %d times", n)
	}
	if n := len(s.History(ada.DM())); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
	if r := s.Requests(0, "sendMessage")[0]; r.Params["disable_notification"] != "true" {
		t.Errorf("a preview makes noise: %v", r.Params)
	}
}

// A user deletes a topic of their chat with the bot, or switches topics off. In a group
// another topic is another conversation.
func TestAnAnswerForAMissingTopicOfAPrivateChatIsSentWithoutIt(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	files := fstest.MapFS{"a.txt": {Data: []byte("x")}}
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Files = files })
	ada := s.NewUser("Ada")
	ada.Send("hi")
	to := core.Address{Bot: "bot", Chat: strconv.FormatInt(ada.ID(), 10) + "/12", Thread: "12"}
	if d := b.Send(t.Context(), out(to, "here it is")); d.Outcome != core.Sent || d.MessageID == "" {
		t.Errorf("a text: %+v", d)
	}
	file := out(to, "")
	file.File = &core.File{Path: "a.txt", Name: "a.txt"}
	if d := b.Send(t.Context(), file); d.Outcome != core.Sent || d.MessageID == "" {
		t.Errorf("a file: %+v", d)
	}
	if all := s.History(ada.DM()); len(all) != 3 {
		t.Errorf("she sees %+v", all)
	}
}

// An edit notifies nobody: after a long run the answer is a message of its own, and the
// preview goes.
func TestAnEmptyPartDeletesThePreviewAndIsRepeatable(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	group := s.NewGroup(telegramtest.Supergroup, "Club", s.NewUser("Ada"))
	before := len(s.History(group.Conversation()))
	to := chatOf(group.ID())
	id, err := b.Preview(t.Context(), to, "", core.Part{Text: "so"})
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Send(t.Context(), out(to, "so it goes")); d.Outcome != core.Sent || d.MessageID == id {
		t.Errorf("the answer: %+v", d)
	}
	gone := out(to, "")
	gone.Replaces = id
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Reset, Method: "deleteMessage", After: true, Count: 1})
	if d := b.Send(t.Context(), gone); d.Outcome != core.Unknown || !d.Safe {
		t.Errorf("without a response: %+v", d)
	}
	if d := b.Send(t.Context(), gone); d.Outcome != core.Sent {
		t.Errorf("repeated: %+v", d)
	}
	if all := s.History(group.Conversation())[before:]; len(all) != 1 || all[0].Text != "so it goes" {
		t.Errorf("the group shows %+v", all)
	}
	sent := s.Requests(0, "sendMessage")
	if last := sent[len(sent)-1]; last.Params["disable_notification"] != "" {
		t.Errorf("the answer notifies nobody: %v", last.Params)
	}
}

// A preview that may stand in a group without our knowing its number says so:
// a platform without nonces can't be asked for it. One that was refused does not.
func TestAPreviewWithALostAnswerHasAnUnknownOutcome(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	group := s.NewGroup(telegramtest.Supergroup, "Club", s.NewUser("Ada"))
	for _, c := range []struct {
		fault telegramtest.Fault
		doubt bool
	}{
		{telegramtest.Fault{Kind: telegramtest.Reset, After: true}, true},
		{telegramtest.Fault{Kind: telegramtest.Half}, true},
		{telegramtest.Fault{Kind: telegramtest.Broken, Status: 504}, true},
		{telegramtest.Fault{Kind: telegramtest.Broken, Status: 503}, false},
	} {
		c.fault.Method, c.fault.Count = "sendMessage", 1
		inject(t, s, c.fault)
		if id, err := b.Preview(t.Context(), chatOf(group.ID()), "", core.Part{Text: "half"}); id != "" || err == nil || errors.Is(err, core.ErrInDoubt) != c.doubt {
			t.Errorf("%+v: %q, %v", c.fault, id, err)
		}
	}
}

// A late preview never stands over the final, and one that hangs holds none up.
func TestAFinalOvertakesAPreviewThatIsLateOrHangs(t *testing.T) {
	connectorstest.Overtaking(t, func(t *testing.T) *connectorstest.Previewed {
		s := platform(t, telegramtest.Options{FloodOff: true})
		b := connect(t, s, &connectorstest.Store{}, nil)
		group := s.NewGroup(telegramtest.Supergroup, "Club", s.NewUser("Ada"))
		before := len(s.History(group.Conversation()))
		return &connectorstest.Previewed{
			Bot: b, To: chatOf(group.ID()),
			Slow: func(made bool) {
				method := map[bool]string{true: "sendMessage", false: "editMessageText"}[made]
				inject(t, s, telegramtest.Fault{Kind: telegramtest.Slow, Method: method, Delay: 100 * time.Millisecond, Count: 1})
			},
			Hang:     func() { inject(t, s, telegramtest.Fault{Kind: telegramtest.Hang, Method: "sendMessage"}) },
			UnderWay: func() bool { return b.turns.Previewing(group.ID()) },
			Seen: func() (texts []string) {
				for _, m := range s.History(group.Conversation())[before:] {
					texts = append(texts, m.Text)
				}
				return texts
			},
			Edits: func() (texts []string) {
				for _, r := range s.Requests(0, "editmessagetext") {
					texts = append(texts, r.Params["text"])
				}
				return texts
			},
		}
	})
}

func TestARefusalForPaceHoldsTheWholeChat(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	clock := coretest.NewClock(time.Time{})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Clock = clock })
	ada, bob := s.NewUser("Ada"), s.NewUser("Bob")
	ada.Send("hi")
	bob.Send("hi")
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Flooded, Method: "sendMessageDraft", RetryAfter: 2, Count: 1})
	if _, err := b.Preview(t.Context(), chatOf(ada.ID()), "", core.Part{Text: "x"}); err != connectors.ErrNotNow {
		t.Errorf("Preview: %v", err)
	}
	if err := b.Typing(t.Context(), chatOf(ada.ID())); err != connectors.ErrNotNow {
		t.Errorf("Typing: %v", err)
	}
	if wait := b.Wait(chatOf(ada.ID())); wait != 2*time.Second || b.Wait(chatOf(bob.ID())) != 0 {
		t.Errorf("waits %v and %v", wait, b.Wait(chatOf(bob.ID())))
	}
	clock.Advance(2 * time.Second)
	if d := b.Send(t.Context(), out(chatOf(ada.ID()), "x")); d.Outcome != core.Sent || b.Wait(chatOf(ada.ID())) != 0 {
		t.Errorf("after the pause: %+v", d)
	}
}

func TestAtTheGatesPaceThePlatformNeverRefuses(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := platform(t, telegramtest.Options{Clock: clock})
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Clock, o.Pace = clock, true })
	ada := s.NewUser("Ada")
	ada.Send("hi")
	group := s.NewGroup(telegramtest.Supergroup, "Club", ada)
	for _, to := range []core.Address{chatOf(ada.ID()), chatOf(group.ID())} {
		for i := range 100 {
			if i%3 == 0 {
				if _, err := b.Preview(t.Context(), to, "", core.Part{Text: "p"}); err != nil && err != connectors.ErrNotNow {
					t.Fatal(err)
				}
			}
			clock.Advance(b.Wait(to))
			if d := b.Send(t.Context(), out(to, strconv.Itoa(i))); d.Outcome != core.Sent {
				t.Fatalf("%s message %d: %+v", to.Chat, i, d)
			}
		}
	}
}

func TestAPressedButtonIsAnsweredOnce(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hi")
	o := out(chatOf(ada.ID()), "sure?")
	o.Buttons = [][]core.Button{{{Label: "Yes", Data: "a:1"}}}
	d := b.Send(t.Context(), o)
	id, _ := strconv.Atoi(d.MessageID)
	query, err := ada.Press(ada.DM(), id, "a:1")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var answers []string
	defer s.Watch(func(c telegramtest.Change) {
		if c.Answer != nil {
			mu.Lock()
			answers = append(answers, c.Answer.Text)
			mu.Unlock()
		}
	})()
	for range 2 { // the second is too late, which is no error
		if err := b.Acknowledge(t.Context(), chatOf(ada.ID()), query, strings.Repeat("ü", 300)); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(answers) != 1 || len([]rune(answers[0])) != maxNotice {
		t.Errorf("answers %q", answers)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token went to %s", r.URL.Path)
	}))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	b, err := New(Options{Name: "bot", Token: "42:secret", APIURL: srv.URL, Cursors: noCursor{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if d := b.Send(t.Context(), out(chatOf(7), "x")); d.Outcome != core.NotSent {
		t.Errorf("delivery %+v", d)
	}
}

func TestAHalfWrittenRequestIsNotSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // takes a little of the request, then cuts
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 10))
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}()
	b, err := New(Options{Name: "bot", Token: "42:secret", APIURL: "http://" + ln.Addr().String(), Cursors: noCursor{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := b.Send(t.Context(), out(chatOf(7), strings.Repeat("x", 64<<20)))
	if d.Outcome != core.NotSent {
		t.Errorf("delivery %+v", d)
	}
}

func TestUploadRefusalsWithoutACodeAreRefusalsForPace(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(429)
		json.NewEncoder(w).Encode(map[string]any{"ok": false, "parameters": map[string]int{"retry_after": 7}})
	}))
	defer srv.Close()
	b, err := New(Options{Name: "bot", Token: "42:secret", APIURL: srv.URL, Cursors: noCursor{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if d := b.Send(t.Context(), out(chatOf(7), "x")); d.Outcome != core.RetryAfter || d.After != 7*time.Second {
		t.Errorf("delivery %+v", d)
	}
}

func TestManySendsShareFewConnections(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	b := connect(t, s, &connectorstest.Store{}, nil)
	var wg sync.WaitGroup
	for i := range 300 {
		u := s.NewUser("U" + strconv.Itoa(i))
		u.Send("hi")
		wg.Go(func() {
			for range 3 {
				if d := b.Send(t.Context(), out(chatOf(u.ID()), "x")); d.Outcome != core.Sent {
					t.Errorf("delivery %+v", d)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkSend(b *testing.B) {
	s := platform(b, telegramtest.Options{FloodOff: true})
	bot := connect(b, s, &connectorstest.Store{}, func(o *Options) { o.Pace = true })
	ada := s.NewUser("Ada")
	ada.Send("hi")
	o := core.Outgoing{Address: chatOf(ada.ID()), Part: bot.Render("An **answer** of one line.")[0]}
	b.ReportAllocs()
	for b.Loop() {
		if d := bot.Send(b.Context(), o); d.Outcome != core.Sent {
			b.Fatal(d)
		}
	}
}
