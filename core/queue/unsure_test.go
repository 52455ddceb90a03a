package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

var notices = outbox.Notices{
	Missing: func(seq int64) core.Part {
		return core.Part{Text: fmt.Sprint("missing ", seq), Buttons: [][]core.Button{{{Label: "show", Data: fmt.Sprint(seq)}}}}
	},
	Resolved: func(again bool) core.Part { return core.Part{Text: fmt.Sprint("resolved, again ", again)} },
}

// A row is one of the outbox that a killed process has left.
type row struct{ chat, thread, key, body, state string }

func (f *fixture) rows(rows ...row) {
	f.t.Helper()
	err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
		for _, r := range rows {
			_, err := tx.Exec(f.t.Context(), `INSERT INTO outbox (bot, chat, thread, key, ordinal, body, state, attempts, created_at, sent_at)
				VALUES ('bot', $1, $2, $3, 0, $4, $5, 1, $6, $6)`, r.chat, r.thread, r.key, r.body, r.state, core.Stamp(tx.Time()))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// sent waits for n messages and returns what each chat was sent.
func (f *fixture) sent(n int) map[string][]core.Outgoing {
	f.t.Helper()
	got := map[string][]core.Outgoing{}
	for range n {
		out := <-f.plat.seen
		got[out.Chat] = append(got[out.Chat], out)
	}
	return got
}

func told(outs []core.Outgoing) string {
	var list []string
	for _, o := range outs {
		list = append(list, o.Text+"@"+o.Thread+o.Aside)
	}
	return strings.Join(list, ", ")
}

func TestAChatIsToldOnceOfAMessageThatMayBeMissing(t *testing.T) {
	f := newFixture(t, func(o *options) { o.notices = notices })
	f.rows(
		row{"a", "7", "run:1", `{"text":"one"}`, "sending"},
		row{"a", "", "run:2", `{"text":"waits"}`, "ready"},
		row{"b", "", "notice:3", `{"text":"private","aside":"slot"}`, "sending"},
		row{"stranger", "", "pair:1:welcome", `{"text":"welcome"}`, "sending"},
		row{"c", "", "notice:unsure:9:1", `{"text":"a notice"}`, "sending"},
	)
	f.serve(nil)
	got := f.sent(3)
	if told(got["a"]) != "waits@, missing 1@7" || told(got["b"]) != "missing 3@slot" || len(got) != 2 {
		t.Errorf("the chats are told %v", got)
	}
	f.stop()
	stop := f.serveQueue(f.newQueue(func(o *options) { o.notices = notices }), nil)
	stop()
	if len(f.plat.seen) > 0 {
		t.Errorf("after another start: %+v", <-f.plat.seen)
	}
}

// A platform that takes a message twice and responds to neither: the third request is
// the notice.
func TestAChatIsToldOfAMessageThatThePlatformLeftUnanswered(t *testing.T) {
	f := newFixture(t, func(o *options) { o.notices = notices })
	f.plat.answers = []core.Delivery{{Outcome: core.Unknown}, {Outcome: core.Unknown}}
	f.rows(row{"a", "", "run:1", `{"text":"one"}`, "ready"})
	f.serve(nil)
	defer f.timePasses()()
	if got := told(f.sent(3)["a"]); got != "one@, one@, missing 1@" {
		t.Errorf("sent %q", got)
	}
}

func (f *fixture) showAgain(seq int64, chat, aside string) {
	f.t.Helper()
	err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
		return f.out.ShowAgain(f.t.Context(), tx, seq, core.Address{Bot: "bot", Chat: chat}, aside, core.Actor{User: 1, Via: "chat"})
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestAMissingMessageIsShownAgainOnceAndWithoutAMark(t *testing.T) {
	f := newFixture(t, func(o *options) { o.notices = notices })
	f.rows(row{"a", "7", "run:1", `{"text":"one"}`, "sending"}, row{"b", "", "notice:3", `{"text":"private","aside":"slot"}`, "sending"})
	f.serve(nil)
	f.sent(2)
	f.idle()
	f.showAgain(1, "b", "") // another chat's
	f.showAgain(1, "a", "")
	f.showAgain(1, "a", "") // pressed twice
	f.showAgain(2, "b", "fresh")
	got := f.sent(4)
	if told(got["a"]) != "one@7, resolved, again true@7" || told(got["b"]) != "private@fresh, resolved, again true@slot" {
		t.Errorf("sent %q and %q", told(got["a"]), told(got["b"]))
	}
	if one, notice := got["a"][0], got["a"][1]; one.Repeat || notice.Replaces == "" || len(notice.Buttons) > 0 {
		t.Errorf("sent %+v, and in place of the notice %+v", one, notice)
	}
	f.idle()
	f.showAgain(1, "a", "")
	f.stop()
	if len(f.plat.seen) > 0 {
		t.Errorf("shown twice: %+v", <-f.plat.seen)
	}
}

// idle waits until nothing is to be sent.
func (f *fixture) idle() {
	f.t.Helper()
	f.until("all is sent", func() bool {
		var open bool
		if err := f.db.Get(f.t.Context(), &open, `SELECT EXISTS (SELECT 1 FROM outbox WHERE state IN ('ready', 'sending'))`); err != nil {
			f.t.Fatal(err)
		}
		return !open
	})
}

func TestTheOperatorsDecisionEndsTheNotice(t *testing.T) {
	operator := core.Actor{User: core.Operator, Via: "panel"}
	for name, c := range map[string]struct {
		decide func(f *fixture) error
		early  bool // before the notice is sent
		want   string
	}{
		"send again":               {func(f *fixture) error { return f.out.SendAgain(f.t.Context(), 1, operator) }, false, "one@, resolved, again true@"},
		"settle":                   {func(f *fixture) error { return f.out.Settle(f.t.Context(), 1, operator) }, false, "resolved, again false@"},
		"send again, before it":    {func(f *fixture) error { return f.out.SendAgain(f.t.Context(), 1, operator) }, true, "one@"},
		"settle, before it is out": {func(f *fixture) error { return f.out.Settle(f.t.Context(), 1, operator) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *options) { o.notices = notices })
			f.rows(row{"a", "", "run:1", `{"text":"one"}`, "sending"})
			f.takeOver(f.q)
			if !c.early {
				f.serve(nil)
				f.sent(1)
				f.idle()
			}
			if err := c.decide(f); err != nil {
				t.Fatal(err)
			}
			if c.early {
				f.serve(nil)
			}
			f.idle()
			f.stop()
			if got := told(f.sent(len(f.plat.seen))["a"]); got != c.want {
				t.Errorf("sent %q, want %q", got, c.want)
			}
		})
	}
}
