package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
)

// A bot is stopped, started and tested over the API; what is written while it
// is stopped is answered when it runs again.
func TestABotIsStoppedAndStartedOverTheAPIAndNothingIsLost(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	if status, body := w.call("POST", "/api/bots/telegram/test", nil); status != 200 || !strings.Contains(body, w.sim.Bot().Account().Username) {
		t.Errorf("test: %d %s", status, body)
	}
	if status, body := w.call("POST", "/api/bots/telegram/stop", nil); status != 200 {
		t.Fatalf("stop: %d %s", status, body)
	}
	if status, body := w.call("GET", "/api/bots/status", nil); status != 200 || !strings.Contains(body, `"stopped"`) {
		t.Errorf("status: %d %s", status, body)
	}
	if status, _ := w.call("GET", "/readyz", nil); status != 200 {
		t.Errorf("readyz with the bot stopped on purpose: %d", status)
	}
	asked := ada.Send("How long should green tea brew?")
	if status, body := w.call("POST", "/api/bots/telegram/start", nil); status != 200 {
		t.Fatalf("start: %d %s", status, body)
	}
	if got := w.answers(ada.DM(), asked.ID); !strings.Contains(got.Text, "tea") {
		t.Errorf("the answer: %q", got.Text)
	}
	if status, _ := w.call("POST", "/api/bots/nobody/start", nil); status != 404 {
		t.Errorf("start of an unknown bot: %d", status)
	}
	for _, action := range []string{"bot.stop", "bot.start"} {
		if n := w.count(`SELECT count(*) FROM audit_events WHERE action = $1 AND subject = 'telegram'`, action); n != 1 {
			t.Errorf("%d audit rows of %s", n, action)
		}
	}
}

func TestPairingAndAccessOverTheAPI(t *testing.T) {
	w := newWorld(t, nil)
	ada, bob, eve := w.sim.NewUser("Ada"), w.sim.NewUser("Bob"), w.sim.NewUser("Eve")
	requests := map[int64]core.PairingRequest{}
	for _, u := range []interface {
		ID() int64
	}{ada, bob, eve} {
		w.sim.User(u.ID()).Send("How long should green tea brew?")
		requests[u.ID()] = w.request(w.sim.User(u.ID()))
	}
	status, body := w.call("GET", "/api/bots/pairing?status=pending", nil)
	if status != 200 || strings.Count(body, `"status":"pending"`) != 3 {
		t.Errorf("list: %d %s", status, body)
	}
	id := func(u int64) string { return requests[u].ID }
	if status, body = w.call("GET", "/api/bots/pairing/"+id(ada.ID()), nil); status != 200 || !strings.Contains(body, fmt.Sprint(ada.ID())) {
		t.Errorf("one: %d %s", status, body)
	}
	if status, body = w.call("POST", "/api/bots/pairing/"+id(ada.ID())+"/approve", map[string]string{"trust_level": "vault"}); status != 200 {
		t.Errorf("approve: %d %s", status, body)
	}
	w.hearsText(ada, "tea")
	for _, verb := range []string{"approve", "deny", "block"} {
		if status, body = w.call("POST", "/api/bots/pairing/"+id(ada.ID())+"/"+verb, map[string]string{}); status != 409 || !strings.Contains(body, "already approved by") {
			t.Errorf("%s of what is approved: %d %s", verb, status, body)
		}
	}
	if status, body = w.call("POST", "/api/bots/pairing/"+id(bob.ID())+"/deny", map[string]string{}); status != 200 {
		t.Errorf("deny: %d %s", status, body)
	}
	w.hearsText(bob, "was denied")
	if status, body = w.call("POST", "/api/bots/pairing/"+id(eve.ID())+"/block", map[string]string{}); status != 200 {
		t.Errorf("block: %d %s", status, body)
	}
	if status, body = w.call("GET", "/api/bots/access", nil); status != 200 || !strings.Contains(body, `"vault"`) || strings.Count(body, `"scope"`) != 1 {
		t.Errorf("access: %d %s", status, body)
	}
	if status, body = w.call("DELETE", fmt.Sprintf("/api/bots/pairing/telegram/%d", ada.ID()), nil); status/100 != 2 {
		t.Errorf("revoke: %d %s", status, body)
	}
	w.quiet()
	last := ada.Send("And now?")
	eve.Send("Me too!")
	bob.Send("Please!")
	w.until("the three are refused", func() bool {
		return w.metric("gatehouse_updates_total", "outcome", "dropped")+w.metric("gatehouse_updates_total", "outcome", "blocked") >= 3
	})
	w.quiet()
	if got := w.said(ada.DM(), last.ID); len(got) != 1 || !strings.Contains(got[0], "Your access to me has ended") {
		t.Errorf("somebody revoked reads %q", got)
	}
	var list struct {
		Requests []core.PairingRequest `json:"requests"`
	}
	if status, body = w.call("GET", "/api/bots/pairing?status=denied", nil); status != 200 || json.Unmarshal([]byte(body), &list) != nil {
		t.Fatalf("the denied requests: %d %s", status, body)
	}
	for _, r := range list.Requests {
		if r.Revoked != (r.PlatformUserID == fmt.Sprint(ada.ID())) {
			t.Errorf("listed: %+v", r)
		}
		if !r.Revoked {
			continue
		}
		if status, body = w.call("POST", "/api/bots/pairing/"+r.ID+"/approve", map[string]string{"trust_level": "vault"}); status != 200 || !strings.Contains(body, `"status":"approved"`) {
			t.Errorf("approve a revoked user again: %d %s", status, body)
		}
	}
	w.hearsText(ada, "You have access to me again")
	if status, body = w.call("POST", "/api/bots/pairing/nothing/approve", map[string]string{}); status != 404 {
		t.Errorf("approve of nothing: %d %s", status, body)
	}
}

// Readiness says no when the only bot has failed, and why to those who may
// know; the token stands nowhere, and a new token gets what waited.
func TestARevokedTokenMakesTheGatewayNotReadyAndReportsWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.guest("Ada")
	old := w.sim.Token()
	fresh := w.sim.Bot().Revoke()
	w.until("the bot has failed", func() bool { return w.app.hub.States()[0].State == core.FailedPhase })
	asked := ada.Send("How long should green tea brew?")
	w.until("not ready", func() bool { status, _ := w.call("GET", "/readyz", nil); return status == 503 })
	_, body := w.call("GET", "/readyz", nil)
	if !strings.Contains(body, "BotFather") && !strings.Contains(body, "token") {
		t.Errorf("readyz says %s", body)
	}
	open, err := http.Get("http://" + w.cfg.Addr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	open.Body.Close()
	if open.StatusCode != 503 {
		t.Errorf("readyz without a key: %d", open.StatusCode)
	}
	w.logged("level=ERROR", "refuse")
	page := w.browser().page("/admin/bots")
	if !strings.Contains(page, "failed") || !strings.Contains(page, "BotFather") {
		t.Errorf("the panel does not say what to do: %s", page)
	}
	for where, text := range map[string]string{"log": w.log.String(), "readyz": body, "panel": page} {
		if strings.Contains(text, old) || strings.Contains(text, fresh) {
			t.Errorf("the token is in the %s", where)
		}
	}
	w.stop()
	w.cfg.TelegramToken = secret(fresh)
	w.start()
	defer w.stop()
	if got := w.answers(ada.DM(), asked.ID); !strings.Contains(got.Text, "tea") {
		t.Errorf("with the new token: %q", got.Text)
	}
	w.quiet()
	if got := w.said(ada.DM(), asked.ID); len(got) != 1 {
		t.Errorf("answered %d times", len(got))
	}
}

// Every series that the operations page names exists from the start with its
// known labels at 0 on a gateway with a bot on each platform, no other does, and
// none names a chat or a person.
func TestTheMetricsAreThoseOfTheOperationsPageFromTheStart(t *testing.T) {
	page := operationsPage(t)
	w, sim := onDiscord(t)
	check := func(when string) {
		t.Helper()
		have := map[string][]string{} // series → labels
		for _, s := range w.samples() {
			if !strings.HasPrefix(s.name, "gatehouse_") {
				continue
			}
			names := []string{}
			for l, v := range s.labels {
				names = append(names, l)
				if known := page.values[l+" of "+s.name]; known != nil && !slices.Contains(known, v) {
					t.Errorf("%s: %s has %s=%q, which the page does not list (%v)", when, s.name, l, v, known)
				}
			}
			slices.Sort(names)
			have[s.name] = names
		}
		for name, labels := range page.labels {
			if got, ok := have[name]; !ok {
				t.Errorf("%s: %s is on the page and does not exist", when, name)
			} else if !slices.Equal(got, labels) {
				t.Errorf("%s: %s has the labels %v, the page says %v", when, name, got, labels)
			}
		}
		for name := range have {
			if page.labels[name] == nil {
				t.Errorf("%s: %s exists and is not on the page", when, name)
			}
		}
	}
	check("at the start")
	for name, labels := range page.labels {
		for _, l := range labels {
			for _, v := range page.values[l+" of "+name] {
				if w.metric(name, l, v) < 0 {
					t.Errorf("at the start: no %s{%s=%q}", name, l, v)
				}
			}
		}
	}
	for name, labels := range page.labels {
		for _, bot := range []string{"telegram", "discord"} {
			its := bot == "discord" || !strings.HasPrefix(name, "gatehouse_discord_")
			if slices.Contains(labels, "bot") && its && w.metric(name, "bot", bot) < 0 {
				t.Errorf("at the start: no %s of the bot on %s", name, bot)
			}
		}
	}
	for _, name := range []string{"gatehouse_updates_total", "gatehouse_inbox_depth", "gatehouse_oldest_ready_seconds"} {
		if w.metric(name, "bot", core.APIBot) < 0 {
			t.Errorf("at the start: no %s of turns over HTTP", name)
		}
	}
	boss := w.boss()
	ada := w.guest("Ada")
	g := w.group("supergroup", boss, ada)
	cleo := sim.NewUser("Cleopatra")
	cleo.Send("tea?")
	discordHears(w, sim, cleo.DM(), "code")
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, cleo).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, cleo.DM(), "Public/")
	w.call("POST", "/api/chat", map[string]any{"message": "tea?"})
	w.quiet()
	check("after some work")
	for _, s := range w.samples() {
		for l, v := range s.labels {
			for what, id := range map[string]string{"person": fmt.Sprint(ada.ID()), "group": fmt.Sprint(g.ID()), "name": "Ada", "group's name": "Garden",
				"person on Discord": cleo.ID().String(), "channel": cleo.DM().String(), "name on Discord": "Cleo"} {
				if strings.Contains(v, id) {
					t.Errorf("%s{%s=%q} holds a %s", s.name, l, v, what)
				}
			}
		}
	}
}

// What waits is seen: depth, age, held strangers, dead letters.
func TestMetricsShowWhatWaits(t *testing.T) {
	w := newWorld(t, nil)
	w.sim.NewUser("Ada").Send("hello")
	w.until("a request waits", func() bool { return w.metric("gatehouse_pairing_pending", "bot", "telegram") == 1 })
	for _, want := range [][]string{
		{"gatehouse_updates_total", "bot", "telegram", "kind", "message", "outcome", "held"},
		{"gatehouse_denied_total", "rule", "stranger"},
		{"gatehouse_connector_state", "bot", "telegram", "state", "running"},
		{"gatehouse_deliveries_total", "bot", "telegram", "outcome", "sent"},
	} {
		w.until(fmt.Sprint(want, " is 1"), func() bool { return w.metric(want[0], want[1:]...) == 1 })
	}
	if n := w.metric("gatehouse_poll_last_success_timestamp_seconds", "bot", "telegram"); n < 1e9 {
		t.Errorf("last poll at %v", n)
	}
}
