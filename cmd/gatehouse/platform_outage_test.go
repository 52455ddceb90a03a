package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/texts"
)

func (w *world) inject(f telegramtest.Fault) {
	w.t.Helper()
	if _, err := w.sim.Inject(f); err != nil {
		w.t.Fatal(err)
	}
}

// While the platform is away nothing is lost: what people write waits there,
// what the bot says waits here, and each is delivered once when it is back.
func TestThePlatformGoesAwayAndNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.BusyMode = "queue" })
	ada := w.guest("Ada")
	calls := model.Total()
	model.Script(llmtest.Reply{Text: []string{"Said while ", "it was away."}, Pause: 300 * time.Millisecond, Split: 200})
	first := ada.Send("a question")
	if err := model.Await(t.Context(), calls+1); err != nil {
		t.Fatal(err)
	}
	w.sim.Down()
	w.until("the bot knows", func() bool { return w.app.hub.States()[0].State == core.Reconnecting })
	state := w.app.hub.States()[0]
	if !strings.Contains(state.Reason, "cannot be reached") {
		t.Errorf("the state's reason: %q", state.Reason)
	}
	w.until("the answer waits", func() bool { return w.count(`SELECT count(*) FROM outbox WHERE state = 'ready' AND attempts > 0`) == 1 })
	if page := w.browser().page("/admin/bots"); !strings.Contains(page, "reconnecting") {
		t.Errorf("the panel does not show it: %s", page)
	}
	ada.Send("another")
	last := ada.Send("and one more")
	if err := w.sim.Up(); err != nil {
		t.Fatal(err)
	}
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return m.Text == "Said while it was away." })
	w.until("all are answered", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'done'`) == 4 })
	w.quiet()
	if got := w.said(ada.DM(), first.ID); len(got) != 3 {
		t.Errorf("the bot said %q, want three answers after message %d", got, last.ID)
	}
	if s := w.app.hub.States()[0]; s.State != core.Running {
		t.Errorf("the bot is %s: %s", s.State, s.Reason)
	}
}

// How a send that went wrong is treated, by what the platform may have seen.
func TestASendThatWentWrongIsRepeatedAsItMayBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   telegramtest.Fault
		visible int    // messages in the chat at the end
		marked  int    // of them with the mark of a possible repeat
		state   string // of the outbox row at the end
	}{
		{"503 page from a proxy: it never arrived", telegramtest.Fault{Kind: telegramtest.Broken, Status: 503, Count: 2}, 1, 0, "sent"},
		{"502 page: it may have arrived", telegramtest.Fault{Kind: telegramtest.Broken, Status: 502, Count: 1}, 1, 1, "sent"},
		{"502 page after it arrived", telegramtest.Fault{Kind: telegramtest.Broken, Status: 502, Count: 1, After: true}, 2, 1, "sent"},
		{"cut off before it was read", telegramtest.Fault{Kind: telegramtest.Reset, Count: 1}, 1, 1, "sent"},
		{"cut off after it arrived", telegramtest.Fault{Kind: telegramtest.Reset, Count: 1, After: true}, 2, 1, "sent"},
		{"half an answer", telegramtest.Fault{Kind: telegramtest.Half, Count: 1}, 2, 1, "sent"},
		{"cut off twice", telegramtest.Fault{Kind: telegramtest.Reset, Count: 2, After: true}, 2, 1, "unknown"},
		{"429", telegramtest.Fault{Kind: telegramtest.Flooded, RetryAfter: 1, Count: 1}, 1, 0, "sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := newModelWorldIn(t)
			ada := w.guest("Ada")
			c.fault.Method = "sendMessage"
			w.inject(c.fault)
			asked := ada.Send("hello?")
			w.until("the send is settled", func() bool {
				return w.count(`SELECT count(*) FROM outbox WHERE state = $1 AND key LIKE 'run:%' AND seq = (SELECT max(seq) FROM outbox WHERE key LIKE 'run:%')`, c.state) == 1 &&
					w.count(`SELECT count(*) FROM runs WHERE state = 'done'`) == 2
			})
			w.quiet()
			got := w.said(ada.DM(), asked.ID)
			if c.state == "unknown" { // its reader is told
				i := slices.IndexFunc(got, func(text string) bool { return text == texts.Text("unsure") })
				if i < 0 {
					t.Fatalf("the chat shows %q", got)
				}
				got = slices.Delete(got, i, i+1)
			}
			marked := 0
			for _, text := range got {
				if text != fakeSays {
					marked++
					if !strings.Contains(text, fakeSays) {
						t.Errorf("a repeat that lost its text: %q", text)
					}
				}
			}
			if len(got) != c.visible || marked != c.marked {
				t.Errorf("the chat shows %q, want %d messages, %d marked", got, c.visible, c.marked)
			}
			if c.state == "unknown" {
				if page := w.browser().page("/admin/queue"); !strings.Contains(page, fakeSays) {
					t.Errorf("the panel does not show the unknown send: %s", page)
				}
				if n := w.metric("gatehouse_deliveries_total", "outcome", "unknown"); n != 2 {
					t.Errorf("%v counted as unknown", n)
				}
			}
			w.sim.ClearFaults()
			if next := w.replies(ada, "and now?"); !strings.Contains(next.Text, fakeSays) {
				t.Errorf("the next message: %q", next.Text)
			}
		})
	}
}

// An update that cannot be read becomes a dead letter that the panel shows,
// and neither it nor one of an unknown kind holds up what comes behind it.
func TestAMalformedUpdateIsADeadLetterAndBlocksNoOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	bot := w.sim.Bot()
	id := bot.InjectRaw(`{"update_id": {id}, "message": {"message_id": "seven", "chat": [], "text": 5}}`)
	bot.InjectRaw(`{"update_id": {id}, "brand_new_kind": {"x": 1}}`)
	bot.InjectRaw(`{"update_id": {id}, "message": null}`)
	asked := ada.Send("How long should green tea brew?")
	if got := w.answers(ada.DM(), asked.ID); !strings.Contains(got.Text, "tea") {
		t.Errorf("the message behind: %q", got.Text)
	}
	w.quiet()
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'dead'`); n != 1 {
		t.Errorf("%d dead letters, want 1 (update %d)", n, id)
	}
	if n := w.metric("gatehouse_updates_total", "outcome", "malformed"); n != 1 {
		t.Errorf("%v counted as malformed", n)
	}
	b := w.browser()
	page := b.page("/admin/queue")
	if !strings.Contains(page, "message_id") && !strings.Contains(page, "decode") && !strings.Contains(page, "read") {
		t.Errorf("the panel does not say why: %s", page)
	}
	dead, err := w.app.inspect.Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Error == "" {
		t.Fatalf("dead: %+v %v", dead, err)
	}
	if err := w.app.queue.Dismiss(t.Context(), dead[0].Seq, cli); err != nil {
		t.Error(err)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'dead'`); n != 0 {
		t.Errorf("%d dead letters after it was dismissed", n)
	}
}

// Numbers beyond 2^53 are not rounded: not the update's, not the person's.
func TestIdsBeyond53BitsAreKeptExactly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const user = 9007199254740993 // 2^53 + 1
	w.sim.Bot().SetNextUpdateID(9007199254740995)
	raw := func(message int, text string) {
		w.sim.Bot().InjectRaw(fmt.Sprintf(`{"update_id": {id}, "message": {"message_id": %d, "date": %d, "text": %q, "chat": {"id": %d, "type": "private", "first_name": "Big"}, "from": {"id": %d, "is_bot": false, "first_name": "Big"}}}`,
			message, time.Now().Unix(), text, user, user))
	}
	raw(1, "hello")
	w.until("the request is there", func() bool {
		return w.count(`SELECT count(*) FROM pairing_requests WHERE platform_user_id = '9007199254740993'`) == 1
	})
	raw(2, "again")
	w.until("both are kept once", func() bool { return w.count(`SELECT count(*) FROM inbox WHERE state = 'held'`) == 2 })
	w.until("the cursor moved by one each", func() bool {
		return w.count(`SELECT count(*) FROM cursors WHERE value = '9007199254740997'`) == 1
	})
	if status, body := w.call("GET", "/api/bots/pairing", nil); status != 200 || !strings.Contains(body, "9007199254740993") {
		t.Errorf("the API: %s", body)
	}
	if page := w.browser().page("/admin/pairing"); !strings.Contains(page, "9007199254740993") {
		t.Error("the panel rounds the id")
	}
}

// A text far over the platform's own limit hurts nobody.
func TestAMessageOfAMegabyteIsAnsweredAndTheNextOneToo(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	big := strings.Repeat("word ", 1<<20/5)
	w.sim.Bot().InjectRaw(fmt.Sprintf(`{"update_id": {id}, "message": {"message_id": 900, "date": %d, "text": %q, "chat": {"id": %d, "type": "private"}, "from": {"id": %d, "is_bot": false, "first_name": "Ada"}}}`,
		time.Now().Unix(), big, ada.ID(), ada.ID()))
	w.until("it is settled", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state <> 'running'`) == 2 })
	w.quiet()
	if got := w.replies(ada, "short"); got.Text != fakeSays {
		t.Errorf("the next message: %q", got.Text)
	}
	w.quiet()
	model.Script(llmtest.Say(strings.Repeat("A paragraph of an answer that goes on.\n\n", 1000)))
	asked := ada.Send("long?")
	w.answers(ada.DM(), asked.ID)
	w.quiet()
	parts := w.said(ada.DM(), asked.ID)
	if len(parts) < 10 || strings.Count(strings.Join(parts, "\n"), "A paragraph of an answer that goes on.") != 1000 {
		t.Errorf("a long answer came in %d parts", len(parts))
	}
}

// Names are hostile: in the panel, the API and the chat they stay text.
func TestHostileNamesStayTextEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boss := w.boss()
	for i, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "Eve\u202egpj.exe", "\x00\x07Bell\x1b[31m", "*bold* _it_ [x](http://evil.example) `code`",
		"Line\nOwner: approve everybody", "\u200b\u200d", strings.Repeat("W", 64),
	} {
		eve := w.sim.NewUser(name)
		eve.Send("hello <b>there</b>")
		r := w.request(eve)
		ask := w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, r.Code) && len(m.Buttons) > 0 })
		first, _, _ := strings.Cut(ask.Text, "\n")
		if !strings.HasSuffix(first, "wants to talk to this bot in a direct message.") || strings.ContainsAny(ask.Text, "\u202e\x07\x1b\x00") {
			t.Errorf("%d: the owner reads %q", i, ask.Text)
		}
		for _, e := range ask.Entities {
			if e.Type == "text_link" || e.Type == "bold" {
				t.Errorf("%d: a name became a style: %+v", i, e)
			}
		}
	}
	b := w.browser()
	page := b.page("/admin/pairing")
	for _, bad := range []string{"<script>alert", "<img src=x", "\u202e", "\x1b", "<b>there"} {
		if strings.Contains(page, bad) {
			t.Errorf("the panel holds %q", bad)
		}
	}
	if status, body := w.call("GET", "/api/bots/pairing", nil); status != 200 || strings.ContainsAny(body, "\u202e\x1b\x00") {
		t.Errorf("the API: %d", status)
	}
	if got := w.replies(boss, "/pairing"); strings.ContainsAny(got.Text, "\u202e\x1b") || len(got.Text) == 0 {
		t.Errorf("/pairing: %q", got.Text)
	} else {
		for _, e := range got.Entities {
			if e.Type == "text_link" || e.Type == "bold" || e.Type == "italic" {
				t.Errorf("/pairing: a name became a style: %+v", e)
			}
		}
	}
}

// Another program with the same token makes the bot degraded, not deaf.
func TestASecondPollerMakesTheBotDegradedAndThenItContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	w.until("the bot polls", w.sim.Bot().Polling)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { // a program that polls as we do, without confirming anything
		defer close(done)
		for ctx.Err() == nil {
			req, _ := http.NewRequestWithContext(ctx, "GET", w.sim.URL()+"/bot"+w.sim.Token()+"/getUpdates?timeout=10", nil)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}()
	w.until("the bot is degraded", func() bool {
		s := w.app.hub.States()[0]
		return s.State == core.Degraded && strings.Contains(s.Reason, "another program polls")
	})
	cancel()
	<-done
	asked := ada.Send("How long should green tea brew?")
	if got := w.answers(ada.DM(), asked.ID); !strings.Contains(got.Text, "tea") {
		t.Errorf("after it: %q", got.Text)
	}
	w.until("it runs", func() bool { return w.app.hub.States()[0].State == core.Running })
}
