package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission/raise"
	"gatehouse/core/store"
)

// A press is a button of one admin's page.
type press struct {
	path string
	form url.Values
	done string // what the other admin then reads was done
}

// atOnce has two admins, who look at the same page, press at the very same
// moment. Exactly one is first; the other reads who that was, and what it did.
func atOnce(t *testing.T, a, b *browser, path string, presses [2]press) {
	t.Helper()
	admins := [2]*browser{a, b}
	var pages, said [2]string
	for i := range admins {
		pages[i] = admins[i].page(path)
		for _, p := range presses {
			if !strings.Contains(pages[i], `action="`+p.path+`"`) {
				t.Fatalf("%s has no button %s", path, p.path)
			}
		}
	}
	gate := make(chan struct{})
	var ready, over sync.WaitGroup
	ready.Add(2)
	for i := range admins {
		over.Go(func() {
			ready.Done()
			<-gate
			_, said[i] = admins[i].submit(presses[i].path, pages[i], presses[i].form)
		})
	}
	ready.Wait()
	close(gate)
	over.Wait()
	for i := range said {
		said[i] = flashIn(said[i])
	}
	first, second := 0, 1
	if strings.HasPrefix(said[1], "good") {
		first, second = 1, 0
	}
	want := regexp.MustCompile(`^note: .*lready ` + presses[first].done + ` by operator via panel \(\d\d:\d\d UTC\)`)
	if !strings.HasPrefix(said[first], "good") || !want.MatchString(said[second]) {
		t.Errorf("%s and %s: one reads %q, the other %q", presses[first].path, presses[second].path, said[first], said[second])
	}
}

var flashLine = regexp.MustCompile(`(?s)<p class="flash (\w+)" id="flash".*?<span[^>]*>(.*?)</span></p>`)

// flashIn is what a page has to say about the decision, with its tone.
func flashIn(page string) string {
	m := flashLine.FindStringSubmatch(page)
	if m == nil {
		return "nothing"
	}
	return m[1] + ": " + m[2]
}

// Two admins decide about one thing at the very same moment: a request, a tool
// call, trust full for a time, a message that was given up, a reply in doubt.
func TestTwoAdminsDecideAtTheVerySameMoment(t *testing.T) {
	t.Parallel()
	const rounds = 3
	w := newWorld(t, nil)
	a, b := w.browser(), w.browser()
	audited := func(want int, actions string) {
		t.Helper()
		if n := w.count(`SELECT count(*) FROM audit_events WHERE via = 'panel' AND action IN (` + actions + `)`); n != want {
			t.Errorf("%d decisions of %s are noted, want %d", n, actions, want)
		}
	}
	for i := range rounds {
		guest := w.sim.NewUser(fmt.Sprint("Guest ", i))
		guest.Send("hello")
		id := w.request(guest).ID
		atOnce(t, a, b, "/admin/pairing", [2]press{
			{"/admin/pairing/" + id + "/approve", url.Values{"trust": {"sandboxed"}, "end": {""}}, "approved"},
			{"/admin/pairing/" + id + "/deny", url.Values{}, "denied"}})
	}
	audited(rounds, `'pairing.approve', 'pairing.deny'`)

	ada := w.lend()
	session := ""
	for i := range rounds {
		run := ada.says(strings.Replace(wantsToWrite, "plan.md", fmt.Sprint(i, ".md"), 1), session)
		id := run.until("permission_request").Data["id"].(string)
		session = run.all[0].Data["id"].(string)
		atOnce(t, a, b, "/admin/approvals", [2]press{
			{"/admin/approvals/" + id + "/allow", url.Values{"pattern": {""}}, "decided"},
			{"/admin/approvals/" + id + "/deny", url.Values{}, "decided"}})
		run.until("message_stop")
	}
	audited(rounds, `'ask.decide'`)

	boss := w.boss()
	for range rounds {
		err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
			return w.app.raises.Ask(t.Context(), tx, raise.Raise{Bot: "telegram", Chat: fmt.Sprint(boss.DM()), User: core.Operator, Session: "s", For: time.Hour}, core.Actor{User: 1, Via: "chat"})
		})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.app.raises.Raises(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		path := ""
		for _, r := range rows {
			if r.State == raise.Asked {
				path = "/admin/approvals/raises/" + r.ID
			}
		}
		atOnce(t, a, b, "/admin/approvals", [2]press{
			{path + "/confirm", url.Values{"minutes": {"5"}}, "confirmed"},
			{path + "/deny", url.Values{}, "refused"}})
	}
	audited(rounds, `'raise.confirm', 'raise.deny'`)

	for i := range rounds {
		w.exec(`INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, payload, state, error, run, received_at)
			VALUES ('telegram', $1, 'c', 'dead', 'message', $3, 1000, '{"text":"x"}', 'dead', 'no answer', '', $2)`, fmt.Sprint("race:", i), core.Stamp(time.Now()), 1000+i)
		w.exec(`INSERT INTO outbox (bot, chat, key, ordinal, body, state, error, created_at) VALUES ('telegram', 'c', $1, 0, '{"text":"x"}', 'unknown', 'cut', $2)`, fmt.Sprint("race:", i), core.Stamp(time.Now()))
		dead, err := w.app.inspect.Dead(t.Context(), 1)
		if err != nil || len(dead) != 1 {
			t.Fatal(dead, err)
		}
		path := fmt.Sprint("/admin/queue/dead/", dead[0].Seq)
		atOnce(t, a, b, "/admin/queue", [2]press{{path + "/retry", url.Values{}, "tried again"}, {path + "/dismiss", url.Values{}, "dismissed"}})
		sends, err := w.app.inspect.Unsure(t.Context(), 1)
		if err != nil || len(sends) != 1 {
			t.Fatal(sends, err)
		}
		path = fmt.Sprint("/admin/queue/send/", sends[0].Seq)
		atOnce(t, a, b, "/admin/queue", [2]press{{path + "/settle", url.Values{}, "settled"}, {path + "/settle", url.Values{}, "settled"}})
	}
	audited(2*rounds, `'queue.retry', 'queue.dismiss', 'queue.settle'`)
}
